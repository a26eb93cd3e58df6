"""Derive the merge schema of a custom resource from its structural OpenAPI schema."""

from collections.abc import Mapping
from typing import Any

from kubewright.devserver.merge.schema import (
    ANY_SCALAR,
    BOOLEAN,
    DEDUCED,
    NUMERIC,
    OBJECT_META,
    STRING,
    UNTYPED,
    ListSchema,
    MapSchema,
    MergeSchema,
)

_RESOURCE_FIELDS = {"apiVersion": STRING, "kind": STRING, "metadata": OBJECT_META}
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


def merge_schema_of_crd(openapi_schema: Mapping[str, Any] | None) -> MergeSchema:
    """Derive the merge schema of the whole custom resource; without a schema everything is deduced."""
    if not openapi_schema:
        return MergeSchema(mapping=MapSchema(lambda: _RESOURCE_FIELDS, item=DEDUCED))
    preserve = bool(openapi_schema.get(_PRESERVE))
    return MergeSchema(mapping=_object(openapi_schema, preserve=preserve, resource=True))


def _schema(source: Mapping[str, Any], *, preserve: bool) -> MergeSchema:
    preserve = preserve or bool(source.get(_PRESERVE))
    embedded = bool(source.get("x-kubernetes-embedded-resource"))
    sort = source.get("type", "")
    if sort == "object":
        return MergeSchema(mapping=_object(source, preserve=preserve, resource=embedded))
    if sort == "array":
        return MergeSchema(sequence=_list(source, preserve=preserve))
    if sort in {"integer", "number"}:
        return NUMERIC
    if sort == "boolean":
        return BOOLEAN
    if sort == "string":
        return STRING if source.get("format", "") in {"", "byte"} else ANY_SCALAR
    return MergeSchema(
        scalar="untyped",
        sequence=_list(source, preserve=preserve),
        mapping=_object(source, preserve=preserve, resource=embedded),
    )


def _object(source: Mapping[str, Any], *, preserve: bool, resource: bool) -> MapSchema:
    properties: Mapping[str, Any] = source.get("properties") or {}

    def load() -> dict[str, MergeSchema]:
        fields = {name: _schema(field, preserve=preserve) for name, field in properties.items()}
        return fields | _RESOURCE_FIELDS if resource else fields

    additional: Any = source.get("additionalProperties")
    item: MergeSchema | None = None
    if additional is True or (additional is None and (preserve or not (properties or resource))):
        item = DEDUCED
    elif additional:
        item = _schema(additional, preserve=preserve)
    defaults = {name: field["default"] for name, field in properties.items() if "default" in field}
    atomic = source.get("x-kubernetes-map-type") == "atomic"
    return MapSchema(load, item=item, atomic=atomic, defaults=defaults)


def _list(source: Mapping[str, Any], *, preserve: bool) -> ListSchema:
    sort = source.get("x-kubernetes-list-type", "atomic")
    items = source.get("items")
    item = _schema(items, preserve=preserve) if items else UNTYPED
    keys = source.get("x-kubernetes-list-map-keys", ()) if sort == "map" else ()
    return ListSchema(item, associative=sort in {"set", "map"}, keys=keys)
