"""Removal of the fields that a schema does not know."""

from collections.abc import Callable
from typing import Any

from kubewright.schema.metadata import prune_metadata
from kubewright.schema.nodes import Schema, additional, items, properties
from kubewright.schema.values import Json

Pruner = Callable[[Any, str, list[str]], None]
"""Prune a value in place, given its path and the list that collects the paths of what was dropped."""

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
    """Leave everything as it is."""


def _drop_all(value: Json, path: str, dropped: list[str]) -> None:
    """Empty an object of which the schema says nothing."""
    if isinstance(value, dict):
        dropped.extend(f"{path}.{name}" for name in value)
        value.clear()
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _drop_all(item, f"{path}[{position}]", dropped)
