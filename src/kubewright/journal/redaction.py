"""What must never leave the process: values of Secrets, tokens, and fields that the author declares sensitive.

A value is replaced by a placeholder with a digest under a key that exists only in this process: equal values have equal
placeholders, so a change is still seen, and nothing can be computed back from them.
"""

import base64
import binascii
import hmac
import secrets
import types
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Any, cast, get_args, get_origin

import msgspec

from kubewright.api import Field, JsonObject, Object, kind_of
from kubewright.api.pydantic_models import is_pydantic, pydantic_schema

ANY = "*"
"""The element of a path that stands for each key of a map and each element of a list."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MIN_SCRUBBED = 6
"""Shorter values are not searched for in texts: they would be found everywhere."""

Path = tuple[str, ...]
_ATTRS = "__attrs_attrs__"
_AGAIN: Path = ("(again)",)
"""The end of a path to a type that contains itself."""
_LAST_APPLIED_PATH: Path = ("metadata", "annotations", LAST_APPLIED)
"""kubectl's copy of the whole manifest; it is replaced in every kind that has sensitive fields."""

_BUILT_IN: Mapping[tuple[str, str], tuple[Path, ...]] = {
    ("", "Secret"): (("data", ANY), ("stringData", ANY)),
    ("authentication.k8s.io", "TokenRequest"): (("status", "token"),),
    ("authentication.k8s.io", "TokenReview"): (("spec", "token"),),
}


class Redactor:
    """Replace sensitive values in objects, and remember them to replace them in texts."""

    def __init__(self, kinds: Iterable[type[Object]] = ()) -> None:
        self._paths: dict[tuple[str, str], tuple[Path, ...]] = dict(_BUILT_IN)
        for cls in kinds:
            kind = kind_of(cls)
            self.declare(kind.group, kind.kind, sensitive_paths(cls))
        self._key = secrets.token_bytes(32)

    def declare(self, group: str, kind: str, paths: Iterable[Path]) -> bool:
        """Add sensitive fields of a kind; return True if one of them was not known before."""
        known = self._paths.get((group, kind), ())
        added = tuple(path for path in dict.fromkeys(paths) if path not in known)
        if added:
            self._paths[group, kind] = (*known, *added)
        return bool(added)

    def document(self, document: JsonObject, found: set[str], *, group: str, kind: str) -> JsonObject:
        """Return the object with placeholders; add the values that they stand for to `found`."""
        paths = self._paths.get((group, kind))
        if not paths:
            return document
        for path in (*paths, _LAST_APPLIED_PATH):
            encoded = kind == "Secret" and path[0] == "data"
            document = self._replaced(document, path, found, encoded=encoded)
        return _without_sensitive_keys(document, paths)

    def value(self, value: Any, paths: Iterable[Path], found: set[str]) -> Any:
        """Return a JSON value with placeholders at the paths; add the values that they stand for to `found`."""
        for path in paths:
            value = self._replaced(value, path, found, encoded=False)
        return value

    def text(self, text: str, values: Iterable[str]) -> str:
        """Return a text with the given values replaced, wherever they stand in it."""
        for value in sorted(values, key=len, reverse=True):
            if len(value) >= MIN_SCRUBBED and value in text:
                text = text.replace(value, self.placeholder(value))
        return text

    def placeholder(self, value: Any) -> str:
        """Return what stands for a value."""
        encoded = value.encode() if isinstance(value, str) else msgspec.json.encode(value, order="sorted")
        return f"(redacted {hmac.new(self._key, encoded, sha256).hexdigest()[:6]})"

    def _replaced(self, value: Any, path: Path, found: set[str], *, encoded: bool) -> Any:
        """Replace the value at a path; `encoded` values are base64, and have the placeholder of what they stand for."""
        if not path:
            if value is None:
                return None
            texts = list(_texts_of(value))
            found.update(texts)
            return self.placeholder(texts[-1] if encoded and texts else value)
        head, rest = path[0], path[1:]
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            if head == ANY:
                return {
                    name: self._replaced(each, rest, found, encoded=encoded) for name, each in fields.items()
                }
            if head in fields:
                return {**fields, head: self._replaced(fields[head], rest, found, encoded=encoded)}
            return fields
        if isinstance(value, list) and head == ANY:
            elements = cast("list[Any]", value)
            return [self._replaced(each, rest, found, encoded=encoded) for each in elements]
        return cast("Any", value)


def _without_sensitive_keys(document: JsonObject, paths: Iterable[Path]) -> JsonObject:
    """Return the object without elements of managedFields whose keys have sensitive values in them.

    The elements of sets and of lists with keys stand in managedFields with their values: `v:"secret"`.
    """
    metadata = document.get("metadata")
    entries = cast("JsonObject", metadata).get("managedFields") if isinstance(metadata, dict) else None
    if not isinstance(entries, list):
        return document
    pruned = list[Any]()
    for entry in cast("list[Any]", entries):
        if isinstance(entry, dict) and "fieldsV1" in entry:
            fields = cast("JsonObject", entry)["fieldsV1"]
            for path in paths:
                fields = _pruned(fields, path)
            entry = {**cast("JsonObject", entry), "fieldsV1": fields}
        pruned.append(entry)
    return {**document, "metadata": {**cast("JsonObject", metadata), "managedFields": pruned}}


def _pruned(fields: Any, path: Path) -> Any:
    if not isinstance(fields, dict):
        return fields
    members = cast("dict[str, Any]", fields)
    if not path:
        return {}
    head, rest = path[0], path[1:]
    if head != ANY:
        name = f"f:{head}"
        return {**members, name: _pruned(members[name], rest)} if name in members else members
    kept = dict[str, Any]()
    for name, value in members.items():
        element = name.startswith(("v:", "i:", "k:"))
        if element and (not rest or f'"{rest[0]}":' in name):
            continue
        kept[name] = _pruned(value, rest)
    return kept


def is_placeholder(value: object) -> bool:
    """Return True if a value is a placeholder of any process."""
    return isinstance(value, str) and value.startswith("(redacted ") and value.endswith(")")


def _texts_of(value: Any) -> Iterable[str]:
    """Yield the texts in a sensitive value, and what a text decodes to if it is base64."""
    if isinstance(value, str):
        yield value
        try:
            yield base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError, ValueError):
            pass
    elif isinstance(value, dict):
        for each in cast("dict[str, Any]", value).values():
            yield from _texts_of(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _texts_of(each)


@lru_cache(maxsize=256)
def sensitive_paths(cls: Any) -> tuple[Path, ...]:
    """Return the paths of the values in a type that are declared with `Field(sensitive=True)`.

    The fields of a class are read whatever class it is: a model, a pydantic model, a dataclass, a TypedDict. The elements of
    a tuple have no paths of their own: if one is sensitive, all of them are.
    """
    found = tuple(dict.fromkeys(_paths_of(cls, ())))
    sensitive = [path for path in found if path[-1:] != _AGAIN]
    # A type within itself has sensitive values at any depth, so its inner objects are replaced as a whole.
    return (*sensitive, *(path[:-1] for path in found if path[-1:] == _AGAIN)) if sensitive else ()


def sensitive_schema_paths(schema: Any, depth: int = 50) -> Iterable[Path]:
    """Yield the paths of the fields with `format: password` in the OpenAPI schema of a kind.

    A CRD that is generated from a class has this format for fields with `Field(sensitive=True)`.
    """
    if not isinstance(schema, dict) or depth == 0:
        return
    node = cast("JsonObject", schema)
    if node.get("format") == "password":
        yield ()
        return
    properties = node.get("properties")
    if isinstance(properties, dict):
        for name, inner in cast("JsonObject", properties).items():
            for path in sensitive_schema_paths(inner, depth - 1):
                yield (name, *path)
    for inner in (node.get("additionalProperties"), node.get("items")):
        for path in sensitive_schema_paths(inner, depth - 1):
            yield (ANY, *path)


def _paths_of(form: Any, outer: Sequence[type[Any]]) -> Iterable[Path]:
    origin, inner = get_origin(form), get_args(form)
    given: Any = origin or form
    if origin is Annotated:
        if any(isinstance(extra, Field) and extra.sensitive for extra in inner[1:]):
            yield ()
        else:
            yield from _paths_of(inner[0], outer)
    elif origin in (typing.Union, types.UnionType, typing.Required, typing.NotRequired):
        for each in inner:
            yield from _paths_of(each, outer)
    elif is_pydantic(form):
        yield from sensitive_schema_paths(pydantic_schema(form, form.__name__))
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        for path in _paths_of(inner[-1], outer):
            yield (ANY, *path)
    elif isinstance(origin, type) and issubclass(origin, Collection):
        for each in inner:
            for path in _paths_of(each, outer):
                yield (ANY, *path)
    elif isinstance(given, type):
        cls = cast("type[Any]", given)
        if cls in outer:
            yield _AGAIN
            return
        for name, hint in _fields_of(cls):
            for path in _paths_of(hint, (*outer, cls)):
                yield (name, *path)


def _fields_of(cls: type[Any]) -> Iterable[tuple[str, Any]]:
    """Yield the name in JSON and the type of each field of a class; the fields of a NamedTuple are elements of a list."""
    is_struct, is_tuple = issubclass(cls, msgspec.Struct), hasattr(cls, "_fields")
    if not (is_struct or is_tuple or is_dataclass(cls) or typing.is_typeddict(cls) or hasattr(cls, _ATTRS)):
        return
    hints = typing.get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)
    if is_struct:
        for info in msgspec.structs.fields(cls):
            yield info.encode_name, hints.get(info.name, info.type)
    else:
        for name, hint in hints.items():
            yield (ANY if is_tuple else name), hint
