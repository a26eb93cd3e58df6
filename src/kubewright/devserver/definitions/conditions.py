"""Conditions of a CustomResourceDefinition."""

from kubewright.devserver.objects import JsonObject, items, section


def find_condition(crd: JsonObject, kind: str) -> JsonObject | None:
    """Find a condition by its type."""
    conditions: list[JsonObject] = items(section(crd, "status"), "conditions")
    return next((item for item in conditions if item["type"] == kind), None)


def is_true(crd: JsonObject, kind: str) -> bool:
    """Tell whether a condition holds."""
    found = find_condition(crd, kind)
    return found is not None and found["status"] == "True"


def set_condition(crd: JsonObject, kind: str, status: str, reason: str, message: str, stamp: str) -> None:
    """Set a condition; its time moves only when its status does."""
    state: JsonObject = crd.setdefault("status", {})
    conditions: list[JsonObject] = items(state, "conditions")
    state["conditions"] = conditions
    found = find_condition(crd, kind)
    moment = stamp if found is None or found["status"] != status else found.get("lastTransitionTime", stamp)
    fresh = {
        "type": kind,
        "status": status,
        "lastTransitionTime": moment,
        "reason": reason,
        "message": message,
    }
    if found is None:
        conditions.append(fresh)
    else:
        found.clear()
        found.update(fresh)
