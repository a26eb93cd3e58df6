"""Records (an object's bytes at one revision) and events (from one record to the next)."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kubewright.api.sharding import shard_hash

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"


class Record:
    """One object at one revision; immutable, so readers share it freely."""

    __slots__ = ("_uid_hash", "data", "forms", "key", "labels", "revision", "shape", "undefaulted")

    def __init__(self, key: str, revision: int, data: bytes, shape: str, labels: Mapping[str, str]) -> None:
        self.key: str = key
        self.revision: int = revision
        self.data: bytes = data
        self.shape: str = shape
        """The version and schema in which `data` is written; readers of another shape convert it."""
        self.labels: Mapping[str, str] = labels
        self.forms: dict[str, bytes] | None = None
        self.undefaulted: bytes | None = None
        """The object as it is in etcd, with the resourceVersion "0", if kube-apiserver fills in defaults when it reads it."""
        self._uid_hash: int = -1

    @property
    def uid_hash(self) -> int:
        """Return the hash of the object's uid, by which shards are selected."""
        if self._uid_hash < 0:
            self._uid_hash = shard_hash(_identified.decode(self.data).metadata.uid)
        return self._uid_hash

    def form(self, shape: str, make: Callable[["Record"], bytes]) -> bytes:
        """Return the object's bytes in another shape, made once."""
        if self.forms is None:
            self.forms = {}
        found = self.forms.get(shape)
        if found is None:
            found = self.forms[shape] = make(self)
        return found

    def keep(self, shape: str, data: bytes) -> None:
        """Cache the object's bytes in another shape."""
        if self.forms is None:
            self.forms = {}
        self.forms[shape] = data


class StoreEvent:
    """One change of one object; watchers share its encoded frames."""

    __slots__ = ("frames", "key", "new", "old", "revision", "time")

    def __init__(self, revision: int, key: str, old: Record | None, new: Record | None, time: float) -> None:
        self.revision: int = revision
        self.key: str = key
        self.old: Record | None = old
        self.new: Record | None = new
        self.time: float = time
        self.frames: dict[tuple[str, str], bytes] = {}

    def frame(self, kind: str, shape: str, make: Callable[[], bytes]) -> bytes:
        """Return the event's encoded frame of a type and shape, made once for all watchers."""
        found = self.frames.get((kind, shape))
        if found is None:
            found = self.frames[kind, shape] = make()
        return found

    @property
    def size(self) -> int:
        """Return how many bytes of history the event uses."""
        return len(self.old.data) if self.old is not None else 0


class _LabelledMeta(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct):
    metadata: _LabelledMeta = msgspec.field(default_factory=_LabelledMeta)


class _IdentifiedMeta(msgspec.Struct):
    uid: str = ""


class _Identified(msgspec.Struct):
    metadata: _IdentifiedMeta = msgspec.field(default_factory=_IdentifiedMeta)


_labelled = msgspec.json.Decoder(_Labelled)
_identified = msgspec.json.Decoder(_Identified)


def read_labels(data: bytes) -> Mapping[str, str]:
    """Read only the labels out of an object's bytes."""
    return _labelled.decode(data).metadata.labels or {}
