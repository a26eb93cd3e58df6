"""Run a coroutine as a program: on uvloop if it is installed, until a signal stops it."""

import asyncio
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, Self, TypeVar

from kubewright.api import KubewrightError, leaves

try:
    from uvloop import new_event_loop
except ImportError:  # an optional extra
    from asyncio import new_event_loop

T = TypeVar("T")

STOP_LIMIT = 38.0
"""Seconds from the first signal until the process is ended: 30 s for reconciles in flight, and some for cleanup.

In generated Deployments the kubelet kills the process after 40 s."""
SAME_REQUEST = 1.0
"""Seconds after the first signal within which further ones are ignored: timeout(1) and `uv run` send each twice."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_log = logging.getLogger("kubewright.run")


def run_program(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run to the end; from an exception group, raise only the first exception that is meant for the user."""
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(main())
    except BaseExceptionGroup as failures:
        causes = list(leaves(failures))
        expected = [cause for cause in causes if isinstance(cause, KubewrightError)]
        raise (expected or causes)[0] from None


async def until_signalled(
    work: Coroutine[Any, Any, None],
    *,
    limit: float = STOP_LIMIT,
    on_stop: Callable[[], object] = lambda: None,
) -> None:
    """Run work until it ends or SIGINT or SIGTERM calls `on_stop` and cancels it.

    A second signal ends the process at once, and so does the time limit: otherwise code that swallows its
    cancellation, a blocked event loop or a thread that does not return would keep the process, and its lease, forever.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)

        def stop() -> None:
            task.cancel()
            on_stop()

        with StopSignals(lambda: loop.call_soon_threadsafe(stop), limit) as signals:
            try:
                await task
            except asyncio.CancelledError:
                if not signals.received:
                    raise


class StopSignals:
    """Call `stop` on the first SIGINT or SIGTERM, and end the process on a later one or at the end of the limit.

    The signals are read by a thread, from the descriptor that Python's C handler writes to: a handler of the event
    loop, or one in Python, does not run while the main thread is blocked.
    """

    def __init__(self, stop: Callable[[], object], limit: float) -> None:
        self.received: bool = False
        self._stop = stop
        self._limit = limit

    def __enter__(self) -> Self:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        try:
            self._descriptor = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        except ValueError:
            # Only the main thread can receive signals.
            self._reader.close()
            self._writer.close()
            raise
        threading.Thread(target=self._watch, name="kubewright-signals", daemon=True).start()
        # The handler does nothing, but it must be a Python handler: only for those the descriptor is written to.
        self._handlers = {number: signal.signal(number, _ignore) for number in STOP_SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        try:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._descriptor)
        finally:
            # The thread reads the end of the stream and closes its side: joining it would block the event loop.
            self._writer.close()

    def _watch(self) -> None:
        with self._reader:
            self._read_signals()

    def _read_signals(self) -> None:
        first = 0.0
        while numbers := self._reader.recv(64):
            if not any(number in STOP_SIGNALS for number in numbers):
                continue
            if not self.received:
                first, self.received = time.monotonic(), True
                last_resort = threading.Timer(self._limit, _end_process, (self._limit,))
                last_resort.daemon = True
                last_resort.start()
                self._stop()
            elif time.monotonic() - first >= SAME_REQUEST:
                os._exit(1)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Leave the signal to the thread that reads it."""


def _end_process(limit: float) -> None:
    _log.critical("Shutdown timed out after %.0f s: exiting", limit)
    logging.shutdown()
    os._exit(1)
