"""Drift, and the brake for field managers that fight over a field.

Drift is a field that this controller applied and another manager changed since: the next apply corrects it. Each
correction is counted and logged at debug level, with the field, its value and its manager.

A field that is corrected again and again belongs to two managers that fight. The first `FREE_CORRECTIONS` are made at
once; after that each one waits for a backoff, in which `ctx.apply` raises `ContestedField` in place of sending. The
fight is reported once, in an Event, a log line and a metric. The desired state is never dropped: the key is in the
work queue for the end of the backoff before the error is raised, whatever the reconciler does with that. A field that
needed no correction for `QUIET_SECONDS` is no longer contested.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kubewright.api import Kind, PartialMeta
from kubewright.backoff import Backoff
from kubewright.controller.applying import Mismatch
from kubewright.controller.errors import ContestedField
from kubewright.controller.running.instruments import Instruments
from kubewright.controller.running.reporting import FieldLog
from kubewright.controller.running.surroundings import Surroundings

FREE_CORRECTIONS = 3
BRAKE = Backoff(base=1.0, maximum=300.0, jitter=0.1)
QUIET_SECONDS = 900.0
CAPACITY = 10_000
UNKNOWN = "an unknown manager"


class _Corrections(msgspec.Struct):
    """How often one field was corrected, and when the next correction may be made."""

    count: int = 0
    last: float = 0.0
    not_before: float = 0.0


class DriftControl:
    """Count what one controller corrects, and slow down where that is in vain."""

    def __init__(
        self,
        manager: str,
        surroundings: Surroundings,
        instruments: Instruments,
        log: FieldLog,
        clock: Callable[[], float],
        *,
        events: bool,
    ) -> None:
        self._manager = manager
        self._surroundings = surroundings
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
        # What a Secret holds is not written anywhere else.
        value = "(not shown)" if (kind.group, kind.kind) == ("", "Secret") else drift.live
        self._log.debug("Correcting drift", extra={**fields, "value": value, "manager": others})
        if known.count == FREE_CORRECTIONS:
            self._report_conflict(kind, meta, drift.text, others, fields)
        elif known.count < FREE_CORRECTIONS and self._events:
            note = f"{drift.text} was changed by {others} and is applied again by {self._manager}"
            self._surroundings.tell(kind, meta, "Normal", "DriftCorrected", note)

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
            known.not_before = now + BRAKE.delay(known.count - FREE_CORRECTIONS)
        return known

    def _report_conflict(
        self, kind: Kind, meta: PartialMeta, field: str, others: str, fields: dict[str, Any]
    ) -> None:
        self._instruments.contested_fields.inc()
        note = (
            f"Field managers {self._manager} and {others} change {field} in turns: "
            f"remove the field from one of them. {self._manager} applies it with backoff until then"
        )
        self._surroundings.tell(kind, meta, "Warning", "FieldConflict", note)
        self._log.warning(
            "Field conflict: %s", note, extra={**fields, "fieldManager": self._manager, "manager": others}
        )
