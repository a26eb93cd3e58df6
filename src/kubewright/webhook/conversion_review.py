"""Respond to ConversionReviews: all objects converted, or a failure with the names of those that cannot be."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubewright.api import DecodeError, GroupVersionKind, JsonObject, Meta, Object, decode, to_wire
from kubewright.guards import must_propagate, text_of
from kubewright.webhook.conversion import Versions
from kubewright.webhook.envelope import BadReview, identity, read_review

API_VERSION = "apiextensions.k8s.io/v1"
KIND = "ConversionReview"
MAX_REPORTED = 10

ByKind = Mapping[tuple[str, str], Versions]


class _Request(msgspec.Struct, gc=False):
    uid: str
    desired: str = msgspec.field(name="desiredAPIVersion")
    objects: list[msgspec.Raw]


class _Review(msgspec.Struct, gc=False):
    request: _Request


class _Name(msgspec.Struct, gc=False, frozen=True):
    name: str = ""
    namespace: str = ""


class _Named(msgspec.Struct, gc=False):
    metadata: _Name = _Name()


class _Described(msgspec.Struct, gc=False):
    metadata: dict[str, msgspec.Raw] = {}


_reviews = msgspec.json.Decoder(_Review)
_named = msgspec.json.Decoder(_Named)
_described = msgspec.json.Decoder(_Described)
_encoder = msgspec.json.Encoder()


class CannotConvert(Exception):
    """An object that cannot be converted; `surprise` is the exception of the author's function."""

    def __init__(self, message: str, surprise: BaseException | None = None) -> None:
        super().__init__(message)
        self.surprise = surprise


class ConversionResult(msgspec.Struct, frozen=True):
    """The review to return, and the exceptions of the author's functions, for the log."""

    body: bytes
    surprises: tuple[BaseException, ...] = ()


def review_conversion(kinds: ByKind, body: bytes) -> ConversionResult:
    """Respond to one ConversionReview; raise BadReview for a body that is not one.

    There is no partial success: one object that cannot be converted fails the request, and is named.
    """
    request = read_review(_reviews, body, KIND, API_VERSION)[0].request
    if not request.uid:
        raise BadReview("request.uid is missing")
    converted: list[msgspec.Raw] = []
    failures: list[CannotConvert] = []
    for raw in request.objects:
        try:
            converted.append(_convert(kinds, raw, request.desired))
        except CannotConvert as error:
            failures.append(error)
    surprises = tuple(error.surprise for error in failures if error.surprise is not None)
    if failures:
        message = "; ".join(str(error) for error in failures[:MAX_REPORTED])
        if len(failures) > MAX_REPORTED:
            message += f"; and {len(failures) - MAX_REPORTED} more"
        return ConversionResult(conversion_failure(request.uid, message), surprises)
    success: JsonObject = {"uid": request.uid, "convertedObjects": converted, "result": {"status": "Success"}}
    return ConversionResult(_review(success))


def conversion_failure(uid: str, message: str) -> bytes:
    """Return the review that reports why nothing was converted."""
    return _review({"uid": uid, "convertedObjects": [], "result": {"status": "Failure", "message": message}})


def _review(response: JsonObject) -> bytes:
    return _encoder.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _convert(kinds: ByKind, raw: msgspec.Raw, desired: str) -> msgspec.Raw:
    try:
        found = identity(raw)
    except BadReview as error:
        raise CannotConvert(str(error)) from None
    if found.api_version == desired:
        return raw
    what = f"{found.kind or 'object'} {_name(raw)}"
    gvk = GroupVersionKind.parse(found.api_version, found.kind)
    versions = kinds.get((gvk.group, gvk.kind))
    if versions is None:
        raise CannotConvert(f"{what}: {found.kind or 'a kind'} of {found.api_version} is not converted here")
    for version in (found.api_version, desired):
        if version not in versions.classes:
            known = ", ".join(sorted(versions.classes))
            raise CannotConvert(f"{what}: there is no {version}: {versions.kind.kind} has {known}")
    try:
        subject = decode(versions.classes[found.api_version], bytes(raw))
    except DecodeError as error:
        raise CannotConvert(f"{what}: {error}") from None
    before = to_wire(subject.metadata)
    try:
        made = versions.convert(subject, desired)
        wire = to_wire(made)
    except BaseException as error:
        if must_propagate(error):
            raise
        text = f"{what}: conversion to {desired} failed: {type(error).__name__}: {text_of(error)}"
        raise CannotConvert(text, error) from error
    wire["metadata"] = _metadata(made, before, raw, what)
    return msgspec.Raw(_encoder.encode(wire))


def _metadata(made: Object, before: JsonObject, raw: msgspec.Raw, what: str) -> dict[str, Any]:
    """Return the received metadata with the author's labels and annotations; other changes are ignored."""
    kept: dict[str, Any] = dict(_described.decode(raw).metadata)
    if made.metadata == Meta():
        return kept
    after = to_wire(made.metadata)
    for name in ("labels", "annotations"):
        if before.pop(name, None) == (chosen := after.pop(name, None)):
            continue
        kept.pop(name, None)
        if chosen:
            kept[name] = chosen
    if before != after:
        wrong = next(key for key in (*before, *after) if before.get(key) != after.get(key))
        raise CannotConvert(
            f"{what}: the conversion changes metadata.{wrong}: only labels and annotations may change"
        )
    return kept


def _name(raw: msgspec.Raw) -> str:
    try:
        found = _named.decode(raw).metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "without a name"
    return f"{found.namespace}/{found.name}" if found.namespace else found.name
