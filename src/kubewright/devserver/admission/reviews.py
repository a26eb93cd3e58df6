"""AdmissionReviews: the request to a webhook, and the validation of its response."""

import base64
import binascii
import uuid
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from kubewright.devserver.admission.versions import VersionedAttributes, admission_request
from kubewright.devserver.objects import JsonObject, encode, items, section
from kubewright.devserver.objects.status import StatusError, quote
from kubewright.devserver.webhook_client import CallFailed, read_document

GROUP = "admission.k8s.io"
_VERSIONS = ("v1", "v1beta1")


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """A review to be posted."""

    uid: str
    version: str
    body: bytes


@dataclass(frozen=True, slots=True)
class ReviewResponse:
    """The decision of a webhook."""

    allowed: bool
    result: JsonObject
    patch: bytes
    patch_type: str
    warnings: list[str]
    annotations: dict[str, str]


def ask(
    versioned: VersionedAttributes, new: msgspec.Raw, old: msgspec.Raw, versions: list[str]
) -> ReviewRequest:
    """Return the review of a write with its encoded objects, in the first version that the webhook accepts."""
    version = next((item for item in versions if item in _VERSIONS), "")
    if not version:
        known = ", ".join(_VERSIONS)
        why = f"webhook does not accept known AdmissionReview versions ({known})"
        raise CallFailed(f"could not create admission objects: {why}")
    uid = str(uuid.uuid4())
    described = admission_request(versioned.attributes, versioned.resource, versioned.kind)
    dry_run, options = described.pop("dryRun"), described.pop("options")
    request: JsonObject = {"uid": uid, **described}
    request["object"] = new
    request["oldObject"] = old
    request["dryRun"] = dry_run
    request["options"] = options
    review = {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": request}
    return ReviewRequest(uid, version, encode(review))


def read_decision(question: ReviewRequest, body: bytes, *, mutating: bool) -> ReviewResponse:
    """Read a webhook's answer; one that does not follow the rules is a failed call."""
    review = _parse(body)
    version = str(review.get("apiVersion", "")).removeprefix(f"{GROUP}/")
    if version in _VERSIONS and version != question.version:
        here, there = f"{version}.AdmissionReview", f"{question.version}.AdmissionReview"
        raise CallFailed(f"failed to call webhook: converting ({here}) to ({there}): unknown conversion")
    try:
        return _verify(question, review, mutating=mutating)
    except CallFailed as error:
        raise CallFailed(f"received invalid webhook response: {error}") from None


def _parse(body: bytes) -> JsonObject:
    try:
        review = read_document(body)
    except CallFailed as error:
        raise CallFailed(f"failed to call webhook: {error}") from None
    version, kind = str(review.get("apiVersion", "")), str(review.get("kind", ""))
    if kind and (kind != "AdmissionReview" or not version.startswith(f"{GROUP}/")):
        raise CallFailed(
            f"failed to call webhook: no kind {quote(kind)} is registered for version {quote(version)} "
            'in scheme "k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go:64"'
        )
    return review


def _verify(question: ReviewRequest, review: JsonObject, *, mutating: bool) -> ReviewResponse:
    found = review.get("response")
    if not isinstance(found, dict):
        raise CallFailed("webhook response was absent")
    response = cast(JsonObject, found)
    patch = _patch(response)
    if question.version == "v1":
        _verify_identity(question, review, response)
        _verify_patch(response, patch, mutating=mutating)
    annotations: dict[str, Any] = section(response, "auditAnnotations")
    return ReviewResponse(
        response.get("allowed") is True,
        section(response, "status"),
        patch if mutating else b"",
        str(response.get("patchType") or "JSONPatch"),
        [text for text in map(str, items(response, "warnings")) if text.isprintable()],
        {key: str(value) for key, value in annotations.items()},
    )


def _verify_identity(question: ReviewRequest, review: JsonObject, response: JsonObject) -> None:
    uid = response.get("uid", "")
    if uid != question.uid:
        raise CallFailed(f"expected response.uid={quote(question.uid)}, got {quote(str(uid))}")
    version, kind = str(review.get("apiVersion", "")), str(review.get("kind", ""))
    if (version, kind) != (f"{GROUP}/v1", "AdmissionReview"):
        shown = f"{version if '/' in version else f'/{version}'}, Kind={kind}"
        raise CallFailed(f"expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {shown}")


def _verify_patch(response: JsonObject, patch: bytes, *, mutating: bool) -> None:
    sort = response.get("patchType")
    if not mutating:
        if patch:
            raise CallFailed("validating webhook may not return response.patch")
        if sort is not None:
            raise CallFailed("validating webhook may not return response.patchType")
        return
    if patch and sort is None:
        raise CallFailed("webhook returned response.patch but not response.patchType")
    if not patch and sort is not None:
        raise CallFailed("webhook returned response.patchType but not response.patch")
    if sort == "":
        raise CallFailed('webhook returned invalid response.patchType of ""')


def _patch(response: JsonObject) -> bytes:
    found = response.get("patch")
    if found is None:
        return b""
    try:
        return base64.b64decode(str(found), validate=True)
    except binascii.Error:
        raise CallFailed("failed to call webhook: illegal base64 data in response.patch") from None


def denial(name: str, result: JsonObject) -> StatusError:
    """Return the error of a write that a webhook denied."""
    denied = f"admission webhook {quote(name)} denied the request"
    code = result.get("code")
    reason = str(result.get("reason") or "")
    if message := str(result.get("message") or ""):
        text = f"{denied}: {message}"
    elif reason:
        text = f"{denied}: {reason}"
    else:
        text = f"{denied} without explanation"
    details = result.get("details")
    return StatusError(
        code if isinstance(code, int) and code >= 400 else 400,
        reason,
        text,
        cast(JsonObject, details) if isinstance(details, dict) else None,
        metadata=section(result, "metadata"),
    )
