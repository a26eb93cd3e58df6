"""A change of one object, as predicates and map functions see it, and the cause of a reconcile."""

from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec

from kubewright.api import Kind, ObjectKey, PartialMeta, RawObject, decode

T = TypeVar("T")

ChangeType = Literal["create", "update", "delete"]
CauseType = Literal["initial", "create", "update", "delete", "outside"]

_CAUSES: dict[CauseType, str] = {
    "initial": "was there at the start",
    "create": "was created",
    "update": "changed",
    "delete": "was deleted",
    "outside": "was named by an event from outside",
}


class Cause(NamedTuple):
    """What led to a reconcile: an object and what happened to it; an event of an external source has no kind."""

    kind: str
    key: ObjectKey
    type: CauseType

    def __str__(self) -> str:
        return f"{self.kind} {self.key} {_CAUSES[self.type]}".lstrip()


def decode_as(kind: type[T] | Kind, raw: bytes) -> T:
    """Decode to the class, or to a JSON object if only a `Kind` is given."""
    # Any, not casts: those are calls, and each reconcile decodes half a dozen times.
    form: Any = kind
    decoded: Any = msgspec.json.decode(raw) if isinstance(kind, Kind) else decode(form, raw)
    return decoded


class Change(msgspec.Struct, Generic[T], frozen=True, dict=True):
    """The states of one object before and after; typed views are decoded only when looked at.

    All controllers that look are shown the same view: it is not theirs to change.
    """

    kind: type[T] | Kind
    key: ObjectKey
    before: RawObject | None
    after: RawObject | None
    initial: bool = False

    @property
    def type(self) -> ChangeType:
        """Tell whether the object appeared, changed or went."""
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "update"

    @property
    def metas(self) -> tuple[PartialMeta, ...]:
        """Return the metadata before and after, as far as there are any."""
        return tuple(state.meta for state in (self.before, self.after) if state is not None)

    @cached_property
    def old(self) -> T | None:
        """Return the object as it was; None when it appeared."""
        return None if self.before is None else decode_as(self.kind, self.before.raw)

    @cached_property
    def new(self) -> T | None:
        """Return the object as it is; None when it went."""
        return None if self.after is None else decode_as(self.kind, self.after.raw)

    @property
    def objects(self) -> tuple[T, ...]:
        """Return the typed states before and after, as far as there are any."""
        return tuple(state for state in (self.old, self.new) if state is not None)
