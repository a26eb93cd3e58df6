"""What may be said of a certificate request after it was made: who approved it, and the certificate itself."""

import base64
import binascii
import re
from typing import Any

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.objects import JsonObject, items, section

JUDGEMENTS = ("Approved", "Denied")
_LASTING = (*JUDGEMENTS, "Failed")
_CONDITIONS = "status.conditions"
_CERTIFICATE = "status.certificate"
_BLOCK = re.compile(r"-----BEGIN ([^-]+)-----\s")


def conditions_of(request: JsonObject, *kinds: str) -> list[Any]:
    """Give the conditions of some types."""
    return [item for item in items(section(request, "status"), "conditions") if item.get("type") in kinds]


def date_conditions(new: JsonObject, old: JsonObject, moment: str) -> None:
    """Say since when each condition holds, where its author does not."""
    before = {
        (item.get("type"), item.get("status")): item.get("lastTransitionTime")
        for item in items(section(old, "status"), "conditions")
    }
    for condition in items(section(new, "status"), "conditions"):
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or moment
        since = condition.get("lastTransitionTime")
        known = before.get((condition.get("type"), condition.get("status")))
        condition["lastTransitionTime"] = since or known or moment


def check_approval(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check who was said to approve or deny."""
    return [*_conditions(new, old), *_removals(new, old)]


def check_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check what a signer says: a certificate, once, and no judgement."""
    errors = [*_conditions(new, old), *_certificate(new, old), *_removals(new, old)]
    for kind in JUDGEMENTS:
        before, after = conditions_of(old, kind), conditions_of(new, kind)
        if len(after) > len(before):
            text = f"updates may not add a condition of type {problems.quoted(kind)}"
            errors.append(problems.forbidden(_CONDITIONS, text))
    present = section(old, "status").get("certificate")
    if present and section(new, "status").get("certificate") != present:
        errors.append(problems.forbidden(_CERTIFICATE, "updates may not modify existing certificate content"))
    return errors


def _conditions(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    torn = len({item["type"] for item in conditions_of(old, *JUDGEMENTS)}) == len(JUDGEMENTS)
    for index, condition in enumerate(items(section(new, "status"), "conditions")):
        path, kind = f"{_CONDITIONS}[{index}]", condition.get("type", "")
        if not kind:
            errors.append(problems.required(f"{path}.type"))
        allowed = ("True",) if kind in _LASTING else ("False", "True", "Unknown")
        if not condition.get("status"):
            errors.append(problems.required(f"{path}.status"))
        else:
            errors += check.one_of(f"{path}.status", condition["status"], allowed)
        if not torn and kind in JUDGEMENTS and seen & set(JUDGEMENTS) - {kind}:
            text = "Approved and Denied conditions are mutually exclusive"
            errors.append(problems.invalid(_CONDITIONS, kind, text))
        if kind in seen:
            errors.append(problems.duplicate(f"{path}.type", kind))
        seen.add(kind)
    return errors


def _removals(new: JsonObject, old: JsonObject) -> list[FieldError]:
    return [
        problems.forbidden(_CONDITIONS, f"updates may not remove a condition of type {problems.quoted(kind)}")
        for kind in _LASTING
        if len(conditions_of(new, kind)) < len(conditions_of(old, kind))
    ]


def _certificate(new: JsonObject, old: JsonObject) -> list[FieldError]:
    encoded = section(new, "status").get("certificate")
    if not encoded or encoded == section(old, "status").get("certificate"):
        return []
    try:
        text = base64.b64decode(encoded).decode(errors="replace")
    except binascii.Error:
        text = ""
    kinds = _BLOCK.findall(text)
    other = next((kind for kind in kinds if kind != "CERTIFICATE"), "")
    if kinds and not other:
        return []
    trouble = "must contain at least one CERTIFICATE PEM block"
    if other:
        trouble = f"only CERTIFICATE PEM blocks are allowed, found {problems.quoted(other)}"
    return [problems.invalid(_CERTIFICATE, "<certificate data>", trouble)]
