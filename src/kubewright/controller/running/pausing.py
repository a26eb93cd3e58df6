"""Pause and reconcile on request: how one controller handles the annotations of `api/control_annotations.py`.

The work queue and the predicates do not handle pauses: each change of an object, of its children and of external systems
queues the key as usual, and the worker that takes the key drops it while the object is paused. So no state has to be kept
during a pause: resuming an object changes it, and that queues its key again. `observe` returns True for this change, so
that predicates cannot filter it out.

Invariants:

- Whether an object is paused is decided by the annotations of the cached object, each time that a key is taken. A restart
  or a new leader changes nothing.
- `observe` is called with each change of an object before its key is queued. `_concerned` has the keys of all objects with
  such annotations, or whose status still shows a pause. For other objects a reconcile costs one lookup in a set.
- An object that is being deleted is not paused.
- The pause is shown once for each object and process: as a condition if its kind has conditions, else as an Event. A
  condition that another client removes is not written again, so that two writers do not overwrite each other forever.
- The first reconcile after the pause removes the condition, even if another process wrote it.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any, cast, get_origin

import msgspec

from kubewright.api import (
    NO_CONTROL_ANNOTATIONS,
    PAUSED,
    Conflict,
    ControlAnnotations,
    Forbidden,
    Invalid,
    JsonObject,
    Kind,
    NotFound,
    ObjectKey,
    PartialMeta,
    RawObject,
    control_annotations,
    field_types,
    kind_of,
    parse_reconcile_at,
    plain_type,
    utc_now,
)
from kubewright.api.pydantic_models import is_pydantic
from kubewright.cache import StoreChange
from kubewright.client import requests
from kubewright.controller.declaration import Controller
from kubewright.controller.running.dependencies import RuntimeDependencies
from kubewright.controller.running.reading import CacheReader
from kubewright.controller.running.telemetry import FieldLog, Instruments
from kubewright.controller.writes import live_status

FIELD_MANAGER = "kubewright-pause"
"""The field manager of the condition; the same for all operators, because one may remove what another has written."""
CONDITION = "Paused"
REASON = "PausedByAnnotation"
_MESSAGE = f"Not reconciled while the annotation {PAUSED} is true"
_REASON_BYTES = REASON.encode()
_RACES = 5
"""How often a write of the condition is repeated on a newer version of the object after a conflict."""


class Paused(msgspec.Struct, frozen=True):
    """The result of a reconcile that was not started because its object is paused."""


PAUSED_RESULT = Paused()


class PauseControl:
    """The pauses and requested reconciles of one controller's objects."""

    def __init__(
        self,
        controller: Controller[Any],
        dependencies: RuntimeDependencies,
        reader: CacheReader,
        instruments: Instruments,
        request: Callable[[ObjectKey], None],
    ) -> None:
        self._kind = kind_of(controller.kind)
        self._dependencies = dependencies
        self._reader = reader
        self._request = request
        # The status of a built-in kind belongs to Kubernetes.
        self._writes_conditions = self._kind.status and not self._kind.builtin
        self._declares_conditions = _declares_conditions(controller.kind)
        self._concerned: set[ObjectKey] = set()
        self._paused: set[ObjectKey] = set()
        self._shown: dict[ObjectKey, str] = {}
        """The uids of paused objects for which this process has set the condition or published the Event."""
        self._reported: dict[ObjectKey, ControlAnnotations] = {}
        """Invalid annotations that were reported."""
        self._timers: dict[ObjectKey, asyncio.TimerHandle] = {}
        self._remove_gauge = instruments.paused.add_function(lambda: len(self._paused))

    def observe(self, change: StoreChange) -> bool:
        """Process a change of an object; return True if it must be reconciled regardless of predicates."""
        key, old, new = change.key, change.old, change.new
        if new is None:
            self._forget(key)
            return False
        after, known = control_annotations(new.meta), key in self._concerned
        if after is NO_CONTROL_ANNOTATIONS and not known:
            # Only an object that is new to this process can have a condition that an earlier process left.
            if old is None and self._is_left(new):
                self._concerned.add(key)
                return True
            return False
        self._concerned.add(key)
        before = NO_CONTROL_ANNOTATIONS if old is None else control_annotations(old.meta)
        if after.is_paused and new.meta.deletion_timestamp is None:
            self._paused.add(key)
        else:
            self._paused.discard(key)
        requested = after.reconcile_at != before.reconcile_at and self._schedule(key, after.reconcile_at)
        if after is NO_CONTROL_ANNOTATIONS and not self._is_shown(new):
            self._forget(key)
        return requested or after.paused != before.paused

    def concerns(self, key: ObjectKey) -> bool:
        """Return True if `handle` must be called before the object is reconciled."""
        return key in self._concerned

    async def handle(self, state: RawObject, log: FieldLog) -> RawObject | Paused | None:
        """Return PAUSED_RESULT if the object is paused, else the state to reconcile, or None if it is deleted.

        Add the condition to a paused object, or remove it from a resumed one.
        """
        if self.is_paused(state):
            await self._show(state, log)
            return PAUSED_RESULT
        newest = state
        if self._is_shown(state):
            newest = await self._hide(state, log)
            if newest is None or newest.meta.deletion_timestamp is not None:
                return None  # the cache has not seen it yet; its deletion is a change that leads here again
            if self.is_paused(newest):
                return PAUSED_RESULT  # again, which the cache has not seen yet
        self._report_invalid(newest.meta, control_annotations(newest.meta), log)
        return newest

    def is_paused(self, state: RawObject) -> bool:
        """Return True if the object is paused in this state."""
        return control_annotations(state.meta).is_paused

    def close(self) -> None:
        """Cancel the timers of reconciles that are requested for later, and leave the metrics."""
        self._remove_gauge()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    async def _show(self, state: RawObject, log: FieldLog) -> None:
        """Set the condition, or publish an Event, that the object is paused, unless this process has done so."""
        key, uid = state.meta.key, state.meta.uid
        if self._shown.get(key) == uid:
            return
        if not (self._has_conditions(state) and await self._add_condition(state.meta, log)):
            self._dependencies.publish_event(self._kind, state.meta, "Normal", "Paused", _MESSAGE)
        log.info("Paused")
        self._shown[key] = uid

    async def _hide(self, state: RawObject, log: FieldLog) -> RawObject | None:
        """Remove the condition of an object that was resumed; return its newest state, or None if it is gone."""
        newest: RawObject | None = state
        if self._has_conditions(state):
            newest = await self._remove_condition(state.meta, log)
        else:
            note = f"Reconciled again: the annotation {PAUSED} is not true any more"
            self._dependencies.publish_event(self._kind, state.meta, "Normal", "Resumed", note)
        log.info("Resumed")
        self._shown.pop(state.meta.key, None)
        return newest

    def _forget(self, key: ObjectKey) -> None:
        if key in self._concerned:
            self._concerned.discard(key)
            self._paused.discard(key)
            self._shown.pop(key, None)
            self._reported.pop(key, None)
            self._schedule(key, None)

    def _is_shown(self, state: RawObject) -> bool:
        return self._shown.get(state.meta.key) == state.meta.uid or self._is_left(state)

    def _is_left(self, state: RawObject) -> bool:
        """Return True if the status shows a pause, which an earlier process may have left."""
        # A cheap search first: few objects contain the text, and only their status is decoded.
        # Not `in`: bytes first try their operand as a number, and the error that this makes costs more than the search.
        return self._writes_conditions and state.raw.find(_REASON_BYTES) >= 0 and _position(state) is not None

    def _has_conditions(self, state: RawObject) -> bool:
        """Return True if the status of the object has conditions that we may write.

        For a kind without a class, the object itself is searched for conditions.
        """
        if not self._writes_conditions:
            return False
        if self._declares_conditions is not None:
            return self._declares_conditions
        return isinstance(live_status(state).get("conditions"), list)

    async def _add_condition(self, meta: PartialMeta, log: FieldLog) -> bool:
        """Add the condition; return False if the server refuses or drops it, or another client's Paused condition exists."""

        def operation(live: RawObject) -> JsonObject | None:
            if not control_annotations(live.meta).is_paused or _has_condition(live):
                return None
            return _addition(live_status(live), utc_now())

        newest = await self._change_status(meta, operation, log)
        return newest is not None and _position(newest) is not None

    async def _remove_condition(self, meta: PartialMeta, log: FieldLog) -> RawObject | None:
        def operation(live: RawObject) -> JsonObject | None:
            position = _position(live)
            if position is None or control_annotations(live.meta).is_paused:
                return None
            return {"op": "remove", "path": f"/status/conditions/{position}"}

        return await self._change_status(meta, operation, log)

    async def _change_status(
        self, meta: PartialMeta, operation: Callable[[RawObject], JsonObject | None], log: FieldLog
    ) -> RawObject | None:
        """Patch the status with the operation for the server's state; return the newest state, or None if it is deleted.

        The cache may have only a part of the status, so the server's state is read first.
        """
        kind, key = self._kind, meta.key
        for attempt in range(1, _RACES + 1):
            live = await self._reader.read(kind, key)
            if live is None or live.meta.uid != meta.uid:
                return None
            needed = operation(live)
            if needed is None:
                return live
            version = live.meta.resource_version
            at_version = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
            request = requests.patch(
                kind,
                key.name,
                key.namespace,
                [at_version, needed],
                type="json",
                subresource="status",
                field_manager=FIELD_MANAGER,
            )
            try:
                response = await self._dependencies.client.send(request)
            except Conflict:
                if attempt == _RACES:
                    raise
            except (Forbidden, Invalid, NotFound) as error:
                # A retry cannot help: the permission, the field in the schema or the status subresource is missing.
                log.warning("The condition %s cannot be changed: %s", CONDITION, error)
                return live
            else:
                self._dependencies.record_write(kind, response)
                return response
        return None

    def _schedule(self, key: ObjectKey, text: str | None) -> bool:
        """Set a timer if the requested time is in the future; return True if the object must be reconciled now."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if text is None:
            return False
        try:
            seconds = (parse_reconcile_at(text) - utc_now()).total_seconds()
        except ValueError:
            return True  # the reconcile reports it
        if seconds <= 0:
            return True
        self._timers[key] = asyncio.get_running_loop().call_later(seconds, self._time_reached, key)
        return False

    def _time_reached(self, key: ObjectKey) -> None:
        del self._timers[key]
        self._request(key)

    def _report_invalid(self, meta: PartialMeta, found: ControlAnnotations, log: FieldLog) -> None:
        if self._reported.get(meta.key) == found:
            return
        problems: list[str] = []
        if found.invalid_pause:
            problems.append(
                f'{PAUSED}: {found.paused!r} is neither "true" nor "false": the object is not paused'
            )
        if found.reconcile_at is not None:
            try:
                parse_reconcile_at(found.reconcile_at)
            except ValueError as error:
                problems.append(str(error))
        if not problems:
            return
        self._reported[meta.key] = found
        for problem in problems:
            log.warning("Invalid annotation: %s", problem)
            self._dependencies.publish_event(self._kind, meta, "Warning", "InvalidAnnotation", problem)


def _declares_conditions(kind: Any) -> bool | None:
    """Return True if the status of the class has conditions; None for a kind without a class."""
    if isinstance(kind, Kind):
        return None
    if "status" not in kind.__struct_fields__:
        return False
    status = plain_type(field_types(kind)["status"])
    if is_pydantic(status):
        return "conditions" in status.model_fields
    if not isinstance(status, type) or not issubclass(status, msgspec.Struct):
        return None
    hint = field_types(status).get("conditions")
    return hint is not None and get_origin(plain_type(hint)) is list


def _conditions(state: RawObject) -> list[JsonObject]:
    found: Any = live_status(state).get("conditions")
    return [
        cast("JsonObject", each) if isinstance(each, dict) else {}
        for each in (cast("list[Any]", found) if isinstance(found, list) else ())
    ]


def _has_condition(state: RawObject) -> bool:
    """Return True if the status has a condition of this type, by any writer."""
    return any(condition.get("type") == CONDITION for condition in _conditions(state))


def _position(state: RawObject) -> int | None:
    """Return the position of our condition in the status; a condition of the reconciler may have the same type."""
    for position, condition in enumerate(_conditions(state)):
        if condition.get("type") == CONDITION and condition.get("reason") == REASON:
            return position
    return None


def _addition(status: JsonObject, now: datetime) -> JsonObject:
    """Return the JSON patch operation that adds the condition to an object with this status."""
    condition: JsonObject = {
        "type": CONDITION,
        "status": "True",
        "reason": REASON,
        "message": _MESSAGE,
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    if not status:
        return {"op": "add", "path": "/status", "value": {"conditions": [condition]}}
    if not isinstance(status.get("conditions"), list):
        return {"op": "add", "path": "/status/conditions", "value": [condition]}
    return {"op": "add", "path": "/status/conditions/-", "value": condition}
