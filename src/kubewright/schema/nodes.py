"""Schemas and other documents as plain JSON, and what lies below them."""

from typing import Any

from kubewright.schema.values import Json

Schema = dict[str, Any]


def properties(schema: Schema) -> dict[str, Schema]:
    """Return the schemas of the known fields."""
    return schema.get("properties") or {}


def items(schema: Schema) -> Schema | None:
    """Return the schema of the elements of a list, if any."""
    return _schema(schema.get("items"))


def additional(schema: Schema) -> Schema | None:
    """Return the schema of the other fields, if there is one; true and false are none."""
    return _schema(schema.get("additionalProperties"))


def field_schema(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a field, known or other."""
    return properties(schema).get(name) or additional(schema)


def part(document: Schema, *steps: str) -> Schema:
    """Return an object inside a document, empty where it is absent or null."""
    for step in steps:
        inner = _schema(document.get(step))
        if inner is None:
            return {}
        document = inner
    return document


def _schema(value: Json) -> Schema | None:
    return value if isinstance(value, dict) else None
