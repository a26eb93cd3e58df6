"""Types of JSON values, and the difference between absent and null."""

from enum import Enum
from typing import Any, Final

import msgspec

from kubewright.devserver.merge.schema import MergeSchema
from kubewright.devserver.objects import JsonObject, is_list, is_object


class Absent(Enum):
    """The value of an absent field; null is a value."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT

# A value is merged as one of these, by its schema.
MAP, SCALAR, LIST, NONE = "map", "scalar", "list", ""


def view(schema: MergeSchema, value: Any) -> str:
    """Return how a value is merged: by its own type if the schema allows it, otherwise by the schema."""
    if isinstance(value, dict):
        if schema.mapping is not None:
            return MAP
    elif isinstance(value, list):
        if schema.sequence is not None:
            return LIST
    elif value is not None and value is not ABSENT and schema.scalar:
        return SCALAR
    if schema.mapping is not None:
        return MAP
    return SCALAR if schema.scalar else (LIST if schema.sequence is not None else NONE)


def same(left: Any, right: Any) -> bool:
    """Return True if two values are equal JSON, where true is not 1; the order of fields does not matter."""
    if left is right:
        return True
    if left != right:
        return False
    if not isinstance(left, dict | list | bool | int):
        return True
    # Mostly the types are equal too, which is seen fastest in the bytes.
    return encoded_same(left, right) or _same_inside(left, right)


def _same_inside(left: Any, right: Any) -> bool:
    """Return True if two JSON values are equal; in Python true equals 1, so equal values are compared again."""
    if is_object(left):
        return is_object(right) and all(_same_inside(item, right[key]) for key, item in left.items())
    if is_list(left):
        return is_list(right) and all(_same_inside(a, b) for a, b in zip(left, right, strict=True))
    return isinstance(left, bool) is isinstance(right, bool)


def encoded_same(left: Any, right: Any) -> bool:
    """Return True if two values are certainly the same; False means unknown. Cheap."""
    return left is right or msgspec.json.encode(left) == msgspec.json.encode(right)


def metadata_of(value: JsonObject) -> JsonObject:
    """Return an object's metadata, empty if it has none."""
    return value.get("metadata") or {}
