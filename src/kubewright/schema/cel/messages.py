"""Object literals with a type: `Object{spec: Object.spec{replicas: 3}}`, `google.protobuf.Int32Value{value: 1}`."""

import base64
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubewright.schema.cel import types
from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.types import DYN, STRING, Library, Type, list_of, map_of
from kubewright.schema.cel.values import (
    SECOND,
    CelDuration,
    CelMessage,
    OpaqueValue,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    checked_timestamp,
    type_name,
)
from kubewright.schema.json_tree import INT64_MAX, INT64_MIN

PREFIX = "google.protobuf."
EMPTY = f"{PREFIX}Empty"
NULL_VALUE = f"{PREFIX}NullValue.NULL_VALUE"
_JSON = "*structpb.Value"
_JSON_MAP = map_of(STRING, DYN)
_JSON_LIST = list_of(DYN)
_EXACT = 2**53 - 1

FieldReader = Callable[[Value], Any]
"""Convert a value to that of a field, or raise."""

MESSAGE_COST = 40


@dataclass(frozen=True, slots=True)
class WellKnown:
    """A Protocol Buffers message whose value is one of the language: a number, text, map or time."""

    name: str
    type: Type
    fields: Mapping[str, Type]
    readers: Mapping[str, FieldReader]
    make: Callable[[dict[str, Any]], Value]

    def create(self, given: Mapping[str, Value]) -> Value:
        """Return the value of a message with these fields."""
        return self.make({field: self._read(field, value) for field, value in given.items()})

    def _read(self, field: str, value: Value) -> Any:
        repeated = {"list": list, "map": dict}.get(self.fields[field].kind)
        if repeated is not None and self.name != f"{PREFIX}Value" and not isinstance(value, repeated):
            raise EvaluationError(f"unsupported field type for {self.name}.{field}: {type_name(value)}")
        try:
            return self.readers[field](value)
        except EvaluationError as error:
            text = f"field type conversion error for {self.name}.{field} value type: {error}"
            raise EvaluationError(text) from None


def json_value(value: Value) -> Value:
    """Convert a value to google.protobuf.Value: numbers are doubles, times and bytes are texts."""
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            # Doubles are exact up to here; greater numbers become texts.
            return float(value) if -_EXACT <= value <= _EXACT else str(int(value))
        case bytes():
            return base64.b64encode(value).decode()
        case Timestamp() | CelDuration():
            return str(value)
        case list():
            return [json_value(item) for item in value]
        case dict():
            return {_text(key): json_value(item) for key, item in value.items()}
        case Optional():
            return json_value(value.value)
        case TypeValue():
            raise EvaluationError("type conversion not supported for 'type'")
        case OpaqueValue():
            raise EvaluationError(
                f"type conversion error from '{type_name(value).rpartition('.')[2]}' to '{_JSON}'"
            )


def _refused(value: Value, target: str) -> EvaluationError:
    """Return the error for a value of another type, which the API server words differently for each type."""
    match value:
        case str():
            return EvaluationError(f"unsupported native conversion from string to '{target}'")
        case bool():
            return EvaluationError(f"type conversion error from bool to '{target}'")
        case int():
            return EvaluationError(f"unsupported type conversion from '{type_name(value)}' to {target}")
        case float():
            return EvaluationError(f"type conversion error from Double to '{target}'")
        case _:
            return EvaluationError(f"type conversion error from '{type_name(value)}' to '{target}'")


def _exactly(kind: type, target: str) -> FieldReader:
    def read(value: Value) -> Any:
        if value.__class__ is not kind:
            raise _refused(value, target)
        return value

    return read


_text = _exactly(str, "string")


def _integer(kind: type[int], target: str, least: int, most: int) -> FieldReader:
    exactly = _exactly(kind, target)

    def read(value: Value) -> Any:
        number = exactly(value)
        if not least <= number <= most:
            raise EvaluationError("integer overflow" if kind is int else "unsigned integer overflow")
        return number

    return read


def _float32(value: Value) -> float:
    number: float = _exactly(float, "float32")(value)
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _json_of(kind: type, target: str) -> FieldReader:
    def read(value: Value) -> Any:
        if not isinstance(value, kind):
            raise _refused(value, target)
        return json_value(value)

    return read


def _null(value: Value) -> None:
    _exactly(int, "protoreflect.EnumNumber")(value)


_INT32 = _integer(int, "int32", -(2**31), 2**31 - 1)
_INT64 = _integer(int, "int64", INT64_MIN, INT64_MAX)
_UINT32 = _integer(Uint, "uint32", 0, 2**32 - 1)
_UINT64 = _integer(Uint, "uint64", 0, 2**64 - 1)
_MAP, _LIST = _json_of(dict, "*structpb.Struct"), _json_of(list, "*structpb.ListValue")
_BOOL, _DOUBLE, _BYTES = _exactly(bool, "bool"), _exactly(float, "float64"), _exactly(bytes, "[]uint8")


def _duration(fields: dict[str, int]) -> CelDuration:
    nanoseconds = _nanoseconds(fields)
    return CelDuration(min(max(nanoseconds, INT64_MIN), INT64_MAX))


def _nanoseconds(fields: dict[str, int]) -> int:
    return fields.get("seconds", 0) * SECOND + fields.get("nanos", 0)


def _wrapper(name: str, kind: Type, reader: FieldReader, empty: Value) -> WellKnown:
    def make(fields: dict[str, Any]) -> Value:
        return fields.get("value", empty)

    return WellKnown(f"{PREFIX}{name}", types.wrapper(kind), {"value": kind}, {"value": reader}, make)


def _time(name: str, kind: Type, make: Callable[[dict[str, int]], Value]) -> WellKnown:
    fields, readers = {"seconds": types.INT, "nanos": types.INT}, {"seconds": _INT64, "nanos": _INT32}
    return WellKnown(f"{PREFIX}{name}", kind, fields, readers, make)


_TYPES = [
    _wrapper("BoolValue", types.BOOL, _BOOL, False),
    _wrapper("BytesValue", types.BYTES, _BYTES, b""),
    _wrapper("DoubleValue", types.DOUBLE, _DOUBLE, 0.0),
    _wrapper("FloatValue", types.DOUBLE, _float32, 0.0),
    _wrapper("Int32Value", types.INT, _INT32, 0),
    _wrapper("Int64Value", types.INT, _INT64, 0),
    _wrapper("StringValue", STRING, _text, ""),
    _wrapper("UInt32Value", types.UINT, _UINT32, Uint(0)),
    _wrapper("UInt64Value", types.UINT, _UINT64, Uint(0)),
    _time("Duration", types.DURATION, _duration),
    _time("Timestamp", types.TIMESTAMP, lambda fields: checked_timestamp(_nanoseconds(fields))),
    WellKnown(
        f"{PREFIX}Struct",
        _JSON_MAP,
        {"fields": _JSON_MAP},
        {"fields": json_value},
        lambda fields: fields.get("fields", {}),
    ),
    WellKnown(
        f"{PREFIX}ListValue",
        _JSON_LIST,
        {"values": _JSON_LIST},
        {"values": json_value},
        lambda fields: fields.get("values", []),
    ),
    WellKnown(
        f"{PREFIX}Value",
        DYN,
        {
            "null_value": types.INT,
            "number_value": types.DOUBLE,
            "string_value": STRING,
            "bool_value": types.BOOL,
            "struct_value": _JSON_MAP,
            "list_value": _JSON_LIST,
        },
        {
            "null_value": _null,
            "number_value": _DOUBLE,
            "string_value": _text,
            "bool_value": _BOOL,
            "struct_value": _MAP,
            "list_value": _LIST,
        },
        lambda fields: next(reversed(fields.values()), None),
    ),
    WellKnown(EMPTY, types.struct(EMPTY), {}, {}, lambda fields: CelMessage(EMPTY, fields)),
]

WELL_KNOWN: dict[str, WellKnown] = {kind.name: kind for kind in _TYPES}
"""The types by their names."""


@dataclass(frozen=True, slots=True)
class MessageType:
    """A type of objects that expressions may create; without `fields`, all fields and nested types are allowed."""

    name: str
    fields: Mapping[str, Type] | None = None

    @property
    def type(self) -> Type:
        """Return the type of the objects in expressions."""
        return types.struct(self.name)

    def create(self, content: dict[str, Any]) -> CelMessage:
        """Return an object with these fields."""
        texts = frozenset(name for name, field in (self.fields or {}).items() if field == STRING)
        for name in texts & content.keys():
            if not isinstance(content[name], str):
                shown = type_name(content[name])
                raise EvaluationError(f"unexpected type {shown} for {self.name}Type '{name}' field")
        return CelMessage(self.name, content, texts)


OBJECT = MessageType("Object")
"""An object of the kind that a policy mutates; `Object.spec` is the type of its field `spec`."""

JSON_PATCH = MessageType("JSONPatch", {"op": STRING, "path": STRING, "from": STRING, "value": DYN})
"""One operation of a JSON patch."""


class MessageTypes:
    """The types of an environment that expressions may create."""

    def __init__(self, types: Iterable[MessageType] = ()) -> None:
        self._types = {kind.name: kind for kind in types}

    def find(self, name: str) -> MessageType | WellKnown | None:
        """Return a type by its name; every name below that of an open type is an open type."""
        if name in WELL_KNOWN:
            return WELL_KNOWN[name]
        root = self._types.get(name.partition(".")[0])
        if root is not None and root.fields is None:
            return MessageType(name)
        return self._types.get(name)


def mutation_library() -> Library:
    """Return the functions that only mutating admission policies have."""
    library = Library()
    library.add("jsonpatch.escapeKey", "string_jsonpatch_escapeKey_string", (STRING,), STRING, _escaped_key)
    return library


def _escaped_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def misplaced(message: CelMessage) -> list[str]:
    """Return errors for nested objects whose type does not match their field, as `Object.spec` matches `spec`."""
    return list(_misplaced(message, message.type_name))


def _misplaced(value: Value, expected: str) -> Iterator[str]:
    if isinstance(value, CelMessage):
        if value.type_name != expected:
            yield (
                f'unexpected type name "{value.type_name}", expected "{expected}", '
                "which matches field name path from root Object type"
            )
        for name, item in value.items():
            yield from _misplaced(item, f"{expected}.{name}")
    elif isinstance(value, dict):
        for item in value.values():
            yield from _misplaced(item, expected)
    elif isinstance(value, list):
        for item in value:
            yield from _misplaced(item, expected)


def to_json(value: Value) -> Any:
    """Convert a value to JSON: plain dicts and lists, times and bytes as text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        # JSON numbers are exact up to here; the API server writes greater ones as text.
        return int(value) if -_EXACT <= value <= _EXACT else str(int(value))
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Timestamp | CelDuration):
        return str(value)
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {_key(key): to_json(item) for key, item in value.items()}
    raise EvaluationError(f"a value of type {type_name(value)} has no form in JSON")


def _key(key: Value) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)
