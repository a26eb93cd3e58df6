"""OpenAPI v2 as protobuf, which kubectl requests if v3 does not have a kind."""

import json
import struct
from collections.abc import Callable, Iterable
from typing import Any, cast

from kubewright.devserver.objects import JsonObject

Encode = Callable[[int, Any], bytes]

_VARINT, _FIXED64, _BYTES = 0, 1, 2


def swagger_protobuf(document: JsonObject) -> bytes:
    """Encode an OpenAPI v2 document of definitions."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    definitions = b"".join(_named_schema(1, name, schema) for name, schema in document["definitions"].items())
    return _text(1, document["swagger"]) + _message(2, info) + _message(8, b"") + _message(9, definitions)


def _varint(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _message(number: int, body: bytes) -> bytes:
    return _tag(number, _BYTES) + _varint(len(body)) + body


def _text(number: int, value: Any) -> bytes:
    return _message(number, str(value).encode())


def _integer(number: int, value: Any) -> bytes:
    return _tag(number, _VARINT) + _varint(int(value))


def _double(number: int, value: Any) -> bytes:
    return _tag(number, _FIXED64) + struct.pack("<d", value)


def _any(number: int, value: Any) -> bytes:
    # The message holds YAML, of which JSON is a part.
    return _message(number, _text(2, json.dumps(value)))


def _texts(number: int, values: Iterable[Any]) -> bytes:
    return b"".join(_text(number, value) for value in values)


def _type(number: int, value: Any) -> bytes:
    return _message(number, _texts(1, cast("list[str]", value) if isinstance(value, list) else [value]))


def _items(number: int, value: Any) -> bytes:
    return _message(number, _message(1, _schema(value)))


def _schemas(number: int, values: Iterable[Any]) -> bytes:
    return b"".join(_message(number, _schema(value)) for value in values)


def _enum(number: int, values: Iterable[Any]) -> bytes:
    return b"".join(_any(number, value) for value in values)


def _properties(number: int, values: JsonObject) -> bytes:
    return _message(number, b"".join(_named_schema(1, name, schema) for name, schema in values.items()))


def _additional(number: int, value: Any) -> bytes:
    return _message(number, _integer(2, value) if isinstance(value, bool) else _message(1, _schema(value)))


def _named_schema(number: int, name: str, schema: Any) -> bytes:
    return _message(number, _text(1, name) + _message(2, _schema(schema)))


_FIELDS: dict[str, tuple[int, Encode]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _integer),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _integer),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _integer),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _texts),
    "enum": (20, _enum),
    "additionalProperties": (21, _additional),
    "type": (22, _type),
    "items": (23, _items),
    "allOf": (24, _schemas),
    "properties": (25, _properties),
    "example": (30, _any),
}
_EXTENSION = 31


def _schema(schema: JsonObject) -> bytes:
    parts: list[bytes] = []
    extensions: list[bytes] = []
    for name, value in schema.items():
        if name.startswith("x-"):
            extensions.append(_message(_EXTENSION, _text(1, name) + _any(2, value)))
        elif name in _FIELDS:
            number, encode = _FIELDS[name]
            parts.append(encode(number, value))
    return b"".join([*parts, *extensions])
