"""Objects as the writing verbs see them: the kind, the wire value, and the form they are given and returned in."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from kubewright.api import DecodeError, Kind, Model, Object, ObjectKey, RawObject, parse, to_wire
from kubewright.controller.change import decode_as

Wire = dict[str, Any]


class Subject(NamedTuple):
    """An object given to a verb: its kind, the form it comes and goes in, its wire value."""

    kind: Kind
    form: Any
    wire: Wire

    @property
    def key(self) -> ObjectKey:
        """Return namespace and name."""
        meta = self.wire.get("metadata", {})
        return ObjectKey(meta.get("namespace", ""), meta.get("name", ""))

    @property
    def uid(self) -> str:
        """Return the uid that the object was read with, if any."""
        return self.wire.get("metadata", {}).get("uid", "")


def status_wire(target: Subject, status: Model | Wire | None) -> Wire:
    """Return the status that is meant: the one given, else the target's own."""
    if isinstance(status, Model):
        return to_wire(status)
    return dict(target.wire.get("status") or {} if status is None else status)


def typed_wire(form: Any, state: RawObject) -> Mapping[str, Any]:
    """Return the object in the form that desired objects have, or as it is where it does not fit its class."""
    if isinstance(form, Kind):
        return cast("Wire", parse(state.raw))
    try:
        return to_wire(decode_as(cast("type[Object]", form), state.raw))
    except DecodeError:
        return cast("Wire", parse(state.raw))


def status_of(form: Any, state: RawObject) -> Wire:
    """Return the object's status in the form that desired ones have."""
    return typed_wire(form, state).get("status") or {}
