"""Children that vanish after they were created, and when they may be created again.

A cached owner may be out of date: its watch is cut while that of its children is not. If the owner was deleted,
the garbage collector deletes each child that is created for it, the deletion enqueues the owner, and the stale
owner's reconcile would create the child again, without end. So an owner is read from the server before a child
is created a second time, and children that vanish quickly again and again are created with backoff.
"""

import asyncio
from collections import OrderedDict

import msgspec

from kubewright.api import Kind, ObjectKey, PartialMeta
from kubewright.backoff import Backoff

QUICK = 60.0
"""Seconds; a child that lived longer did not vanish because it was created."""
RECREATION = Backoff(base=1.0, maximum=60.0, jitter=0.1)
CAPACITY = 10_000


class _Created(msgspec.Struct):
    owner_uid: str
    at: float
    vanished: int
    """How often in a row it vanished quickly."""
    not_before: float | None = None
    """When it may be created again, once it is known to have vanished."""


class Creations:
    """Remember which children one controller created, for which owner, and how often they vanished quickly."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._created: OrderedDict[tuple[str, str, ObjectKey], _Created] = OrderedDict()
        self._last: OrderedDict[tuple[str, str, str], tuple[ObjectKey, str]] = OrderedDict()

    def is_repeated(self, kind: Kind, key: ObjectKey, owner_uid: str) -> bool:
        """Return True if a child of this key was created for this owner before."""
        known = self._created.get((kind.group, kind.kind, key))
        return known is not None and known.owner_uid == owner_uid

    def delay(self, kind: Kind, key: ObjectKey) -> float:
        """Return the seconds to wait before the child, which has vanished, may be created again."""
        known = self._created.get((kind.group, kind.kind, key))
        if known is None:
            return 0.0
        now = _now()
        if known.not_before is None:
            known.vanished = known.vanished + 1 if now - known.at < QUICK else 0
            # The first time is free: children are deleted by hand, too.
            known.not_before = known.at + RECREATION.delay(known.vanished - 2) if known.vanished > 1 else now
        return max(0.0, known.not_before - now)

    def note(self, kind: Kind, key: ObjectKey, owner_uid: str) -> None:
        """Note that the child was created now."""
        place = (kind.group, kind.kind, key)
        known = self._created.pop(place, None)
        vanished = known.vanished if known is not None and known.owner_uid == owner_uid else 0
        self._created[place] = _Created(owner_uid, _now(), vanished)
        if len(self._created) > self._capacity:
            self._created.popitem(last=False)

    def last(self, kind: Kind, owner_uid: str) -> tuple[ObjectKey, str] | None:
        """Return key and uid of the child of the kind that was last created for the owner under a new name."""
        return self._last.get((kind.group, kind.kind, owner_uid))

    def note_last(self, kind: Kind, owner_uid: str, created: PartialMeta) -> None:
        """Note that the child was created now, under a new name."""
        place = (kind.group, kind.kind, owner_uid)
        self._last.pop(place, None)
        self._last[place] = (created.key, created.uid)
        if len(self._last) > self._capacity:
            self._last.popitem(last=False)

    def forget(self, kind: Kind, key: ObjectKey) -> None:
        """Forget the child: the controller itself deletes it."""
        self._created.pop((kind.group, kind.kind, key), None)


def _now() -> float:
    return asyncio.get_running_loop().time()
