"""Statuses written whole: what others have put there and is no longer so is taken out."""

from typing import Any, cast

import msgspec

from kubewright.api import Object, Wire, to_wire
from kubewright.controller import Context


def replacing(old: Wire, new: Wire) -> Wire:
    """Return the merge patch that makes one wire value of another."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if below := replacing(cast(Wire, before), cast(Wire, value)):
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
