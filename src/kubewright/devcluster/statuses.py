"""Statuses written whole: what others have put there and is no longer so is taken out."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

import msgspec

from kubewright.api import Conflict, JsonObject, NotFound, Object, to_wire
from kubewright.controller import Change, Context, Result

SOON = Result(after=timedelta(milliseconds=10))
"""What could not be written is looked at anew, when the cache holds what came in between."""


def replacing(old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the merge patch that makes one wire value of another."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if below := replacing(cast(JsonObject, before), cast(JsonObject, value)):
                patch[key] = below
        elif key not in old or value != before:
            patch[key] = value
    return patch


class WholeStatus:
    """The status of one object, as it is known to be stored."""

    def __init__(self, obj: Object, status: msgspec.Struct) -> None:
        self._obj = obj
        self._stored = to_wire(status)

    async def write(self, status: msgspec.Struct, ctx: Context) -> None:
        """Put a status in the place of the stored one, where they differ."""
        wanted = to_wire(status)
        if patch := replacing(self._stored, wanted):
            await ctx.patch(self._obj, {"status": patch}, subresource="status")
            self._stored = wanted


class Reporter:
    """Write statuses, and tell the changes that are nothing but that: to look at them again would find nothing."""

    def __init__(self) -> None:
        self._telling: dict[str, tuple[Any, ...]] = {}

    async def write(
        self, obj: Any, status: msgspec.Struct, ctx: Context, annotations: Mapping[str, str] | None = None
    ) -> bool:
        """Put a status in the place of the object's, and with it annotations that it has not yet.

        Tells whether it is so now. One that is gone or has changed meanwhile is left alone, to be looked at anew: no
        change need lead there, as what is in the way may be our own report, sent again because its answer was lost.
        """
        patch = replacing(to_wire(obj.status), to_wire(status))
        if not patch and not annotations:
            return True
        meta: JsonObject = {"resourceVersion": obj.metadata.resource_version}
        if annotations:
            meta["annotations"] = annotations
        uid = obj.metadata.uid
        self._telling[uid] = _seen(obj, status, {**obj.metadata.annotations, **(annotations or {})})
        try:
            await ctx.patch(obj, {"metadata": meta, "status": patch}, subresource="status")
        except (NotFound, Conflict):
            return False
        finally:
            del self._telling[uid]
        return True

    def is_news(self, change: Change[Any]) -> bool:
        """Predicate: pass all but what is being written here."""
        new = change.new
        if new is None or (telling := self._telling.get(new.metadata.uid)) is None:
            return True
        return telling != _seen(new, new.status, new.metadata.annotations)


def _seen(obj: Any, status: msgspec.Struct, annotations: Mapping[str, str]) -> tuple[Any, ...]:
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
