"""One selection of objects read as one class: decoded afresh for each reader, found by index."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar, cast, get_origin
from weakref import WeakKeyDictionary

from kubewright.api import Index, KubewrightError, ObjectKey, RawObject, decode, parse, parse_labels
from kubewright.cache.feed import Feed, Subscriber
from kubewright.cache.indexes import IndexTable
from kubewright.cache.selection import Selection
from kubewright.cache.store import Change
from kubewright.cache.undecodable import Undecodable
from kubewright.guards import attempt

T = TypeVar("T")


class Informer(Generic[T]):
    """Read what a feed holds as objects of one class, or as wire values where that is `dict`."""

    def __init__(self, feed: Feed, cls: type[T]) -> None:
        self.feed = feed
        self._cls = cls
        self._typed = (get_origin(cls) or cls) is not dict
        # An index that was made for one question is not kept for ever after.
        self._indexes: WeakKeyDictionary[Index[T], IndexTable] = WeakKeyDictionary()
        self._end_keeping: Callable[[], None] | None = None

    @property
    def selection(self) -> Selection:
        """Return what is held."""
        return self.feed.selection

    @property
    def synced(self) -> bool:
        """Return whether the whole selection has been seen once."""
        return self.feed.synced

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until the whole selection has been seen once; raise CacheSyncTimeout when that takes too long."""
        await self.feed.wait_synced(timeout)

    @property
    def problems(self) -> Sequence[str]:
        """Return what somebody must mend before the objects can be read: a missing kind, a missing rule."""
        return self.feed.problems

    def covers(self, key: ObjectKey) -> bool:
        """Return whether an object of this key, if there is one, is surely and wholly here."""
        return self.selection.covers(key)

    def get(self, key: ObjectKey) -> T | None:
        """Return the object, decoded afresh; raise DecodeError when it does not fit its class."""
        raw = self.feed.objects.get(key)
        if raw is None:
            return None
        try:
            return self._decode(raw)
        except KubewrightError as error:
            self.feed.undecodable.report(raw, error)
            raise

    def get_raw(self, key: ObjectKey) -> RawObject | None:
        """Return the object as it is kept."""
        return self.feed.objects.get(key)

    def keys(self) -> Sequence[ObjectKey]:
        """Return the keys of all objects."""
        return list(self.feed.objects)

    def list(self, namespace: str = "", labels: str = "") -> Sequence[T]:
        """Return the objects that can be decoded, of one namespace or all, with these labels or any."""
        selector = parse_labels(labels) if labels else None
        return self._decoded(
            raw
            for key, raw in self.feed.objects.items()
            if (not namespace or key.namespace == namespace)
            and (selector is None or selector.matches(raw.meta.labels))
        )

    def add_index(self, index: Index[T]) -> None:
        """Keep this index from now on."""
        if index in self._indexes:
            return
        if self._end_keeping is None:
            self._end_keeping = self.feed.keep(self._note)
        table = self._indexes[index] = IndexTable()
        for key, raw in self.feed.objects.items():
            table.put(key, self._index_values(index, raw, self._decode_or_report(raw)))

    def keys_by_index(self, index: Index[T], value: str) -> Sequence[ObjectKey]:
        """Return the keys of the objects under this value."""
        return self._indexes[index].find(value)

    def by_index(self, index: Index[T], value: str) -> Sequence[T]:
        """Return the objects under this value."""
        return self._decoded(self.feed.objects[key] for key in self._indexes[index].find(value))

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tell this function of what is there, as initial changes, and of all that follows.

        The returned function ends the subscription.
        """
        return self.feed.subscribe(subscriber)

    def on_undecodable(self, listener: Callable[[Undecodable], None]) -> Callable[[], None]:
        """Tell this function once of each state of an object that does not fit its class."""
        return self.feed.undecodable.listen(listener)

    def record_write(self, raw: RawObject) -> None:
        """Take in the answer to a write of ours, so that it is read from here at once."""
        self.feed.record_write(raw)

    def record_delete(self, key: ObjectKey, uid: str, resource_version: str) -> None:
        """Take in that a delete of ours has ended the object; its last version may be unknown."""
        self.feed.record_delete(key, uid, resource_version)

    def close(self) -> None:
        """Keep no index any more."""
        if self._end_keeping is not None:
            self._end_keeping()
            self._end_keeping = None

    def _note(self, change: Change) -> None:
        if not self._indexes:
            return
        if change.new is None:
            for table in self._indexes.values():
                table.remove(change.key)
            return
        obj = self._decode_or_report(change.new)
        for index, table in self._indexes.items():
            table.put(change.key, self._index_values(index, change.new, obj))

    def _index_values(self, index: Index[T], raw: RawObject, obj: T | None) -> tuple[str, ...]:
        if obj is None:
            return ()

        def failed(error: BaseException) -> tuple[str, ...]:
            self.feed.undecodable.report(raw, error)
            return ()

        return attempt(lambda obj: tuple(dict.fromkeys(index.values(obj))), obj, failed)

    def _decode(self, raw: RawObject) -> T:
        if not self._typed:
            # The items of a list leave out what all of them have in common.
            kind = self.selection.kind
            return cast(T, {"apiVersion": kind.api_version, "kind": kind.kind, **parse(raw.raw)})
        return cast(T, decode(cast("type[Any]", self._cls), raw.raw))

    def _decode_or_report(self, raw: RawObject) -> T | None:
        try:
            return self._decode(raw)
        except KubewrightError as error:
            self.feed.undecodable.report(raw, error)
            return None

    def _decoded(self, raws: Iterable[RawObject]) -> Sequence[T]:
        decoded = (self._decode_or_report(raw) for raw in raws)
        return [obj for obj in decoded if obj is not None]
