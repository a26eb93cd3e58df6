"""AdmissionReviews: the request to a webhook, and the validation of its response."""

import base64
import re
import uuid
from dataclasses import dataclass

import msgspec

from kubewright.api import GroupVersionKind
from kubewright.devserver.admission.versions import VersionedAttributes, admission_request
from kubewright.devserver.objects import JsonObject, encode, items, section
from kubewright.devserver.objects.status import StatusError, quote
from kubewright.devserver.webhook_client import CallFailed, read_review

GROUP = "admission.k8s.io"
KIND = "AdmissionReview"
_SCHEME = "k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go:64"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Characters that a Warning header cannot have."""
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
    """Read a webhook's response; one that does not follow the rules is a failed call."""
    try:
        review = read_review(body, GroupVersionKind(GROUP, question.version, KIND), _VERSIONS, _SCHEME)
    except CallFailed as error:
        raise CallFailed(f"failed to call webhook: {error}") from None
    try:
        return _verify(question, review, mutating=mutating)
    except CallFailed as error:
        raise CallFailed(f"received invalid webhook response: {error}") from None


def _verify(question: ReviewRequest, review: JsonObject, *, mutating: bool) -> ReviewResponse:
    response: JsonObject | None = review.get("response")
    if response is None:
        raise CallFailed("webhook response was absent")
    patch = base64.b64decode(response.get("patch") or "")
    patch_type = "JSONPatch"
    if question.version == "v1":
        patch_type = response.get("patchType") or ""
        _verify_identity(question, review, response)
        _verify_patch(response, patch, mutating=mutating)
    return ReviewResponse(
        response["allowed"],
        section(response, "status"),
        patch if mutating else b"",
        patch_type,
        [text for text in items(response, "warnings") if text and not _CONTROL.search(text)],
        section(response, "auditAnnotations"),
    )


def _verify_identity(question: ReviewRequest, review: JsonObject, response: JsonObject) -> None:
    if response["uid"] != question.uid:
        raise CallFailed(f"expected response.uid={quote(question.uid)}, got {quote(response['uid'])}")
    version, kind = review.get("apiVersion", ""), review.get("kind", "")
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


def denial(name: str, result: JsonObject) -> StatusError:
    """Return the error of a write that a webhook denied."""
    denied = f"admission webhook {quote(name)} denied the request"
    reason, status = result.get("reason", ""), result.get("status", "")
    if message := result.get("message", ""):
        text = f"{denied}: {message}"
    elif reason:
        text = f"{denied}: {reason}"
    else:
        text = f"{denied} without explanation"
    return StatusError(
        max(result.get("code", 0), 400),
        reason,
        text,
        result.get("details"),
        metadata=section(result, "metadata"),
        status="Failure" if status in ("", "Success") else status,
    )
