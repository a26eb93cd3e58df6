"""The objects of one declared kind at hand: one informer a namespace, read as if they were one."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from kubewright.api import Kind, Object, ObjectKey, RawObject, kind_of
from kubewright.cache import Cache, Change, Index, Informer, Selection, Undecodable
from kubewright.controller.watches import Selector

T = TypeVar("T")


class Shelf(Generic[T]):
    """Hold the informers of one kind and selector."""

    def __init__(
        self,
        cache: Cache,
        kind: type[T] | Kind,
        selector: Selector,
        namespaces: Sequence[str],
        *,
        metadata_only: bool = False,
    ) -> None:
        self.kind: Kind = kind_of(kind)
        self.form: type[T] | Kind = kind
        """What objects are read as: a class, or the kind for wire values."""
        self.whole: bool = not metadata_only and selector.transform is None
        """Whether objects are kept as the server has them, so that a write may build on them."""
        self._indexes: WeakSet[Index[T]] = WeakSet()
        cls: Any = Object if metadata_only else dict if isinstance(kind, Kind) else kind
        self.informers: tuple[Informer[T], ...] = tuple(
            cache.informer(
                Selection(
                    self.kind, namespace, selector.labels, selector.fields, metadata_only, selector.transform
                ),
                cls,
            )
            for namespace in _namespaces(self.kind, selector, namespaces)
        )
        chosen = [informer.selection for informer in self.informers]
        self._everything = any(one.covers_all for one in chosen)

    def covers(self, key: ObjectKey) -> bool:
        """Tell whether an object of this key, if there is one, is surely here."""
        return self._everything or any(informer.covers(key) for informer in self.informers)

    def lists(self, namespace: str) -> bool:
        """Tell whether every object of a namespace (of all that are watched, if none is named) is here."""
        chosen = [informer.selection for informer in self.informers]
        if any(one.labels or one.fields or one.metadata_only for one in chosen):
            return False
        return not namespace or any(informer.covers(ObjectKey(namespace, "")) for informer in self.informers)

    def get(self, key: ObjectKey) -> T | None:
        """Return the object decoded afresh; raises DecodeError where it does not fit its class."""
        return next((found for informer in self.informers if (found := informer.get(key)) is not None), None)

    def get_raw(self, key: ObjectKey) -> RawObject | None:
        """Return the object as it is kept."""
        for informer in self.informers:
            found = informer.get_raw(key)
            if found is not None:
                return found
        return None

    def all_keys(self) -> Iterator[ObjectKey]:
        """Yield the keys of all objects."""
        for informer in self.informers:
            yield from informer.keys()

    def list(self, namespace: str = "", labels: str = "") -> "list[T]":
        """Return the objects, of one namespace or all, with these labels or any."""
        return [found for informer in self.informers for found in informer.list(namespace, labels)]

    def keys_by_index(self, index: Index[T], value: str) -> "list[ObjectKey]":
        """Return the keys under a value; an index is kept from its first use on."""
        self.add_index(index)
        return [key for informer in self.informers for key in informer.keys_by_index(index, value)]

    def by_index(self, index: Index[T], value: str) -> "list[T]":
        """Return the objects under a value; an index is kept from its first use on."""
        self.add_index(index)
        return [found for informer in self.informers for found in informer.by_index(index, value)]

    def add_index(self, index: Index[T]) -> None:
        """Keep an index from now on."""
        if index not in self._indexes:
            self._indexes.add(index)
            for informer in self.informers:
                informer.add_index(index)

    def subscribe(self, subscriber: Callable[[Change], None]) -> None:
        """Tell the function of what is there and of all that follows."""
        for informer in self.informers:
            informer.subscribe(subscriber)

    def on_undecodable(self, listener: Callable[[Undecodable], None]) -> None:
        """Tell the function once of each state of an object that does not fit its class."""
        for informer in self.informers:
            informer.on_undecodable(listener)

    async def wait_synced(self) -> None:
        """Wait until all is here; raises CacheSyncTimeout."""
        for informer in self.informers:
            await informer.wait_synced()


def _namespaces(kind: Kind, selector: Selector, namespaces: Sequence[str]) -> Sequence[str]:
    if not kind.namespaced:
        return ("",)
    if selector.namespace:
        return (selector.namespace,)
    # A namespace that is named twice must not be watched, nor listed, twice.
    return tuple(dict.fromkeys(namespaces)) or ("",)


AnyShelf = Shelf[Any]
