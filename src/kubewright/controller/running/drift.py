"""Backoff for writes that another client reverts: fields that are changed, children that are deleted.

Drift is a field that this controller applied and another manager changed since: the next apply corrects it. Each
correction is counted and logged at debug level, with the field, its value and its manager.

A field that is corrected again and again has two managers that overwrite each other. The first `FREE_CORRECTIONS` are
made at once; after that each one waits for a backoff, during which `ctx.apply` raises `ContestedField` instead of
sending. The conflict is reported once, in an Event, a log line and a metric. The desired state is never dropped: before
the error is raised, the key is added to the work queue for the end of the backoff, so it does not matter how the
reconciler handles the error. A field that needed no correction for `QUIET_SECONDS` is no longer contested.

A child may be deleted again and again because its cached owner is out of date: the watch of the owner is cut while that
of the child is not. If the owner was deleted, the garbage collector deletes each child that is created for it, the
deletion enqueues the owner, and the reconcile of the stale owner would create the child again, forever. So an owner
is read from the server before a child is created a second time, and a child that is deleted soon after each creation is
created with backoff (`Creations`).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kubewright.api import Kind, ObjectKey, PartialMeta
from kubewright.backoff import Backoff
from kubewright.controller.applying import Mismatch
from kubewright.controller.errors import ContestedField
from kubewright.controller.running.dependencies import RuntimeDependencies
from kubewright.controller.running.telemetry import FieldLog, Instruments

FREE_CORRECTIONS = 3
CORRECTION_BACKOFF = Backoff(base=1.0, maximum=300.0, jitter=0.1)
QUIET_SECONDS = 900.0
QUICK_SECONDS = 60.0
"""If a child existed longer than this, its deletion is unrelated to its creation, and its next creation is not delayed."""
RECREATION_BACKOFF = Backoff(base=1.0, maximum=60.0, jitter=0.1)
CAPACITY = 10_000
UNKNOWN = "an unknown manager"


class _Corrections(msgspec.Struct):
    """How often one field was corrected, and when the next correction may be made."""

    count: int = 0
    last: float = 0.0
    not_before: float = 0.0


class DriftControl:
    """Count what one controller corrects, and apply a backoff to fields that keep being changed."""

    def __init__(
        self,
        manager: str,
        dependencies: RuntimeDependencies,
        instruments: Instruments,
        log: FieldLog,
        clock: Callable[[], float],
        *,
        events: bool,
    ) -> None:
        self._manager = manager
        self._dependencies = dependencies
        self._instruments = instruments
        self._log = log
        self._clock = clock
        self._events = events
        self._corrections: OrderedDict[tuple[str, str], _Corrections] = OrderedDict()

    def remaining(self, meta: PartialMeta, field: str) -> float:
        """Return how many seconds the next correction of the field has to wait."""
        known = self._corrections.get((meta.uid, field))
        return 0.0 if known is None else max(0.0, known.not_before - self._clock())

    def contested(self, kind: Kind, meta: PartialMeta, field: str, after: float) -> ContestedField:
        """Return the error for a correction that has to wait."""
        return ContestedField(
            f"{kind.kind} {meta.key}: another field manager keeps changing {field}: "
            f"applied again in {after:.0f} s, see the Event FieldConflict on the object",
            after,
        )

    def correct(self, kind: Kind, meta: PartialMeta, drift: Mismatch, managers: Sequence[str]) -> None:
        """Count a correction that is about to be sent, and report it."""
        others = ", ".join(managers) or UNKNOWN
        known = self._next(meta, drift.text)
        self._instruments.drift(kind.kind).inc()
        fields: dict[str, Any] = {"kind": kind.kind, "object": str(meta.key), "field": drift.text}
        # The content of a Secret must not be logged.
        value = "(not shown)" if (kind.group, kind.kind) == ("", "Secret") else drift.live
        self._log.debug("Correcting drift", extra={**fields, "value": value, "manager": others})
        if known.count == FREE_CORRECTIONS:
            self._report_conflict(kind, meta, drift.text, others, fields)
        elif known.count < FREE_CORRECTIONS and self._events:
            note = f"{drift.text} was changed by {others} and is applied again by {self._manager}"
            self._dependencies.publish_event(kind, meta, "Normal", "DriftCorrected", note)

    def _next(self, meta: PartialMeta, field: str) -> _Corrections:
        key, now = (meta.uid, field), self._clock()
        known = self._corrections.pop(key, None)
        if known is None or now - known.last > QUIET_SECONDS:
            known = _Corrections()
        self._corrections[key] = known
        if len(self._corrections) > CAPACITY:
            self._corrections.popitem(last=False)
        known.count += 1
        known.last = now
        if known.count >= FREE_CORRECTIONS:
            known.not_before = now + CORRECTION_BACKOFF.delay(known.count - FREE_CORRECTIONS)
        return known

    def _report_conflict(
        self, kind: Kind, meta: PartialMeta, field: str, others: str, fields: dict[str, Any]
    ) -> None:
        self._instruments.contested_fields.inc()
        note = (
            f"Field managers {self._manager} and {others} change {field} in turns: "
            f"remove the field from one of them. {self._manager} applies it with backoff until then"
        )
        self._dependencies.publish_event(kind, meta, "Warning", "FieldConflict", note)
        self._log.warning(
            "Field conflict: %s", note, extra={**fields, "fieldManager": self._manager, "manager": others}
        )


class _Created(msgspec.Struct):
    owner_uid: str
    at: float
    quick_deletions: int
    """How often in a row it was deleted within `QUICK_SECONDS`."""
    not_before: float | None = None
    """When it may be created again; None until its deletion is seen."""


class Creations:
    """Remember which children one controller created, for which owner, and how often they were deleted soon after."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._created: OrderedDict[tuple[str, str, ObjectKey], _Created] = OrderedDict()
        self._last: OrderedDict[tuple[str, str, str], tuple[ObjectKey, str]] = OrderedDict()

    def is_repeated(self, kind: Kind, key: ObjectKey, owner_uid: str) -> bool:
        """Return True if a child of this key was created for this owner before."""
        known = self._created.get((kind.group, kind.kind, key))
        return known is not None and known.owner_uid == owner_uid

    def delay(self, kind: Kind, key: ObjectKey) -> float:
        """Return the seconds to wait before the deleted child may be created again."""
        known = self._created.get((kind.group, kind.kind, key))
        if known is None:
            return 0.0
        now = _now()
        if known.not_before is None:
            known.quick_deletions = known.quick_deletions + 1 if now - known.at < QUICK_SECONDS else 0
            # No delay the first time: children are also deleted manually.
            known.not_before = (
                known.at + RECREATION_BACKOFF.delay(known.quick_deletions - 2)
                if known.quick_deletions > 1
                else now
            )
        return max(0.0, known.not_before - now)

    def note(self, kind: Kind, key: ObjectKey, owner_uid: str) -> None:
        """Record that the child was created now."""
        place = (kind.group, kind.kind, key)
        known = self._created.pop(place, None)
        quick = known.quick_deletions if known is not None and known.owner_uid == owner_uid else 0
        self._created[place] = _Created(owner_uid, _now(), quick)
        if len(self._created) > self._capacity:
            self._created.popitem(last=False)

    def last(self, kind: Kind, owner_uid: str) -> tuple[ObjectKey, str] | None:
        """Return the key and uid of the child of this kind with a generated name that was last created for the owner."""
        return self._last.get((kind.group, kind.kind, owner_uid))

    def note_last(self, kind: Kind, owner_uid: str, created: PartialMeta) -> None:
        """Record that a child with a generated name was created now."""
        place = (kind.group, kind.kind, owner_uid)
        self._last.pop(place, None)
        self._last[place] = (created.key, created.uid)
        if len(self._last) > self._capacity:
            self._last.popitem(last=False)

    def forget(self, kind: Kind, key: ObjectKey) -> None:
        """Drop the record of the child: the controller itself deletes it."""
        self._created.pop((kind.group, kind.kind, key), None)


def _now() -> float:
    return asyncio.get_running_loop().time()
