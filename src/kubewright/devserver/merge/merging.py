"""Merge a configuration into a live value by their schema, and remove paths from a value."""

from collections.abc import Iterator
from typing import Any

from kubewright.devserver.merge.elements import item_element
from kubewright.devserver.merge.fieldsets import FieldSet, below, is_member
from kubewright.devserver.merge.schema import ApplyError, ListSchema, MapSchema, MergeSchema
from kubewright.devserver.merge.validation import check_fits
from kubewright.devserver.merge.values import ABSENT, LIST, MAP, SCALAR, view
from kubewright.devserver.objects import is_list, is_object


def merge(left: Any, right: Any, schema: MergeSchema) -> Any:
    """Return the left value with the right one merged into it; `ABSENT` if the result is empty."""
    how = view(schema, left if right is ABSENT else right)
    if how == MAP and schema.mapping is not None:
        return _merge_objects(left, right, schema.mapping)
    if how == LIST and schema.sequence is not None:
        return _merge_lists(left, right, schema.sequence)
    return _over(left, right) if how == SCALAR else ABSENT


def _over(left: Any, right: Any) -> Any:
    return left if right is ABSENT else right


def _merge_objects(left: Any, right: Any, schema: MapSchema) -> Any:
    mine, theirs = left if is_object(left) else {}, right if is_object(right) else {}
    if schema.atomic or not (mine or theirs):
        return _over(left, right)
    out: dict[str, Any] = {}
    fields, item = schema.fields, schema.item
    for key in mine | theirs if theirs else mine:
        if key not in theirs:
            out[key] = mine[key]
            continue
        inner = fields.get(key) or item
        merged = merge(mine.get(key, ABSENT), theirs[key], inner) if inner is not None else ABSENT
        if merged is not ABSENT:
            out[key] = merged
    return out or ABSENT


def _merge_lists(left: Any, right: Any, schema: ListSchema) -> Any:
    mine, theirs = left if is_list(left) else [], right if is_list(right) else []
    if not schema.associative or not (mine or theirs):
        return _over(left, right)
    if not theirs:
        return mine
    return _Zip(mine, theirs, schema).run() or ABSENT


class _Zip:
    """Weave two keyed lists: members of both in the right one's order, the left's own where they stood."""

    def __init__(self, left: list[Any], right: list[Any], schema: ListSchema) -> None:
        self._schema = schema
        self._left = left
        self._left_elements = [item_element(schema, item) for item in left]
        self._right_elements = [item_element(schema, item) for item in right]
        self._right_items = dict(zip(self._right_elements, right, strict=True))
        self._left_items: dict[str, Any] = {}
        for element, item in zip(self._left_elements, left, strict=True):
            # Elements with a repeated key are not merged: those on the right replace them.
            self._left_items[element] = None if element in self._left_items else item
        self._shared = [element for element in self._right_elements if element in self._left_items]
        self._done: set[str] = set()
        self._out: list[Any] = []

    def run(self) -> list[Any]:
        """Return the woven list."""
        at_left = at_right = 0
        while at_left < len(self._left) or at_right < len(self._right_elements):
            if at_left < len(self._left):
                element = self._left_elements[at_left]
                both = at_right < len(self._right_elements)
                if both and element == self._right_elements[at_right]:
                    self._take(element)
                    self._shared = self._shared[1:]
                    at_left, at_right = at_left + 1, at_right + 1
                    continue
                if both and element in self._right_items and self._shared and self._shared[0] != element:
                    at_left += 1
                    continue
                if element not in self._right_items:
                    self._out.append(self._left[at_left])
                    at_left += 1
                    continue
                if element in self._done:
                    at_left += 1
            if at_right < len(self._right_elements):
                element = self._right_elements[at_right]
                self._take(element)
                if self._shared and self._shared[0] == element:
                    self._shared = self._shared[1:]
                at_right += 1
        return self._out

    def _take(self, element: str) -> None:
        self._done.add(element)
        left = self._left_items.get(element, ABSENT)
        merged = merge(left, self._right_items[element], self._schema.item)
        if merged is not ABSENT:
            self._out.append(merged)


def remove(value: Any, fields: FieldSet, schema: MergeSchema) -> Any:
    """Return a value without the paths; a collection that becomes empty is null."""
    if not fields:
        return value
    how = view(schema, value)
    if how == SCALAR:
        return value
    if how == MAP and schema.mapping is not None and is_object(value) and not schema.mapping.atomic:
        return _remove_fields(value, fields, schema.mapping)
    if how == LIST and schema.sequence is not None and is_list(value) and schema.sequence.associative:
        return _remove_items(value, fields, schema.sequence)
    return None


def _remove_fields(value: dict[str, Any], fields: FieldSet, schema: MapSchema) -> Any:
    out: dict[str, Any] = {}
    for key, item in value.items():
        node = fields.get(f"f:{key}")
        if node is None:
            out[key] = item
        elif not is_member(node):
            inner = schema.fields.get(key) or schema.item
            out[key] = remove(item, below(node), inner) if inner is not None else item
    return out or None


def _remove_items(value: list[Any], fields: FieldSet, schema: ListSchema) -> Any:
    out: list[Any] = []
    for item in value:
        node = fields.get(item_element(schema, item))
        if node is None:
            out.append(item)
        elif not is_member(node):
            out.append(remove(item, below(node), schema.item))
    return out or None


def overlay(live: dict[str, Any], configuration: dict[str, Any], schema: MergeSchema) -> dict[str, Any]:
    """Return the live object with the configuration merged into it, without field ownership; admission policies do so.

    Raise `ApplyError` if the configuration does not match the schema.
    """
    try:
        check_fits(configuration, schema)
    except ApplyError as error:
        raise ApplyError(f"failed to convert patch object to typed object: {error}") from None
    # Setting one field of an atomic value would silently drop all others.
    if found := list(_atomics("", configuration, schema)):
        text = ", ".join(found)
        raise ApplyError(f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {text}")
    return merge(live, configuration, schema)


def _atomics(place: str, value: Any, schema: MergeSchema) -> Iterator[str]:
    how = view(schema, value)
    if how == MAP and schema.mapping is not None and is_object(value):
        if schema.mapping.atomic:
            yield place
        for key, item in value.items():
            if (inner := schema.mapping.fields.get(key)) is not None:
                yield from _atomics(f"{place}.{key}", item, inner)
    elif how == LIST and schema.sequence is not None and is_list(value):
        if not schema.sequence.associative:
            yield place
        for index, item in enumerate(value):
            yield from _atomics(f"{place}[{index}]", item, schema.sequence.item)
