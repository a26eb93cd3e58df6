"""Values of the expression language: plain Python where it has them, small classes where it has not."""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from kubewright.schema.cel.errors import EvaluationError, no_such_overload
from kubewright.schema.values import INT64_MAX, INT64_MIN

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
    """An unsigned integer, which is another type than an integer."""

    __slots__ = ()


@dataclass(frozen=True, order=True, slots=True)
class Duration:
    """A span of time in nanoseconds."""

    nanoseconds: int

    def __str__(self) -> str:
        seconds = f"{abs(self.nanoseconds) // SECOND}"
        fraction = f"{abs(self.nanoseconds) % SECOND:09d}".rstrip("0")
        return f"{'-' if self.nanoseconds < 0 else ''}{seconds}{'.' + fraction if fraction else ''}s"


@dataclass(frozen=True, order=True, slots=True)
class Timestamp:
    """A moment in nanoseconds since 1970."""

    nanoseconds: int

    def local(self, zone: timezone = UTC) -> datetime:
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
        self.present = bool(content)
        self.value: Any = content[0] if content else None


NONE = Optional()


class SetList(list[Any]):
    """A list of type set: equal in any order, and adding to it joins."""


class MapList(list[Any]):
    """A list of type map: elements correspond by their keys."""

    def __init__(self, elements: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(elements)
        self.keys = keys

    def key_of(self, element: Any) -> Any:
        """Return what identifies an element."""
        return tuple(element.get(name) for name in self.keys) if isinstance(element, dict) else element


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
    Duration: "google.protobuf.Duration",
    Optional: "optional_type",
    TypeValue: "type",
}


def type_name(value: Any) -> str:
    """Return the name of a value's type."""
    return _TYPE_NAMES.get(type(value)) or getattr(value, "type_name", "") or type(value).__name__


def is_number(value: Any) -> bool:
    """Tell whether a value is of one of the three numeric types."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Compare two values; numbers of different types are equal where their values are."""
    if left is right:
        return not (isinstance(left, float) and math.isnan(left))
    kind = type(left)
    if kind is SetList and isinstance(right, list):
        return len(left) == len(right) and all(any(equal(a, b) for b in right) for a in left)
    if kind is MapList and isinstance(right, list):
        return _equal_map_lists(left, right)
    if kind is type(right):
        if kind is list:
            return len(left) == len(right) and all(map(equal, left, right))
        if kind is dict:
            return left.keys() == right.keys() and all(equal(item, right[key]) for key, item in left.items())
        if kind is Optional:
            return left.present == right.present and (not left.present or equal(left.value, right.value))
        return bool(left == right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return is_number(left) and is_number(right) and left == right


def _equal_map_lists(left: MapList, right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    others = {left.key_of(element): element for element in right}
    return all(
        left.key_of(element) in others and equal(element, others[left.key_of(element)]) for element in left
    )


def compare(left: Any, right: Any) -> int:
    """Order two values; -1, 0 or 1."""
    if (isinstance(left, float) and math.isnan(left)) or (isinstance(right, float) and math.isnan(right)):
        raise EvaluationError("NaN values cannot be ordered")
    if isinstance(left, str) and isinstance(right, str):
        left, right = left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass")
    same_kind = type(left) is type(right) and isinstance(left, bool | bytes | Timestamp | Duration)
    if not same_kind and not (is_number(left) and is_number(right)):
        raise no_such_overload()
    return (left > right) - (left < right)


def size(value: Any) -> int:
    """Return how many elements, characters or bytes a value has."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    inner = getattr(value, "size", None)
    if callable(inner):
        return int(inner())
    if isinstance(value, Optional) and value.present:
        return size(value.value)
    return 1


def checked_int(number: int) -> int:
    """Refuse a result that 64 bits cannot hold."""
    if not INT64_MIN <= number <= INT64_MAX:
        raise EvaluationError("integer overflow")
    return number


def checked_uint(number: int) -> Uint:
    """Refuse a result that is no 64-bit unsigned number."""
    if not 0 <= number <= _UINT64_MAX:
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)


def checked_duration(nanoseconds: int) -> Duration:
    """Refuse a span that 64 bits of nanoseconds cannot hold."""
    if not INT64_MIN <= nanoseconds <= INT64_MAX:
        raise EvaluationError("integer overflow")
    return Duration(nanoseconds)


def checked_timestamp(nanoseconds: int) -> Timestamp:
    """Refuse a moment outside the years 1 to 9999."""
    if not _MIN_TIME <= nanoseconds <= _MAX_TIME:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds)


def parse_duration(text: str) -> Duration:
    """Read a duration as Go writes it."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return Duration(0)
    total, at = 0, 0
    while match := _DURATION.match(rest, at):
        whole, _, fraction = match[1].partition(".")
        unit = _UNITS[match[2]]
        total += int(whole or 0) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        at = match.end()
    if not rest or at != len(rest) or total > INT64_MAX:
        raise ValueError(f'time: invalid duration "{text}"')
    return Duration(sign * total)


def parse_timestamp(text: str) -> Timestamp:
    """Read an RFC 3339 time."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse')
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    zone = match[8]
    offset = 0 if zone == "Z" else (int(zone[1:3]) * 60 + int(zone[4:6])) * (-1 if zone[0] == "-" else 1)
    moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    seconds = (moment - _EPOCH) // timedelta(seconds=1) - offset * 60
    return checked_timestamp(seconds * SECOND + int((match[7] or "0").ljust(9, "0")[:9]))
