"""Objects that do not fit their class: each reported once, none in the way of the others."""

from collections.abc import Callable

import msgspec

from kubewright.api import ObjectKey, RawObject


class Undecodable(msgspec.Struct, frozen=True):
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
        if known is not None and _same_state(known.object, obj):
            return
        found = self._known[key] = Undecodable(key, obj, error)
        for listener in list(self._listeners):
            listener(found)

    def changed(self, key: ObjectKey, new: RawObject | None) -> None:
        """Take the object as readable until shown otherwise, if this is another state of it."""
        known = self._known.get(key)
        if known is not None and (new is None or not _same_state(known.object, new)):
            del self._known[key]

    def listen(self, listener: Callable[[Undecodable], None]) -> Callable[[], None]:
        """Tell this function of those known and of all to come; the returned one ends that."""
        self._listeners.append(listener)
        for found in list(self._known.values()):
            listener(found)
        return lambda: self._listeners.remove(listener)

    def __len__(self) -> int:
        return len(self._known)


def _same_state(one: RawObject, other: RawObject) -> bool:
    return (one.meta.uid, one.meta.resource_version) == (other.meta.uid, other.meta.resource_version)
