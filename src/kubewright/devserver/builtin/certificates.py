"""CertificateSigningRequests: the request itself, its approval, and the certificate that a signer issues."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.pod_certificates import check_signer_name
from kubewright.devserver.builtin.printing import AGE, NAME, NONE, cell, printed
from kubewright.devserver.builtin.rules import at_least, changes, distinct, one_of, required, rules
from kubewright.devserver.builtin.writes import keep, restore, text_at
from kubewright.devserver.objects import JsonObject, items, section, words
from kubewright.devserver.request.identity import UserInfo
from kubewright.devserver.strategy import PartialSubresource, Strategy
from kubewright.devserver.strategy.tables import human_duration

GROUP = "certificates.k8s.io"
USAGES = words(
    "any, cert sign, client auth, code signing, content commitment, crl sign, data encipherment, decipher "
    "only, digital signature, email protection, encipher only, ipsec end system, ipsec tunnel, ipsec "
    "user, key agreement, key encipherment, microsoft sgc, netscape sgc, ocsp signing, s/mime, server "
    "auth, signing, timestamping",
    ", ",
)
_DECISIONS = ("Approved", "Denied")
_PERMANENT = (*_DECISIONS, "Failed")
_CONDITIONS = "status.conditions"
_CERTIFICATE = "status.certificate"
_BLOCK = re.compile(r"-----BEGIN ([^-]+)-----\s")


def _set_requester(request: JsonObject, user: UserInfo) -> None:
    """Record the user of the request, which clients cannot choose."""
    spec: JsonObject = request.setdefault("spec", {})
    spec["username"] = user.name
    extra = {key: list(values) for key, values in user.extra.items()}
    for name, value in (("uid", user.uid), ("groups", list(user.groups)), ("extra", extra)):
        if value:
            spec[name] = value
        else:
            spec.pop(name, None)


def _keep_decisions(new: JsonObject, old: JsonObject) -> None:
    """Prepare a status write, which cannot change approvals and denials."""
    restore(new, old, "spec")
    for kind in _DECISIONS:
        before, after = _conditions_of(old, kind), _conditions_of(new, kind)
        if len(before) == len(after):
            for item, known in zip(after, before, strict=True):
                item.clear()
                item.update(known)


def _keep_certificate(new: JsonObject, old: JsonObject) -> None:
    """Prepare an approval, which cannot change the certificate."""
    restore(new, old, "spec")
    restore(new.setdefault("status", {}), section(old, "status"), "certificate")


def _conditions_of(request: JsonObject, *kinds: str) -> list[Any]:
    return [item for item in items(section(request, "status"), "conditions") if item.get("type") in kinds]


def _date_conditions(new: JsonObject, old: JsonObject, moment: str) -> None:
    """Set the times that a client left out of conditions."""
    before = {
        (item.get("type"), item.get("status")): item.get("lastTransitionTime")
        for item in items(section(old, "status"), "conditions")
    }
    for condition in items(section(new, "status"), "conditions"):
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or moment
        since = condition.get("lastTransitionTime")
        known = before.get((condition.get("type"), condition.get("status")))
        condition["lastTransitionTime"] = since or known or moment


def _decoded(encoded: str | None) -> str:
    try:
        return base64.b64decode(encoded or "").decode(errors="replace")
    except binascii.Error:
        return ""


def _pem_request(path: str, encoded: str | None) -> Iterator[FieldError]:
    if "-----BEGIN CERTIFICATE REQUEST-----" not in _decoded(encoded):
        yield problems.invalid(path, encoded, "PEM block type must be CERTIFICATE REQUEST")


_REQUEST = rules(
    ("spec.request", _pem_request),
    ("spec.usages", required()),
    ("spec.usages[]", one_of(*USAGES)),
    ("spec.usages", distinct),
    ("spec.signerName", check_signer_name),
    (
        "spec.expirationSeconds?",
        at_least(600, "may not specify a duration less than 600 seconds (10 minutes)"),
    ),
)


def _signed_once(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    """Check that a signer does not decide, and does not replace a certificate."""
    for kind in _DECISIONS:
        if len(_conditions_of(new, kind)) > len(_conditions_of(old, kind)):
            text = f"updates may not add a condition of type {problems.quoted(kind)}"
            yield problems.forbidden(_CONDITIONS, text)
    present = section(old, "status").get("certificate")
    if present and section(new, "status").get("certificate") != present:
        yield problems.forbidden(_CERTIFICATE, "updates may not modify existing certificate content")


def _check_conditions(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, condition in enumerate(items(section(new, "status"), "conditions")):
        path, kind = f"{_CONDITIONS}[{index}]", condition.get("type", "")
        if not kind:
            yield problems.required(f"{path}.type")
        allowed = ("True",) if kind in _PERMANENT else ("False", "True", "Unknown")
        yield from check.choice(f"{path}.status", condition.get("status"), allowed)
        if kind in seen:
            yield problems.duplicate(f"{path}.type", kind)
        seen.add(kind)


def _declared(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    """Check that a request is not both approved and denied; declared, so this error follows the others."""
    after, before = ({item["type"] for item in _conditions_of(obj, *_DECISIONS)} for obj in (new, old))
    if after == set(_DECISIONS) != before:
        members = [f'conditions[{{"type": "{kind}"}}]' for kind in _DECISIONS]
        text = f"must specify at most one of: {', '.join(f'`{member}`' for member in members)}"
        yield problems.invalid(_CONDITIONS, f"{{{', '.join(members)}}}", text)


def _removed_conditions(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    for kind in _PERMANENT:
        if len(_conditions_of(new, kind)) < len(_conditions_of(old, kind)):
            text = f"updates may not remove a condition of type {problems.quoted(kind)}"
            yield problems.forbidden(_CONDITIONS, text)


def _check_certificate(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    encoded = section(new, "status").get("certificate")
    if not encoded or encoded == section(old, "status").get("certificate"):
        return
    kinds = _BLOCK.findall(_decoded(encoded))
    other = next((kind for kind in kinds if kind != "CERTIFICATE"), "")
    if other:
        text = f"only CERTIFICATE PEM blocks are allowed, found {problems.quoted(other)}"
        yield problems.invalid(_CERTIFICATE, "<certificate data>", text)
    elif not kinds:
        text = "must contain at least one CERTIFICATE PEM block"
        yield problems.invalid(_CERTIFICATE, "<certificate data>", text)


def _duration(request: JsonObject) -> str:
    seconds = section(request, "spec").get("expirationSeconds")
    return NONE if seconds is None else human_duration(seconds)


def _state(request: JsonObject) -> str:
    status: JsonObject = section(request, "status")
    found = {item.get("type") for item in items(status, "conditions")}
    text = "Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"
    if "Failed" in found:
        text += ",Failed"
    return f"{text},Issued" if status.get("certificate") else text


STRATEGIES = {
    (GROUP, "CertificateSigningRequest"): Strategy(
        prepare_update=keep("spec", "status"),
        prepare_status_update=_keep_decisions,
        date=_date_conditions,
        validate=_REQUEST.validate,
        # Any name is valid.
        name_check=lambda name: [],
        sign=_set_requester,
        validate_status_update=changes(
            _check_conditions, _check_certificate, _removed_conditions, _signed_once, _declared
        ),
        parts={
            "approval": PartialSubresource(
                _keep_certificate, changes(_check_conditions, _removed_conditions, _declared)
            )
        },
        selectable_fields={"spec.signerName": text_at("spec", "signerName")},
        reset_fields={
            "": frozenset({("spec",), ("status",)}),
            "status": frozenset({("spec",), ("status", "conditions")}),
            "approval": frozenset({("spec",), ("status", "certificate")}),
        },
        **printed(
            NAME,
            AGE,
            cell("SignerName", "spec.signerName", NONE),
            cell("Requestor", "spec.username"),
            cell("RequestedDuration", _duration),
            cell("Condition", _state),
        ),
    ),
}
