"""Removal of the fields that a schema does not know."""

from collections.abc import Callable
from typing import Any

from kubewright.schema.correlation import Schema

Pruner = Callable[[Any, str, list[str]], None]
"""Prune a value in place, given its path and the list that collects the paths of what was dropped."""

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def compile_pruning(schema: Schema, *, resource: bool) -> Pruner:
    """Compile the pruning of a schema; a resource keeps its type and metadata."""
    return _pruner(schema, resource=resource)


def _pruner(schema: Schema, *, resource: bool = False, preserve: bool = False) -> Pruner:
    preserve = preserve or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    resource = resource or bool(schema.get("x-kubernetes-embedded-resource"))
    properties: dict[str, Schema] = schema.get("properties", {})
    additional = schema.get("additionalProperties")
    items_schema = schema.get("items")
    if not resource and not properties and not additional and not items_schema:
        return _keep if preserve else _drop_all
    fields = {name: _pruner(sub) for name, sub in properties.items()}
    others = _pruner(additional) if isinstance(additional, dict) else _drop_all if additional else None
    # Below preserved fields the elements of a list are preserved too, the fields of an object are not.
    unknown_items = _keep if preserve else _drop_all
    items = _pruner(items_schema, preserve=preserve) if isinstance(items_schema, dict) else unknown_items
    kept = META_FIELDS if resource else frozenset[str]()

    def prune(value: Any, path: str, dropped: list[str]) -> None:
        if isinstance(value, dict):
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
                items(item, f"{path}[{position}]", dropped)

    return prune


def _keep(value: Any, path: str, dropped: list[str]) -> None:
    """Leave everything as it is."""


def _drop_all(value: Any, path: str, dropped: list[str]) -> None:
    """Empty an object of which the schema says nothing."""
    if isinstance(value, dict):
        dropped.extend(f"{path}.{name}" for name in value)
        value.clear()
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _drop_all(item, f"{path}[{position}]", dropped)
