"""Pacing: an object that changes in bursts is looked at when the burst is over, or once in a while."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import wraps
from typing import TypeVar

from kubewright.api import Object
from kubewright.controller import Context, Result

T = TypeVar("T", bound=Object)

QUIET = 0.02
"""Seconds without a change after which a burst is over."""
LONGEST = 0.25
"""Seconds between two looks while it goes on: people do not see them, and a hundred Pods come in a few."""
_MANY = 1000


def paced(
    reconcile: Callable[[T, Context], Awaitable[Result | None]],
) -> Callable[[T, Context], Awaitable[Result | None]]:
    """Decorate a reconciler whose work grows with the number of its children: it waits for the end of bursts."""
    looked: dict[str, float] = {}

    @wraps(reconcile)
    async def patient(subject: T, ctx: Context) -> Result | None:
        clock = asyncio.get_running_loop().time
        uid, now = subject.metadata.uid, clock()
        # Without a cause it is our own wait that has ended, and nothing has come meanwhile.
        if ctx.causes and now - looked.get(uid, now - LONGEST) < LONGEST:
            return Result(after=timedelta(seconds=QUIET))
        result = await reconcile(subject, ctx)
        if len(looked) > _MANY:
            for old in [key for key, moment in looked.items() if moment < now - LONGEST]:
                del looked[old]
        looked[uid] = clock()
        return result

    return patient
