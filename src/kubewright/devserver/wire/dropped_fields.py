"""Fields that a server drops from requests because their feature gates are off, found by the Go types of a kind."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from kubewright.devserver.wire.gotypes import INLINE, GoType, GoTypes

_Names = tuple[str, str]
"""A struct and a field of it."""


class DroppedFields:
    """The fields to drop from objects of one type, at any depth.

    As in kube-apiserver, a field that the old object uses anywhere is kept everywhere, so that an update of an object
    from before the gate was turned off loses nothing.
    """

    def __init__(self) -> None:
        self.own: dict[str, _Names] = {}
        self.inner: dict[str, DroppedFields] = {}

    def used(self, obj: Any) -> frozenset[tuple[str, str]]:
        """Return the fields that an object uses, for `drop` to keep."""
        return frozenset(self._used(obj))

    def drop(self, obj: Any, *, kept: frozenset[tuple[str, str]] = frozenset()) -> None:
        """Remove the fields from an object, except those to keep."""
        if self._is_in(obj):
            self._remove(obj, kept)

    def drop_unless_used(self, new: Any, old: Any) -> None:
        """Remove the fields from a changed object, except those that the old object uses."""
        if self._is_in(new):
            self._remove(new, self.used(old))

    def _is_in(self, value: Any) -> bool:
        """Return True if there is something to drop, which is rare: all writes of the kind are asked."""
        if isinstance(value, dict):
            part = cast(dict[str, Any], value)
            if not self.own.keys().isdisjoint(part):
                return True
            return any(name in part and inner._is_in(part[name]) for name, inner in self.inner.items())
        return isinstance(value, list) and any(map(self._is_in, cast(list[Any], value)))

    def _used(self, value: Any) -> Iterator[_Names]:
        for item in _objects(value):
            for name, names in self.own.items():
                if item.get(name) is not None:
                    yield names
            for name, inner in self.inner.items():
                if name in item:
                    yield from inner._used(item[name])

    def _remove(self, value: Any, kept: frozenset[_Names]) -> None:
        for item in _objects(value):
            for name, names in self.own.items():
                if names not in kept:
                    item.pop(name, None)
            for name, inner in self.inner.items():
                if name in item:
                    inner._remove(item[name], kept)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects that a value is or has as elements."""
    if isinstance(value, dict):
        yield cast(dict[str, Any], value)
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            yield from _objects(item)


class DroppedFieldFinder:
    """The dropped fields of all structs of a table, each found at its first use."""

    def __init__(self, types: GoTypes, dropped: Mapping[str, Sequence[str]]) -> None:
        self._types = types
        self._dropped = dropped
        self._found: dict[str, DroppedFields | None] = {}

    def find(self, struct: str) -> DroppedFields | None:
        """Return the fields to drop from a struct, or None if there are none."""
        if struct not in self._found:
            self._found[struct] = self._find(struct, frozenset())
        return self._found[struct]

    @cached_property
    def _holders(self) -> set[str]:
        """Structs that have dropped fields at any depth: most have none, and are not looked into."""
        return self._types.containing(self._dropped)

    def _find(self, struct: str, above: frozenset[str]) -> DroppedFields | None:
        # A type that contains itself has no dropped fields below what was found already.
        if struct not in self._holders or struct in above:
            return None
        found = DroppedFields()
        for field in self._types.declared(struct):
            if field.name in self._dropped.get(struct, ()):
                found.own[field.name] = (struct, field.name)
                continue
            inner = _struct_in(field.type)
            part = self._find(inner, above | {struct}) if inner else None
            if part is None:
                continue
            if field.flags & INLINE:
                found.own |= part.own
                found.inner |= part.inner
            else:
                found.inner[field.name] = part
        return found if found.own or found.inner else None


def _struct_in(go_type: GoType) -> str | None:
    """Return the struct that a type is, points to or lists; maps of structs have no dropped fields."""
    if go_type.form == "struct":
        return go_type.spelled
    if go_type.form in ("pointer", "list") and go_type.item is not None:
        return _struct_in(go_type.item)
    return None
