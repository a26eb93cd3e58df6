"""Run a coroutine as a program: uvloop where there is one, signals that end it."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kubewright.api import KubewrightError, leaves

try:
    from uvloop import new_event_loop
except ImportError:  # an optional extra
    from asyncio import new_event_loop

T = TypeVar("T")

STOP_LIMIT = 38.0
"""Seconds from the first signal to the end, whatever still runs: the 30 s of reconciles in flight, and some to clean up.

Generated Deployments kill after 40."""

_log = logging.getLogger("kubewright.run")


def run_program(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run to the end; of failures that come in groups the first that was meant for the user is raised alone."""
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(main())
    except BaseExceptionGroup as failures:
        causes = list(leaves(failures))
        told = [cause for cause in causes if isinstance(cause, KubewrightError)]
        raise (told or causes)[0] from None


async def until_signalled(work: Coroutine[Any, Any, None], *, limit: float = STOP_LIMIT) -> None:
    """Run work until it ends or SIGINT or SIGTERM cancels it; a second signal ends the process at once.

    So does the end of the limit: code that swallows its cancellation, or a thread that does not return, would
    keep the process for ever, and with it the lease.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        asked = False

        def stop() -> None:
            nonlocal asked
            if asked:
                os._exit(1)
            asked = True
            last_resort = threading.Timer(limit, _end_process, (limit,))
            last_resort.daemon = True
            last_resort.start()
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


def _end_process(limit: float) -> None:
    _log.critical("Something still runs %.0f s after it was told to stop: ending the process", limit)
    logging.shutdown()
    os._exit(1)
