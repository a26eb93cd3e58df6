"""Values that are computed from stored objects, and computed again only after a change."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from kubewright.devserver.storage.store import ObjectStore

T = TypeVar("T")


class Derived(Generic[T]):
    """A value computed from the objects of some resources, by the names of their collections.

    `get` compares the revisions of their last changes, so that a request does not decode all objects of a resource.
    """

    def __init__(self, store: ObjectStore, names: Sequence[str], compute: Callable[[], T]) -> None:
        self._collections = [store.collection(name) for name in names]
        self._compute = compute
        self._revisions: list[int] | None = None

    def get(self) -> T:
        """Return the value, computed again if one of the collections has changed."""
        revisions = [collection.latest for collection in self._collections]
        if revisions != self._revisions:
            self._value = self._compute()
            self._revisions = revisions
        return self._value
