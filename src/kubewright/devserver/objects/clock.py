"""Wall-clock time that moves with the event loop, so that a test which jumps the loop jumps it too."""

import asyncio
import time
from datetime import UTC, datetime


class Clock:
    """Return the time in the formats of the API."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._offset = time.time() - loop.time()
        self._second = -1
        self._stamp = ""

    def seconds(self) -> float:
        """Return the seconds since the epoch."""
        return self._loop.time() + self._offset

    def now(self) -> datetime:
        """Return the time with its zone."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    def stamp(self) -> str:
        """Return the time as metadata has it: RFC 3339, whole seconds, Z."""
        second = int(self.seconds())
        if second != self._second:
            self._second = second
            self._stamp = format_time(second)
        return self._stamp


def format_time(seconds: float) -> str:
    """Write a time as RFC 3339 with whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> float:
    """Read an RFC 3339 time into seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()
