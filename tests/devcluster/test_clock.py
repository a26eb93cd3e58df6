"""The wall clock of the dev cluster."""

import asyncio
import gc
import weakref

from kubewright.devcluster.clock import now
from kubewright.testing.virtual_time import virtual_time


@virtual_time
async def test_the_clock_moves_with_the_event_loop() -> None:
    before = now()
    await asyncio.sleep(3600)
    assert (now() - before).total_seconds() == 3600


def test_an_event_loop_is_freed_after_its_time_was_read() -> None:
    """A proof runs thousands of simulations in one process, each on an event loop of its own."""

    async def read() -> "weakref.ref[asyncio.AbstractEventLoop]":
        now()
        return weakref.ref(asyncio.get_running_loop())

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        loop = runner.run(read())
    del runner
    gc.collect()
    assert loop() is None
