"""Replace sources of randomness and time by a seed and the virtual clock while a simulation runs.

Replaced are the sources that Python programs draw from: the module `random`, `os.urandom` and what is built on it
(`secrets`, `uuid4`), `time.time`, `time.monotonic` and `time.sleep`. The garbage collector is off, because the
moment at which it closes an abandoned generator depends on the history of the whole process.

Not replaced: `datetime.now()`, which is not a Python function (kubewright itself takes the time from `time.time`),
and the order of sets of strings, which is fixed by starting Python with PYTHONHASHSEED.
"""

import gc
import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Self

from kubewright.testing.simulation.loop import SimulationLoop, current_process

EPOCH = 1_800_000_000.0
"""The time of day at which every simulation begins: 2027-01-15 08:00 UTC."""


class Determinism:
    """Replace the sources of randomness and time while the context is open; see the module."""

    def __init__(self, seed: int, loop: SimulationLoop) -> None:
        self._seed = seed
        self._loop = loop
        self._entropy = random.Random()
        self._stack = ExitStack()

    def reseed(self) -> None:
        """Seed the random numbers again, so that earlier draws, such as those of an import, have no influence."""
        self._entropy.seed(f"entropy {self._seed}")
        random.seed(f"random {self._seed}")

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if gc.isenabled():
                gc.disable()
                stack.callback(gc.enable)
            stack.callback(random.setstate, random.getstate())
            for module, name, value in (
                (os, "urandom", self._entropy.randbytes),
                (random, "_urandom", self._entropy.randbytes),
                (time, "time", self._wall_clock),
                (time, "time_ns", lambda: int(self._wall_clock() * 1e9)),
                (time, "monotonic", self._loop.time),
                (time, "sleep", self._loop.sleep_blocking),
            ):
                before = getattr(module, name)
                stack.callback(setattr, module, name, before)
                setattr(module, name, _in_this_thread(value, before))
            self.reseed()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _wall_clock(self) -> float:
        process = current_process()
        return EPOCH + self._loop.time() + (process.clock_offset if process is not None else 0.0)


def _in_this_thread(replacement: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is replaced only for the thread of the simulation."""
    thread = threading.get_ident()

    def call(*args: Any) -> Any:
        return replacement(*args) if threading.get_ident() == thread else original(*args)

    return call
