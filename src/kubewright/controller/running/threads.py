"""The threads in which one controller's blocking functions run."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

R = TypeVar("R")


class WorkerThreads:
    """Run functions in a bounded number of threads, and know how many still run.

    Cancelling a reconcile cannot end its thread, so the lease is released only when `running` is 0.
    """

    def __init__(self, name: str, limit: int) -> None:
        self._executor = ThreadPoolExecutor(limit, thread_name_prefix=f"kubewright-{name}")
        self._lock = threading.Lock()
        self._running = 0

    @property
    def running(self) -> int:
        """Return how many functions have not returned."""
        return self._running

    async def run(self, call: Callable[[], R]) -> R:
        """Run the function in a thread and wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._counted, call)

    def close(self) -> None:
        """Take no more functions; those that run are left to end."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _counted(self, call: Callable[[], R]) -> R:
        with self._lock:
            self._running += 1
        try:
            return call()
        finally:
            with self._lock:
                self._running -= 1
