"""Read protobuf request bodies with the Go field numbers of the type table."""

import base64
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from kubewright.devserver.wire.errors import WireDecodeError
from kubewright.devserver.wire.gotypes import INLINE, GoField, GoType, GoTypes, scalar_name
from kubewright.devserver.wire.json_documents import parse_json

MAGIC = b"k8s\0"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TRUNCATED = "unexpected EOF"
_MAX_DEPTH = 100
UINT64 = 0xFFFFFFFFFFFFFFFF
SCHEMA = "apiextensions/v1.JSONSchemaProps"

ProtoMessage = dict[int, list[Any]]
# (encoded field, nesting depth) -> JSON value
Read = Callable[[Any, int], Any]


def envelope(body: bytes) -> tuple[str, str, bytes]:
    """Open the server's envelope: apiVersion, kind and the object's own bytes."""
    if not body.startswith(MAGIC):
        raise WireDecodeError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    outer = parse(body[4:])
    meta = parse(_octets(outer.get(1, [b""])[-1]))
    return _text(meta.get(1, [b""])[-1]), _text(meta.get(2, [b""])[-1]), _octets(outer.get(2, [b""])[-1])


def parse(data: bytes) -> ProtoMessage:
    """Split one message into its fields' raw values."""
    at, end = 0, len(data)
    found: ProtoMessage = {}
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise WireDecodeError(f"proto: illegal tag 0 (wire type {wire})")
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        elif wire in {1, 5}:
            width = 8 if wire == 1 else 4
            value, at = data[at : at + width], at + width
        else:
            raise WireDecodeError(f"proto: illegal wireType {wire}")
        if at > end:
            raise WireDecodeError(_TRUNCATED)
        found.setdefault(number, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            result |= (byte & 127) << shift
            if byte < 128:
                return result & UINT64, at
            shift += 7
            if shift >= 64:
                raise WireDecodeError("proto: integer overflow")
    except IndexError:
        raise WireDecodeError(_TRUNCATED) from None


class Readers:
    """Compiled protobuf readers by type; they yield JSON values for the JSON decoder to put in Go's form."""

    def __init__(self, types: GoTypes) -> None:
        self._types = types
        self._structs: dict[str, dict[int, tuple[GoField, Read]]] = {}
        self._leaves: dict[str, Read] = {
            "meta/v1.Time": _read_time,
            "meta/v1.MicroTime": _read_micro_time,
            "meta/v1.FieldsV1": _read_raw,
            "runtime.RawExtension": _read_raw,
            "apiextensions/v1.JSON": _read_raw,
            "resource.Quantity": _read_quantity,
            "intstr.IntOrString": _read_int_or_string,
            "any": _read_raw,
            f"{SCHEMA}OrBool": self._read_schema_or_bool,
            f"{SCHEMA}OrArray": self._read_schema_or_array,
            f"{SCHEMA}OrStringArray": self._read_schema_or_strings,
        }

    def read(self, name: str, data: bytes, depth: int = 0) -> dict[str, Any]:
        """Read one message of a struct's type into a JSON object."""
        if depth > _MAX_DEPTH:
            raise WireDecodeError("proto: exceeded max recursion depth")
        plan = self._plan(name)
        found: dict[str, Any] = {}
        for number, values in parse(data).items():
            if number not in plan:
                continue
            field, read = plan[number]
            if field.flags & INLINE:
                found.update(read(values[-1], depth + 1))
            elif field.type.form == "list" and not field.type.alias:
                found[field.name] = [read(value, depth + 1) for value in _unpacked(values, field.type)]
            elif field.type.form == "map":
                found[field.name] = dict(read(value, depth + 1) for value in values)
            else:
                found[field.name] = read(values[-1], depth + 1)
        return found

    def _plan(self, name: str) -> dict[int, tuple[GoField, Read]]:
        known = self._structs.get(name)
        if known is None:
            fields = [field for field in self._types.declared(name) if field.number]
            known = {field.number: (field, self._field_reader(field.type)) for field in fields}
            self._structs[name] = known
        return known

    def _field_reader(self, go_type: GoType) -> Read:
        item = go_type.item
        if go_type.form == "list" and item is not None and not go_type.alias:
            return self._reader(item)
        if go_type.form == "map" and item is not None:
            return self._entry(self._reader(item), item)
        return self._reader(go_type)

    def _entry(self, read: Read, item: GoType) -> Read:
        empty: Any = 0 if item.form == "scalar" and scalar_name(item) != "string" else b""

        def entry(value: Any, depth: int) -> tuple[str, Any]:
            parts = parse(_octets(value))
            return _text(parts.get(1, [b""])[-1]), read(parts.get(2, [empty])[-1], depth)

        return entry

    def _reader(self, go_type: GoType) -> Read:
        form, item = go_type.form, go_type.item
        if form == "pointer" and item is not None:
            return self._reader(item)
        if form == "struct":
            return lambda value, depth: self.read(go_type.spelled, _octets(value), depth)
        if form == "bytes":
            return lambda value, _: base64.b64encode(_octets(value)).decode()
        if form == "list" and item is not None:
            # A named list type is a message of its own with the items in field 1.
            read = self._reader(item)
            return lambda value, depth: [read(one, depth) for one in parse(_octets(value)).get(1, [])]
        if form == "scalar":
            return _SCALARS[scalar_name(go_type)]
        return self._leaves[go_type.spelled]

    def _read_schema_or_bool(self, value: Any, depth: int) -> Any:
        parts = parse(_octets(value))
        if 2 in parts:
            return self.read(SCHEMA, _octets(parts[2][-1]), depth)
        return bool(parts.get(1, [0])[-1])

    def _read_schema_or_array(self, value: Any, depth: int) -> Any:
        parts = parse(_octets(value))
        if 1 in parts:
            return self.read(SCHEMA, _octets(parts[1][-1]), depth)
        return [self.read(SCHEMA, _octets(one), depth) for one in parts.get(2, [])]

    def _read_schema_or_strings(self, value: Any, depth: int) -> Any:
        parts = parse(_octets(value))
        if 1 in parts:
            return self.read(SCHEMA, _octets(parts[1][-1]), depth)
        return [_text(one) for one in parts.get(2, [])]


def _unpacked(values: list[Any], go_type: GoType) -> list[Any]:
    """Accept packed numbers, which some encoders send."""
    if go_type.item is None or go_type.item.form != "scalar" or scalar_name(go_type.item) == "string":
        return values
    found: list[Any] = []
    for value in values:
        if not isinstance(value, bytes):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            found.append(number)
    return found


def _octets(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise WireDecodeError("proto: wrong wireType = 0 for a length-delimited field")
    return value


def _text(value: Any) -> str:
    return _octets(value).decode("utf-8", "replace")


def _signed(value: Any) -> int:
    if not isinstance(value, int):
        raise WireDecodeError("proto: wrong wireType = 2 for a number")
    return value - (1 << 64) if value >= 1 << 63 else value


def _real(value: Any, _: int) -> float:
    if not isinstance(value, bytes) or len(value) != 8:
        raise WireDecodeError("proto: wrong wireType for a double")
    number: float = struct.unpack("<d", value)[0]
    return number


_SCALARS: dict[str, Read] = {
    "string": lambda value, _: _text(value),
    "bool": lambda value, _: bool(_signed(value)),
    "int": lambda value, _: _signed(value),
    "int32": lambda value, _: _signed(value),
    "int64": lambda value, _: _signed(value),
    "uint64": lambda value, _: _signed(value) & UINT64,
    "float64": _real,
}


def _moment(value: Any) -> tuple[datetime | None, int]:
    parts = parse(_octets(value))
    if not parts:
        return None, 0
    try:
        return _EPOCH + timedelta(seconds=_signed(parts.get(1, [0])[-1])), _signed(parts.get(2, [0])[-1])
    except OverflowError:
        raise WireDecodeError("proto: time out of range") from None


def _written(moment: datetime) -> str:
    return f"{moment.year:04d}{moment.strftime('-%m-%dT%H:%M:%S')}"


def _read_time(value: Any, _: int) -> str | None:
    moment, _nanos = _moment(value)
    return None if moment is None else f"{_written(moment)}Z"


def _read_micro_time(value: Any, _: int) -> str | None:
    moment, nanos = _moment(value)
    return None if moment is None else f"{_written(moment)}.{abs(nanos) // 1000 % 1_000_000:06d}Z"


def _read_raw(value: Any, _: int) -> Any:
    data = _octets(parse(_octets(value)).get(1, [b""])[-1])
    if not data:
        return None
    return parse_json(data)[0]


def _read_quantity(value: Any, _: int) -> str:
    return _text(parse(_octets(value)).get(1, [b""])[-1]) or "0"


def _read_int_or_string(value: Any, _: int) -> int | str:
    parts = parse(_octets(value))
    if _signed(parts.get(1, [0])[-1]):
        return _text(parts.get(3, [b""])[-1])
    return _signed(parts.get(2, [0])[-1])
