"""Conditions in the form that is the same for many kinds."""

import re
from collections.abc import Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.objects import JsonObject

_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  "
    f"or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
)
_LONGEST_REASON = 1024
_LONGEST_MESSAGE = 32768


def check_conditions(conditions: Sequence[JsonObject], path: str) -> Iterator[FieldError]:
    """Check conditions, each of a type of its own."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        kind, where = condition.get("type", ""), f"{path}[{index}]"
        if kind in seen:
            yield problems.duplicate(f"{where}.type", kind)
        seen.add(kind)
        yield from check.named(f"{where}.type", kind, names.qualified_name(kind))
        yield from check.one_of(f"{where}.status", condition.get("status", ""), ("False", "True", "Unknown"))
        if (generation := condition.get("observedGeneration", 0)) < 0:
            text = "must be greater than or equal to zero"
            yield problems.invalid(f"{where}.observedGeneration", generation, text)
        if not condition.get("lastTransitionTime"):
            yield problems.required(f"{where}.lastTransitionTime")
        yield from _texts(condition, where)


def _texts(condition: JsonObject, path: str) -> Iterator[FieldError]:
    reason = condition.get("reason", "")
    if not reason:
        yield problems.required(f"{path}.reason")
    elif not re.fullmatch(_REASON, reason, re.ASCII):
        yield problems.invalid(f"{path}.reason", reason, _REASON_TEXT)
    if len(reason.encode()) > _LONGEST_REASON:
        yield problems.too_long(f"{path}.reason", _LONGEST_REASON)
    if len(condition.get("message", "").encode()) > _LONGEST_MESSAGE:
        yield problems.too_long(f"{path}.message", _LONGEST_MESSAGE)
