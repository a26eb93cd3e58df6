"""Would applying change anything? Pure: the desired object, the live one, and what we own of it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from kubewright.api import JsonObject
from kubewright.controller.ownership import Fields

_IDENTITY = frozenset({"apiVersion", "kind", "metadata"})
_META_COMPARED = frozenset({"generateName", "labels", "annotations", "finalizers", "ownerReferences"})

_ATOMIC_DEFAULTS: Mapping[str, tuple[Any, ...]] = {
    "apiVersion": ("v1",),
    "expirationSeconds": (3600,),
    "kind": ("PersistentVolumeClaim",),
    "protocol": ("TCP",),
    "status": ("True", {"phase": "Pending"}),
    "volumeMode": ("Filesystem",),
}
"""What the server fills into elements of atomic lists; elsewhere ownership tells defaults from leftovers."""


def apply_difference(desired: JsonObject, live: JsonObject, owned: Fields | None) -> str | None:
    """Return the path of a field that an apply of the desired object would change; None if there is none.

    `live` is the object in the same typed form as `desired`, so quantities and times compare as text.
    """
    plain = {key: value for key, value in desired.items() if key not in _IDENTITY}
    meta = {key: value for key, value in desired.get("metadata", {}).items() if key in _META_COMPARED}
    if owned is None:
        # Who states nothing owns nothing: an object that only has to exist is never listed as ours.
        return "metadata.managedFields" if plain or meta else None
    owned_plain = {step: below for step, below in owned.items() if step != "f:metadata"}
    found = _map_difference(plain, live, owned_plain)
    if found is None:
        found = _map_difference(meta, live.get("metadata", {}), owned.get("f:metadata", {}))
        return None if found is None else f"metadata.{found}"
    return found


def status_difference(desired: JsonObject, live: JsonObject, owned: Fields | None) -> str | None:
    """Return the path of a status field that an apply of the desired status would change; None if there is none."""
    if owned is None:
        return "status" if desired else None
    found = _map_difference(desired, live, owned.get("f:status", {}))
    return None if found is None else f"status.{found}"


def fingerprint(value: Any) -> bytes:
    """Return bytes that are equal for equal wire values, whatever their order of keys."""
    return msgspec.json.encode(value, order="deterministic")


def content_of(live: JsonObject, *, has_status: bool) -> dict[str, Any]:
    """Return the live object without what moves by itself: versions, managers, status."""
    meta = {
        key: value
        for key, value in live.get("metadata", {}).items()
        if key not in ("resourceVersion", "managedFields", "generation")
    }
    moving = {"metadata", "status"} if has_status else {"metadata"}
    return {key: value for key, value in live.items() if key not in moving} | {"metadata": meta}


def _difference(desired: Any, live: Any, owned: Fields | None) -> str | None:
    """Return where below here they differ, empty where it is the value itself; None where they do not."""
    if owned is None:
        return ""
    if not owned or (len(owned) == 1 and "." in owned):
        return None if _equal(desired, live) else ""
    kind, other = desired.__class__, live.__class__
    if issubclass(kind, dict) and issubclass(other, dict):
        return _map_difference(desired, live, owned)
    if issubclass(kind, list) and issubclass(other, list):
        return _list_difference(desired, live, owned)
    return ""


def _map_difference(desired: JsonObject, live: JsonObject, owned: Fields) -> str | None:
    # The path is put together on the way back: most of what is compared is equal.
    for key, value in desired.items():
        if key in live:
            below = _difference(value, live[key], owned.get(f"f:{key}"))
            if below is not None:
                return f"{key}.{below}" if below and below[0] != "[" else f"{key}{below}"
        elif not _is_nothing(value):
            return key
    for step in owned:
        if step.startswith("f:") and desired.get(step[2:]) is None:
            return step[2:]
    return None


def _list_difference(desired: Sequence[Any], live: Sequence[Any], owned: Fields) -> str | None:
    unclaimed = {
        step: msgspec.json.decode(step[2:]) for step in sorted(owned) if step.startswith(("k:", "v:"))
    }
    for index, item in enumerate(desired):
        step = _step_of(item, unclaimed)
        if step is None:
            return f"[{index}]"
        wanted = unclaimed.pop(step)
        if step.startswith("v:"):
            if not any(_equal(item, other) for other in live):
                return f"[{index}]"
            continue
        twin = next((other for other in live if _has_keys(other, wanted)), None)
        if twin is None:
            return f"[{index}]"
        # The server fills in keys that were left out, such as a port's protocol.
        below = _difference(item, twin, _without_defaulted_keys(owned[step], item, wanted))
        if below is not None:
            return f"[{index}].{below}" if below and below[0] != "[" else f"[{index}]{below}"
    return f"[{min(unclaimed)[2:]}]" if unclaimed else None


def _step_of(item: Any, steps: Mapping[str, Any]) -> str | None:
    """Return the step that stands for this element: the one with all its keys, else with those it has."""
    partial: str | None = None
    for step, value in steps.items():
        if step.startswith("v:"):
            if _equal(item, value):
                return step
        elif isinstance(item, dict):
            element = cast("JsonObject", item)
            if _has_keys(element, value):
                return step
            if any(key in element for key in value) and all(
                key not in element or _equal(element[key], wanted) for key, wanted in value.items()
            ):
                partial = partial or step
    return partial


def _has_keys(item: Any, keys: JsonObject) -> bool:
    if not isinstance(item, dict):
        return False
    element = cast("JsonObject", item)
    return all(key in element and _equal(element[key], value) for key, value in keys.items())


def _without_defaulted_keys(owned: Fields, item: JsonObject, keys: JsonObject) -> Fields:
    if not owned:
        return owned
    left_out = {f"f:{key}" for key in keys if key not in item}
    return {step: below for step, below in owned.items() if step not in left_out}


def _equal(desired: Any, live: Any) -> bool:
    # Most values are texts; wire values are JSON's own types, of which only booleans equal what they are not.
    kind = desired.__class__
    if kind is str:
        return desired == live
    if issubclass(kind, dict):
        return isinstance(live, dict) and _maps_equal(desired, cast("JsonObject", live))
    if issubclass(kind, list):
        return isinstance(live, list) and len(desired) == len(live) and all(map(_equal, desired, live))  # pyright: ignore[reportUnknownArgumentType]  (wire values)
    if kind is bool or isinstance(live, bool):
        return desired is live
    return desired == live


def _maps_equal(desired: JsonObject, live: JsonObject) -> bool:
    for key, value in desired.items():
        if key not in live:
            if not _is_nothing(value):
                return False
        elif not _equal(value, live[key]):
            return False
    return all(
        key in desired or _is_nothing(value) or value in _ATOMIC_DEFAULTS.get(key, ())
        for key, value in live.items()
    )


def _is_nothing(value: Any) -> bool:
    """Tell whether the value is what the server keeps as absence; an empty map may be a choice (emptyDir)."""
    return value is None or value in ("", [])
