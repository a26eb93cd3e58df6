"""Objects that cannot be decoded, transformed or indexed: each state is reported once, the others go on."""

from collections.abc import Callable

import msgspec

from kubewright.api import ObjectKey, RawObject


class Undecodable(msgspec.Struct, frozen=True):
    """Hold an object, and why it could not be decoded, transformed or indexed."""

    key: ObjectKey
    object: RawObject
    error: BaseException


class UndecodableObjects:
    """Report each bad state of an object to the listeners once; forget it when the object changes."""

    def __init__(self) -> None:
        self._known: dict[ObjectKey, Undecodable] = {}
        self._listeners: list[Callable[[Undecodable], None]] = []

    def report(self, obj: RawObject, error: BaseException) -> None:
        """Notify the listeners, unless this state was reported before."""
        key = obj.meta.key
        known = self._known.get(key)
        if known is not None and _same_state(known.object, obj):
            return
        found = self._known[key] = Undecodable(key, obj, error)
        for listener in list(self._listeners):
            listener(found)

    def changed(self, key: ObjectKey, new: RawObject | None) -> None:
        """Forget what was reported of the object if this is another state of it."""
        known = self._known.get(key)
        if known is not None and (new is None or not _same_state(known.object, new)):
            del self._known[key]

    def listen(self, listener: Callable[[Undecodable], None]) -> Callable[[], None]:
        """Call this function for each bad state that is known or follows; return a function that ends that."""
        self._listeners.append(listener)
        for found in list(self._known.values()):
            listener(found)
        return lambda: self._listeners.remove(listener)

    def __len__(self) -> int:
        return len(self._known)


def _same_state(one: RawObject, other: RawObject) -> bool:
    return (one.meta.uid, one.meta.resource_version) == (other.meta.uid, other.meta.resource_version)
