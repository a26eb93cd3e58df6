"""The newest known state of each object of one selection, from the watch and from our own writes.

The watch and our own writes race: the response to a write may arrive before or after its watch event. For each object
the higher resourceVersion wins, so the second of the two changes nothing.

Invariants:

- Each effective change is returned exactly once, in an order in which an object's versions only increase.
- An object that our own delete removed does not return with a late event or with a list that is older than the delete.
  A tombstone (`_Tombstone`) is kept until the watch has passed the delete.
- `progress` is the version up to which the watch has reported everything: a response that is not newer changes nothing,
  even for an object that is no longer stored.
- Lists are consistent reads, so none is older than `progress`, nor than a list that was cut off before its end. A list
  may be older than our own writes, and then it does not undo them.
- If a list is older than `progress` nevertheless, or has an older state of an object than it must have, it belongs to
  another history: the cluster's data was restored from a backup. Then the list replaces what was stored.
"""

from collections.abc import Callable, Sequence

import msgspec

from kubewright.api import ObjectKey, RawObject
from kubewright.cache.selection import Selection


def compare_versions(incoming: str, known: str) -> int:
    """Return 1, 0 or -1 if the incoming version is newer than, equal to or older than the known one.

    They are decimal numbers of any size. If an extension server uses other texts, an incoming version that
    differs counts as newer.
    """
    if incoming == known:
        return 0
    try:
        return 1 if int(incoming) > int(known) else -1
    except ValueError:
        return 1


class StoreChange(msgspec.Struct, gc=False, frozen=True):
    """The states of one object before and after; `initial` marks objects of the first list."""

    key: ObjectKey
    old: RawObject | None
    new: RawObject | None
    initial: bool = False


class _Tombstone(msgspec.Struct):
    """An object that our own write removed, until the watch has reported that too.

    `final`: it was deleted, so its uid never returns. Otherwise it left the selection and may return
    with a newer version. `seen`: the watch has sent the object, so it will send its deletion as well.
    """

    uid: str
    version: str
    final: bool
    seen: bool
    listed: bool = False

    def refuses(self, obj: RawObject) -> bool:
        if self.final and obj.meta.uid == self.uid:
            return True
        return compare_versions(obj.meta.resource_version, self.version) <= 0


NOTHING: Sequence[StoreChange] = ()


class Store:
    """Store the newest known state of each object, and return each effective change exactly once.

    `trim` is called with each complete object before it is stored, and returns what to store.
    """

    def __init__(self, selection: Selection, trim: Callable[[RawObject], RawObject] | None = None) -> None:
        self.objects: dict[ObjectKey, RawObject] = {}
        self.progress: str = ""
        self._selection = selection
        self._trim = trim
        self._gone: dict[ObjectKey, _Tombstone] = {}
        self._unlisted: set[ObjectKey] | None = None
        self._older: dict[ObjectKey, RawObject] = {}
        self._filled = False

    @property
    def filled(self) -> bool:
        """Return True if a complete list has been stored."""
        return self._filled

    @property
    def pending_deletions(self) -> int:
        """Return the number of objects that our own writes removed and whose removal the watch has not reported yet."""
        return len(self._gone)

    def begin_list(self) -> None:
        """Begin a list: the objects until `end_list` are the complete selection."""
        self._unlisted = set(self.objects)
        self._older = {}
        for gone in self._gone.values():
            gone.listed = False

    def end_list(self, version: str) -> Sequence[StoreChange]:
        """Remove objects that are not in the list of this version, unless we wrote them later."""
        changes: list[StoreChange] = []
        restored = compare_versions(version, self.progress) < 0
        if restored:
            self._gone.clear()
        for key in self._unlisted or ():
            known = self.objects.get(key)
            if known is not None and (
                restored or compare_versions(version, known.meta.resource_version) >= 0
            ):
                changes.extend(self._remove(key))
        for key, obj in self._older.items():
            known = self.objects.get(key)
            if restored or (
                known is not None and compare_versions(version, known.meta.resource_version) >= 0
            ):
                changes.extend(self._replace(key, known, obj, initial=False))
        self._older = {}
        self._gone = {
            key: gone
            for key, gone in self._gone.items()
            if compare_versions(version, gone.version) < 0 or (gone.final and gone.listed)
        }
        self._unlisted = None
        self._filled = True
        self.progress = version
        return changes

    def apply(self, obj: RawObject) -> Sequence[StoreChange]:
        """Store an object from a list or a watch event."""
        key = obj.meta.key
        if self._unlisted is None:
            self.progress = obj.meta.resource_version
        else:
            self._unlisted.discard(key)
            self._note_older(key, obj)
        if self._gone:
            gone = self._gone.get(key)
            if gone is not None and gone.uid == obj.meta.uid:
                gone.seen = gone.listed = True
        return self._put(key, obj, initial=not self._filled)

    def delete(self, obj: RawObject) -> Sequence[StoreChange]:
        """Remove an object after a watch event that it was deleted or left the selection."""
        key, version = obj.meta.key, obj.meta.resource_version
        if self._unlisted is None:
            self.progress = version
        gone = self._gone.get(key)
        if gone is not None and compare_versions(version, gone.version) >= 0:
            # With a selector the object may return to the selection: then only `advance` removes the tombstone.
            gone.seen = False
            if self._selection.covers(key):
                del self._gone[key]
        known = self.objects.get(key)
        if known is None or compare_versions(version, known.meta.resource_version) < 0:
            return NOTHING
        return self._remove(key)

    def advance(self, version: str) -> None:
        """Record that the watch has reported everything up to this version."""
        if self._unlisted is not None:
            return
        self.progress = version
        if self._gone:
            self._gone = {
                key: gone
                for key, gone in self._gone.items()
                if compare_versions(version, gone.version) < 0 or (gone.final and gone.seen)
            }

    def clear(self) -> Sequence[StoreChange]:
        """Remove everything: the server no longer serves the kind, and may serve a new one later."""
        changes = [StoreChange(key, known, None) for key, known in self.objects.items()]
        self.objects.clear()
        self._gone.clear()
        self._older.clear()
        self._unlisted = None
        self.progress = ""
        return changes

    def record_write(self, obj: RawObject) -> Sequence[StoreChange]:
        """Store the response to our own write, as if the watch had sent it."""
        key, version = obj.meta.key, obj.meta.resource_version
        if not self._selection.admits(key) or self._is_reported(version):
            return NOTHING
        if self._selection.selects(obj):
            if self._unlisted is not None and key not in self.objects:
                # A list that is newer than this write contains the object, unless it was deleted again.
                self._unlisted.add(key)
            return self._put(key, obj, initial=False)
        known, gone = self.objects.get(key), self._gone.get(key)
        if (known is not None and compare_versions(version, known.meta.resource_version) <= 0) or (
            gone is not None and gone.refuses(obj)
        ):
            return NOTHING
        self._gone[key] = _Tombstone(obj.meta.uid, version, final=False, seen=False)
        return self._remove(key)

    def record_delete(self, key: ObjectKey, uid: str, version: str) -> Sequence[StoreChange]:
        """Remove an object after our own delete; `version` is its last one, if known."""
        known = self.objects.get(key)
        if known is not None:
            known_version = known.meta.resource_version
            if known.meta.uid != uid and (not version or compare_versions(version, known_version) < 0):
                return NOTHING
            if not version or compare_versions(version, known_version) < 0:
                version = known_version
        elif not self._selection.admits(key) or not version or self._is_reported(version):
            return NOTHING
        gone = self._gone.get(key)
        if gone is not None and compare_versions(version, gone.version) < 0:
            # Responses arrive in any order: a later delete of ours has been recorded.
            return NOTHING
        seen = known is not None and known.meta.uid == uid and self._is_reported(known.meta.resource_version)
        self._gone[key] = _Tombstone(uid, version, final=True, seen=seen)
        return self._remove(key)

    def _is_reported(self, version: str) -> bool:
        return bool(self.progress) and compare_versions(self.progress, version) >= 0

    def _put(self, key: ObjectKey, obj: RawObject, *, initial: bool) -> Sequence[StoreChange]:
        gone = self._gone.get(key)
        if gone is not None:
            if gone.refuses(obj):
                return NOTHING
            del self._gone[key]
        known = self.objects.get(key)
        # Trim only newer states: every write of ours arrives a second time from the watch.
        if (
            known is not None
            and compare_versions(obj.meta.resource_version, known.meta.resource_version) <= 0
        ):
            return NOTHING
        return self._replace(key, known, obj, initial=initial)

    def _note_older(self, key: ObjectKey, obj: RawObject) -> None:
        """Remember an object that a list has in an older state, until `end_list` decides which of the two is right."""
        known, gone = self.objects.get(key), self._gone.get(key)
        if (
            known is not None and compare_versions(obj.meta.resource_version, known.meta.resource_version) < 0
        ) or (gone is not None and gone.refuses(obj)):
            self._older[key] = obj
        else:
            self._older.pop(key, None)

    def _replace(
        self, key: ObjectKey, known: RawObject | None, obj: RawObject, *, initial: bool
    ) -> Sequence[StoreChange]:
        if self._trim is not None:
            obj = self._trim(obj)
        self.objects[key] = obj
        if known is None:
            return (StoreChange(key, None, obj, initial),)
        if known.meta.uid != obj.meta.uid:
            # Deleted and created again between two reads: two changes, as a watch would have reported.
            return (StoreChange(key, known, None), StoreChange(key, None, obj))
        return (StoreChange(key, known, obj, initial),)

    def _remove(self, key: ObjectKey) -> Sequence[StoreChange]:
        known = self.objects.pop(key, None)
        return (StoreChange(key, known, None),) if known is not None else NOTHING
