"""Calls of functions and classes that the author of an operator wrote.

What an object contains must not stop the operator, so a failure of the author's code on one object is reported
and the other objects go on. Decoding hooks (`__post_init__`), transforms, indexers, filters, maps and webhooks
all run under the same rule, `must_propagate`: whatever they raise is a failure of theirs, `SystemExit` and
`AssertionError` included, except an interrupt of the process or a cancellation of the running task.
"""

import os
import sys
from collections.abc import Callable
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")

_PACKAGE = os.path.dirname(__file__) + os.sep
_RUNNERS = frozenset({"asyncio", "concurrent", "contextlib", "contextvars", "threading", "uvloop"})
"""Third-party modules between the author's code and kubewright's."""


def attempt(function: Callable[[A], R], argument: A, failed: Callable[[BaseException], R]) -> R:
    """Return what the function returns; if it raises, what `failed` returns for the error."""
    try:
        return function(argument)
    except BaseException as error:
        if must_propagate(error):
            raise
        return failed(error)


def must_propagate(error: BaseException) -> bool:
    """Return True if the error stops the process or the running task, and is no failure of the code that raised it."""
    if isinstance(error, Exception):
        return False
    return isinstance(error, KeyboardInterrupt | GeneratorExit) or is_cancellation(error)


def is_cancellation(error: BaseException) -> bool:
    """Return True if the running task is being cancelled; code may also raise CancelledError by itself."""
    # A program that only declares an operator does not load asyncio, and has no tasks.
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False  # a thread without an event loop has no task to cancel
    return task is not None and task.cancelling() > 0


def text_of(error: BaseException) -> str:
    """Return the text of an error, or the name of its class if it has none or cannot be shown as text."""
    return attempt(str, error, lambda _: "") or type(error).__name__


def calling_line() -> str:
    """Return file and line of the author's code that led to the current call; empty if there is none.

    A coroutine's frame lies below those that it awaits, so this works across `await`.
    """
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] (inspect is a slow import and does the same)
    while frame is not None:
        name = frame.f_code.co_filename
        if (
            not name.startswith((_PACKAGE, "<"))
            and frame.f_globals.get("__name__", "").split(".")[0] not in _RUNNERS
        ):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
