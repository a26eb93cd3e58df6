"""Pacing: an object that changes in bursts is looked at once in a while, not at every change."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import wraps
from typing import TypeVar

from kubewright.api import Object
from kubewright.controller import Context, Result

T = TypeVar("T", bound=Object)

SHORTEST, LONGEST = 0.03, 0.25
"""Seconds between two looks: people do not see them, and a hundred Pods that start together come in a few."""
SHARE = 4
"""How many times as long as the last look took."""
_MANY = 1000


def paced(
    reconcile: Callable[[T, Context], Awaitable[Result | None]],
) -> Callable[[T, Context], Awaitable[Result | None]]:
    """Decorate a reconciler whose work grows with the number of its children: it rests between two looks."""
    due: dict[str, float] = {}

    @wraps(reconcile)
    async def rested(subject: T, ctx: Context) -> Result | None:
        clock = asyncio.get_running_loop().time
        uid, now = subject.metadata.uid, clock()
        wait = due.get(uid, 0.0) - now
        if 0 < wait <= LONGEST:
            return Result(after=timedelta(seconds=wait))
        result = await reconcile(subject, ctx)
        if len(due) > _MANY:
            for old in [key for key, moment in due.items() if moment < now]:
                del due[old]
        ended = clock()
        due[uid] = ended + min(max((ended - now) * SHARE, SHORTEST), LONGEST)
        return result

    return rested
