"""Manual edits of a child: other values for the fields that the operator set, according to `metadata.managedFields`.

Fields of other managers are not edited: an operator need not restore what it did not set.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import msgspec

from kubewright.api import JsonObject
from kubewright.testing.proving.values import SpecPath, shown_path, value_at

_NOT_THE_OPERATOR = frozenset({"kubectl", "kube-controller-manager", "kube-scheduler", "kubelet"})
_NOT_EDITED = frozenset({"ownerReferences", "finalizers"})
_MAPS = frozenset({"annotations", "binaryData", "data", "labels", "stringData"})
"""Maps whose entries are also removed."""


class ChildEdit(NamedTuple):
    """One edit, as a JSON patch."""

    text: str
    patch: list[JsonObject]


def edits_of(child: JsonObject) -> Iterator[ChildEdit]:
    """Yield the possible edits of a child, in the order of its fields."""
    entries: list[JsonObject] = child["metadata"].get("managedFields") or []
    for entry in entries:
        if entry.get("manager") in _NOT_THE_OPERATOR or entry.get("subresource"):
            continue
        for path in _paths(entry.get("fieldsV1") or {}, child, ()):
            yield from _edits(path, value_at(child, path))


def _edits(path: SpecPath, value: Any) -> Iterator[ChildEdit]:
    pointer = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)
    if isinstance(value, bool):
        other: Any = not value
    elif isinstance(value, int):
        other = value + 1
    elif isinstance(value, str):
        other = f"{value}-edited"
    else:
        return
    text = f"{shown_path(path)}: {_json(value)} -> {_json(other)}"
    yield ChildEdit(text, [{"op": "replace", "path": pointer, "value": other}])
    if len(path) > 1 and path[-2] in _MAPS:
        yield ChildEdit(f"{shown_path(path)}: {_json(value)} -> absent", [{"op": "remove", "path": pointer}])


def _paths(fields: JsonObject, value: Any, path: SpecPath) -> Iterator[SpecPath]:
    """Yield the paths of the fields in a FieldsV1 set."""
    for name, inner in fields.items():
        sign, _, rest = name.partition(":")
        if sign == "f" and isinstance(value, dict) and rest in value and rest not in _NOT_EDITED:
            place: SpecPath = (*path, rest)
            below: Any = cast(JsonObject, value)[rest]
        elif sign == "k" and isinstance(value, list):
            keys = cast("JsonObject", msgspec.json.decode(rest))
            found = _position(cast("list[JsonObject]", value), keys)
            if found is None:
                continue
            place, below = (*path, found), cast("list[JsonObject]", value)[found]
        else:
            continue
        if any(key != "." for key in inner):
            # With another value for its key, the element would be a new one, which the operator does not own.
            keyed: JsonObject = msgspec.json.decode(rest) if sign == "k" else {}
            left = {key: each for key, each in inner.items() if key.partition(":")[2] not in keyed}
            yield from _paths(left, below, place)
        else:
            yield place


def _position(elements: list[JsonObject], keys: JsonObject) -> int | None:
    return next(
        (
            number
            for number, each in enumerate(elements)
            if all(each.get(name) == value for name, value in keys.items())
        ),
        None,
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
