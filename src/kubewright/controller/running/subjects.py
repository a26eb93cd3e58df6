"""Objects as the writing verbs see them: the kind, the wire value, and the form they are given and returned in."""

from typing import Any, cast

import msgspec

from kubewright.api import (
    DecodeError,
    JsonObject,
    Kind,
    Model,
    Object,
    ObjectKey,
    RawObject,
    decode,
    parse,
    to_wire,
)
from kubewright.controller.change import decode_as


class Subject:
    """An object given to a verb, and its kind; its wire value is made when somebody needs it."""

    __slots__ = ("_wire", "form", "given", "kind")

    def __init__(self, kind: Kind, given: Object | JsonObject) -> None:
        self.kind: Kind = kind
        self.given: Object | JsonObject = given
        self.form: Any = type(given) if isinstance(given, Object) else kind
        """What its states are decoded to: the class, or the kind for wire values."""
        self._wire: JsonObject | None = None

    @property
    def wire(self) -> JsonObject:
        """Return the object as it is on the wire."""
        if self._wire is None:
            self._wire = to_wire(self.given) if isinstance(self.given, Object) else self.given
        return self._wire

    @property
    def key(self) -> ObjectKey:
        """Return namespace and name."""
        if isinstance(self.given, Object):
            return self.given.key
        meta = self.given.get("metadata", {})
        return ObjectKey(meta.get("namespace", ""), meta.get("name", ""))

    @property
    def uid(self) -> str:
        """Return the uid that the object was read with, if any."""
        if isinstance(self.given, Object):
            return self.given.metadata.uid
        return self.given.get("metadata", {}).get("uid", "")

    @property
    def generation(self) -> int:
        """Return the generation that the object was read with; 0 if it was not read or has none."""
        if isinstance(self.given, Object):
            return self.given.metadata.generation
        return self.given.get("metadata", {}).get("generation", 0)


def status_wire(target: Subject, status: Model | JsonObject | None) -> JsonObject:
    """Return the status that is meant: the one given, else the target's own."""
    if isinstance(status, Model):
        return to_wire(status)
    return dict(target.wire.get("status") or {} if status is None else status)


class _StatusAlone(msgspec.Struct):
    status: Any = None


def status_of(state: RawObject) -> JsonObject:
    """Return the status as it is on the wire; the rest of the object is passed over."""
    return decode(_StatusAlone, state.raw).status or {}


def observes_generation(target: Subject, status: Model | JsonObject | None) -> bool:
    """Tell whether the conditions of the status have an observedGeneration at all."""
    meant: Any = getattr(target.given, "status", None) if status is None else status
    if isinstance(meant, Model):
        conditions: list[Any] = getattr(meant, "conditions", None) or []
        return any(hasattr(condition, "observed_generation") for condition in conditions)
    conditions = status_wire(target, status).get("conditions") or []
    return any("observedGeneration" in condition for condition in conditions)


def typed_wire(form: Any, state: RawObject) -> JsonObject:
    """Return the object in the form that desired objects have, or as it is where it does not fit its class."""
    if not isinstance(form, Kind):
        try:
            typed = decode_as(cast("type[Object]", form), state.raw)
        except DecodeError:
            pass
        else:
            # Nobody desires these, and they are a good part of an object.
            typed.metadata.managed_fields = []
            typed.metadata.creation_timestamp = None
            return to_wire(typed)
    return cast("JsonObject", parse(state.raw))


def typed_status(form: Any, state: RawObject) -> JsonObject:
    """Return the object's status in the form that desired ones have."""
    if not isinstance(form, Kind):
        try:
            typed = cast("Any", decode_as(cast("type[Object]", form), state.raw))
        except DecodeError:
            pass
        else:
            return to_wire(typed.status)
    return status_of(state)
