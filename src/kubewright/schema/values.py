"""JSON values as the API server sees them: strict equality, copies, and Go's text for numbers."""

import math
from collections.abc import Hashable
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


def go_float(value: float) -> str:
    """Write a float as Go's %v does: shortest digits, with an exponent below 1e-04 and from 1e+06 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return sign + "0"
    digits, exponent = _decimal(abs(value))
    if exponent < -4 or exponent >= 6:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + _positional(digits, exponent)


def go_number(value: float | int) -> str:
    """Write a number as Go's %v does."""
    return go_float(value) if isinstance(value, float) else str(value)


def plain_float(value: float) -> str:
    """Write a float without an exponent, as Go's FormatFloat(v, 'f', -1, 64) does."""
    if not math.isfinite(value):
        return go_float(value)
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return sign + "0"
    return sign + _positional(*_decimal(abs(value)))


def _decimal(value: float) -> tuple[str, int]:
    """Split a positive float into its shortest digits and the exponent of the first one."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole) if whole.strip("0") else -(len(fraction) - len(fraction.lstrip("0")))
    return digits.rstrip("0") or "0", leading - 1 + int(exponent or 0)


def _positional(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return whole + ("." + fraction if fraction else "")
