"""Lookups that an author declares: the cache fills them, declaring them loads nothing that runs."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Index(msgspec.Struct, Generic[T], frozen=True, eq=False, weakref=True):
    """Declare a lookup: the values under which each object of a kind is found.

    It is kept up to date from its first use on for as long as somebody holds it: declare it once, beside its users.
    """

    kind: type[T]
    values: Callable[[T], Iterable[str]]
