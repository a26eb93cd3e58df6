"""Batching: a reconciler called for every change of a burst runs once after it, or now and then during it.

The end of a burst is detected from the usual interval between changes. No change waits longer than `LONGEST` seconds,
and a change of the spec (a new generation) does not wait at all.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from typing import TypeVar

from kubewright.api import Object
from kubewright.controller import Context, Result

T = TypeVar("T", bound=Object)
QUIET = 0.02
"""Minimum number of seconds without a change after which a burst counts as over."""
PAUSE_FACTOR = 4
"""A burst counts as over after a pause of this many times the average interval between its changes."""
SHORTEST, LONGEST = 0.25, 1.0
"""Bounds, in seconds, of the time between two runs during a burst."""
DURATION_FACTOR = 4
"""During a burst, wait for this many times the duration of the last run."""
_MAX_TRACKED = 1000
_MIN_DELAY = 0.001
"""Shorter delays are treated as over: timers are no more precise, and a delay of zero is not allowed."""


@dataclass(slots=True)
class _Burst:
    last_change: float
    due: float = 0.0
    """When to run even if the burst goes on."""
    pending: bool = False
    """It has changed since the last run."""
    generation: int | None = None
    """Generation at the last run; a new generation runs at once."""


class _ChangeInterval:
    """The average interval between the changes of an object, shared by all objects of one controller."""

    def __init__(self) -> None:
        self._average = 0.0

    def record_change(self, burst: _Burst, now: float) -> None:
        if burst.pending:
            self._average += (min(now - burst.last_change, SHORTEST) - self._average) / 4
        else:
            burst.due = max(burst.due, now + SHORTEST)
            # Single changes have no interval to learn from, so the average decays.
            self._average -= self._average / 8
        burst.last_change, burst.pending = now, True

    def remaining(self, burst: _Burst, now: float) -> float:
        return (
            min(burst.last_change + min(max(self._average * PAUSE_FACTOR, QUIET), SHORTEST), burst.due) - now
        )


def batched(
    reconcile: Callable[[T, Context], Awaitable[Result | None]],
) -> Callable[[T, Context], Awaitable[Result | None]]:
    """Decorate a reconciler so that it runs once for a burst of changes.

    For reconcilers whose cost grows with the number of children.
    """
    bursts: dict[str, _Burst] = {}
    interval = _ChangeInterval()

    @wraps(reconcile)
    async def wrapper(subject: T, ctx: Context) -> Result | None:
        clock = asyncio.get_running_loop().time
        now, desired = clock(), subject.metadata.generation
        burst = bursts.setdefault(subject.metadata.uid, _Burst(now))
        # No cause means that this call ends a delay requested below.
        if ctx.causes:
            interval.record_change(burst, now)
        if burst.generation == desired and (remaining := interval.remaining(burst, now)) > _MIN_DELAY:
            return Result(after=timedelta(seconds=remaining))
        burst.pending, burst.generation = False, desired
        result = await reconcile(subject, ctx)
        ended = clock()
        burst.due = ended + min(max((ended - now) * DURATION_FACTOR, SHORTEST), LONGEST)
        if len(bursts) > _MAX_TRACKED:
            for old in [uid for uid, found in bursts.items() if found.due < now]:
                del bursts[old]
        return result

    return wrapper
