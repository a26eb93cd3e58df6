"""Conditions of a CustomResourceDefinition."""

from kubewright.devserver.objects import Wire, items, section


def find_condition(crd: Wire, kind: str) -> Wire | None:
    """Find a condition by its type."""
    conditions: list[Wire] = items(section(crd, "status"), "conditions")
    return next((item for item in conditions if item["type"] == kind), None)


def is_true(crd: Wire, kind: str) -> bool:
    """Tell whether a condition holds."""
    found = find_condition(crd, kind)
    return found is not None and found["status"] == "True"


def set_condition(crd: Wire, kind: str, status: str, reason: str, message: str, stamp: str) -> None:
    """Set a condition; its time moves only when its status does."""
    state: Wire = crd.setdefault("status", {})
    conditions: list[Wire] = items(state, "conditions")
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
