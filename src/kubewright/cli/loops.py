"""Run a coroutine as a program: uvloop where there is one, signals that end it."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

try:
    from uvloop import new_event_loop
except ImportError:  # an optional extra
    from asyncio import new_event_loop

T = TypeVar("T")


def run_program(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run to the end."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main())


async def until_signalled(work: Coroutine[Any, Any, None]) -> None:
    """Run work until it ends or SIGINT or SIGTERM cancels it; a second signal ends the process at once."""
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        asked = False

        def stop() -> None:
            nonlocal asked
            if asked:
                os._exit(1)
            asked = True
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        try:
            await task
        except asyncio.CancelledError:
            if not asked:
                raise
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
