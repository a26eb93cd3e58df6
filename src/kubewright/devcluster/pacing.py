"""Pacing: an object that changes in bursts is looked at when the burst is over, or once in a while."""

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
"""Seconds without a change, at the least, after which a burst is over."""
PAUSE = 4
"""It is over after a pause of so many times the usual one between two of its changes."""
SHORTEST, LONGEST = 0.25, 1.0
"""Seconds between two looks while it goes on: people do not see them, and a hundred Pods come in a few."""
SHARE = 4
"""How many times as long as the last look took."""
_MANY = 1000
_NOTHING = 0.001
"""Seconds that are not waited for: clocks and timers are no finer, and a delay of none is refused."""


@dataclass(slots=True)
class _Pace:
    changed: float
    looks_at: float = 0.0
    """When it is looked at although the burst goes on."""
    waits: bool = False
    """It has changed since the last look."""
    generation: int | None = None
    """What was wanted of it at the last look; what is wanted anew waits for nothing."""


class _Rhythm:
    """How soon one change of an object follows another: much the same for all that one controller looks at."""

    def __init__(self) -> None:
        self._usual = 0.0

    def note_change(self, pace: _Pace, now: float) -> None:
        if pace.waits:
            self._usual += (min(now - pace.changed, SHORTEST) - self._usual) / 4
        else:
            pace.looks_at = max(pace.looks_at, now + SHORTEST)
            # Where changes come alone nothing would teach it that no other follows.
            self._usual -= self._usual / 8
        pace.changed, pace.waits = now, True

    def wait(self, pace: _Pace, now: float) -> float:
        return min(pace.changed + min(max(self._usual * PAUSE, QUIET), SHORTEST), pace.looks_at) - now


def paced(
    reconcile: Callable[[T, Context], Awaitable[Result | None]],
) -> Callable[[T, Context], Awaitable[Result | None]]:
    """Decorate a reconciler whose work grows with the number of its children: it waits for the end of bursts."""
    paces: dict[str, _Pace] = {}
    rhythm = _Rhythm()

    @wraps(reconcile)
    async def patient(subject: T, ctx: Context) -> Result | None:
        clock = asyncio.get_running_loop().time
        now, wanted = clock(), subject.metadata.generation
        pace = paces.setdefault(subject.metadata.uid, _Pace(now))
        # Without a cause it is a wait of ours that has ended.
        if ctx.causes:
            rhythm.note_change(pace, now)
        if pace.generation == wanted and (wait := rhythm.wait(pace, now)) > _NOTHING:
            return Result(after=timedelta(seconds=wait))
        pace.waits, pace.generation = False, wanted
        result = await reconcile(subject, ctx)
        ended = clock()
        pace.looks_at = ended + min(max((ended - now) * SHARE, SHORTEST), LONGEST)
        if len(paces) > _MANY:
            for old in [uid for uid, found in paces.items() if found.looks_at < now]:
                del paces[old]
        return result

    return patient
