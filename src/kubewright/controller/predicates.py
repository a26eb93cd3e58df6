"""Changes of objects, the predicates that decide which of them lead to a reconcile, and the cause of a reconcile.

A predicate is a pure function of a `Change`. It does not affect what the cache holds.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec

from kubewright.api import DeclarationError, Kind, ObjectKey, PartialMeta, RawObject, decode_as, parse_labels

T = TypeVar("T")

ChangeType = Literal["create", "update", "delete"]
CauseType = Literal["initial", "create", "update", "delete", "external", "requested"]

_CAUSES: dict[CauseType, str] = {
    "initial": "existed at the start",
    "create": "was created",
    "update": "changed",
    "delete": "was deleted",
    "external": "was named by an external event",
    "requested": "reached the time of its reconcile-at annotation",
}


class Cause(NamedTuple):
    """What triggered a reconcile: an object and what happened to it; the event of an external source has no kind."""

    kind: str
    key: ObjectKey
    type: CauseType

    def __str__(self) -> str:
        return f"{self.kind} {self.key} {_CAUSES[self.type]}".lstrip()


class Change(msgspec.Struct, Generic[T], frozen=True, dict=True):
    """The states of one object before and after; `old` and `new` are decoded on first use.

    All controllers get the same objects: do not change them.
    """

    kind: type[T] | Kind
    key: ObjectKey
    before: RawObject | None
    after: RawObject | None
    initial: bool = False

    @property
    def type(self) -> ChangeType:
        """Return "create", "update" or "delete"."""
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "update"

    @property
    def metas(self) -> tuple[PartialMeta, ...]:
        """Return the metadata before and after; only one of them for a create or delete."""
        return tuple(state.meta for state in (self.before, self.after) if state is not None)

    @cached_property
    def old(self) -> T | None:
        """Return the object before the change; None for a create."""
        return None if self.before is None else decode_as(self.kind, self.before.raw)

    @cached_property
    def new(self) -> T | None:
        """Return the object after the change; None for a delete."""
        return None if self.after is None else decode_as(self.kind, self.after.raw)

    @property
    def objects(self) -> tuple[T, ...]:
        """Return the objects before and after; only one of them for a create or delete."""
        return tuple(state for state in (self.old, self.new) if state is not None)


Predicate = Callable[[Change[T]], bool]
"""A pure function that returns True if a change leads to a reconcile."""

_TYPES: tuple[ChangeType, ...] = ("create", "update", "delete")


def generation_changed(change: Change[Any]) -> bool:
    """Pass changes of the spec (metadata.generation); drop updates of status or metadata alone."""
    if change.before is None or change.after is None:
        return True
    return change.before.meta.generation != change.after.meta.generation


def labels_changed(change: Change[Any]) -> bool:
    """Pass creates, deletes, and updates that change labels."""
    if change.before is None or change.after is None:
        return True
    return change.before.meta.labels != change.after.meta.labels


def annotations_changed(change: Change[Any]) -> bool:
    """Pass creates, deletes, and updates that change annotations."""
    if change.before is None or change.after is None:
        return True
    return change.before.meta.annotations != change.after.meta.annotations


def with_labels(selector: str) -> Predicate[Any]:
    """Pass changes of objects whose labels match the selector before or after."""
    parsed = parse_labels(selector)

    def matches(change: Change[Any]) -> bool:
        return any(parsed.matches(meta.labels) for meta in change.metas)

    return matches


def on(*types: ChangeType) -> Predicate[Any]:
    """Pass only these types of change: "create", "update", "delete"."""
    unknown = [text for text in types if text not in _TYPES]
    if unknown or not types:
        raise DeclarationError(f"on({', '.join(map(repr, types))}): name one or more of {', '.join(_TYPES)}")

    def is_on(change: Change[Any]) -> bool:
        return change.type in types

    return is_on


def all_of(*predicates: Predicate[T]) -> Predicate[T]:
    """Pass changes that every predicate passes."""
    return lambda change: all(passes(change) for passes in predicates)


def any_of(*predicates: Predicate[T]) -> Predicate[T]:
    """Pass changes that at least one predicate passes."""
    return lambda change: any(passes(change) for passes in predicates)
