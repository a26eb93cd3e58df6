"""A timeout for each of many short waits, with one timer for all of them."""

import asyncio
from types import TracebackType
from typing import Self


class Stalled(TimeoutError):
    """A wait took too long."""


class StallTimeout:
    """Raise Stalled in a wait inside this block that takes longer than this many seconds.

    One timer checks periodically whether a wait has become too long, instead of one timer for each wait:
    ten thousand events of a cold cache arrive in a fraction of a second. The block begins as a wait;
    the time between `end_wait` and `begin_wait` is not limited.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting_since: float | None = None
        self._ran_out = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("StallTimeout needs a running task to interrupt")
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(self._seconds, self._check)
        self.begin_wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._ran_out and kind is asyncio.CancelledError and self._task.uncancel() == 0:
            raise Stalled from error

    def begin_wait(self) -> None:
        """Start a wait."""
        self._waiting_since = self._loop.time()

    def end_wait(self) -> None:
        """End the wait."""
        self._waiting_since = None

    def _check(self) -> None:
        now = self._loop.time()
        since = now if self._waiting_since is None else self._waiting_since
        if now - since >= self._seconds:
            self._ran_out = True
            self._task.cancel()
        else:
            self._timer = self._loop.call_at(since + self._seconds, self._check)
