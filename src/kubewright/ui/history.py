"""The versions of all objects over time, within a limit of memory.

The current version of each object is always kept. A version that was replaced or deleted is *past*; past versions are
dropped in the order in which they ended. So the history is complete from `start` on: for each time since then, it has
the version of each object at that time. Times are whole milliseconds, as in browsers. Contents are compressed;
summaries are kept as the bytes that are sent.
"""

import math
import zlib
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator

import msgspec

from kubewright.api import Kind

DEFAULT_LIMIT = 64 * 1024 * 1024
"""Maximum size of past versions in bytes."""
_OVERHEAD = 400
"""Approximate memory in bytes that a version takes in addition to its contents."""


class ObjectIdentity(msgspec.Struct, frozen=True):
    """The uid, kind, namespace and name of an object."""

    uid: str
    kind: Kind
    namespace: str
    name: str

    @property
    def about(self) -> tuple[str, str, str, str]:
        """Return group, kind, namespace and name."""
        return (self.kind.group, self.kind.kind, self.namespace, self.name)


class KeptVersion(msgspec.Struct, kw_only=True):
    """One version of an object, from `at` until `until`; times are seconds since 1970."""

    object: ObjectIdentity
    resource_version: str
    at: float
    until: float | None = None
    summary: bytes
    """The encoded ObjectSummary, without failures of reconciles, which are kept separately."""
    packed: bytes
    """The encoded object, compressed."""

    @property
    def content(self) -> bytes:
        """Return the encoded object."""
        return zlib.decompress(self.packed)

    @property
    def size(self) -> int:
        """Return the approximate memory in bytes."""
        return len(self.summary) + len(self.packed) + _OVERHEAD


class VersionHistory:
    """Hold the current version of each object, and past versions within a limit of bytes."""

    def __init__(self, start: float, limit: int = DEFAULT_LIMIT) -> None:
        self.start: float = _milliseconds(start)
        """The time from which the history is complete."""
        self.end: float = self.start
        """The time of the last change."""
        self.size: int = 0
        """Bytes of past versions."""
        self.current_size: int = 0
        """Bytes of current versions."""
        self._limit = limit
        self._current: dict[str, KeptVersion] = {}
        self._versions: dict[str, deque[KeptVersion]] = {}
        self._past: deque[KeptVersion] = deque()

    def __len__(self) -> int:
        """Return how many objects exist now."""
        return len(self._current)

    def __contains__(self, uid: str) -> bool:
        """Return True if the object exists now."""
        return uid in self._current

    def current(self, uid: str) -> KeptVersion | None:
        """Return the current version of an object."""
        return self._current.get(uid)

    @property
    def objects(self) -> Iterator[KeptVersion]:
        """Return the current version of each object."""
        return iter(list(self._current.values()))

    @property
    def oldest(self) -> KeptVersion:
        """Return the oldest of the current versions; there must be one."""
        return next(iter(self._current.values()))

    def restart(self, start: float) -> None:
        """Set the start of an empty history."""
        self.start = self.end = _milliseconds(start)

    def put(
        self, identity: ObjectIdentity, resource_version: str, at: float, summary: bytes, content: bytes
    ) -> None:
        """Make this the current version of an object.

        `at` may be before `end` for the first version of an object, which may have existed before it was seen.
        """
        uid = identity.uid
        if uid in self._versions:
            at = self._end_current(uid, at)
        else:
            at = max(_milliseconds(at), self.start)
            self.end = max(at, self.end)
        version = KeptVersion(
            object=identity,
            resource_version=resource_version,
            at=at,
            summary=summary,
            packed=zlib.compress(content, 1),
        )
        self._current[uid] = version
        self.current_size += version.size
        self._versions.setdefault(uid, deque()).append(version)
        self._drop_oldest()

    def remove(self, uid: str, at: float) -> None:
        """Record that an object no longer exists."""
        self._end_current(uid, at)
        self._drop_oldest()

    def rewrite(
        self, selects: Callable[[ObjectIdentity], bool], change: Callable[[Kind, bytes], tuple[bytes, bytes]]
    ) -> list[str]:
        """Replace summary and content of all versions of the selected objects; return the uids of those that exist now.

        `change` is called with the kind and the content, and returns the new summary and content.
        """
        for versions in self._versions.values():
            for version in versions if selects(versions[0].object) else ():
                before = version.size
                version.summary, content = change(version.object.kind, version.content)
                version.packed = zlib.compress(content, 1)
                if version.until is not None:
                    self.size += version.size - before
                else:
                    self.current_size += version.size - before
        return [uid for uid, version in self._current.items() if selects(version.object)]

    def snapshot(self, at: float) -> list[KeptVersion]:
        """Return the versions of all objects at a point in time."""
        return [found for uid in self._versions if (found := self.find(uid, at)) is not None]

    def find(self, uid: str, at: float | None = None) -> KeptVersion | None:
        """Return the version of an object at a point in time, by default its last one; None if there was none."""
        versions = self._versions.get(uid)
        if not versions:
            return None
        if at is None:
            return versions[-1]
        number = bisect_right(versions, at, key=lambda version: version.at)
        found = versions[number - 1] if number else None
        return None if found is None or (found.until is not None and found.until <= at) else found

    def versions(self, uid: str) -> list[KeptVersion]:
        """Return the kept versions of an object, the oldest first."""
        return list(self._versions.get(uid, ()))

    def _end_current(self, uid: str, at: float) -> float:
        """Make the current version of an object a past one; return the time, which is never before `end`."""
        at = self.end = max(_milliseconds(at), self.end)
        version = self._current.pop(uid, None)
        if version is not None:
            version.until = at
            self._past.append(version)
            self.size += version.size
            self.current_size -= version.size
        return at

    def _drop_oldest(self) -> None:
        while self.size > self._limit and self._past:
            version = self._past.popleft()
            self.size -= version.size
            assert version.until is not None
            self.start = max(self.start, version.until)
            # The versions of an object end in order, so this is its first one.
            uid = version.object.uid
            versions = self._versions[uid]
            versions.popleft()
            if not versions:
                del self._versions[uid]


def _milliseconds(seconds: float) -> float:
    return math.floor(seconds * 1000) / 1000
