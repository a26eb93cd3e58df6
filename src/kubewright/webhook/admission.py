"""Respond to AdmissionReviews with the author's functions (pure functions).

`read_admission` decodes a body into an `AdmissionCall`, the author's function is called with its arguments, and
`AdmissionCall.response` encodes what it found. `review_admission` does all of it for a function that is not async.
"""

from binascii import b2a_base64
from collections.abc import Iterable
from functools import cache
from typing import Any, cast

import msgspec

from kubewright.api import (
    DecodeError,
    FieldError,
    GroupVersionKind,
    JsonObject,
    Kind,
    decode,
    invalid_message,
    json_diff,
    kind_of,
    parse,
    typed_diff,
)
from kubewright.api.identity import GroupVersionResource
from kubewright.webhook.declaration import Admission, Findings
from kubewright.webhook.envelope import BadReview, identity, read_review
from kubewright.webhook.findings import AuditAnnotation, Denial, Problem, Warned
from kubewright.webhook.request import AdmissionRequest, Operation, User

API_VERSION = "admission.k8s.io/v1"
OLD_API_VERSION = "admission.k8s.io/v1beta1"
KIND = "AdmissionReview"
_OPERATIONS: dict[str, Operation] = {
    "CREATE": "create",
    "UPDATE": "update",
    "DELETE": "delete",
    "CONNECT": "connect",
}


class _Kind(msgspec.Struct, gc=False):
    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)


class _Resource(msgspec.Struct, gc=False):
    group: str = ""
    version: str = ""
    resource: str = ""

    @property
    def gvr(self) -> GroupVersionResource:
        return GroupVersionResource(self.group, self.version, self.resource)


class _Request(msgspec.Struct, gc=False, rename="camel"):
    uid: str
    kind: _Kind
    operation: str
    resource: _Resource
    sub_resource: str = ""
    request_kind: _Kind | None = None
    request_resource: _Resource | None = None
    request_sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: User = User()
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    dry_run: bool | None = None
    options: dict[str, Any] | None = None


class _Review(msgspec.Struct, gc=False):
    request: _Request


_encoder = msgspec.json.Encoder()


@cache
def _decoder() -> msgspec.json.Decoder[_Review]:
    """Return the decoder of reviews, created on first use: most operators have no webhooks."""
    return msgspec.json.Decoder(_Review)


class UserCodeFailed(Exception):
    """The author's function raised an exception, which is the cause of this one."""

    def __init__(self, uid: str, request: AdmissionRequest, version: str) -> None:
        super().__init__(uid)
        self.uid = uid
        self.request = request
        self.version = version


class _Verdict(msgspec.Struct):
    errors: list[FieldError] = msgspec.field(default_factory=list[FieldError])
    denials: list[Denial] = msgspec.field(default_factory=list[Denial])
    warnings: list[str] = msgspec.field(default_factory=list[str])
    notes: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class AdmissionCall(msgspec.Struct, frozen=True):
    """One decoded AdmissionReview, before the author's function is called."""

    webhook: Admission[Any]
    subject: Any
    old: Any
    request: AdmissionRequest
    _object: msgspec.Raw
    _version: str

    def run(self) -> Findings:
        """Call a function that is not async; raise UserCodeFailed if it raises an exception."""
        try:
            return self.webhook.call(self.subject, self.old, self.request)
        except Exception as error:
            raise self._failed() from error

    async def run_async(self) -> Findings:
        """Call an async function; raise UserCodeFailed if it raises an exception."""
        try:
            return await self.webhook.call_async(self.subject, self.old, self.request)
        except Exception as error:
            raise self._failed() from error

    def response(self, findings: Findings) -> bytes:
        """Return the review with the findings; raise UserCodeFailed if they cannot be encoded."""
        try:
            verdict = _gather(findings)
        except Exception as error:
            raise self._failed() from error
        webhook = self.webhook
        response: JsonObject = {"uid": self.request.uid, "allowed": not (verdict.errors or verdict.denials)}
        if not response["allowed"]:
            response["status"] = _refusal(verdict, webhook.kind, self.request)
        elif webhook.mutates and (operations := _patch(webhook.kind, self.subject, self._object)):
            response["patch"] = b2a_base64(_encoder.encode(operations), newline=False).decode()
            response["patchType"] = "JSONPatch"
        if verdict.warnings:
            response["warnings"] = verdict.warnings
        if verdict.notes:
            response["auditAnnotations"] = verdict.notes
        return _review(response, self._version)

    def _failed(self) -> UserCodeFailed:
        return UserCodeFailed(self.request.uid, self.request, self._version)


def read_admission(webhook: Admission[Any], body: bytes) -> AdmissionCall | bytes:
    """Read one AdmissionReview; return the response if the author's function need not be called.

    Raise BadReview for a body that is not a review.
    """
    review, version = read_review(_decoder(), body, KIND, API_VERSION, OLD_API_VERSION)
    wire = review.request
    if not wire.uid:
        raise BadReview("request.uid is missing")
    if wire.operation not in _OPERATIONS:
        raise BadReview(f"request.operation {wire.operation!r} is not known")
    if not webhook.terminating and _lets_go(wire):
        return _review({"uid": wire.uid, "allowed": True}, version)
    request = _request(wire)
    try:
        subject, old = _objects(webhook.kind, wire, request)
    except (DecodeError, BadReview) as error:
        return failure(wire.uid, 400, "BadRequest", str(error), version)
    return AdmissionCall(webhook, subject, old, request, wire.object, version)


def review_admission(webhook: Admission[Any], body: bytes) -> bytes:
    """Respond to one AdmissionReview with a function that is not async.

    Raise BadReview for a body that is not a review, UserCodeFailed if the function raises.
    """
    call = read_admission(webhook, body)
    return call if isinstance(call, bytes) else call.response(call.run())


def failure(uid: str, code: int, reason: str, message: str, version: str = API_VERSION) -> bytes:
    """Return the review that denies the request because of a failure."""
    status = {"status": "Failure", "message": message, "reason": reason, "code": code}
    return _review({"uid": uid, "allowed": False, "status": status}, version)


def _review(response: JsonObject, version: str) -> bytes:
    return _encoder.encode({"apiVersion": version, "kind": KIND, "response": response})


def _lets_go(wire: _Request) -> bool:
    """Return True if nothing but the metadata of a terminating object changes, as when a finalizer is removed.

    Such an object may be older than a rule that it violates, or than its class. Validation would keep it forever.
    """
    old = bytes(wire.old_object)
    if wire.operation != "UPDATE" or wire.sub_resource or b'"deletionTimestamp"' not in old:
        return False
    try:
        before, after = (msgspec.json.decode(raw, type=JsonObject) for raw in (old, wire.object))
    except msgspec.DecodeError:
        return False
    metadata: object = before.pop("metadata", None)
    after.pop("metadata", None)
    return isinstance(metadata, dict) and "deletionTimestamp" in metadata and before == after


def _request(wire: _Request) -> AdmissionRequest:
    return AdmissionRequest(
        uid=wire.uid,
        operation=_OPERATIONS[wire.operation],
        kind=wire.kind.gvk,
        resource=wire.resource.gvr,
        subresource=wire.sub_resource,
        request_kind=(wire.request_kind or wire.kind).gvk,
        request_resource=(wire.request_resource or wire.resource).gvr,
        request_subresource=wire.request_sub_resource or wire.sub_resource,
        name=wire.name,
        namespace=wire.namespace,
        user=wire.user_info,
        dry_run=bool(wire.dry_run),
        options=wire.options or {},
    )


def _objects(declared: Any, wire: _Request, request: AdmissionRequest) -> tuple[Any, Any]:
    """Return the object to validate and the old one; a deleted object is both."""
    expected = kind_of(declared).gvk
    if request.kind != expected:
        raise BadReview(f"expected {_name(expected)}, got {_name(request.kind)}")
    subject, old = _read(declared, wire.object, "object"), _read(declared, wire.old_object, "oldObject")
    if request.operation == "delete":
        subject = old
    if subject is None:
        where = "oldObject" if request.operation == "delete" else "object"
        raise BadReview(f"request.{where} is missing")
    if request.operation == "update" and old is None:
        raise BadReview("request.oldObject is missing")
    return subject, old


def _read(declared: Any, raw: msgspec.Raw, where: str) -> Any:
    data = bytes(raw)
    if data == b"null":
        return None
    found, expected = identity(data), kind_of(declared)
    if (found.api_version, found.kind) != (expected.api_version, expected.kind):
        got = f"{found.kind or 'nothing'} of {found.api_version or 'no version'}"
        raise BadReview(f"request.{where}: expected {_name(expected.gvk)}, got {got}")
    return parse(data) if isinstance(declared, Kind) else decode(declared, data)


def _name(gvk: GroupVersionKind) -> str:
    return f"{gvk.kind} of {gvk.api_version}"


def _gather(findings: Findings) -> _Verdict:
    verdict = _Verdict()
    if not isinstance(cast(object, findings), Iterable | None):
        raise TypeError(f"returned {findings!r}: return a list of what was found, or yield it")
    for finding in findings or ():
        match cast("Problem | object", finding):
            case FieldError():
                verdict.errors.append(cast(FieldError, finding))
            case Denial():
                verdict.denials.append(cast(Denial, finding))
            case Warned(text):
                verdict.warnings.append(text)
            case AuditAnnotation(key, value):
                verdict.notes[key] = value
            case other:
                raise TypeError(
                    f"found {other!r}: return or yield kw.admission.invalid(...), kw.admission.warning(...) and their kin"
                )
    return verdict


def _refusal(verdict: _Verdict, declared: Any, request: AdmissionRequest) -> JsonObject:
    kind = kind_of(declared)
    texts = [denial.message for denial in verdict.denials]
    code, reason = 422, "Invalid"
    if verdict.errors:
        named = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
        texts.append(invalid_message(named, request.name, verdict.errors))
    else:
        code, reason = verdict.denials[0].code, verdict.denials[0].reason
    details: JsonObject = {"name": request.name, "group": kind.group, "kind": kind.kind}
    details["causes"] = [error.cause() for error in verdict.errors]
    return {
        "status": "Failure",
        "message": "; ".join(texts),
        "reason": reason,
        "details": {key: value for key, value in details.items() if value},
        "code": code,
    }


def _patch(declared: Any, after: Any, raw: msgspec.Raw) -> list[JsonObject]:
    """Return the author's changes as a patch of the received object."""
    data = bytes(raw)
    if isinstance(declared, Kind):
        return json_diff(parse(data), after)
    before = decode(declared, data)
    return typed_diff(before, after, parse(data)) if before != after else []
