"""The status of a definition: accepted names (those in its spec that no other definition of the group has) and conditions."""

from collections.abc import Iterable
from typing import NamedTuple

from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.objects.status import quote


class Naming(NamedTuple):
    """The names a definition may use, and why it does not get the others."""

    accepted: JsonObject
    reason: str
    message: str

    @property
    def fine(self) -> bool:
        """Return True if all names are accepted."""
        return self.reason == "NoConflicts"


def accept_names(crd: JsonObject, others: Iterable[JsonObject]) -> Naming:
    """Work out the names of a definition beside the others of its group."""
    resources, kinds = set[str](), set[str]()
    for other in others:
        taken = section(other, "status", "acceptedNames")
        resources.update([taken.get("plural", ""), taken.get("singular", ""), *items(taken, "shortNames")])
        kinds.update([taken.get("kind", ""), taken.get("listKind", "")])
    requested: JsonObject = crd["spec"]["names"]
    present = section(crd, "status", "acceptedNames")
    accepted: JsonObject = {name: value for name, value in present.items() if value}
    reason, message = "NoConflicts", "no conflicts found"
    for name, used in (
        ("plural", resources),
        ("singular", resources),
        ("shortNames", resources),
        ("kind", kinds),
        ("listKind", kinds),
    ):
        conflict = _conflict(requested.get(name), present.get(name), used)
        if conflict:
            reason, message = f"{name[0].upper()}{name[1:]}Conflict", conflict
        elif requested.get(name):
            accepted[name] = requested[name]
        else:
            accepted.pop(name, None)
    if requested.get("categories"):
        accepted["categories"] = requested["categories"]
    accepted.setdefault("plural", "")
    accepted.setdefault("kind", "")
    return Naming(accepted, reason, message)


def _conflict(requested: str | list[str] | None, present: str | list[str] | None, used: set[str]) -> str:
    if requested == present or not requested:
        return ""
    if isinstance(requested, str):
        return f"{quote(requested)} is already in use" if requested in used else ""
    own = present if isinstance(present, list) else []
    clashes = [f"{quote(name)} is already in use" for name in requested if name in used and name not in own]
    return clashes[0] if len(clashes) == 1 else f"[{', '.join(clashes)}]" if clashes else ""


def find_condition(crd: JsonObject, kind: str) -> JsonObject | None:
    """Find a condition by its type."""
    conditions: list[JsonObject] = items(section(crd, "status"), "conditions")
    return next((item for item in conditions if item["type"] == kind), None)


def is_true(crd: JsonObject, kind: str) -> bool:
    """Return True if a condition holds."""
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
