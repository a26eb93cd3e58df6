"""One selection of objects read as one class: decoded again for each read, found by index."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar, cast, get_origin
from weakref import WeakKeyDictionary

from kubewright.api import Index, KubewrightError, ObjectKey, RawObject, decode, parse, parse_labels
from kubewright.cache.feed import Feed, Subscriber, Undecodable
from kubewright.cache.selection import Selection
from kubewright.cache.store import StoreChange
from kubewright.guards import attempt

T = TypeVar("T")


class Informer(Generic[T]):
    """Read the objects of a feed as one class, or as JSON objects if the class is `dict`."""

    def __init__(self, feed: Feed, cls: type[T]) -> None:
        self.feed = feed
        self.selection: Selection = feed.selection
        self._cls = cls
        self._typed = (get_origin(cls) or cls) is not dict
        # Weak: an index that its author no longer references is dropped.
        self._indexes: WeakKeyDictionary[Index[T], IndexTable] = WeakKeyDictionary()
        self._remove_indexer: Callable[[], None] | None = None
        chosen = feed.selection
        self._covers_all = not (chosen.namespace or chosen.is_narrowed or chosen.shard is not None)

    @property
    def synced(self) -> bool:
        """Return True if the whole selection has been read once."""
        return self.feed.synced

    async def wait_synced(self, timeout: float | None = None, *, optional: bool = False) -> None:
        """Wait until the whole selection has been read once; raise CacheSyncTimeout if that takes too long.

        With `optional` it is enough if the server responded that it does not serve the kind, or not now.
        """
        await self.feed.wait_synced(timeout, optional=optional)

    @property
    def problems(self) -> Sequence[str]:
        """Return why objects cannot be read, such as a missing kind or RBAC rule."""
        return self.feed.problems

    def covers(self, key: ObjectKey) -> bool:
        """Return True if an object with this key, if it exists, is certain to be cached completely.

        A shard by uid does not show in a key: it covers the objects that it holds, and no others.
        """
        chosen = self.selection
        if self._covers_all or chosen.covers(key):
            return True
        return chosen.shard is not None and not chosen.is_narrowed and key in self.feed.objects

    def get(self, key: ObjectKey) -> T | None:
        """Return the object, newly decoded, or None; raise DecodeError if it does not fit its class."""
        raw = self.feed.objects.get(key)
        if raw is None:
            return None
        try:
            return self._decode(raw)
        except KubewrightError as error:
            self.feed.undecodable.report(raw, error)
            raise

    def get_raw(self, key: ObjectKey) -> RawObject | None:
        """Return the object as it is stored, or None."""
        return self.feed.objects.get(key)

    def keys(self) -> Sequence[ObjectKey]:
        """Return the keys of all objects."""
        return list(self.feed.objects)

    def list(self, namespace: str = "", labels: str = "") -> Sequence[T]:
        """Return the objects that can be decoded, of one namespace or all, with these labels or any."""
        return self.decode_all(self.select(namespace, labels))

    def select(self, namespace: str = "", labels: str = "") -> Sequence[RawObject]:
        """Return the encoded objects, of one namespace or all, with these labels or any."""
        return _selected(self.feed.objects.items(), namespace, labels)

    def add_index(self, index: Index[T]) -> None:
        """Maintain this index from now on."""
        if index in self._indexes:
            return
        if self._remove_indexer is None:
            self._remove_indexer = self.feed.add_indexer(self._index)
        table = self._indexes[index] = IndexTable()
        for key, raw in self.feed.objects.items():
            table.put(key, self._index_values(index, raw, self._decode_or_report(raw)))

    def keys_by_index(self, index: Index[T], value: str) -> Sequence[ObjectKey]:
        """Return the keys of the objects under this value."""
        return self._indexes[index].find(value)

    def by_index(self, index: Index[T], value: str) -> Sequence[T]:
        """Return the objects under this value."""
        return self.decode_all(self.select_by_index(index, value))

    def select_by_index(
        self, index: Index[T], value: str, namespace: str = "", labels: str = ""
    ) -> Sequence[RawObject]:
        """Return the encoded objects under this value, of one namespace or all, with these labels or any."""
        objects = self.feed.objects
        return _selected(((key, objects[key]) for key in self._indexes[index].find(value)), namespace, labels)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call this function for each cached object, as an initial change, and for each change that follows.

        The returned function ends the subscription.
        """
        return self.feed.subscribe(subscriber)

    def on_undecodable(self, listener: Callable[[Undecodable], None]) -> Callable[[], None]:
        """Call this function once for each state of an object that does not fit its class."""
        return self.feed.undecodable.listen(listener)

    def record_write(self, raw: RawObject) -> None:
        """Store the response to our own write, so that it can be read at once."""
        self.feed.record_write(raw)

    def record_delete(self, key: ObjectKey, uid: str, resource_version: str) -> None:
        """Remove an object after our own delete; its last version may be unknown."""
        self.feed.record_delete(key, uid, resource_version)

    def close(self) -> None:
        """Stop maintaining indexes."""
        if self._remove_indexer is not None:
            self._remove_indexer()
            self._remove_indexer = None

    def _index(self, change: StoreChange) -> None:
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
            # The items of a list omit apiVersion and kind.
            kind = self.selection.kind
            return cast(T, {"apiVersion": kind.api_version, "kind": kind.kind, **parse(raw.raw)})
        return cast(T, decode(cast("type[Any]", self._cls), raw.raw))

    def _decode_or_report(self, raw: RawObject) -> T | None:
        try:
            return self._decode(raw)
        except KubewrightError as error:
            self.feed.undecodable.report(raw, error)
            return None

    def decode_all(self, raws: Iterable[RawObject]) -> Sequence[T]:
        """Return the objects that can be decoded; the others are reported."""
        decoded = (self._decode_or_report(raw) for raw in raws)
        return [obj for obj in decoded if obj is not None]


def _selected(
    objects: Iterable[tuple[ObjectKey, RawObject]], namespace: str, labels: str
) -> Sequence[RawObject]:
    selector = parse_labels(labels) if labels else None
    return [
        raw
        for key, raw in objects
        if (not namespace or key.namespace == namespace)
        and (selector is None or selector.matches(raw.meta.labels))
    ]


class IndexTable:
    """The keys of one index by value."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[ObjectKey, None]] = {}
        self._values: dict[ObjectKey, tuple[str, ...]] = {}

    def put(self, key: ObjectKey, values: tuple[str, ...]) -> None:
        """Put the key under these values and no others."""
        if self._values.get(key, ()) == values:
            return
        self.remove(key)
        if values:
            self._values[key] = values
        for value in values:
            self._keys.setdefault(value, {})[key] = None

    def remove(self, key: ObjectKey) -> None:
        """Remove the key from all values."""
        for value in self._values.pop(key, ()):
            keys = self._keys[value]
            keys.pop(key, None)
            if not keys:
                del self._keys[value]

    def find(self, value: str) -> list[ObjectKey]:
        """Return the keys under this value, in the order in which they were added."""
        return list(self._keys.get(value, ()))
