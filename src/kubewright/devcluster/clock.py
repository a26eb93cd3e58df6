"""The time of day that moves with the event loop: where a test jumps the loop, the whole cluster jumps along."""

import asyncio
from datetime import datetime
from weakref import WeakKeyDictionary

from kubewright.devserver import Clock

_clocks: "WeakKeyDictionary[asyncio.AbstractEventLoop, Clock]" = WeakKeyDictionary()


def now() -> datetime:
    """Tell the time, with its zone."""
    loop = asyncio.get_running_loop()
    clock = _clocks.get(loop)
    if clock is None:
        clock = _clocks[loop] = Clock(loop)
    return clock.now()
