"""The command: `demo [--once] [--ui]`."""

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
    """Run the demo live on a terminal, otherwise as plain lines."""
    parser = argparse.ArgumentParser(prog="demo", description="Show five operators at work.")
    parser.add_argument(
        "--once", action="store_true", help="run the scenario once, check each step, and exit"
    )
    parser.add_argument(
        "--ui",
        action="store_true",
        help="show the cluster and the operators on a page in the browser as well",
    )
    given = parser.parse_args()
    ui: bool = given.ui
    once: bool = given.once or not can_draw()
    # Characters that the terminal's encoding lacks are shown as question marks.
    cast("Any", sys.stdout).reconfigure(errors="replace")
    # The operators' logs are not part of the demo's output.
    logging.basicConfig(handlers=[logging.NullHandler()])
    ending = Ending()
    try:
        asyncio.run(
            ending.or_end_of(plain.run(say, ui=ui, stay=ui and not given.once) if once else live.run(ui=ui))
        )
    except Exception as error:
        if not ending.requested:
            sys.exit(f"demo: {reason(error)}")
    if ending.requested:
        # The terminal may be closed.
        with contextlib.suppress(OSError):
            print("\nstopped: nothing is left running", flush=True)
        sys.exit(INTERRUPTED if once else 0)


def can_draw() -> bool:
    """Return True if standard output is a terminal that supports cursor movement."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def say(line: str) -> None:
    """Print a line and flush it, so that it is not delayed in a pipe."""
    print(line, flush=True)


class Ending:
    """Stop the demo on the first signal; later signals do not interrupt the cleanup."""

    def __init__(self) -> None:
        self.requested = False
        self._scenario: asyncio.Task[None] | None = None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Not the loop's handlers: they end with the loop, and the program still runs for a moment.
            signal.signal(number, self._request_end)

    async def or_end_of(self, scenario: Coroutine[Any, Any, None]) -> None:
        """Run a scenario until it ends or a signal arrives."""
        self._scenario = asyncio.ensure_future(scenario)
        if self.requested:
            self._scenario.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._scenario

    def _request_end(self, number: int, frame: FrameType | None) -> None:
        if not self.requested and self._scenario is not None:
            self._scenario.get_loop().call_soon_threadsafe(self._scenario.cancel)
        self.requested = True


def reason(error: BaseException) -> str:
    """Return the message of an error, or of the first error in a group."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return reason(group.exceptions[0])
    return str(error) or type(error).__name__
