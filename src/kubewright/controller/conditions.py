"""Conditions of a status: lastTransitionTime changes only with the condition's status."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from kubewright.api import JsonObject


def stamped(status: JsonObject, live: JsonObject, generation: int | None, now: datetime) -> dict[str, Any]:
    """Return the status with each condition's lastTransitionTime and observedGeneration filled in.

    With `generation=None` no observedGeneration is set: conditions such as a Deployment's have none.
    """
    desired = status.get("conditions")
    if not _are_conditions(desired):
        return dict(status)
    present = live.get("conditions")
    before: dict[Any, JsonObject] = {}
    if _are_conditions(present):
        before = {known["type"]: known for known in cast("Sequence[JsonObject]", present)}
    return dict(status) | {
        "conditions": [
            _stamp(condition, before.get(condition["type"], {}), generation, now)
            for condition in cast("Sequence[JsonObject]", desired)
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
