"""Detect code of the author that blocks the event loop, from another thread.

A simulation has one thread and virtual time, so a callback that never returns would hang it silently. The other thread
measures the CPU time that the simulation uses without finishing a callback, which, unlike wall-clock time, does not grow
on a busy machine. If it takes too long, the run ends with the line of code.
"""

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from typing import Self

from kubewright.testing.simulation.loop import SimulationError, SimulationLoop
from kubewright.tracebacks import package_of

BLOCKED_AFTER = 5.0
"""Seconds of CPU time in one callback after which it counts as blocking."""
_INTERVAL = 0.25


class BlockedLoop(BaseException):
    """Raised inside code that blocks the event loop, so that it ends."""


class BlockDetector:
    """Watch one simulation while the context is open; see the module."""

    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop
        self._simulation = threading.get_ident()
        self._cpu_time = _cpu_clock(self._simulation)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubewright-block-detector", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        steps, since = -1, 0.0
        while not self._over.wait(_INTERVAL):
            if self._loop.steps != steps or self._loop.in_thread:
                steps, since = self._loop.steps, self._cpu_time()
            elif self._cpu_time() - since > BLOCKED_AFTER:
                place = self._place()
                if place:
                    self._end(place)
                return

    def _place(self) -> str:
        """Return the innermost line of the author's code that runs now; an empty string if there is none."""
        frame = sys._current_frames().get(self._simulation)  # pyright: ignore[reportPrivateUsage] (the documented way)
        while frame is not None:
            code = frame.f_code
            if not package_of(code.co_filename):
                return f"{code.co_filename}:{frame.f_lineno}: {code.co_name}"
            frame = frame.f_back
        return ""

    def _end(self, place: str) -> None:
        self._loop.abort(
            SimulationError(
                f"{place} blocks the event loop: it used {BLOCKED_AFTER:g} s of CPU time without awaiting anything; "
                "await something in it, or call it with ctx.run_sync"
            )
        )
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(self._simulation), ctypes.py_object(BlockedLoop)
        )


def _cpu_clock(thread: int) -> Callable[[], float]:
    """Return a function that returns the CPU time of a thread, or of the process where threads have no clock."""
    if sys.platform == "linux":
        clock = time.pthread_getcpuclockid(thread)
        return lambda: time.clock_gettime(clock)
    return time.process_time
