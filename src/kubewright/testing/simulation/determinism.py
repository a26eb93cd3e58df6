"""Replace sources of randomness and time by a seed and the virtual clock while a simulation runs.

These sources are replaced: the module `random`, `os.urandom` and the modules that use it (`secrets`, `uuid4`),
`time.time`, `time.monotonic` and `time.sleep`. The garbage collector is off, because the moment at which it closes an
abandoned generator depends on the history of the whole process.

Not replaced: `datetime.now()`, which is not a Python function (kubewright itself takes the time from `time.time`),
and the order of sets of strings, which is fixed by starting Python with PYTHONHASHSEED.
"""

import gc
import os
import random
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Self

from kubewright.api import JsonObject
from kubewright.testing.simulation.loop import SimulationLoop, current_process, refuse_connect

EPOCH = 1_800_000_000.0
"""The time of day at which every simulation begins: 2027-01-15 08:00 UTC."""


class UidsByName:
    """Derive uids from the names of objects, and from how often an object of that name was created.

    So uids are the same in each run with any seed, and names and values that an operator derives from them can be compared.
    """

    def __init__(self) -> None:
        self._created: Counter[str] = Counter()

    def __call__(self, obj: JsonObject) -> str:
        """Return the uid of a new object."""
        metadata = obj["metadata"]
        name = f"{obj.get('apiVersion')} {obj.get('kind')} {metadata.get('namespace')} {metadata.get('name')}"
        self._created[name] += 1
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {self._created[name]}"))


class Determinism:
    """Replace the sources of randomness and time while the context is open; see the module."""

    def __init__(self, seed: int, loop: SimulationLoop) -> None:
        self._seed = seed
        self._loop = loop
        self._entropy = random.Random()
        self._stack = ExitStack()

    def reseed(self, part: str) -> None:
        """Seed the random numbers for a part of the run, so that they do not depend on earlier draws, such as in an import.

        The name of each part is different: two parts with the same random numbers would give two objects the same uid.
        """
        self._entropy.seed(f"entropy {part} {self._seed}")
        random.seed(f"random {part} {self._seed}")

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
                (socket.socket, "connect", refuse_connect),
            ):
                before = getattr(module, name)
                stack.callback(setattr, module, name, before)
                setattr(module, name, _in_this_thread(value, before))
            self._loop.reseed = self.reseed
            self.reseed("cluster")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _wall_clock(self) -> float:
        process = current_process()
        return EPOCH + self._loop.stamp() + (process.clock_offset if process is not None else 0.0)


def _in_this_thread(replacement: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is replaced only for the thread of the simulation."""
    thread = threading.get_ident()

    def call(*args: Any) -> Any:
        return replacement(*args) if threading.get_ident() == thread else original(*args)

    return call
