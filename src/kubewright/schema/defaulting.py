"""Defaulting and pruning: the two changes that the API server makes to a value before it validates it.

Both are compiled once for each schema and change the value in place.
"""

from collections.abc import Callable
from typing import Any

from kubewright.schema.extensions import prune_metadata
from kubewright.schema.json_tree import Json, Schema, additional, copied, items, properties

Defaulter = Callable[[Any], None]


def compile_defaults(schema: Schema, *, keep_nulls: bool = False) -> Defaulter:
    """Compile the defaulting of one schema node; the result changes a value in place.

    A null that the schema does not allow counts as absent: it is replaced by the default, or removed.
    With `keep_nulls`, nulls without a default stay.
    """
    fields = {name: _FieldDefault(sub, keep_nulls) for name, sub in properties(schema).items()}
    defaults = [(name, field.default) for name, field in fields.items() if field.default is not None]
    others = _field_default(additional(schema), keep_nulls)
    elements = _field_default(items(schema), keep_nulls)
    inside = {name: field.inside for name, field in fields.items()}
    inside_others = None if others is None else others.inside

    def drop_nulls(value: dict[str, Any]) -> None:
        for name in [name for name, item in value.items() if item is None]:
            field = fields.get(name, others)
            if field is not None and field.drops_null:
                del value[name]

    def default(value: Json) -> None:
        if isinstance(value, dict):
            if None in value.values():
                drop_nulls(value)
            for name, content in defaults:
                if name not in value:
                    value[name] = copied(content)
            for name, item in value.items():
                # Most fields are scalars, which have nothing inside.
                if isinstance(item, dict | list) and (descend := inside.get(name, inside_others)) is not None:
                    descend(item)
        elif isinstance(value, list) and elements is not None:
            for position, item in enumerate(value):
                if item is None and elements.drops_null:
                    value[position] = copied(elements.default)
                if elements.inside is not None and isinstance(value[position], dict | list):
                    elements.inside(value[position])

    return default


class _FieldDefault:
    """The default of one field or element, and the defaulting inside it, if it can have something inside."""

    def __init__(self, schema: Schema, keep_nulls: bool) -> None:
        self.default: Any = schema.get("default")
        self.drops_null = not schema.get("nullable") and not (keep_nulls and self.default is None)
        self.inside = compile_defaults(schema, keep_nulls=keep_nulls) if _has_children(schema) else None


def _field_default(schema: Schema | None, keep_nulls: bool) -> _FieldDefault | None:
    return None if schema is None else _FieldDefault(schema, keep_nulls)


def _has_children(schema: Schema) -> bool:
    return bool(properties(schema)) or items(schema) is not None or additional(schema) is not None


Pruner = Callable[[Any, str, list[str]], None]
"""Prune a value in place, given its path and the list to append the removed paths to."""

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def compile_pruning(schema: Schema, *, resource: bool) -> Pruner:
    """Compile the pruning of a schema; a resource keeps its type and metadata."""
    return _pruner(schema, resource=resource)


def _pruner(schema: Schema, *, resource: bool = False, preserve: bool = False) -> Pruner:
    preserve = preserve or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    resource = resource or embedded
    other, element, unknown = additional(schema), items(schema), _keep if preserve else _drop_all
    open_map = other is not None or bool(schema.get("additionalProperties"))
    if not resource and not properties(schema) and not open_map and element is None:
        return unknown
    fields = {name: _pruner(sub) for name, sub in properties(schema).items()}
    others = _pruner(other) if other is not None else _drop_all if open_map else None
    # Below preserved fields the elements of a list are preserved too, the fields of an object are not.
    elements = unknown if element is None else _pruner(element, preserve=preserve)
    kept = META_FIELDS if resource else frozenset[str]()

    def prune(value: Json, path: str, dropped: list[str]) -> None:
        if isinstance(value, dict):
            if embedded:
                _prune_embedded(value, path, dropped)
            for name in list(value):
                if name in kept:
                    continue
                inner = fields.get(name, others)
                if inner is not None:
                    # Nothing is pruned from a scalar.
                    if isinstance(value[name], dict | list):
                        inner(value[name], f"{path}.{name}" if path else name, dropped)
                elif not preserve:
                    if path or name not in META_FIELDS:
                        dropped.append(f"{path}.{name}" if path else name)
                    del value[name]
        elif isinstance(value, list):
            for position, item in enumerate(value):
                elements(item, f"{path}[{position}]", dropped)

    return prune


def _prune_embedded(value: dict[str, Any], path: str, dropped: list[str]) -> None:
    meta: Json = value.get("metadata")
    if isinstance(meta, dict):
        dropped.extend(prune_metadata(meta, f"{path}.metadata"))


def _keep(value: Json, path: str, dropped: list[str]) -> None:
    """Keep everything."""


def _drop_all(value: Json, path: str, dropped: list[str]) -> None:
    """Remove all fields of an object without declared fields."""
    if isinstance(value, dict):
        dropped.extend(f"{path}.{name}" for name in value)
        value.clear()
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _drop_all(item, f"{path}[{position}]", dropped)
