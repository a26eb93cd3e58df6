"""Lookups of objects by values computed from them."""

from kubewright.api import ObjectKey


class IndexTable:
    """Hold the keys found under each value."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[ObjectKey, None]] = {}
        self._values: dict[ObjectKey, tuple[str, ...]] = {}

    def put(self, key: ObjectKey, values: tuple[str, ...]) -> None:
        """Let the key be found under these values and no others."""
        if self._values.get(key, ()) == values:
            return
        self.remove(key)
        if values:
            self._values[key] = values
        for value in values:
            self._keys.setdefault(value, {})[key] = None

    def remove(self, key: ObjectKey) -> None:
        """Let the key be found no more."""
        for value in self._values.pop(key, ()):
            keys = self._keys[value]
            keys.pop(key, None)
            if not keys:
                del self._keys[value]

    def find(self, value: str) -> list[ObjectKey]:
        """Return the keys under this value, in the order in which they came."""
        return list(self._keys.get(value, ()))
