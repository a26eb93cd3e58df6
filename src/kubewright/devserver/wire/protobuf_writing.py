"""Write objects in protobuf, byte for byte as Go's generated code does, with the field numbers of the type table.

The input is an object as it is written in JSON. What JSON omits because it is empty, protobuf still contains: Go's
code writes every string, number, bool and struct that is not behind a pointer, in the order of the field numbers.
"""

import base64
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from kubewright.devserver.objects import encode_sorted, is_list
from kubewright.devserver.wire.gotypes import INLINE, GoField, GoType, GoTypes, scalar_name
from kubewright.devserver.wire.protobuf import MAGIC, SCHEMA, UINT64

# JSON value -> the content of a message
Content = Callable[[Any], bytes]
# JSON value, or None if it is absent -> a field with its tag, or nothing
Put = Callable[[Any], bytes]

_VARINT, _FIXED64, _LENGTH = 0, 1, 2
_SMALL = [bytes([number]) for number in range(128)]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


def write_envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """Return a message with the header that names its kind (`runtime.Unknown`)."""
    names = _bytes_field(1, api_version.encode()) + _bytes_field(2, kind.encode())
    return (
        MAGIC
        + _bytes_field(1, names)
        + _bytes_field(2, message)
        + _bytes_field(3, b"")
        + _bytes_field(4, b"")
    )


def write_event(kind: str, document: bytes) -> bytes:
    """Return one frame of a watch: its length, then a `WatchEvent` around an object with its envelope."""
    event = _bytes_field(1, kind.encode()) + _bytes_field(2, _bytes_field(1, document))
    return len(event).to_bytes(4, "big") + event


def write_list(metadata: bytes, items: Iterable[bytes]) -> bytes:
    """Return the message of a list from the messages of its metadata and items."""
    return b"".join([_bytes_field(1, metadata), *(_bytes_field(2, item) for item in items)])


class Writers:
    """Compiled protobuf writers by type, each compiled at its first use."""

    def __init__(self, types: GoTypes) -> None:
        self._types = types
        self._structs: dict[str, Content] = {}
        self._leaves: dict[str, Content] = {
            "meta/v1.Time": _time,
            "meta/v1.MicroTime": _micro_time,
            "meta/v1.FieldsV1": _raw,
            "runtime.RawExtension": _raw,
            "apiextensions/v1.JSON": _sorted_raw,
            "resource.Quantity": _quantity,
            "intstr.IntOrString": _int_or_string,
            f"{SCHEMA}OrBool": self._schema_or_bool,
            f"{SCHEMA}OrArray": self._schema_or_array,
            f"{SCHEMA}OrStringArray": self._schema_or_strings,
        }

    def write(self, name: str, value: Mapping[str, Any]) -> bytes:
        """Return the message of a struct."""
        return self._struct(name)(value)

    def _struct(self, name: str) -> Content:
        known = self._structs.get(name)
        if known is None:
            known = self._structs[name] = self._compile(name)
        return known

    def _compile(self, name: str) -> Content:
        fields = sorted(
            (field for field in self._types.declared(name) if field.number), key=lambda item: item.number
        )
        inline = {field.name or str(field.number) for field in fields if field.flags & INLINE}
        # The bytes of an absent field are known here; inlined structs take their fields from the object itself.
        rows = [
            (field.name or str(field.number), put, b"" if field.flags & INLINE else put(None))
            for field in fields
            for put in [self._field(field)]
        ]

        def write(value: Mapping[str, Any]) -> bytes:
            parts: list[bytes] = []
            for key, put, absent in rows:
                if key in inline:
                    parts.append(put(value))
                else:
                    found = value.get(key)
                    parts.append(absent if found is None else put(found))
            return b"".join(parts)

        return write

    def _field(self, field: GoField) -> Put:
        go_type, number = field.type, field.number
        item = go_type.item
        if go_type.form == "list" and item is not None and not go_type.alias:
            put_item = self._single(item, number)
            return lambda value: b"".join([put_item(one) for one in value or ()])
        if go_type.form == "map" and item is not None:
            return self._map(item, number)
        return self._single(go_type, number)

    def _map(self, item: GoType, number: int) -> Put:
        put_item = self._single(item, 2)

        def put(value: Any) -> bytes:
            entries = [
                _bytes_field(1, key.encode()) + put_item(value[key])
                for key in sorted(value or (), key=str.encode)
            ]
            return b"".join([_bytes_field(number, entry) for entry in entries])

        return put

    def _single(self, go_type: GoType, number: int) -> Put:
        """Return the writer of a value that is neither repeated nor a map."""
        form, item = go_type.form, go_type.item
        if form == "pointer" and item is not None:
            put_item = self._single(item, number)
            return lambda value: b"" if value is None else put_item(value)
        if form == "scalar":
            return _scalar(scalar_name(go_type), number)
        if form == "bytes":
            tag = _tag(number, _LENGTH)
            return lambda value: b"" if value is None else _delimited(tag, base64.b64decode(value))
        tag = _tag(number, _LENGTH)
        if form == "list" and item is not None:
            # A named list type is a message of its own with the items in field 1.
            put_item = self._single(item, 1)
            return lambda value: (
                b"" if value is None else _delimited(tag, b"".join([put_item(one) for one in value]))
            )
        if form == "struct":
            name = go_type.spelled
            return lambda value: _delimited(tag, self._struct(name)(value or {}))
        content = self._leaves[go_type.spelled]
        return lambda value: _delimited(tag, content(value))

    def _schema_or_bool(self, value: Any) -> bytes:
        allows = b"\x08\x00" if value is False else b"\x08\x01"
        return allows + (b"" if isinstance(value, bool) else self._schema(2, value))

    def _schema_or_array(self, value: Any) -> bytes:
        if is_list(value):
            return b"".join([self._schema(2, one) for one in value])
        return self._schema(1, value)

    def _schema_or_strings(self, value: Any) -> bytes:
        if is_list(value):
            return b"".join([_bytes_field(2, one.encode()) for one in value])
        return self._schema(1, value)

    def _schema(self, number: int, value: Any) -> bytes:
        return _bytes_field(number, self._struct(SCHEMA)(value))


def _varint(value: int) -> bytes:
    if 0 <= value < 128:
        return _SMALL[value]
    value &= UINT64
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _delimited(tag: bytes, content: bytes) -> bytes:
    return b"%b%b%b" % (tag, _varint(len(content)), content)


def _bytes_field(number: int, content: bytes) -> bytes:
    return _delimited(_tag(number, _LENGTH), content)


def _scalar(name: str, number: int) -> Put:
    if name == "string":
        tag = _tag(number, _LENGTH)
        return lambda value: _delimited(tag, (value or "").encode())
    if name == "float64":
        tag = _tag(number, _FIXED64)
        return lambda value: tag + struct.pack("<d", value or 0)
    tag = _tag(number, _VARINT)
    if name == "bool":
        return lambda value: tag + (b"\x01" if value else b"\x00")
    return lambda value: tag + _varint(value or 0)


def _timestamp(moment: str) -> tuple[int, int]:
    parsed = datetime.fromisoformat(moment)
    return (parsed - _EPOCH) // _SECOND, parsed.microsecond * 1000


def _time(value: Any) -> bytes:
    # Go writes no fraction of a second here: JSON has none either.
    return b"" if value is None else b"\x08%b\x10\x00" % _varint(_timestamp(value)[0])


def _micro_time(value: Any) -> bytes:
    if value is None:
        return b""
    seconds, nanos = _timestamp(value)
    return b"\x08%b\x10%b" % (_varint(seconds), _varint(nanos))


def _raw(value: Any) -> bytes:
    return b"" if value is None else _bytes_field(1, msgspec.json.encode(value))


def _sorted_raw(value: Any) -> bytes:
    return b"" if value is None else _bytes_field(1, encode_sorted(value))


def _quantity(value: Any) -> bytes:
    return _bytes_field(1, ("0" if value is None else value).encode())


def _int_or_string(value: Any) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + _bytes_field(3, value.encode())
    return b"\x08\x00\x10%b\x1a\x00" % _varint(value or 0)
