"""Lookups that an author declares: the cache fills them, declaring them loads nothing that runs."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Index(msgspec.Struct, Generic[T], frozen=True, eq=False, weakref=True):
    """Declare a lookup: the values under which each object of a kind is found.

    It is maintained from its first use for as long as it is referenced: declare it once, at module level.
    """

    kind: type[T]
    values: Callable[[T], Iterable[str]]
