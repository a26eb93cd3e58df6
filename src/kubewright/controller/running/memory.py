"""What came of our applies, so that the same is neither compared nor asked again in vain."""

from collections import OrderedDict
from typing import Any, NamedTuple

from kubewright.controller.comparison import fingerprint

CAPACITY = 10_000


class _Remembered(NamedTuple):
    desired: int
    answer: int


class AnswerMemory:
    """Remember, per object and part of it, what was asked and what came of it; the oldest is forgotten first."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._known: OrderedDict[tuple[str, str], _Remembered] = OrderedDict()

    def __contains__(self, part: tuple[str, str]) -> bool:
        return part in self._known

    def settled(self, uid: str, part: str, desired: Any, live: Any) -> bool:
        """Tell whether the same was asked before and the object is still what came of it."""
        known = self._known.get((uid, part))
        return known is not None and known == _Remembered(_hash(desired), _hash(live))

    def remember(self, uid: str, part: str, desired: Any, answer: Any) -> bool:
        """Note what came of what was asked; tells whether that was not known for this desired state."""
        key = (uid, part)
        known = self._known.pop(key, None)
        new = self._known[key] = _Remembered(_hash(desired), _hash(answer))
        if len(self._known) > self._capacity:
            self._known.popitem(last=False)
        return known is None or known.desired != new.desired

    def forget(self, uid: str, part: str) -> None:
        """Forget it: the server took what was asked."""
        self._known.pop((uid, part), None)


class VersionMemory:
    """Remember which version of an object, or of a part of it, was found to be as desired.

    An apply of the same to the same version changes nothing, so there is nothing to compare either.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._known: dict[tuple[str, str], int] = {}

    def fits(self, uid: str, part: str, version: str, desired: Any) -> bool:
        """Tell whether this very version was found to be as desired."""
        known = self._known.get((uid, part))
        return known is not None and known == _hash((version, desired))

    def note(self, uid: str, part: str, version: str, desired: Any) -> None:
        """Note that this version is as desired."""
        self._known.pop((uid, part), None)
        self._known[uid, part] = _hash((version, desired))
        if len(self._known) > self._capacity:
            del self._known[next(iter(self._known))]


def _hash(value: Any) -> int:
    # Python's own is keyed anew in each process, so nobody can aim at it, and a cryptographic one takes ten times as long.
    return hash(fingerprint(value))
