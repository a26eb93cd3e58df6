"""A hash of what objects contain, for Pod templates that must change with it.

The result is the first 32 hexadecimal digits of the SHA-256 of a JSON document: short enough for a label or a part of
a name. The document is `{"objects": [...], "values": [...]}` in UTF-8, without spaces and with sorted keys:

- `objects` has `[apiVersion, kind, namespace, name, content]` for each object, in sorted order. The content of a Secret
  or ConfigMap is `{"binaryData": ..., "data": ...}`, with stringData encoded into data; that of any other object is
  everything except apiVersion, kind, metadata and status.
- `values` has every other argument in the given order, as JSON.

This format does not change between versions: a new hash would restart the Pods of every operator that uses it.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from kubewright.api import JsonObject, Model, Object, to_wire, with_string_data_encoded

__all__ = ["content_hash"]

_LENGTH = 32
_NOT_CONTENT = frozenset({"apiVersion", "kind", "metadata", "status"})


def content_hash(*contents: Model | Mapping[str, Any] | Sequence[Any] | str | float | None) -> str:
    """Return a hash of what objects and values contain, to put into an annotation of a Pod template.

    Of a Secret or ConfigMap its data count, of any other object everything but metadata and status; so labels,
    resourceVersion and the like do not change the hash. Neither the order of the objects nor that of keys in
    a map matters; the order of lists and of other arguments does. None stands for an object that does not exist.
    A list of objects, such as `ctx.list` returns, counts as its objects.
    """
    objects: list[tuple[str, str, str, str, JsonObject]] = []
    values: list[Any] = []
    for content in contents:
        found = list(_objects(content))
        objects += found
        if not found:
            values.append(_json(content))
    document = {"objects": sorted(objects, key=lambda one: (one[:4], _canonical(one[4]))), "values": values}
    return hashlib.sha256(_canonical(document)).hexdigest()[:_LENGTH]


def _objects(content: Any) -> Iterator[tuple[str, str, str, str, JsonObject]]:
    """Yield identity and content of an object, or of each object in a list; nothing for what is neither."""
    if _is_object(content):
        document = _json(content)
        meta, identity = document["metadata"], (document["apiVersion"], document["kind"])
        if identity in (("v1", "Secret"), ("v1", "ConfigMap")):
            encoded = with_string_data_encoded(document)
            counted: JsonObject = {name: encoded.get(name) or {} for name in ("binaryData", "data")}
        else:
            counted = {key: value for key, value in document.items() if key not in _NOT_CONTENT}
        yield (*identity, meta.get("namespace", ""), meta["name"], counted)
    elif isinstance(content, list | tuple) and all(map(_is_object, cast("list[Any]", content))):
        for one in cast("list[Any]", content):
            yield from _objects(one)


def _is_object(content: Any) -> bool:
    if isinstance(content, Object):
        return True
    return isinstance(content, Mapping) and {"apiVersion", "kind", "metadata"} <= content.keys()


def _json(value: Any) -> Any:
    """Return a value as JSON; raise TypeError for what has no fixed form in JSON, such as a set."""
    match value:
        case None | str() | bool() | int() | float():
            return value
        case Model():
            return to_wire(value)
        case Mapping():
            return {key: _json(item) for key, item in cast("Mapping[str, Any]", value).items()}
        case list() | tuple():
            return [_json(item) for item in cast("list[Any]", value)]
        case _:
            raise TypeError(f"content_hash: {type(value).__name__} is neither an object nor a JSON value")


def _canonical(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")
