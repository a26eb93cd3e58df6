"""Conditions of a status: make them, find them, and aggregate several into one such as Ready.

`true`, `false` and `unknown` make a condition; `aggregate` makes one of several. Pass them to `ctx.patch_status`, which
fills in lastTransitionTime (it changes only with the status) and observedGeneration. `find`, `is_true` and `is_false`
read a list of conditions. `set` changes a list in place, for programs that write a status by other means.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

from kubewright.api import Condition, utc_now

__all__ = ["aggregate", "false", "find", "is_false", "is_true", "set", "true", "unknown"]


def true(type: str, reason: str, message: str = "") -> Condition:  # noqa: A002 (the field's name)
    """Return a condition with status True: `true("Ready", "LoginFound")`."""
    return Condition(type=type, status="True", reason=reason, message=message)


def false(type: str, reason: str, message: str = "") -> Condition:  # noqa: A002 (the field's name)
    """Return a condition with status False: `false("Ready", "LoginMissing", "Secret store does not exist")`."""
    return Condition(type=type, status="False", reason=reason, message=message)


def unknown(type: str, reason: str, message: str = "") -> Condition:  # noqa: A002 (the field's name)
    """Return a condition with status Unknown, for what could not be observed yet."""
    return Condition(type=type, status="Unknown", reason=reason, message=message)


def find(conditions: Iterable[Condition], type: str) -> Condition | None:  # noqa: A002 (the field's name)
    """Return the condition of this type, or None."""
    return next((condition for condition in conditions if condition.type == type), None)


def is_true(conditions: Iterable[Condition], type: str) -> bool:  # noqa: A002 (the field's name)
    """Return True if there is a condition of this type with status True."""
    found = find(conditions, type)
    return found is not None and found.status == "True"


def is_false(conditions: Iterable[Condition], type: str) -> bool:  # noqa: A002 (the field's name)
    """Return True if there is a condition of this type with status False; one that is missing is not False."""
    found = find(conditions, type)
    return found is not None and found.status == "False"


def aggregate(
    conditions: Iterable[Condition],
    type: str = "Ready",  # noqa: A002 (the field's name)
    *,
    negative: Collection[str] = (),
    generation: int = 0,
    reason: str = "AsExpected",
    message: str = "",
) -> Condition:
    """Return one condition for several: False if one of them is bad, else Unknown if one is unknown, else True.

    Status False is bad, or True for the types in `negative`, such as Degraded. A condition of `type` itself does not count.
    With the object's `generation`, a condition about an older generation counts as unknown. The reason is that of the
    first condition that is not good, and the message names all of them; `reason` and `message` are for True.
    """
    counted = [condition for condition in conditions if condition.type != type]
    if not counted:
        raise ValueError(f"aggregate({type!r}): there are no conditions to aggregate")
    bad: list[Condition] = []
    undecided: list[Condition] = []
    for condition in counted:
        if 0 < condition.observed_generation < generation:
            text = f"it is about generation {condition.observed_generation}, the object is at {generation}"
            undecided.append(unknown(condition.type, "Outdated", text))
        elif condition.status == "Unknown":
            undecided.append(condition)
        elif (condition.status == "True") == (condition.type in negative):
            bad.append(condition)
    if not bad and not undecided:
        return true(type, reason, message)
    shown = bad or undecided
    text = "; ".join(f"{condition.type}: {condition.message or condition.reason}" for condition in shown)
    return (false if bad else unknown)(type, shown[0].reason, text)


def set(conditions: list[Condition], new: Condition, *, now: datetime | None = None) -> bool:  # noqa: A001 (as in apimachinery)
    """Put the condition into the list, replacing one of the same type; return True if anything changed.

    `lastTransitionTime` changes only with the status; `now` sets it to another time than the present.
    `ctx.patch_status` does this by itself: use this for lists that are written by other means.
    """
    old = find(conditions, new.type)
    moment = new.last_transition_time or now or utc_now().replace(microsecond=0)
    if old is None:
        new.last_transition_time = moment
        conditions.append(new)
        return True
    new.last_transition_time = moment if old.status != new.status else old.last_transition_time or moment
    if old == new:
        return False
    conditions[conditions.index(old)] = new
    return True
