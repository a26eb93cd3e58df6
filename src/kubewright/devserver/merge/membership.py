"""The paths of a value, and how a set of paths matches a schema."""

from typing import Any

from kubewright.devserver.merge.elements import SELF, item_element
from kubewright.devserver.merge.fieldsets import FieldSet, below, is_member, node_of
from kubewright.devserver.merge.schema import DEDUCED, ListSchema, MapSchema, MergeSchema
from kubewright.devserver.merge.values import LIST, MAP, SCALAR, view
from kubewright.devserver.objects import is_list, is_object


def fields_of(value: Any, schema: MergeSchema) -> FieldSet:
    """Return the set of paths a value owns when it is applied."""
    return _fields(value, schema)[1]


def _fields(value: Any, schema: MergeSchema) -> tuple[bool, FieldSet]:
    """Return True if the value's own path is in the set, and what is below it."""
    how = view(schema, value)
    if how == MAP and schema.mapping is not None:
        if schema.mapping.atomic:
            return True, {}
        return False, _object_fields(value, schema.mapping) if is_object(value) else {}
    if how == SCALAR:
        return True, {}
    if how == LIST and schema.sequence is not None:
        if not schema.sequence.associative:
            return True, {}
        return False, _item_fields(value, schema.sequence) if is_list(value) else {}
    return False, {}


def _object_fields(value: dict[str, Any], schema: MapSchema) -> FieldSet:
    out: FieldSet = {}
    declared = schema.fields
    for key, item in value.items():
        field = declared.get(key)
        inner = field or schema.item
        member, children = _fields(item, inner) if inner is not None else (False, {})
        if field is None or item is None or item == {}:
            member = True
        node = node_of(children, member=member)
        if node is not None:
            out[f"f:{key}"] = node
    return out


def _item_fields(value: list[Any], schema: ListSchema) -> FieldSet:
    out: FieldSet = {}
    for item in value:
        element = item_element(schema, item)
        out[element] = {} if element in out else {SELF: {}, **_fields(item, schema.item)[1]}
    return {element: {} if len(node) == 1 else node for element, node in out.items()}


def with_parents(fields: FieldSet, schema: MergeSchema | None) -> FieldSet:
    """Add the declared fields on the way to each path, which are not members by themselves."""
    out: FieldSet = {}
    for element, node in fields.items():
        if not node or element == SELF:
            out[element] = node
            continue
        named, inner = _inner(schema, element)
        children = with_parents(below(node), inner)
        out[element] = node_of(children, member=named or is_member(node))
    return out


def _inner(schema: MergeSchema | None, element: str) -> tuple[bool, MergeSchema | None]:
    """Return True if the element is a declared field, and the schema below it."""
    if schema is None:
        return False, None
    if element[:2] == "f:" and schema.mapping is not None:
        field = schema.mapping.fields.get(element[2:])
        return (True, field) if field is not None else (False, schema.mapping.item)
    if element[:2] == "k:" and schema.sequence is not None:
        return False, schema.sequence.item
    return False, None


def reconciled(fields: FieldSet, schema: MergeSchema) -> FieldSet:
    """Fit a recorded set to a schema in which parts have since become one value."""
    mapping = schema.mapping
    if mapping is not None:
        if mapping.item is DEDUCED and not mapping.fields:
            return fields
        return _reconciled_children(fields, schema)
    if schema.scalar or schema.sequence is None:
        return fields
    return _reconciled_children(fields, schema)


def _reconciled_children(fields: FieldSet, schema: MergeSchema) -> FieldSet:
    changed: FieldSet = {}
    for element, node in fields.items():
        if not node or element == SELF:
            continue
        _, inner = _inner(schema, element)
        if inner is None:
            continue
        if _is_whole(inner):
            changed[element] = {}
            continue
        kept = reconciled(node, inner)
        if kept is not node:
            changed[element] = kept
    return {**fields, **changed} if changed else fields


def _is_whole(schema: MergeSchema) -> bool:
    if schema.mapping is not None:
        return schema.mapping.atomic
    return not schema.scalar and schema.sequence is not None and not schema.sequence.associative
