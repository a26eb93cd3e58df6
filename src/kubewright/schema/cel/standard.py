"""The operators, conversions and functions of the language itself."""

import math
import operator
import re
from collections.abc import Callable
from datetime import timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubewright.api import problems
from kubewright.schema.cel.errors import EvaluationError, no_such_key, no_such_overload
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
    Library,
    Type,
    list_of,
    map_of,
    param,
    type_of,
)
from kubewright.schema.cel.values import (
    SECOND,
    CelDuration,
    MapList,
    SetList,
    Timestamp,
    TypeValue,
    Uint,
    checked_duration,
    checked_int,
    checked_timestamp,
    checked_uint,
    compare,
    equal,
    parse_duration,
    parse_timestamp,
    size,
    type_name,
)
from kubewright.schema.json_tree import INT64_MAX, INT64_MIN, plain_float
from kubewright.schema.patterns import PatternError, compile_pattern

_A, _B = param("A"), param("B")
_LIST, _MAP = list_of(_A), map_of(_A, _B)
_ORDERED = {
    "bool": BOOL, "int64": INT, "uint64": UINT, "double": DOUBLE, "string": STRING, "bytes": BYTES,
    "timestamp": TIMESTAMP, "duration": DURATION,
}  # fmt: skip
_MIXED = [
    (INT, DOUBLE), (INT, UINT), (UINT, DOUBLE), (UINT, INT), (DOUBLE, INT), (DOUBLE, UINT),
]  # fmt: skip


def _conversions(library: Library) -> None:
    """Declare the functions that convert a value to another type."""
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


def _to_duration(value: str) -> CelDuration:
    try:
        return parse_duration(value)
    except ValueError:
        raise _not_convertible("string", "google.protobuf.Duration") from None


def standard_library() -> Library:
    """Return operators, conversions, time and size functions."""
    library = Library()
    _logic(library)
    _comparisons(library)
    _arithmetic(library)
    _containers(library)
    _conversions(library)
    _texts(library)
    _times(library)
    return library


def _logic(library: Library) -> None:
    # The evaluator implements these, because they do not evaluate all of their arguments.
    library.add("_&&_", "logical_and", (BOOL, BOOL), BOOL, _never)
    library.add("_||_", "logical_or", (BOOL, BOOL), BOOL, _never)
    library.add("_?_:_", "conditional", (BOOL, _A, _A), _A, _never)
    library.add("@not_strictly_false", "not_strictly_false", (BOOL,), BOOL, _never)
    library.add("!_", "logical_not", (BOOL,), BOOL, lambda value: not value)
    library.add("_==_", "equals", (_A, _A), BOOL, equal)
    library.add("_!=_", "not_equals", (_A, _A), BOOL, lambda left, right: not equal(left, right))


def _never(*args: Any) -> Any:
    raise no_such_overload()


def _comparisons(library: Library) -> None:
    tests: dict[str, tuple[str, Callable[[int], bool]]] = {
        "_<_": ("less", lambda order: order < 0),
        "_<=_": ("less_equals", lambda order: order <= 0),
        "_>_": ("greater", lambda order: order > 0),
        "_>=_": ("greater_equals", lambda order: order >= 0),
    }
    for function, (name, test) in tests.items():
        call = _comparison(test)
        for suffix, kind in _ORDERED.items():
            library.add(function, f"{name}_{suffix}", (kind, kind), BOOL, call)
        for left, right in _MIXED:
            library.add(function, f"{name}_{left}_{right}", (left, right), BOOL, call)


def _comparison(test: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    def call(left: Any, right: Any) -> bool:
        if left != left or right != right:
            return False
        return test(compare(left, right))

    return call


def _arithmetic(library: Library) -> None:
    """Declare the operators in the order of cel-go: the first overload that matches decides an undecided type."""
    library.add("_+_", "add_bytes", (BYTES, BYTES), BYTES, lambda a, b: a + b)
    library.add("_+_", "add_double", (DOUBLE, DOUBLE), DOUBLE, operator.add)
    _time_addition(library)
    library.add("_+_", "add_int64", (INT, INT), INT, _checked(operator.add, checked_int))
    library.add("_+_", "add_list", (_LIST, _LIST), _LIST, _add_lists)
    library.add("_+_", "add_string", (STRING, STRING), STRING, lambda a, b: a + b)
    library.add("_+_", "add_uint64", (UINT, UINT), UINT, _checked(operator.add, checked_uint))
    library.add("_-_", "subtract_double", (DOUBLE, DOUBLE), DOUBLE, operator.sub)
    library.add("_-_", "subtract_duration_duration", (DURATION, DURATION), DURATION, _span_between)
    library.add("_-_", "subtract_int64", (INT, INT), INT, _checked(operator.sub, checked_int))
    library.add(
        "_-_", "subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP,
        lambda a, b: checked_timestamp(a.nanoseconds - b.nanoseconds),
    )  # fmt: skip
    library.add("_-_", "subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION, _span_between)
    library.add("_-_", "subtract_uint64", (UINT, UINT), UINT, _checked(operator.sub, checked_uint))
    library.add("_*_", "multiply_double", (DOUBLE, DOUBLE), DOUBLE, operator.mul)
    library.add("_*_", "multiply_int64", (INT, INT), INT, _checked(operator.mul, checked_int))
    library.add("_*_", "multiply_uint64", (UINT, UINT), UINT, _checked(operator.mul, checked_uint))
    library.add("_/_", "divide_double", (DOUBLE, DOUBLE), DOUBLE, _divide_double)
    library.add("_/_", "divide_int64", (INT, INT), INT, _divide)
    library.add("_/_", "divide_uint64", (UINT, UINT), UINT, lambda a, b: Uint(_divide(a, b)))
    library.add("_%_", "modulo_int64", (INT, INT), INT, _modulo)
    library.add("_%_", "modulo_uint64", (UINT, UINT), UINT, lambda a, b: Uint(_modulo(a, b)))
    library.add("-_", "negate_double", (DOUBLE,), DOUBLE, lambda a: -a)
    library.add("-_", "negate_int64", (INT,), INT, lambda a: checked_int(-a))


def _checked(operate: Callable[[int, int], int], check: Callable[[int], Any]) -> Callable[[int, int], Any]:
    return lambda a, b: check(operate(int(a), int(b)))


def _time_addition(library: Library) -> None:
    def shift(time: Timestamp, span: CelDuration) -> Timestamp:
        return checked_timestamp(time.nanoseconds + span.nanoseconds)

    library.add(
        "_+_", "add_duration_duration", (DURATION, DURATION), DURATION,
        lambda a, b: checked_duration(a.nanoseconds + b.nanoseconds),
    )  # fmt: skip
    library.add("_+_", "add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP, lambda a, b: shift(b, a))
    library.add("_+_", "add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, shift)


def _span_between(later: Timestamp | CelDuration, earlier: Timestamp | CelDuration) -> CelDuration:
    return checked_duration(later.nanoseconds - earlier.nanoseconds)


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return checked_int(quotient if (left < 0) == (right < 0) else -quotient)


def _modulo(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return int(math.copysign(abs(left) % abs(right), left)) if left else 0


def _divide_double(left: float, right: float) -> float:
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1, right)
    return left / right


def _add_lists(left: list[Any], right: list[Any]) -> list[Any]:
    if isinstance(left, SetList):
        return SetList([*left, *(item for item in right if not any(equal(item, known) for known in left))])
    if isinstance(left, MapList):
        replaced = {left.key_of(item): item for item in right}
        kept = [replaced.pop(left.key_of(item), item) for item in left]
        return MapList([*kept, *replaced.values()], left.keys)
    return [*left, *right]


def _containers(library: Library) -> None:
    library.add(
        "@in", "in_list", (_A, _LIST), BOOL, lambda item, listed: any(equal(item, other) for other in listed)
    )
    library.add("@in", "in_map", (_A, _MAP), BOOL, lambda key, mapping: _found(mapping, key)[0])
    library.add("_[_]", "index_list", (_LIST, INT), _A, index_list)
    library.add("_[_]", "index_map", (_MAP, _A), _B, index_map)
    for name, kind in (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING)):
        library.add("size", f"size_{name}", (kind,), INT, size)
        library.method("size", f"{name}_size", (kind,), INT, size)
    library.add("cel.@mapInsert", "cel_@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all)
    library.add("cel.@mapInsert", "cel_@mapInsert_map_key_value", (_MAP, _A, _B), _MAP, _insert)


def index_list(listed: list[Any], index: Any) -> Any:
    """Return an element of a list."""
    if isinstance(index, bool) or not isinstance(index, int | float) or int(index) != index:
        raise no_such_overload()
    if not 0 <= index < len(listed):
        raise EvaluationError(f"index out of bounds: {int(index)}")
    return listed[int(index)]


def index_map(mapping: dict[Any, Any], key: Any) -> Any:
    """Return a value of a map."""
    found, value = _found(mapping, key)
    if not found:
        raise no_such_key(key)
    return value


def _found(mapping: dict[Any, Any], key: Any) -> tuple[bool, Any]:
    if isinstance(key, str):
        return (True, mapping[key]) if key in mapping else (False, None)
    for known, value in mapping.items():
        if equal(known, key):
            return True, value
    return False, None


def _insert(mapping: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    if _found(mapping, key)[0]:
        raise EvaluationError(f"insert failed: key {key} already exists")
    return {**mapping, key: value}


def _insert_all(mapping: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in more.items():
        mapping = _insert(mapping, key, value)
    return mapping


def _texts(library: Library) -> None:
    library.method("contains", "contains_string", (STRING, STRING), BOOL, lambda text, part: part in text)
    library.method("startsWith", "starts_with_string", (STRING, STRING), BOOL, str.startswith)
    library.method("endsWith", "ends_with_string", (STRING, STRING), BOOL, str.endswith)
    library.add("matches", "matches", (STRING, STRING), BOOL, matches)
    library.method("matches", "matches_string", (STRING, STRING), BOOL, matches)


def matches(text: str, pattern: str) -> bool:
    """Return True if a text contains a match of a pattern."""
    try:
        return compile_pattern(pattern).search(text)
    except PatternError as error:
        raise EvaluationError(str(error)) from None


def _times(library: Library) -> None:
    parts: dict[str, Callable[[Any], int]] = {
        "getFullYear": lambda time: time.year,
        "getMonth": lambda time: time.month - 1,
        "getDayOfYear": lambda time: time.timetuple().tm_yday - 1,
        "getDate": lambda time: time.day,
        "getDayOfMonth": lambda time: time.day - 1,
        "getDayOfWeek": lambda time: (time.weekday() + 1) % 7,
        "getHours": lambda time: time.hour,
        "getMinutes": lambda time: time.minute,
        "getSeconds": lambda time: time.second,
        "getMilliseconds": lambda time: time.microsecond // 1000,
    }
    for name, part in parts.items():
        library.method(name, f"timestamp_to_{name}", (TIMESTAMP,), INT, _part(part))
        library.method(name, f"timestamp_to_{name}_with_tz", (TIMESTAMP, STRING), INT, _part(part))
    for name, unit in (
        ("getHours", 3600 * SECOND),
        ("getMinutes", 60 * SECOND),
        ("getSeconds", SECOND),
        ("getMilliseconds", 10**6),
    ):
        library.method(name, f"duration_to_{name}", (DURATION,), INT, _span(unit))


def _part(part: Callable[[Any], int]) -> Callable[..., int]:
    def read(time: Timestamp, zone: str = "UTC") -> int:
        return part(time.local(_zone(zone)))

    return read


def _span(unit: int) -> Callable[[CelDuration], int]:
    return lambda span: int(math.copysign(abs(span.nanoseconds) // unit, span.nanoseconds or 1))


def _zone(name: str) -> tzinfo:
    match = re.fullmatch(r"([+-]?)(\d\d):(\d\d)", name, re.ASCII)
    if match:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset)
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        raise EvaluationError(f"unknown time zone {name}") from None
