"""Objects that do not fit their class: each reported once, none in the way of the others."""

from collections.abc import Callable
from dataclasses import dataclass

from kubewright.api import ObjectKey, RawObject


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Hold an object, and why it could not be read or indexed."""

    key: ObjectKey
    object: RawObject
    error: Exception


class UndecodableObjects:
    """Tell listeners of each unreadable state of an object once; forget it when the object changes."""

    def __init__(self) -> None:
        self._known: dict[ObjectKey, Undecodable] = {}
        self._listeners: list[Callable[[Undecodable], None]] = []

    def report(self, obj: RawObject, error: Exception) -> None:
        """Tell the listeners, unless they know already."""
        key = obj.meta.key
        known = self._known.get(key)
        if known is not None and known.object is obj:
            return
        found = self._known[key] = Undecodable(key, obj, error)
        for listener in list(self._listeners):
            listener(found)

    def forget(self, key: ObjectKey) -> None:
        """Take the key as readable until shown otherwise."""
        self._known.pop(key, None)

    def listen(self, listener: Callable[[Undecodable], None]) -> Callable[[], None]:
        """Tell this function of those known and of all to come; the returned one ends that."""
        self._listeners.append(listener)
        for found in list(self._known.values()):
            listener(found)
        return lambda: self._listeners.remove(listener)

    def __len__(self) -> int:
        return len(self._known)
