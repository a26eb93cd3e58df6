"""Conditions as the API wants them: the time moves only when the status does."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from kubewright.api import JsonObject


def stamped(status: JsonObject, live: JsonObject, generation: int | None, now: datetime) -> dict[str, Any]:
    """Return the status with each condition's lastTransitionTime and observedGeneration filled in.

    Conditions that have no observedGeneration, such as a Deployment's, are given none (`generation=None`).
    """
    wanted = status.get("conditions")
    if not _are_conditions(wanted):
        return dict(status)
    held = live.get("conditions")
    before: dict[Any, JsonObject] = {}
    if _are_conditions(held):
        before = {known["type"]: known for known in cast("Sequence[JsonObject]", held)}
    return dict(status) | {
        "conditions": [
            _stamp(condition, before.get(condition["type"], {}), generation, now)
            for condition in cast("Sequence[JsonObject]", wanted)
        ]
    }


def _stamp(
    condition: JsonObject, before: JsonObject, generation: int | None, now: datetime
) -> dict[str, Any]:
    stamp = dict(condition)
    if before.get("status") == condition.get("status") and before.get("lastTransitionTime"):
        stamp["lastTransitionTime"] = before["lastTransitionTime"]
    elif not condition.get("lastTransitionTime"):
        stamp["lastTransitionTime"] = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if not condition.get("observedGeneration") and generation:
        stamp["observedGeneration"] = generation
    return stamp


def _are_conditions(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(
        isinstance(item, Mapping) and "type" in item and "status" in item for item in cast("list[Any]", value)
    )
