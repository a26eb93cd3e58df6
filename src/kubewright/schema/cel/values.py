"""Values of the expression language: Python's own types, and small classes for the others."""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, ClassVar

from kubewright.schema.cel.errors import EvaluationError, no_such_overload
from kubewright.schema.json_tree import INT64_MAX, INT64_MIN

SECOND = 1_000_000_000
_UINT64_MAX = 2**64 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_TIME = -62135596800 * SECOND
_MAX_TIME = 253402300799 * SECOND + SECOND - 1
_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}


class Uint(int):
    """An unsigned integer, a type of its own."""

    __slots__ = ()


@dataclass(frozen=True, order=True, slots=True)
class CelDuration:
    """A span of time in nanoseconds."""

    nanoseconds: int

    def __str__(self) -> str:
        # The API server writes seconds as a float, whose digits do not reach to the nanoseconds of years.
        length = abs(self.nanoseconds)
        seconds = Decimal(repr(length // SECOND + length % SECOND / 1e9)).normalize()
        return f"{'-' if self.nanoseconds < 0 else ''}{seconds:f}s"


@dataclass(frozen=True, order=True, slots=True)
class Timestamp:
    """A moment in nanoseconds since 1970."""

    nanoseconds: int

    def local(self, zone: tzinfo = UTC) -> datetime:
        """Return the moment as a date and time, to the microsecond."""
        return (_EPOCH + timedelta(microseconds=self.nanoseconds // 1000)).astimezone(zone)

    def __str__(self) -> str:
        fraction = f"{self.nanoseconds % SECOND:09d}".rstrip("0")
        text = (_EPOCH + timedelta(seconds=self.nanoseconds // SECOND)).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{text.zfill(19)}{'.' + fraction if fraction else ''}Z"


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type used as a value, as in `type(x) == string`."""

    name: str

    def __str__(self) -> str:
        return self.name


class Optional:
    """A value that may be absent."""

    __slots__ = ("present", "value")

    def __init__(self, *content: Any) -> None:
        self.present: bool = bool(content)
        self.value: Any = content[0] if content else None


NONE = Optional()


class OpaqueValue:
    """A value without literals; subclasses name their type and may have fields."""

    type_name = ""
    fields: ClassVar[dict[str, Any]] = {}

    def size(self) -> int:
        """Return the size that costs are computed from."""
        return 1


class SetList(list[Any]):
    """A list of type set: equality ignores the order, and addition is the union."""


class MapList(list[Any]):
    """A list of type map: elements correspond by their keys."""

    def __init__(self, elements: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(elements)
        self.keys = keys

    def key_of(self, element: "Value") -> Any:
        """Return the key of an element."""
        return tuple(element.get(name) for name in self.keys) if isinstance(element, dict) else None


class CelMessage(dict[str, Any]):
    """An object of a named type that an expression created; missing texts are empty."""

    def __init__(self, type_name: str, fields: dict[str, Any], texts: frozenset[str] = frozenset()) -> None:
        super().__init__(fields)
        self.type_name = type_name
        self._texts = texts

    def __missing__(self, name: str) -> str:
        if name in self._texts:
            return ""
        raise KeyError(name)


Value = (
    bool | int | float | str | bytes | list[Any] | dict[Any, Any] | Timestamp | CelDuration | TypeValue | Optional
    | OpaqueValue | None
)  # fmt: skip
"""Any value of the language."""

_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    SetList: "list",
    MapList: "list",
    dict: "map",
    type(None): "null_type",
    Timestamp: "google.protobuf.Timestamp",
    CelDuration: "google.protobuf.Duration",
    Optional: "optional_type",
    TypeValue: "type",
}


def type_name(value: Value) -> str:
    """Return the name of a value's type."""
    if isinstance(value, OpaqueValue | CelMessage):
        return value.type_name
    return _TYPE_NAMES[value.__class__]


def is_number(value: Value) -> bool:
    """Return True if a value is an int, uint or double."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Value, right: Value) -> bool:
    """Return True if two values are equal; numbers of different types are compared by value."""
    if isinstance(left, list):
        return isinstance(right, list) and _equal_lists(left, right)
    if isinstance(left, dict):
        if not isinstance(right, dict) or left.keys() != right.keys():
            return False
        if type_name(left) != type_name(right):
            return False
        return all(equal(item, right[key]) for key, item in left.items())
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or left.present != right.present:
            return False
        return not left.present or equal(left.value, right.value)
    if left.__class__ is right.__class__:
        return bool(left == right)
    return is_number(left) and is_number(right) and left == right


def _equal_lists(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, SetList):
        return all(any(equal(item, other) for other in right) for item in left)
    if isinstance(left, MapList):
        return _equal_map_lists(left, right)
    return all(map(equal, left, right))


def _equal_map_lists(left: MapList, right: list[Any]) -> bool:
    others = {left.key_of(element): element for element in right}
    return all(
        left.key_of(element) in others and equal(element, others[left.key_of(element)]) for element in left
    )


def compare(left: Value, right: Value) -> int:
    """Return -1, 0 or 1 for the order of two values."""
    first, second = _comparable(left), _comparable(right)
    if first.__class__ is not second.__class__ and not (is_number(left) and is_number(right)):
        raise no_such_overload()
    return (first > second) - (first < second)


def _comparable(value: Value) -> Any:
    if isinstance(value, float) and math.isnan(value):
        raise EvaluationError("NaN values cannot be ordered")
    if isinstance(value, str):
        # Texts are ordered by their bytes.
        return value.encode("utf-8", "surrogatepass")
    if not isinstance(value, bool | int | float | bytes | Timestamp | CelDuration):
        raise no_such_overload()
    return value


def size(value: Value) -> int:
    """Return the number of elements, characters or bytes of a value."""
    if isinstance(value, str | bytes | list | dict) and not isinstance(value, CelMessage):
        return len(value)
    if isinstance(value, OpaqueValue):
        return value.size()
    return size(value.value) if isinstance(value, Optional) and value.present else 1


def checked_int(number: int) -> int:
    """Return a number; raise EvaluationError if it does not fit into 64 bits."""
    if not INT64_MIN <= number <= INT64_MAX:
        raise EvaluationError("integer overflow")
    return number


def checked_uint(number: int) -> Uint:
    """Return a number; raise EvaluationError if it does not fit into 64 bits without a sign."""
    if not 0 <= number <= _UINT64_MAX:
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)


def checked_duration(nanoseconds: int) -> CelDuration:
    """Return a duration; raise EvaluationError if 64 bits of nanoseconds cannot hold it."""
    if not INT64_MIN <= nanoseconds <= INT64_MAX:
        raise EvaluationError("integer overflow")
    return CelDuration(nanoseconds)


def checked_timestamp(nanoseconds: int) -> Timestamp:
    """Return a timestamp; raise EvaluationError outside of the years 1 to 9999."""
    if not _MIN_TIME <= nanoseconds <= _MAX_TIME:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds)


def parse_duration(text: str) -> CelDuration:
    """Parse a duration in Go's format."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return CelDuration(0)
    total, at = 0, 0
    while match := _DURATION.match(rest, at):
        whole, _, fraction = match[1].partition(".")
        unit = _UNITS[match[2]]
        total += int(whole or 0) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        at = match.end()
    if not rest or at != len(rest) or total > INT64_MAX:
        raise ValueError(f'time: invalid duration "{text}"')
    return CelDuration(sign * total)


def parse_timestamp(text: str) -> Timestamp:
    """Parse an RFC 3339 time."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse')
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    zone = match[8]
    offset = 0 if zone == "Z" else (int(zone[1:3]) * 60 + int(zone[4:6])) * (-1 if zone[0] == "-" else 1)
    moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    seconds = (moment - _EPOCH) // timedelta(seconds=1) - offset * 60
    return checked_timestamp(seconds * SECOND + int((match[7] or "0").ljust(9, "0")[:9]))
