"""CertificateSigningRequests: who asks for a certificate, and who may say yes."""

import base64
import binascii
import re
from typing import Any

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, object_age
from kubewright.devserver.builtin.certificate_checks import (
    JUDGEMENTS,
    check_approval,
    check_status,
    conditions_of,
    date_conditions,
)
from kubewright.devserver.builtin.writes import restore, text_at
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.request.identity import User
from kubewright.devserver.strategy import Column, Part, Strategy
from kubewright.devserver.strategy.tables import human_duration

GROUP = "certificates.k8s.io"
USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_SIGNER = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/.+")
_SIGNER_RULE = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
_LEAST_SECONDS = 600


def _keep_request(new: JsonObject, old: JsonObject) -> None:
    restore(new, old, "spec")
    restore(new, old, "status")


def _status_write(new: JsonObject, old: JsonObject) -> None:
    """Take the certificate and how the signing went, but not who approved it."""
    restore(new, old, "spec")
    for kind in JUDGEMENTS:
        before, after = conditions_of(old, kind), conditions_of(new, kind)
        if len(before) == len(after):
            for item, known in zip(after, before, strict=True):
                item.clear()
                item.update(known)


def _approve(new: JsonObject, old: JsonObject) -> None:
    """Take who approved or denied, and when, but no certificate."""
    restore(new, old, "spec")
    restore(new.setdefault("status", {}), section(old, "status"), "certificate")


def _sign(request: JsonObject, user: User) -> None:
    """Write down who asks; a client cannot say."""
    spec: JsonObject = request.setdefault("spec", {})
    spec["username"] = user.name
    extra = {key: list(values) for key, values in user.extra.items()}
    for name, value in (("uid", user.uid), ("groups", list(user.groups)), ("extra", extra)):
        if value:
            spec[name] = value
        else:
            spec.pop(name, None)


def _validate(request: JsonObject) -> list[FieldError]:
    spec: JsonObject = section(request, "spec")
    errors = _check_pem(spec.get("request"))
    usages: list[str] = items(spec, "usages")
    if not usages:
        errors.append(problems.required("spec.usages"))
    for index, usage in enumerate(usages):
        errors += check.one_of(f"spec.usages[{index}]", usage, USAGES)
        if usage in usages[:index]:
            errors.append(problems.duplicate(f"spec.usages[{index}]", usage))
    signer = spec.get("signerName", "")
    if not signer:
        errors.append(problems.required("spec.signerName"))
    elif not _SIGNER.fullmatch(signer):
        errors.append(problems.invalid("spec.signerName", signer, _SIGNER_RULE))
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _LEAST_SECONDS:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(problems.invalid("spec.expirationSeconds", seconds, text))
    return errors


def _check_pem(encoded: str | None) -> list[FieldError]:
    try:
        text = base64.b64decode(encoded or "").decode(errors="replace")
    except binascii.Error:
        text = ""
    if "-----BEGIN CERTIFICATE REQUEST-----" in text:
        return []
    return [problems.invalid("spec.request", encoded, "PEM block type must be CERTIFICATE REQUEST")]


def _condition(request: JsonObject) -> str:
    status: JsonObject = section(request, "status")
    found = {item.get("type") for item in items(status, "conditions")}
    text = "Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"
    if "Failed" in found:
        text += ",Failed"
    return f"{text},Issued" if status.get("certificate") else text


def _row(request: JsonObject, now: float) -> list[Any]:
    spec: JsonObject = section(request, "spec")
    seconds = spec.get("expirationSeconds")
    return [
        request["metadata"]["name"],
        object_age(request, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if seconds is None else human_duration(seconds),
        _condition(request),
    ]


STRATEGIES = {
    (GROUP, "CertificateSigningRequest"): Strategy(
        prepare_update=_keep_request,
        prepare_status_update=_status_write,
        date=date_conditions,
        validate=_validate,
        sign=_sign,
        validate_status_update=check_status,
        parts={"approval": Part(_approve, check_approval)},
        selectable_fields={"spec.signerName": text_at("spec", "signerName")},
        columns=(
            NAME,
            AGE,
            Column("SignerName"),
            Column("Requestor"),
            Column("RequestedDuration"),
            Column("Condition"),
        ),
        row=_row,
        reset_fields={
            "": frozenset({("spec",), ("status",)}),
            "status": frozenset({("spec",), ("status", "conditions")}),
            "approval": frozenset({("spec",), ("status", "certificate")}),
        },
    ),
}
