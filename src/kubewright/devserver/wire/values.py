"""Type guards for JSON values."""

from typing import Any, TypeGuard

TOO_DEEP = "exceeded max depth"


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return True if a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return True if a JSON value is a list."""
    return isinstance(value, list)
