"""Schemas as types of the expression language, and the names of their fields in it."""

import base64
import binascii
import re
from typing import Any

from kubewright.schema.cel import types
from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.lexer import RESERVED
from kubewright.schema.cel.types import Declared
from kubewright.schema.cel.values import MapList, SetList, Value, parse_duration, parse_timestamp
from kubewright.schema.nodes import Schema, additional, items, properties
from kubewright.schema.values import Json

MAX_REQUEST_SIZE = 3 * 1024 * 1024
_MIN_STRING, _MIN_BOOL, _MIN_NUMBER = 2, 4, 1
_TIMES = {"date": ("date", 12, 12), "date-time": ("timestamp", 21, 32)}
_STRING: Schema = {"type": "string"}
_META: Schema = {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}}


def escape(name: str) -> str | None:
    """Return the name of a field in expressions, or None where it cannot be named."""
    if not name or name[0].isdigit():
        return None
    if name in RESERVED:
        return f"__{name}__"
    if re.search(r"[^a-zA-Z0-9_./-]", name):
        return None
    for plain, escaped in (
        ("__", "__underscores__"),
        (".", "__dot__"),
        ("-", "__dash__"),
        ("/", "__slash__"),
    ):
        name = name.replace(plain, escaped) if plain != "__" else re.sub("__", escaped, name)
    return name


def declare(schema: Schema, *, resource: bool = False, name: str = "object") -> Declared | None:
    """Return the type of a schema's values, or None where expressions cannot see them."""
    if schema.get("x-kubernetes-int-or-string"):
        longest = _bytes_of_length(schema) if "maxLength" in schema else MAX_REQUEST_SIZE - 2
        return Declared(types.DYN, longest, _MIN_NUMBER)
    if resource:
        schema = with_type_and_meta(schema)
    kind = schema.get("type")
    if kind == "array":
        return _list(schema, name)
    if kind == "object":
        return _object(schema, name)
    if kind == "string":
        return _string(schema)
    if kind == "boolean":
        return Declared(types.BOOL, 0, _MIN_BOOL)
    if kind == "number":
        return Declared(types.DOUBLE, 0, _MIN_NUMBER, conversion="double")
    return Declared(types.INT, 0, _MIN_NUMBER) if kind == "integer" else None


def with_type_and_meta(schema: Schema) -> Schema:
    """Return the schema of a whole object, with the parts of it that expressions always see."""
    return {
        **schema,
        "properties": {**properties(schema), "kind": _STRING, "apiVersion": _STRING, "metadata": _META},
    }


def _list(schema: Schema, name: str) -> Declared | None:
    element_schema = items(schema)
    element = declare_below(element_schema, f"{name}.@idx") if element_schema is not None else None
    if element is None:
        return None
    most = schema.get("maxItems")
    most = max(most, 0) if most is not None else (MAX_REQUEST_SIZE - 2) // (element.min_size + 1)
    list_type = schema.get("x-kubernetes-list-type", "")
    keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
    declared = Declared(types.list_of(element.type), most, 2, element=element)
    declared.list_type, declared.list_keys = list_type, keys
    declared.conversion = "list" if list_type in ("set", "map") or element.conversion else ""
    return declared


def _object(schema: Schema, name: str) -> Declared | None:
    other = additional(schema)
    if other is not None:
        value = declare_below(other, f"{name}.@elem")
        if value is None:
            return None
        most = schema.get("maxProperties")
        most = max(most, 0) if most is not None else (MAX_REQUEST_SIZE - 2) // (value.min_size + 6)
        key = Declared(types.STRING, 0, _MIN_STRING)
        map_type = types.map_of(types.STRING, value.type)
        return Declared(
            map_type, most, 2, key=key, element=value, conversion="map" if value.conversion else ""
        )
    declared = Declared(types.struct(name), 0, 2)
    required: list[str] = schema.get("required") or []
    for field, sub in properties(schema).items():
        inner = declare_below(sub, f"{name}.{escape(field)}")
        if inner is None:
            continue
        escaped = escape(field)
        if escaped is not None:
            declared.fields[escaped] = inner
            declared.names[escaped] = field
        if field in required and sub.get("default") is None:
            declared.min_size += len(field) + inner.min_size + 4
    if any(inner.conversion for inner in declared.fields.values()):
        declared.conversion = "struct"
    return declared


def declare_below(schema: Schema, name: str) -> Declared | None:
    """Declare a schema inside another; embedded objects show their type and name."""
    return declare(schema, resource=bool(schema.get("x-kubernetes-embedded-resource")), name=name)


def _string(schema: Schema) -> Declared:
    text_format = schema.get("format", "")
    if text_format == "byte":
        most = schema.get("maxLength")
        return Declared(
            types.BYTES,
            MAX_REQUEST_SIZE - 2 if most is None else max(most, 0),
            _MIN_STRING,
            conversion="bytes",
        )
    if text_format == "duration":
        return Declared(types.DURATION, 32, 3, conversion="duration")
    if text_format in _TIMES:
        conversion, least, most = _TIMES[text_format]
        return Declared(types.TIMESTAMP, most, least, conversion=conversion)
    if "maxLength" in schema:
        most = _bytes_of_length(schema)
    elif schema.get("enum"):
        allowed: list[Json] = schema["enum"]
        most = max((len(value.encode()) for value in allowed if isinstance(value, str)), default=0)
    else:
        most = MAX_REQUEST_SIZE - 2
    return Declared(types.STRING, most, _MIN_STRING)


def _bytes_of_length(schema: Schema) -> int:
    # A character takes up to four bytes.
    return max(schema["maxLength"], 0) * 4


def structs_in(declared: Declared) -> dict[str, Declared]:
    """Return the object types inside a type by their names."""
    found: dict[str, Declared] = {}
    pending = [declared]
    while pending:
        current = pending.pop()
        if current.type.kind == "struct":
            found[current.type.name] = current
            pending += current.fields.values()
        if current.element is not None:
            pending.append(current.element)
    return found


def converted(declared: Declared, value: Value) -> Any:
    """Return a JSON value as the expression language sees it: times as times, numbers as doubles."""
    conversion = declared.conversion
    if not conversion or value is None:
        return value
    if conversion == "double":
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if conversion == "list" and isinstance(value, list) and declared.element is not None:
        element = declared.element
        content = [converted(element, item) for item in value] if element.conversion else value
        if declared.list_type == "set":
            return SetList(content)
        return MapList(content, declared.list_keys) if declared.list_type == "map" else content
    if conversion == "map" and isinstance(value, dict) and declared.element is not None:
        return {key: converted(declared.element, item) for key, item in value.items()}
    if conversion == "struct" and isinstance(value, dict):
        return _converted_struct(declared, value)
    return _converted_text(conversion, value) if isinstance(value, str) else value


def _converted_struct(declared: Declared, value: dict[str, Any]) -> dict[str, Any]:
    result = dict(value)
    for escaped, inner in declared.fields.items():
        name = declared.names[escaped]
        if inner.conversion and name in value:
            result[name] = converted(inner, value[name])
    return result


def _converted_text(conversion: str, text: str) -> Any:
    try:
        if conversion == "timestamp":
            return parse_timestamp(text)
        if conversion == "date":
            return parse_timestamp(f"{text}T00:00:00Z")
        if conversion == "duration":
            return parse_duration(text)
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error) as error:
        raise EvaluationError(f"invalid value for format {conversion}: {error}") from None
