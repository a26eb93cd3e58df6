"""Compare two values by their schema: which paths were added, removed or modified."""

from dataclasses import dataclass, field
from typing import Any

from kubewright.devserver.merge.elements import SELF, item_element
from kubewright.devserver.merge.fieldsets import FieldSet, descend, insert, without_below
from kubewright.devserver.merge.schema import ListSchema, MapSchema, MergeSchema
from kubewright.devserver.merge.values import ABSENT, LIST, MAP, SCALAR, encoded_same, same, view
from kubewright.devserver.objects import is_list, is_object

_NOTHING: list[Any] = []


@dataclass(slots=True)
class Comparison:
    """Paths removed, modified and added on the way from one value to another."""

    removed: FieldSet = field(default_factory=dict[str, Any])
    modified: FieldSet = field(default_factory=dict[str, Any])
    added: FieldSet = field(default_factory=dict[str, Any])

    def without(self, fields: FieldSet) -> "Comparison":
        """Leave out paths that cannot be owned through this endpoint."""
        if not fields:
            return self
        removed, modified, added = (
            without_below(s, fields) for s in (self.removed, self.modified, self.added)
        )
        return Comparison(removed, modified, added)


def compare(left: dict[str, Any], right: dict[str, Any], schema: MergeSchema) -> Comparison:
    """Compare two objects; parts that are identical are skipped."""
    found = Comparison()
    if schema.mapping is None or left is right:
        return found
    walk = _Walk(found)
    for key in left | right:
        before, after = left.get(key, ABSENT), right.get(key, ABSENT)
        if before is not ABSENT and after is not ABSENT and encoded_same(before, after):
            continue
        walk.field(key, before, after, schema.mapping)
    return found


class _Walk:
    """Descend both values at once, the path in a list."""

    def __init__(self, found: Comparison) -> None:
        self._found = found
        self._path: list[str] = []

    def field(self, key: str, left: Any, right: Any, schema: MapSchema) -> None:
        inner = schema.fields.get(key) or schema.item
        if inner is not None:
            self._descend(f"f:{key}", left, right, inner)

    def _descend(self, element: str, left: Any, right: Any, schema: MergeSchema) -> None:
        # Merging leaves untouched parts the very same objects.
        if left is right or (type(left) is str and left == right):
            return
        if left is ABSENT:
            parent = descend(self._found.added, self._path)
            parent[element] = _added(right, schema)
            return
        self._path.append(element)
        views = {view(schema, left)}
        if right is not ABSENT:
            views.add(view(schema, right))
        whole = False
        for how in views:
            whole = self._look(how, left, right, schema) or whole
        if not whole and right is ABSENT:
            insert(self._found.removed, self._path)
        self._path.pop()

    def _look(self, how: str, left: Any, right: Any, schema: MergeSchema) -> bool:
        """Compare under one view; true when the value was taken as a whole."""
        if how == MAP and schema.mapping is not None:
            before, after = left if is_object(left) else {}, right if is_object(right) else {}
            if schema.mapping.atomic or not (before or after):
                self._leaf(left, right)
                return True
            for key in before | after:
                self.field(key, before.get(key, ABSENT), after.get(key, ABSENT), schema.mapping)
            return False
        if how == LIST and schema.sequence is not None:
            first, second = left if is_list(left) else [], right if is_list(right) else []
            if not schema.sequence.associative or not (first or second):
                self._leaf(left, right)
                return True
            self._items(first, second, schema.sequence)
            return False
        if how == SCALAR:
            self._leaf(left, right)
            return True
        return False

    def _leaf(self, left: Any, right: Any) -> None:
        if right is ABSENT:
            insert(self._found.removed, self._path)
        elif not same(left, right):
            insert(self._found.modified, self._path)

    def _items(self, left: list[Any], right: list[Any], schema: ListSchema) -> None:
        before, after = _by_element(left, schema), _by_element(right, schema)
        for element in before | after:
            old, new = before.get(element, _NOTHING), after.get(element, _NOTHING)
            if len(old) <= 1 and len(new) <= 1:
                self._descend(element, old[0] if old else ABSENT, new[0] if new else ABSENT, schema.item)
            else:
                self._repeated(element, old, new, schema)

    def _repeated(self, element: str, old: list[Any], new: list[Any], schema: ListSchema) -> None:
        """Members with the same key are one value: live objects may have them, configurations must not."""
        path = [*self._path, element]
        if len(old) >= 2 and len(new) >= 2:
            if not same(old, new):
                insert(self._found.modified, path)
        elif len(old) >= 2:
            if new:
                self._descend(element, ABSENT, new[0], schema.item)
            insert(self._found.removed, path)
        else:
            if old:
                self._descend(element, old[0], ABSENT, schema.item)
            insert(self._found.added, path)


def _added(value: Any, schema: MergeSchema) -> FieldSet:
    """Return the node of a value that was not there before: all its paths, and its own if it is not a leaf.

    The same as comparing it with nothing, path by path, and what the creation of an object spends its time in.
    """
    out: FieldSet = {}
    how = view(schema, value)
    if how == MAP and schema.mapping is not None:
        if is_object(value) and not schema.mapping.atomic:
            fields, other = schema.mapping.fields, schema.mapping.item
            for key, item in value.items():
                inner = fields.get(key) or other
                if inner is not None:
                    out[f"f:{key}"] = _added(item, inner)
    elif how == LIST and schema.sequence is not None and is_list(value) and schema.sequence.associative:
        for element, members in _by_element(value, schema.sequence).items():
            out[element] = _added(members[0], schema.sequence.item) if len(members) == 1 else {}
    if out:
        out[SELF] = {}
    return out


def _by_element(items: list[Any], schema: ListSchema) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(item_element(schema, item), []).append(item)
    return found
