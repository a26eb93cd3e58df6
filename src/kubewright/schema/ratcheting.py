"""Ratcheting: find the old value that corresponds to a new one, and whether it changed.

An update is not rejected for an invalid value that it does not change. `Correlation` walks the old and the new object
together: a field corresponds to the field of the same name, an element of a map list to the one with the same keys;
elements of other lists have no counterpart. `Ratchet` adds the nearest known ancestor, which CEL rules need.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kubewright.schema.json_tree import Json, Schema, field_schema, items, same


class Correlation:
    """A new value with the old value that it corresponds to."""

    def __init__(self, new: Json, old: Json, schema: Schema) -> None:
        self.new = new
        self.old = old
        self.schema = schema
        self._children: dict[str | int, Correlation | None] = {}

    def key(self, name: str) -> "Correlation | None":
        """Return the correlation of a field, or None unless both values have it and the schema declares it."""
        if name not in self._children:
            self._children[name] = self._key(name)
        return self._children[name]

    def index(self, position: int) -> "Correlation | None":
        """Return the correlation of a list element; only elements of map lists have one."""
        if position not in self._children:
            self._children[position] = self._index(position)
        return self._children[position]

    @cached_property
    def unchanged(self) -> bool:
        """Return True if the value did not change; the order of map lists is ignored."""
        new, old = self.new, self.old
        if new is None or old is None:
            return new is None and old is None
        if isinstance(new, dict) and isinstance(old, dict):
            return len(new) == len(old) and all(self._unchanged(self.key(name)) for name in new)
        if isinstance(new, list) and isinstance(old, list):
            if len(new) != len(old):
                return False
            if self.schema.get("x-kubernetes-list-type") != "map":
                return same(new, old)
            return all(self._unchanged(self.index(position)) for position in range(len(new)))
        return same(new, old)

    @staticmethod
    def _unchanged(child: "Correlation | None") -> bool:
        return child is not None and child.unchanged

    def _key(self, name: str) -> "Correlation | None":
        if not isinstance(self.new, dict) or not isinstance(self.old, dict):
            return None
        if name not in self.new or name not in self.old:
            return None
        schema = field_schema(self.schema, name)
        return None if schema is None else Correlation(self.new[name], self.old[name], schema)

    def _index(self, position: int) -> "Correlation | None":
        schema = items(self.schema)
        if not isinstance(self.new, list) or position >= len(self.new) or schema is None:
            return None
        key = map_key(self.schema, self.new[position])
        old = self._old_elements.get(key) if key is not None else None
        return None if old is None else Correlation(self.new[position], old, schema)

    @cached_property
    def _old_elements(self) -> dict[tuple[Any, ...], Any]:
        elements: dict[tuple[Any, ...], Any] = {}
        if self.schema.get("x-kubernetes-list-type") == "map" and isinstance(self.old, list):
            for element in self.old:
                key = map_key(self.schema, element)
                if key is not None:
                    elements.setdefault(key, element)
        return elements


@dataclass(slots=True)
class Ratchet:
    """The correlation of a value, or of its nearest ancestor that has one."""

    current: Correlation | None = None
    above: Correlation | None = None

    @property
    def unchanged(self) -> bool:
        """Return True if errors are ignored because nothing changed."""
        known = self.current if self.current is not None else self.above
        return known is not None and known.unchanged

    def key(self, name: str) -> "Ratchet":
        """Return the ratchet of a field."""
        if self.current is None:
            return self
        if self.above is None and name in ("apiVersion", "kind"):
            return Ratchet()
        return Ratchet(self.current.key(name), self.current)

    def index(self, position: int) -> "Ratchet":
        """Return the ratchet of a list element."""
        if self.current is None:
            return self
        return Ratchet(self.current.index(position), self.current)


def map_key(schema: Schema, element: Json) -> tuple[Any, ...] | None:
    """Return the key of an element of a map list, or None if a key field is missing."""
    if not isinstance(element, dict):
        return None
    key: list[Any] = []
    for name in schema.get("x-kubernetes-list-map-keys", ()):
        value = element.get(name)
        if not isinstance(value, str | int | float):
            return None
        key += (type(value), value)
    return tuple(key)
