"""JSON values and schemas as the API server sees them: equality, copies, child schemas and field paths.

The whole package works on plain JSON. A `Schema` is the dict of an OpenAPI v3 schema with Kubernetes' extensions.
"""

import math
import re
from collections.abc import Hashable
from decimal import Decimal
from typing import Any

Json = dict[str, Any] | list[Any] | str | int | float | bool | None

NO_PATH = "<nil>"
"""How the API server prints the path of the whole object, as Go prints a nil path."""

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
_JSON_INTEGER_LIMIT = float(2**53 - 1)
_EPSILON = 1e-9


def same(left: Json, right: Any) -> bool:
    """Return True if two JSON values are equal, keeping 1, 1.0 and true apart as Go does."""
    if left.__class__ is not right.__class__:
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def copied(value: Json) -> Any:
    """Return a deep copy of a JSON value."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def in_order(value: Json) -> Any:
    """Return the value as messages print it: the keys of its maps are sorted."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [in_order(item) for item in value]
    return value


def identity(value: Json) -> Hashable:
    """Return a hashable key; two keys are equal exactly if `same` is true of their values."""
    if isinstance(value, dict):
        return ("{", frozenset((key, identity(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("[", *map(identity, value))
    return (value.__class__, value)


def is_json_integer(value: float) -> bool:
    """Return True if a float counts as an integer for an OpenAPI schema (1.0 does)."""
    if math.isnan(value) or abs(value) > _JSON_INTEGER_LIMIT:
        return False
    whole = math.trunc(value)
    if value == whole:
        return True
    # go-openapi accepts what looks like a rounding error, such as 3.0000000001.
    return whole > 0 and (value - whole) / (value + whole) < _EPSILON


def plain_float(value: float) -> str:
    """Write a float without an exponent, as Go's FormatFloat(v, 'f', -1, 64) does."""
    if not math.isfinite(value):
        return str(value)
    return f"{Decimal(repr(value)).normalize():f}"


Schema = dict[str, Any]


def properties(schema: Schema) -> dict[str, Schema]:
    """Return the schemas of the declared properties."""
    return schema.get("properties") or {}


def items(schema: Schema) -> Schema | None:
    """Return the schema of the elements of a list, or None."""
    return _schema(schema.get("items"))


def additional(schema: Schema) -> Schema | None:
    """Return the schema in additionalProperties, or None if it is absent, true or false."""
    return _schema(schema.get("additionalProperties"))


def field_schema(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a field, from properties or additionalProperties."""
    return properties(schema).get(name) or additional(schema)


def part(document: Schema, *steps: str) -> Schema:
    """Return an object inside a document; it is empty if it is absent or null."""
    for step in steps:
        inner = _schema(document.get(step))
        if inner is None:
            return {}
        document = inner
    return document


def _schema(value: Json) -> Schema | None:
    return value if isinstance(value, dict) else None


_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+")


class FieldPathError(ValueError):
    """A path that is malformed or names no field of the schema."""


def resolve_field_path(text: str, schema: Schema, *, brackets: bool = True) -> tuple[str, Schema | None]:
    """Return the path as errors print it, and the schema of that field.

    Raise FieldPathError if the schema has no such field.
    """
    path, node = "", schema
    tokens = iter(_TOKEN.findall(text))
    for sign in tokens:
        if sign == "[" and not brackets:
            raise FieldPathError("array notation is not allowed")
        if sign not in (".", "["):
            raise FieldPathError(f"expected [ or . but got: {sign}")
        name = next(tokens, None)
        if name is None:
            raise FieldPathError("unexpected end of JSON path")
        if sign == "[":
            if len(name) < 2 or name[0] != "'" or name[-1] != "'":
                raise FieldPathError(f"expected single quoted string but got {name}")
            name = re.sub(r"\\(.)", r"\1", name[1:-1])
        path, node = _step(path, node, name)
        if sign == "[":
            closing = next(tokens, None)
            if closing is None:
                raise FieldPathError("unexpected end of JSON path")
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
    return path, node


def _step(path: str, schema: Schema, name: str) -> tuple[str, Schema]:
    if properties(schema):
        below = properties(schema).get(name)
        shown = f"{path}.{name}" if path else name
    else:
        below = additional(schema)
        shown = f"{path}[{name}]"
    if below is None:
        raise FieldPathError("does not refer to a valid field")
    return shown, below
