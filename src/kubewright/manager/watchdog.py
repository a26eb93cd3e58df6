"""Report the function that blocks the event loop, and with it everything else."""

import asyncio
import logging
import sys
import threading
from types import FrameType
from typing import Self

from kubewright.metrics import Registry
from kubewright.tracebacks import library_folders

INTERVAL = 1.0

_log = logging.getLogger("kubewright.watchdog")


class Watchdog:
    """Schedule a callback each second; if it does not run within another second, log where the loop is blocked."""

    def __init__(self, metrics: Registry, *, interval: float = INTERVAL) -> None:
        self._interval = interval
        self._blocked = metrics.counter(
            "kubewright_event_loop_blocked_total", "Times the event loop did not respond within a second"
        ).labels()
        self._responded = threading.Event()
        self._ended = threading.Event()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="kubewright-watchdog", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ended.set()
        await asyncio.to_thread(self._thread.join)

    def _watch(self) -> None:
        while not self._ended.wait(self._interval):
            self._responded.clear()
            try:
                self._loop.call_soon_threadsafe(self._responded.set)
            except RuntimeError:
                return  # the loop is closed
            if not self._responded.wait(self._interval):
                self._report()
                self._responded.wait()

    def _report(self) -> None:
        self._blocked.inc()
        frame = sys._current_frames().get(self._loop_thread)  # pyright: ignore[reportPrivateUsage]  (the only way to another thread's stack)
        if frame is not None:
            _log.warning(
                "The event loop has been blocked for %.1f s by %s: use `await ctx.run_sync(...)` for blocking calls",
                self._interval,
                _blocking_function(frame),
            )


def _blocking_function(frame: FrameType) -> str:
    """Return the innermost function that is not a library's, else the innermost one."""
    innermost, at = frame, frame
    libraries = library_folders("stdlib", "purelib")
    while at.f_code.co_filename.startswith(libraries) and at.f_back is not None:
        at = at.f_back
    found = innermost if at.f_back is None else at
    code = found.f_code
    return f"{code.co_qualname} ({code.co_filename}:{found.f_lineno})"
