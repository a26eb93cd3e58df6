"""Wait for a condition: poll until it is true, in real or in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, TypeVar, overload

from kubewright.api import NotFound

T = TypeVar("T")

DEFAULT_TIMEOUT = 60.0
"""Seconds that a test waits for a condition before it fails; only failures take that long."""
POLL_INTERVAL = 0.02
_LONGEST_INTERVAL, _SHARE_OF_WAIT = 5.0, 0.05


@overload
async def eventually(
    look: Callable[[], Awaitable[T | None]],
    *,
    timeout: float = ...,
    interval: float = ...,
    ignore: type[Exception] | tuple[type[Exception], ...] = ...,
    message: str = ...,
) -> T: ...
@overload
async def eventually(
    look: Callable[[], T | None],
    *,
    timeout: float = ...,
    interval: float = ...,
    ignore: type[Exception] | tuple[type[Exception], ...] = ...,
    message: str = ...,
) -> T: ...
async def eventually(
    look: Callable[[], Any],
    *,
    timeout: float = DEFAULT_TIMEOUT,
    interval: float = POLL_INTERVAL,
    ignore: type[Exception] | tuple[type[Exception], ...] = NotFound,
    message: str = "",
) -> Any:
    """Call a function until its result is true, and return the result; on timeout, raise AssertionError.

    The function is synchronous or asynchronous. It is not true yet if it raises an exception of `ignore`, or if it
    accesses an item that does not exist or an attribute of None; other exceptions end the wait. Time is the event
    loop's. The interval between two calls grows with the wait, except that `interval=0` stays: then the
    function is called in each round of the event loop, and a virtual clock does not move.
    """
    __tracebackhide__ = True
    result: object = None
    error: Exception | None = None

    async def attempt() -> Any:
        nonlocal result, error
        error = None
        try:
            result = look()
            if isawaitable(result):
                result = await result
        except ignore as raised:
            error = raised
        except (LookupError, AttributeError) as raised:
            if not comes_of_absence(raised):
                raise
            error = raised
        return result if error is None and result else None

    found = await poll(attempt, timeout, interval)
    if found is None:
        last = f"it raised {type(error).__name__}: {error}" if error else f"it returned {result!r}"
        condition = message or f"{getattr(look, '__qualname__', repr(look))} is true"
        raise AssertionError(
            f"timed out after {timeout:g} s waiting until {condition}: {last} last"
        ) from error
    return found


async def poll(
    look: Callable[[], Awaitable[T | None]], timeout: float, interval: float = POLL_INTERVAL
) -> T | None:
    """Return the first result that is not None, or None after the timeout."""
    # pytest shows the line of the test, not of this function.
    __tracebackhide__ = True
    clock = asyncio.get_running_loop().time
    began = clock()
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            while (found := await look()) is None:
                # The interval grows with the wait, so a jump over hours of virtual time needs few polls.
                longer = min(max(interval, (clock() - began) * _SHARE_OF_WAIT), _LONGEST_INTERVAL)
                await asyncio.sleep(longer if interval else 0)
            return found
    except TimeoutError:
        if not limit.expired():
            raise  # the function's own
        return None


def comes_of_absence(error: LookupError | AttributeError) -> bool:
    """Distinguish a value that the operator may still set (an item, a None part) from a mistake in the test."""
    return isinstance(error, LookupError) or error.obj is None
