"""Encode typed objects as wire values (plain JSON values) and JSON bytes, and decode them."""

import re
import threading
from binascii import b2a_base64
from collections.abc import Mapping
from datetime import UTC, date, datetime
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin
from uuid import UUID

import msgspec
from msgspec.structs import astuple

from kubewright.api.annotations import members
from kubewright.api.errors import DeclarationError, DecodeError
from kubewright.api.kinds import Kind, kind_of
from kubewright.api.model import field_info, field_types, is_builtin
from kubewright.api.pydantic_models import is_pydantic, read_pydantic, write_pydantic
from kubewright.api.resource import Object
from kubewright.api.scalars import Scalar
from kubewright.guards import must_propagate, text_of

T = TypeVar("T", bound=msgspec.Struct)
R = TypeVar("R")
JsonObject = dict[str, Any]
"""A JSON object: names in camelCase, plain values."""
_PLAIN = frozenset({str, int, float, bool})
_EMPTY: tuple[Any, ...] = ("", [], {})
_ALWAYS = object()
_OR_NULL = object()
_ZEROS: dict[Any, Any] = {str: "", int: 0, float: 0.0, bool: False, bytes: ""}
_MISSING = r"Object missing required field `(.+)`"
_encoder = msgspec.json.Encoder()
_building = threading.RLock()


def to_wire(obj: msgspec.Struct, *, without_status: bool = False) -> JsonObject:
    """Return the wire value: the fields that are set, with `apiVersion` and `kind` first for objects.

    None is left out, except in a required field with `Field(nullable=True)`, where it is null.
    """
    head, plan = _plan(obj.__class__)
    wire = head.copy()
    # Without strict=True: the keyword costs as much as ten fields.
    for value, (name, omitted) in zip(astuple(obj), plan):  # noqa: B905 (both have the fields of the class)
        if value is omitted:
            continue
        if value is None:
            if omitted is _OR_NULL:
                wire[name] = None
            continue
        # Many are empty lists and maps: two empty values of one class are equal.
        if not value and value.__class__ is omitted.__class__ and not omitted:
            continue
        if value.__class__ not in _PLAIN:
            value = _wire_value(value)
        if omitted is _ALWAYS or value != omitted:
            wire[name] = value
    if without_status:
        wire.pop("status", None)
    return wire


def with_string_data_encoded(secret: JsonObject) -> JsonObject:
    """Return a Secret with stringData moved into data, as the server stores it."""
    text: dict[str, str] = secret.get("stringData") or {}
    if not text:
        return secret
    encoded = {key: b2a_base64(value.encode(), newline=False).decode() for key, value in text.items()}
    rest = {key: value for key, value in secret.items() if key != "stringData"}
    return rest | {"data": {**(secret.get("data") or {}), **encoded}}


def status_wire(obj: Object) -> JsonObject:
    """Return the wire value for a write to the status subresource: only the identity and the status."""
    wire, meta = to_wire(obj), obj.metadata
    named = {"name": meta.name, "namespace": meta.namespace}
    return {
        "apiVersion": wire["apiVersion"],
        "kind": wire["kind"],
        "metadata": {key: value for key, value in named.items() if value},
        "status": wire.get("status", {}),
    }


def encode(obj: msgspec.Struct | Mapping[str, Any]) -> bytes:
    """Return the JSON bytes of an object or of a wire value."""
    return _encoder.encode(to_wire(obj) if isinstance(obj, msgspec.Struct) else obj)


def decode(cls: type[T], data: bytes | str) -> T:
    """Decode an object from JSON; null instead of a list, map or struct counts as absent.

    Raise DecodeError for every object that cannot be read, also if a hook of the class (`__post_init__`) raises.
    """
    try:
        return _decoder(cls).decode(data)
    except msgspec.ValidationError:
        return from_wire(cls, parse(data))
    except RecursionError as error:
        raise DecodeError(f"{cls.__name__}: nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(f"{cls.__name__}: not JSON: {error}") from error
    except BaseException as error:
        if isinstance(error, DeclarationError) or must_propagate(error):
            raise
        raise _refused_by_hook(cls, error) from error


def decode_as(kind: type[R] | Kind, raw: bytes) -> R:
    """Decode to the class, or to a JSON object if only a `Kind` is given."""
    # Any, not casts: those are calls, and each reconcile decodes half a dozen times. Not `isinstance(kind, Kind)`: for
    # a class with a metaclass that takes ten times as long.
    form: Any = kind
    decoded: Any = decode(form, raw) if isinstance(kind, type) else msgspec.json.decode(raw)
    return decoded


def from_wire(cls: type[T], wire: Any) -> T:
    """Decode an object from wire values, by the same rules as `decode`."""
    try:
        try:
            return _convert(cls, wire)
        except msgspec.ValidationError:
            return _convert(cls, _tidy(cls, wire))
    except msgspec.ValidationError as error:
        raise _located(cls, error) from error
    except RecursionError as error:
        raise DecodeError(f"{cls.__name__}: nested too deeply") from error
    except BaseException as error:
        if isinstance(error, DeclarationError) or must_propagate(error):
            raise
        raise _refused_by_hook(cls, error) from error


def parse(data: bytes | str) -> Any:
    """Parse JSON into wire values."""
    try:
        return msgspec.json.decode(data)
    except RecursionError as error:
        raise DecodeError("nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(f"not JSON: {error}") from error


def zero(cls: type[T]) -> T:
    """Return the zero value of a type: an empty string, 0, an empty list; fields have their defaults."""
    return _convert(cls, _tidy_struct(cls, {}, fill=True))


def _wire_value(value: Any) -> Any:
    # Most frequent first: this runs for every part of every object that is sent. Any, not casts, which are calls.
    parts: Any = value
    match value:
        case dict():
            return {
                key: item if item.__class__ in _PLAIN else _wire_value(item) for key, item in parts.items()
            }
        case list() | tuple():
            return [item if item.__class__ in _PLAIN else _wire_value(item) for item in parts]
        case msgspec.Struct():
            return to_wire(value)
        case Scalar():
            return value.to_wire()
        case Enum():
            return value.value
        case datetime():
            return _time(value)
        case date() | UUID() | bytes():
            return msgspec.to_builtins(value)
        case _:
            return write_pydantic(value) if is_pydantic(value.__class__) else value


def _time(value: datetime) -> str:
    """Write a time as the API does: whole seconds, in UTC."""
    if value.tzinfo is None:
        raise ValueError(f"{value.isoformat()} has no time zone: use datetime.now(UTC)")
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@cache
def _plan(cls: type[msgspec.Struct]) -> tuple[JsonObject, tuple[tuple[str, Any], ...]]:
    """Return `apiVersion` and `kind` of a kind, and the name of each field with the wire value for which it is omitted.

    Authors' models always send numbers and booleans, and omit fields that are empty by default. Built-in kinds omit
    every default, as Go does with omitempty; fields that may be zero on purpose are `X | None` there.
    """
    head: JsonObject = {}
    if issubclass(cls, Object):
        kind = kind_of(cls)
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
    builtin = is_builtin(cls)
    infos = field_info(cls)
    plan: list[tuple[str, Any]] = []
    for item in msgspec.structs.fields(cls):
        omitted = _OR_NULL if item.required and infos[item.name].nullable else _ALWAYS
        if not item.required and infos[item.name].optional is not False:
            made = item.default if item.default_factory is msgspec.NODEFAULT else item.default_factory()
            default = _wire_value(made)
            if default is not None and (builtin or default in _EMPTY):
                omitted = default
        plan.append((item.encode_name, omitted))
    return head, tuple(plan)


@cache
def _decoder(cls: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of a type.

    msgspec stores incomplete type information on the class of a struct while it builds it: a second thread that uses the
    class then dereferences null pointers. So one thread at a time builds it, and it is complete before a struct is decoded.
    """
    try:
        with _building:
            return msgspec.json.Decoder(cls, dec_hook=_read_scalar)
    except (NameError, TypeError) as error:
        field_types(cls)
        raise DeclarationError(f"{cls.__name__}: {error}") from error


def _convert(cls: type[T], wire: Any) -> T:
    _decoder(cls)
    return msgspec.convert(wire, cls, dec_hook=_read_scalar)


def _read_scalar(kind: type, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    if issubclass(kind, Scalar):
        return kind.from_wire(value)
    if is_pydantic(kind):
        return read_pydantic(kind, value)
    raise NotImplementedError(f"{kind.__name__} cannot be read from the wire")


def _refused_by_hook(cls: type, error: BaseException) -> DecodeError:
    return DecodeError(f"{cls.__name__}: {type(error).__name__}: {text_of(error)}")


def _located(cls: type, error: msgspec.ValidationError) -> DecodeError:
    text, _, path = str(error).partition(" - at `$")
    where = path.rstrip("`").lstrip(".")
    if isinstance(error.__cause__, DecodeError):
        # A pydantic model was invalid; its error has the field.
        inner = error.__cause__.path
        where = f"{where}{'' if inner.startswith('[') else '.'}{inner}".strip(".")
    missing = re.fullmatch(_MISSING, text)
    if missing:
        where, text = f"{where}.{missing[1]}".lstrip("."), "is required"
    text = text.replace("`", "")
    return DecodeError(f"{cls.__name__}: {where or 'object'}: {text[:1].lower()}{text[1:]}", path=where)


def _tidy(annotation: Any, value: Any) -> Any:
    """Drop nulls of optional fields, and set required fields of built-in kinds to Go's zero value."""
    parts = members(annotation)
    for part in parts:
        origin = get_origin(part)
        match value:
            case dict() if isinstance(part, type) and issubclass(part, msgspec.Struct):
                return _tidy_struct(part, cast(JsonObject, value), fill=False)
            case dict() if origin is dict:
                return {key: _tidy(get_args(part)[1], item) for key, item in cast(JsonObject, value).items()}
            case list() if origin is list:
                return [_tidy(get_args(part)[0], item) for item in cast(list[Any], value)]
            case _:
                pass
    if value is None and type(None) not in parts and _is_container(parts[0]):
        return _nothing(parts[0], fill=False)
    return value


def _tidy_struct(cls: type[msgspec.Struct], wire: JsonObject, *, fill: bool) -> JsonObject:
    lenient = fill or is_builtin(cls)
    tidy = dict(wire)
    for name, annotation, required in _fields(cls):
        if tidy.get(name) is not None:
            tidy[name] = _tidy(annotation, tidy[name])
        elif required:
            kind = members(annotation)[0]
            if lenient or (name in tidy and _is_container(kind)):
                tidy[name] = _nothing(kind, fill=lenient)
        else:
            tidy.pop(name, None)
    return tidy


@cache
def _fields(cls: type[msgspec.Struct]) -> tuple[tuple[str, Any, bool], ...]:
    """Return the wire name of each field, its type, and whether it is required."""
    types = field_types(cls)
    return tuple((item.encode_name, types[item.name], item.required) for item in msgspec.structs.fields(cls))


def _is_container(part: Any) -> bool:
    if get_origin(part) in (list, dict) or is_pydantic(part):
        return True
    return isinstance(part, type) and issubclass(part, msgspec.Struct)


def _nothing(part: Any, *, fill: bool) -> Any:
    """Return the wire value of Go's zero value of a type."""
    if get_origin(part) is list:
        return []
    if isinstance(part, type) and issubclass(part, msgspec.Struct):
        return _tidy_struct(part, {}, fill=fill)
    if isinstance(part, type) and issubclass(part, Scalar):
        return "0"
    return {} if get_origin(part) is dict or is_pydantic(part) else _ZEROS.get(part)
