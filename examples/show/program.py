"""The command: `demo [--once]`."""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any, cast

from show import live, plain

INTERRUPTED = 130


def main() -> None:
    """Tell the story live on a terminal, else in plain lines."""
    parser = argparse.ArgumentParser(prog="demo", description="Show five operators at work.")
    parser.add_argument("--once", action="store_true", help="tell the story once, check each step, end")
    once: bool = parser.parse_args().once or not can_draw()
    # What the operators say is part of the view, or of a failure's story; not of our output.
    logging.basicConfig(handlers=[logging.NullHandler()])
    try:
        ended = asyncio.run(until_signalled(plain.tell(say) if once else live.tell()))
    except Exception as error:
        sys.exit(f"demo: {reason(error)}")
    if not ended:
        # A terminal that was closed takes no more lines.
        with contextlib.suppress(OSError):
            print("\nended: nothing is left running", flush=True)
        sys.exit(INTERRUPTED if once else 0)


def can_draw() -> bool:
    """Tell whether somebody watches on a terminal that can be drawn on."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def say(line: str) -> None:
    """Print a line at once, also into a pipe."""
    print(line, flush=True)


async def until_signalled(story: Coroutine[Any, Any, None]) -> bool:
    """Run to the end; tells False when a signal came first. Cleaning up is not interrupted by a second one."""
    loop = asyncio.get_running_loop()
    work = asyncio.ensure_future(story)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        return False
    return True


def reason(error: BaseException) -> str:
    """Say in a line or two what went wrong: of a group of failures, the first."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return reason(group.exceptions[0])
    return str(error) or type(error).__name__
