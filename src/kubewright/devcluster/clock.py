"""The wall clock derived from the event loop's time, so that tests with virtual time also move timestamps."""

import asyncio
import time
from datetime import UTC, datetime
from weakref import WeakKeyDictionary

_offsets: "WeakKeyDictionary[asyncio.AbstractEventLoop, float]" = WeakKeyDictionary()
"""Seconds from a loop's time to the wall clock. Nothing here may refer to the loop: it would never be freed."""


def now() -> datetime:
    """Return the current time with its time zone."""
    loop = asyncio.get_running_loop()
    offset = _offsets.get(loop)
    if offset is None:
        offset = _offsets[loop] = time.time() - loop.time()
    return datetime.fromtimestamp(loop.time() + offset, UTC)
