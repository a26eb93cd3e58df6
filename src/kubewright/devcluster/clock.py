"""The wall clock derived from the event loop's time, so that tests with virtual time also move timestamps."""

import asyncio
from datetime import datetime
from weakref import WeakKeyDictionary

from kubewright.devserver import Clock

_clocks: "WeakKeyDictionary[asyncio.AbstractEventLoop, Clock]" = WeakKeyDictionary()


def now() -> datetime:
    """Return the current time with its time zone."""
    loop = asyncio.get_running_loop()
    clock = _clocks.get(loop)
    if clock is None:
        clock = _clocks[loop] = Clock(loop)
    return clock.now()
