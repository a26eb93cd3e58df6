"""Writing statuses and reading conditions of built-in kinds.

A status is replaced as a whole, as the real controllers do: fields of other writers that are no longer true are
removed.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Protocol, TypeVar, cast

import msgspec

from kubewright.api import Conflict, JsonObject, NotFound, Object, to_wire
from kubewright.controller import Change, Context, Result

FIELD_MANAGER = "kube-controller-manager"
"""The field manager of all controllers but the scheduler and the kubelet, as in a real cluster."""
REQUEUE_SOON = Result(after=timedelta(milliseconds=10))
"""Requeue after a conflict, when the cache is likely to hold the newer version."""


class AnyCondition(Protocol):
    """The fields that conditions of all kinds have."""

    type: str
    status: str


C = TypeVar("C", bound=AnyCondition)


def condition_of(conditions: Iterable[C], type: str) -> C | None:  # noqa: A002 (the field's name)
    """Return the condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == type), None)


def is_true(conditions: Iterable[AnyCondition], type: str) -> bool:  # noqa: A002 (the field's name)
    """Return True if the condition exists and its status is True."""
    found = condition_of(conditions, type)
    return found is not None and found.status == "True"


def replacement_patch(old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the merge patch that turns one JSON object into another."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if below := replacement_patch(cast(JsonObject, before), cast(JsonObject, value)):
                patch[key] = below
        elif key not in old or value != before:
            patch[key] = value
    return patch


class StoredStatus:
    """The status of one object, as last stored."""

    def __init__(self, obj: Object, status: msgspec.Struct) -> None:
        self._obj = obj
        self._stored = to_wire(status)

    async def write(self, status: msgspec.Struct, ctx: Context) -> None:
        """Replace the stored status if it differs."""
        desired = to_wire(status)
        if patch := replacement_patch(self._stored, desired):
            await ctx.patch(self._obj, {"status": patch}, subresource="status")
            self._stored = desired


class StatusWriter:
    """Write statuses, and recognize the resulting events, which need no reconcile."""

    def __init__(self) -> None:
        self._writing: dict[str, tuple[Any, ...]] = {}

    async def write(
        self, obj: Any, status: msgspec.Struct, ctx: Context, annotations: Mapping[str, str] | None = None
    ) -> bool:
        """Replace the object's status and add annotations; return True if they are stored.

        Return False if the object is gone or has changed. The caller must then requeue: there may be no further
        event, because the conflicting change may be our own update, sent again after its response was lost.
        """
        patch = replacement_patch(to_wire(obj.status), to_wire(status))
        if not patch and not annotations:
            return True
        meta: JsonObject = {"resourceVersion": obj.metadata.resource_version}
        if annotations:
            meta["annotations"] = annotations
        uid = obj.metadata.uid
        self._writing[uid] = _watched_state(obj, status, {**obj.metadata.annotations, **(annotations or {})})
        try:
            await ctx.patch(obj, {"metadata": meta, "status": patch}, subresource="status")
        except (NotFound, Conflict):
            return False
        finally:
            del self._writing[uid]
        return True

    def is_external_change(self, change: Change[Any]) -> bool:
        """Return False for the event of the status that is being written."""
        new = change.new
        if new is None or (writing := self._writing.get(new.metadata.uid)) is None:
            return True
        return writing != _watched_state(new, new.status, new.metadata.annotations)


def _watched_state(obj: Any, status: msgspec.Struct, annotations: Mapping[str, str]) -> tuple[Any, ...]:
    meta = obj.metadata
    return (
        obj.spec,
        status,
        annotations,
        meta.labels,
        meta.owner_references,
        meta.finalizers,
        meta.deletion_timestamp,
    )
