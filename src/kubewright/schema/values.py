"""JSON values as the API server sees them: strict equality, order, copies, what counts as an integer."""

import math
from collections.abc import Hashable
from decimal import Decimal
from typing import Any

Json = dict[str, Any] | list[Any] | str | int | float | bool | None

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
_JSON_INTEGER_LIMIT = float(2**53 - 1)
_EPSILON = 1e-9


def same(left: Json, right: Any) -> bool:
    """Tell whether two JSON values are equal, keeping 1, 1.0 and true apart as Go does."""
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
    """Return the value as messages show one without a Go type: the keys of its maps sorted."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [in_order(item) for item in value]
    return value


def identity(value: Json) -> Hashable:
    """Return a hashable stand-in that is equal exactly where `same` is true."""
    if isinstance(value, dict):
        return ("{", frozenset((key, identity(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("[", *map(identity, value))
    return (value.__class__, value)


def is_json_integer(value: float) -> bool:
    """Tell whether a float counts as an integer for an OpenAPI schema (1.0 does)."""
    if math.isnan(value) or abs(value) > _JSON_INTEGER_LIMIT:
        return False
    whole = math.trunc(value)
    if value == whole:
        return True
    # go-openapi forgives what it takes for a rounding error, e.g. 3.0000000001.
    return whole > 0 and (value - whole) / (value + whole) < _EPSILON


def plain_float(value: float) -> str:
    """Write a float without an exponent, as Go's FormatFloat(v, 'f', -1, 64) does."""
    if not math.isfinite(value):
        return str(value)
    return f"{Decimal(repr(value)).normalize():f}"
