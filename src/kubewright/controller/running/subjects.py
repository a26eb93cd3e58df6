"""An object as it is given to a writing verb: its kind, its JSON object, and the form to return it in."""

from typing import Any

import msgspec

from kubewright.api import (
    JsonObject,
    Kind,
    Model,
    Object,
    ObjectKey,
    RawObject,
    decode,
    to_wire,
)


class Subject:
    """An object given to a verb, and its kind; its JSON object is made when it is first needed."""

    __slots__ = ("_wire", "form", "given", "kind")

    def __init__(self, kind: Kind, given: Object | JsonObject) -> None:
        self.kind: Kind = kind
        self.given: Object | JsonObject = given
        self.form: Any = type(given) if isinstance(given, Object) else kind
        """What its states are decoded to: the class, or the kind for wire values."""
        self._wire: JsonObject | None = None

    @property
    def wire(self) -> JsonObject:
        """Return the object as a JSON object."""
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
    """Return the status as a JSON object; the rest of the object is not decoded."""
    return decode(_StatusAlone, state.raw).status or {}


def observes_generation(target: Subject, status: Model | JsonObject | None) -> bool:
    """Return True if the conditions of the status have an observedGeneration at all."""
    meant: Any = getattr(target.given, "status", None) if status is None else status
    if isinstance(meant, Model):
        conditions: list[Any] = getattr(meant, "conditions", None) or []
        return any(hasattr(condition, "observed_generation") for condition in conditions)
    conditions = status_wire(target, status).get("conditions") or []
    return any("observedGeneration" in condition for condition in conditions)
