"""The objects of one selection as last known, from the watch and from our own writes alike."""

from collections.abc import Callable, Sequence

import msgspec

from kubewright.api import ObjectKey, RawObject
from kubewright.cache.selection import Selection
from kubewright.cache.versions import compare


class Change(msgspec.Struct, gc=False, frozen=True):
    """Tell what became of one object; `initial` marks what was there before anybody looked."""

    key: ObjectKey
    old: RawObject | None
    new: RawObject | None
    initial: bool = False


class _Gone(msgspec.Struct):
    """Remember an object that our own write took away, until the watch has told so too.

    `final`: it was deleted, so its uid never returns. Otherwise it left the selection and may come
    back with a newer version. `heard`: the watch has shown it, so its end will be shown as well.
    """

    uid: str
    version: str
    final: bool
    heard: bool
    listed: bool = False

    def refuses(self, obj: RawObject) -> bool:
        if self.final and obj.meta.uid == self.uid:
            return True
        return compare(obj.meta.resource_version, self.version) <= 0


NOTHING: Sequence[Change] = ()


class Store:
    """Keep the newest known state of each object, and return each effective change exactly once.

    The watch and our own writes race: a write's answer may come before or after its event. Per object
    the higher version wins, so whichever comes second changes nothing. `progress` is the version up to
    which the watch has told everything: an answer not newer than that brings no news, even about an
    object that is no longer there. Lists are consistent reads, so none is older than `progress`, nor than a
    list that was cut off before its end; one may well be older than our own writes, and then neither revives nor removes what those did. One that is
    older than `progress` all the same, or shows an older state than one that it must have seen, tells of another
    history: the cluster's data was restored from a backup. It is right then, and all that was known is not.

    `trim` is given each object that is news, whole, and returns what to keep of it.
    """

    def __init__(self, selection: Selection, trim: Callable[[RawObject], RawObject] | None = None) -> None:
        self.objects: dict[ObjectKey, RawObject] = {}
        self.progress: str = ""
        self._selection = selection
        self._trim = trim
        self._gone: dict[ObjectKey, _Gone] = {}
        self._unlisted: set[ObjectKey] | None = None
        self._older: dict[ObjectKey, RawObject] = {}
        self._filled = False

    @property
    def filled(self) -> bool:
        """Return whether a whole list has been taken in."""
        return self._filled

    def begin_list(self) -> None:
        """Take what comes until `end_list` as the whole of the selection."""
        self._unlisted = set(self.objects)
        self._older = {}
        for gone in self._gone.values():
            gone.listed = False

    def end_list(self, version: str) -> Sequence[Change]:
        """Remove what the list of this version lacks, unless we wrote it later."""
        changes: list[Change] = []
        restored = compare(version, self.progress) < 0
        if restored:
            self._gone.clear()
        for key in self._unlisted or ():
            known = self.objects.get(key)
            if known is not None and (restored or compare(version, known.meta.resource_version) >= 0):
                changes.extend(self._remove(key))
        for key, obj in self._older.items():
            known = self.objects.get(key)
            if restored or (known is not None and compare(version, known.meta.resource_version) >= 0):
                changes.extend(self._replace(key, known, obj, initial=False))
        self._older = {}
        self._gone = {
            key: gone
            for key, gone in self._gone.items()
            if compare(version, gone.version) < 0 or (gone.final and gone.listed)
        }
        self._unlisted = None
        self._filled = True
        self.progress = version
        return changes

    def apply(self, obj: RawObject) -> Sequence[Change]:
        """Take in an object that a list or a watch event brought."""
        key = obj.meta.key
        if self._unlisted is None:
            self.progress = obj.meta.resource_version
        else:
            self._unlisted.discard(key)
            self._note_older(key, obj)
        if self._gone:
            gone = self._gone.get(key)
            if gone is not None and gone.uid == obj.meta.uid:
                gone.heard = gone.listed = True
        return self._put(key, obj, initial=not self._filled)

    def delete(self, obj: RawObject) -> Sequence[Change]:
        """Take in a watch event that an object is gone, or has left the selection."""
        key, version = obj.meta.key, obj.meta.resource_version
        if self._unlisted is None:
            self.progress = version
        gone = self._gone.get(key)
        if gone is not None and compare(version, gone.version) >= 0:
            # With a selector this may be a leave with a return still to come: `advance` ends it then.
            gone.heard = False
            if self._selection.covers(key):
                del self._gone[key]
        known = self.objects.get(key)
        if known is None or compare(version, known.meta.resource_version) < 0:
            return NOTHING
        return self._remove(key)

    def advance(self, version: str) -> None:
        """Note that the watch has told everything up to this version."""
        if self._unlisted is not None:
            return
        self.progress = version
        if self._gone:
            self._gone = {
                key: gone
                for key, gone in self._gone.items()
                if compare(version, gone.version) < 0 or (gone.final and gone.heard)
            }

    def record_write(self, obj: RawObject) -> Sequence[Change]:
        """Take in the answer to our own write, as if the watch had brought it."""
        key, version = obj.meta.key, obj.meta.resource_version
        if not self._selection.admits(key) or self._told(version):
            return NOTHING
        if self._selection.selects(obj):
            if self._unlisted is not None and key not in self.objects:
                # If the list is newer than this, it will still name the object, or the object is gone again.
                self._unlisted.add(key)
            return self._put(key, obj, initial=False)
        known, gone = self.objects.get(key), self._gone.get(key)
        if (known is not None and compare(version, known.meta.resource_version) <= 0) or (
            gone is not None and gone.refuses(obj)
        ):
            return NOTHING
        self._gone[key] = _Gone(obj.meta.uid, version, final=False, heard=False)
        return self._remove(key)

    def record_delete(self, key: ObjectKey, uid: str, version: str) -> Sequence[Change]:
        """Take in that our own delete ended the object whose last version, if known, was this."""
        known = self.objects.get(key)
        if known is not None:
            known_version = known.meta.resource_version
            if known.meta.uid != uid and (not version or compare(version, known_version) < 0):
                return NOTHING
            if not version or compare(version, known_version) < 0:
                version = known_version
        elif not self._selection.admits(key) or not version or self._told(version):
            return NOTHING
        gone = self._gone.get(key)
        if gone is not None and compare(version, gone.version) < 0:
            # Answers come in any order: a later delete of ours has been recorded.
            return NOTHING
        heard = known is not None and known.meta.uid == uid and self._told(known.meta.resource_version)
        self._gone[key] = _Gone(uid, version, final=True, heard=heard)
        return self._remove(key)

    def _told(self, version: str) -> bool:
        return bool(self.progress) and compare(self.progress, version) >= 0

    def _put(self, key: ObjectKey, obj: RawObject, *, initial: bool) -> Sequence[Change]:
        gone = self._gone.get(key)
        if gone is not None:
            if gone.refuses(obj):
                return NOTHING
            del self._gone[key]
        known = self.objects.get(key)
        # Not before it is clear that this is news: every write of ours comes a second time from the watch.
        if known is not None and compare(obj.meta.resource_version, known.meta.resource_version) <= 0:
            return NOTHING
        return self._replace(key, known, obj, initial=initial)

    def _note_older(self, key: ObjectKey, obj: RawObject) -> None:
        """Keep what a list shows and we know better, until it is clear which of the two is right."""
        known, gone = self.objects.get(key), self._gone.get(key)
        if (known is not None and compare(obj.meta.resource_version, known.meta.resource_version) < 0) or (
            gone is not None and gone.refuses(obj)
        ):
            self._older[key] = obj
        else:
            self._older.pop(key, None)

    def _replace(
        self, key: ObjectKey, known: RawObject | None, obj: RawObject, *, initial: bool
    ) -> Sequence[Change]:
        if self._trim is not None:
            obj = self._trim(obj)
        self.objects[key] = obj
        if known is None:
            return (Change(key, None, obj, initial),)
        if known.meta.uid != obj.meta.uid:
            # Deleted and made again while nobody looked: two changes, as the watch would have told.
            return (Change(key, known, None), Change(key, None, obj))
        return (Change(key, known, obj, initial),)

    def _remove(self, key: ObjectKey) -> Sequence[Change]:
        known = self.objects.pop(key, None)
        return (Change(key, known, None),) if known is not None else NOTHING
