"""Conditions of built-in kinds, whose types differ but look alike."""

from collections.abc import Iterable
from typing import Protocol, TypeVar


class AnyCondition(Protocol):
    """What the conditions of all kinds have."""

    type: str
    status: str


C = TypeVar("C", bound=AnyCondition)


def condition_of(conditions: Iterable[C], type: str) -> C | None:  # noqa: A002 (the field's name)
    """Return the condition of a type, if any."""
    return next((condition for condition in conditions if condition.type == type), None)


def is_true(conditions: Iterable[AnyCondition], type: str) -> bool:  # noqa: A002 (the field's name)
    """Tell whether a condition is there and true."""
    found = condition_of(conditions, type)
    return found is not None and found.status == "True"
