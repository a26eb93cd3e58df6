"""The command: `demo [--once]`."""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from types import FrameType
from typing import Any, cast

from show import live, plain

INTERRUPTED = 130


def main() -> None:
    """Tell the story live on a terminal, else in plain lines."""
    parser = argparse.ArgumentParser(prog="demo", description="Show five operators at work.")
    parser.add_argument("--once", action="store_true", help="tell the story once, check each step, end")
    once: bool = parser.parse_args().once or not can_draw()
    # A terminal that has no sign for something shows a question mark instead.
    cast("Any", sys.stdout).reconfigure(errors="replace")
    # What the operators say is part of the view, or of a failure's story; not of our output.
    logging.basicConfig(handlers=[logging.NullHandler()])
    ending = Ending()
    try:
        asyncio.run(ending.or_end_of(plain.tell(say) if once else live.tell()))
    except Exception as error:
        if not ending.asked:
            sys.exit(f"demo: {reason(error)}")
    if ending.asked:
        # A terminal that was closed takes no more lines.
        with contextlib.suppress(OSError):
            print("\nended: nothing is left running", flush=True)
        sys.exit(INTERRUPTED if once else 0)


def can_draw() -> bool:
    """Return True if somebody watches on a terminal that can be drawn on."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def say(line: str) -> None:
    """Print a line at once, also into a pipe."""
    print(line, flush=True)


class Ending:
    """The one thing that signals ask for; from the first one on, nothing interrupts cleaning up."""

    def __init__(self) -> None:
        self.asked = False
        self._story: asyncio.Task[None] | None = None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Not the loop's own handlers: those go with the loop, and there is an end after it.
            signal.signal(number, self._ask)

    async def or_end_of(self, story: Coroutine[Any, Any, None]) -> None:
        """Run a story to its end, or until the end is asked for."""
        self._story = asyncio.ensure_future(story)
        if self.asked:
            self._story.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._story

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if not self.asked and self._story is not None:
            self._story.get_loop().call_soon_threadsafe(self._story.cancel)
        self.asked = True


def reason(error: BaseException) -> str:
    """Say in a line or two what went wrong: of a group of failures, the first."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return reason(group.exceptions[0])
    return str(error) or type(error).__name__
