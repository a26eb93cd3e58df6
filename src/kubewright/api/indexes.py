"""Lookups that an author declares: the cache fills them, declaring them loads nothing that runs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class Index(Generic[T]):
    """Declare a lookup: the values under which each object of a kind is found."""

    kind: type[T]
    values: Callable[[T], Iterable[str]]
