"""Annotations with which users pause an object, or have it reconciled at a time; operators read them and never write them."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from kubewright.api.codec import JsonObject
from kubewright.api.errors import DecodeError
from kubewright.api.raw import PartialMeta
from kubewright.api.times import MicroTime

PAUSED = "kubewright.dev/paused"
"""The annotation that pauses an object while its value is "true"."""
RECONCILE_AT = "kubewright.dev/reconcile-at"
"""The annotation whose changes trigger a reconcile, at the time that it contains."""

ControlAction = Literal["pause", "resume", "reconcile"]

_NEEDLE = b"kubewright.dev"
"""In all annotations that contain one of ours; without the slash, which JSON may write in two ways."""
_TRUE = "true"


class ControlAnnotations(msgspec.Struct, frozen=True):
    """The values of the annotations of one object; None where it has none."""

    paused: str | None = None
    reconcile_at: str | None = None

    @property
    def is_paused(self) -> bool:
        """Return True if the object is paused: only "true" pauses it."""
        return self.paused == _TRUE

    @property
    def invalid_pause(self) -> bool:
        """Return True if the value of the pause annotation is neither "true" nor "false"."""
        return self.paused not in (None, _TRUE, "false")


NO_CONTROL_ANNOTATIONS = ControlAnnotations()


def control_annotations(meta: PartialMeta) -> ControlAnnotations:
    """Return the annotations of an object; those of nearly all objects are not decoded for it."""
    data = meta.annotation_data
    # Shorter than the name alone: null and {}.
    if len(data) <= len(_NEEDLE) or _NEEDLE not in bytes(data):
        return NO_CONTROL_ANNOTATIONS
    try:
        found = meta.annotations
    except DecodeError:
        return NO_CONTROL_ANNOTATIONS  # the object cannot be decoded either, and is reported for it
    paused, reconcile_at = found.get(PAUSED), found.get(RECONCILE_AT)
    if paused is None and reconcile_at is None:
        return NO_CONTROL_ANNOTATIONS
    return ControlAnnotations(paused, reconcile_at)


def parse_reconcile_at(text: str) -> datetime:
    """Return the time of a reconcile-at annotation; raise ValueError if it is not RFC 3339 with an offset."""
    try:
        return msgspec.convert(text, Annotated[datetime, msgspec.Meta(tz=True)])
    except msgspec.ValidationError:
        raise ValueError(
            f"{RECONCILE_AT}: {text!r} is not a time of RFC 3339 such as 2026-01-31T15:04:05Z"
        ) from None


def control_patch(action: ControlAction, now: datetime) -> JsonObject:
    """Return the merge patch that pauses or resumes an object, or requests a reconcile now."""
    if action == "reconcile":
        # With fractions, so that two requests within a second differ.
        return _annotation_patch(RECONCILE_AT, MicroTime.of(now).to_wire())
    return _annotation_patch(PAUSED, _TRUE if action == "pause" else None)


def _annotation_patch(name: str, value: str | None) -> JsonObject:
    return {"metadata": {"annotations": {name: value}}}
