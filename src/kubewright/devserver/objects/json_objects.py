"""Objects on the wire: JSON dictionaries, their metadata in the order the server writes it, their bytes."""

import marshal
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeGuard, cast

import msgspec

from kubewright.api import JsonObject

META_ORDER = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)

_encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
_encode_sorted: Callable[[Any], bytes] = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode
_has_exponent = re.compile(rb"e-?\d+[,\]}]").search
_MIN_SHORT, _MAX_SHORT = 1e-4, 1e6
"""Go prints other floats with an exponent."""
_MIN_PLAIN = 1e-6
_MAX_PLAIN = 1e21
_ESCAPES = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Return True if a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return True if a JSON value is a list."""
    return isinstance(value, list)


def encode(value: Any) -> bytes:
    """Write JSON as Go does, fields in the order they stand."""
    return _as_go(_encode, value)


def encode_sorted(value: Any) -> bytes:
    """Write JSON as Go does, fields in alphabetical order."""
    return _as_go(_encode_sorted, value)


def _as_go(encoder: Callable[[Any], bytes], value: Any) -> bytes:
    data = encoder(value)
    if _has_exponent(data):
        # Perhaps in a text, which stays as it is.
        data = encoder(_with_go_floats(value))
    return _escape(data)


def _with_go_floats(value: Any) -> Any:
    """Replace the floats that Go writes otherwise: with an exponent only from 1e21 on and below 1e-6, with its sign."""
    if is_object(value):
        return {name: _with_go_floats(item) for name, item in value.items()}
    if is_list(value):
        return [_with_go_floats(item) for item in value]
    if not isinstance(value, float):
        return value
    if _MIN_PLAIN <= abs(value) < _MAX_PLAIN:
        return msgspec.Raw(f"{Decimal(repr(value)):f}".encode())
    text = _encode(value).decode()
    return msgspec.Raw(re.sub(r"e(?=\d)", "e+", text).encode())


def _escape(data: bytes) -> bytes:
    for character, escape in _ESCAPES:
        if character in data:
            data = data.replace(character, escape)
    return data


def decode(data: bytes) -> JsonObject:
    """Decode the bytes of a stored object."""
    return cast(JsonObject, _decode(data))


def meta(obj: JsonObject) -> JsonObject:
    """Return an object's metadata, which is put there when it is missing."""
    found = obj.get("metadata")
    if not isinstance(found, dict):
        found = {}
        obj["metadata"] = found
    return cast(JsonObject, found)


def section(obj: JsonObject, *names: str) -> JsonObject:
    """Return an object's part by its path, empty when it is missing or null."""
    part = obj
    for name in names:
        found = part.get(name)
        if not isinstance(found, dict):
            return {}
        part = cast(JsonObject, found)
    return part


def items(obj: JsonObject, name: str) -> list[Any]:
    """Return a list of an object, empty when it is missing or null."""
    found = obj.get(name)
    return cast(list[Any], found) if isinstance(found, list) else []


def labels_of(obj: JsonObject) -> dict[str, str]:
    """Return an object's labels."""
    return obj.get("metadata", {}).get("labels") or {}


def order_meta(metadata: JsonObject) -> JsonObject:
    """Put metadata fields in the order of kube-apiserver's struct."""
    return {name: metadata[name] for name in META_ORDER if name in metadata}


def order_object(obj: JsonObject) -> JsonObject:
    """Return the object with kind and apiVersion first, then ordered metadata, then the rest unchanged."""
    ordered: JsonObject = {
        "kind": obj["kind"],
        "apiVersion": obj["apiVersion"],
        "metadata": order_meta(meta(obj)),
    }
    for name, value in obj.items():
        if name not in ordered:
            ordered[name] = value
    return ordered


def unchanged(new: JsonObject, old: JsonObject | None) -> JsonObject:
    """Return the parts of an object that are, to the byte, what another has in their place."""
    if old is None:
        return {}
    return {
        name: part
        for name, part in new.items()
        if isinstance(part, dict) and ((known := old.get(name)) is part or _encode(known) == _encode(part))
    }


def copy(value: Any) -> Any:
    """Copy a JSON value to its depth: written and read by the interpreter, it is several times faster than by hand."""
    return marshal.loads(marshal.dumps(value))


def go_text(value: Any) -> str:
    """Write a value as Go prints it with `%v`."""
    if is_object(value):
        return f"map[{' '.join(f'{name}:{go_text(item)}' for name, item in sorted(value.items()))}]"
    if is_list(value):
        return f"[{' '.join(map(go_text, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    exact = Decimal(repr(value)).normalize()
    if not value or _MIN_SHORT <= abs(value) < _MAX_SHORT:
        return f"{exact:f}"
    digits = "".join(map(str, exact.as_tuple().digits))
    fraction = f".{digits[1:]}" if digits[1:] else ""
    return f"{'-' if value < 0 else ''}{digits[0]}{fraction}e{exact.adjusted():+03d}"


def with_revision(data: bytes, revision: int, *, custom: bool) -> bytes:
    """Return an object's bytes with another resourceVersion."""
    obj = decode(data)
    obj["metadata"]["resourceVersion"] = str(revision)
    return encode_sorted(obj) if custom else encode(obj)


def words(text: str, separator: str = " ") -> tuple[str, ...]:
    """Return the words of a text; a long list of names is easier to read as one."""
    return tuple(text.split(separator))


def api_version(group: str, version: str) -> str:
    """Join a group and a version as `apiVersion` has them."""
    return f"{group}/{version}" if group else version


def split_api_version(text: str) -> tuple[str, str]:
    """Split `apps/v1` or `v1` into group and version."""
    group, slash, version = text.rpartition("/")
    return (group, version) if slash else ("", text)
