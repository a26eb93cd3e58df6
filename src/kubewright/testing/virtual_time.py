"""An event loop whose clock jumps to the next timer as soon as nothing else is left to do."""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

P = ParamSpec("P")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")

# Loopback traffic between two ends on this loop needs a moment in the kernel before it is readable.
SOCKET_TIMEOUT = 0.002


class OnOneLoop:
    """What works only on the event loop it was made on."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Run timers in order without waiting for them; real I/O and threads are still waited for.

    The clock starts at zero and moves only when every task waits for a timer.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._threads = 0
        super().__init__(_JumpingSelector(self))
        # Timers of one instant run together although sums of floats differ in the last digits.
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._now

    def jump(self, seconds: float) -> None:
        """Move the clock; timers that became due run in the next round."""
        self._now += seconds

    @property
    def waits_for_threads(self) -> bool:
        """Return True if a thread started from this loop has not ended."""
        return self._threads > 0

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], R], *args: *Ts
    ) -> asyncio.Future[R]:
        """Run func in a thread; the clock stands still until it has ended."""
        future = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait until all threads have ended; the clock stands still, so no time-out ends the wait."""
        self._threads += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self._threads -= 1

    def _thread_ended(self, _: asyncio.Future[Any]) -> None:
        self._threads -= 1


class _JumpingSelector(selectors.DefaultSelector):
    """Turn the loop's wait for its next timer into a jump of the clock."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if timeout is None or self._loop.waits_for_threads:
            return super().select(None)
        # One descriptor is the loop's own wake-up pipe.
        wait = SOCKET_TIMEOUT if len(self.get_map()) > 1 else 0
        events = super().select(wait)
        if not events:
            self._loop.jump(timeout)
        return events


def virtual_time(test: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    """Run the decorated coroutine function on an event loop with a virtual clock, which jumps to the next timer."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        for value in (*args, *kwargs.values()):
            if isinstance(value, OnOneLoop):
                raise TypeError(
                    f"{test.__name__} was given a cluster of another event loop, whose time does not jump: "
                    "under virtual_time open one inside the test, `async with embedded() as cluster`"
                )
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(test(*args, **kwargs))

    return run


async def settle(rounds: int = 50) -> None:
    """Let every task that can run do so, without moving the clock."""
    for _ in range(rounds):
        await asyncio.sleep(0)
