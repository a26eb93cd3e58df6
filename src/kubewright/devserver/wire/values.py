"""Tell the sorts of JSON values apart, for the type checker too."""

from typing import Any, TypeGuard

# Python's call stack has to carry every value from here to storage, so the bound lies far below Go's 10,000.
MAX_DEPTH = 200
TOO_DEEP = "exceeded max depth"


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Tell whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Tell whether a JSON value is a list."""
    return isinstance(value, list)


def depth_of(value: object) -> int:
    """Count how deep the collections of a JSON value are nested."""
    depth, level = 0, _collections([value])
    while level:
        depth += 1
        level = [inner for item in level for inner in _collections(_members(item))]
    return depth


def _members(value: object) -> list[Any]:
    if is_object(value):
        return list(value.values())
    return value if is_list(value) else []


def _collections(values: list[Any]) -> list[object]:
    return [value for value in values if isinstance(value, dict | list)]
