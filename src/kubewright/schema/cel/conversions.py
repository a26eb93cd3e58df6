"""Conversions between types: `int(x)`, `string(x)` and their kin."""

import math
import re
from collections.abc import Callable
from typing import Any

from kubewright.api import problems
from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.overloads import Library
from kubewright.schema.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    param,
    type_of,
)  # fmt: skip
from kubewright.schema.cel.values import (
    SECOND,
    Duration,
    Timestamp,
    TypeValue,
    Uint,
    checked_duration,
    checked_int,
    checked_timestamp,
    checked_uint,
    parse_duration,
    parse_timestamp,
    type_name,
)  # fmt: skip
from kubewright.schema.values import INT64_MAX, INT64_MIN, plain_float

_A = param("A")


def add_conversions(library: Library) -> None:
    """Declare the functions that make a value of another type."""
    library.add("dyn", "to_dyn", (_A,), DYN, lambda value: value)
    library.add("type", "type", (_A,), type_of(_A), lambda value: TypeValue(type_name(value)))
    forms: list[tuple[str, Type, list[tuple[str, Type, Callable[[Any], Any]]]]] = [
        ("int", INT, [
            ("int64", INT, _same), ("uint64", UINT, _to_int), ("double", DOUBLE, _to_int), ("string", STRING, _to_int),
            ("timestamp", TIMESTAMP, lambda time: time.nanoseconds // SECOND),
            ("duration", DURATION, lambda span: span.nanoseconds),
        ]),
        ("uint", UINT, [
            ("uint64", UINT, _same), ("int64", INT, _to_uint), ("double", DOUBLE, _to_uint), ("string", STRING, _to_uint),
        ]),
        ("double", DOUBLE, [
            ("double", DOUBLE, _same), ("int64", INT, float), ("uint64", UINT, float), ("string", STRING, _to_double),
        ]),
        ("string", STRING, [
            ("string", STRING, _same), ("bool", BOOL, text_of), ("int64", INT, text_of), ("uint64", UINT, text_of),
            ("double", DOUBLE, text_of), ("bytes", BYTES, _decoded), ("timestamp", TIMESTAMP, str),
            ("duration", DURATION, str),
        ]),
        ("bool", BOOL, [("bool", BOOL, _same), ("string", STRING, _to_bool)]),
        ("bytes", BYTES, [("bytes", BYTES, _same), ("string", STRING, lambda text: text.encode())]),
        ("timestamp", TIMESTAMP, [
            ("timestamp", TIMESTAMP, _same), ("string", STRING, _to_timestamp),
            ("int64", INT, lambda seconds: checked_timestamp(seconds * SECOND)),
        ]),
        ("duration", DURATION, [
            ("duration", DURATION, _same), ("string", STRING, _to_duration),
            ("int64", INT, checked_duration),
        ]),
    ]  # fmt: skip
    names = {"int": "int64", "uint": "uint64"}
    for function, result, listed in forms:
        for source, kind, call in listed:
            library.add(function, f"{source}_to_{names.get(function, function)}", (kind,), result, call)


def _same(value: Any) -> Any:
    return value


def _not_convertible(source: str, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{source}' to '{target}'")


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        number = int(value) if re.fullmatch(r"[+-]?\d+", value, re.ASCII) else INT64_MAX + 1
        if not INT64_MIN <= number <= INT64_MAX:
            raise _not_convertible("string", "int")
        return number
    if isinstance(value, float) and not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return checked_int(int(value))


def _to_uint(value: Any) -> Uint:
    if isinstance(value, str):
        number = int(value) if re.fullmatch(r"\d+", value, re.ASCII) else -1
        if not 0 <= number < 2**64:
            raise _not_convertible("string", "uint")
        return Uint(number)
    if isinstance(value, float) and not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return checked_uint(int(value))


def _to_double(value: str) -> float:
    pattern = r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)"
    if not re.fullmatch(pattern, value, re.ASCII | re.IGNORECASE):
        raise _not_convertible("string", "double")
    return float(value)


def _to_bool(value: str) -> bool:
    if value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise _not_convertible("string", "bool")


def text_of(value: Any) -> str:
    """Write a scalar as `string(value)` does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return problems.number(value) if not math.isfinite(value) else plain_or_exponent(value)
    return str(int(value))


def plain_or_exponent(value: float) -> str:
    """Write a double as Go's %g with the shortest digits."""
    text = problems.number(value)
    return text if ("e" in text and abs(value) >= 1e21) or abs(value) < 1e-4 else plain_float(value)


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _to_timestamp(value: str) -> Timestamp:
    try:
        return parse_timestamp(value)
    except (ValueError, EvaluationError):
        raise _not_convertible("string", "google.protobuf.Timestamp") from None


def _to_duration(value: str) -> Duration:
    try:
        return parse_duration(value)
    except ValueError:
        raise _not_convertible("string", "google.protobuf.Duration") from None
