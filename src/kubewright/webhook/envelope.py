"""What both kinds of review share: bodies that are no review, and how that is said."""

from typing import TypeVar

import msgspec

from kubewright.api import KubewrightError

T = TypeVar("T", bound=msgspec.Struct)


class BadReview(KubewrightError):
    """A body that is no review we can answer."""


class Typed(msgspec.Struct, gc=False, rename="camel"):
    """The identity that every document begins with."""

    api_version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""


_typed = msgspec.json.Decoder(Typed)


def identity(data: bytes | msgspec.Raw) -> Typed:
    """Read apiVersion and kind of a document."""
    try:
        return _typed.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"not a Kubernetes object: {error}") from error


def read_review(decoder: msgspec.json.Decoder[T], body: bytes, api_version: str, kind: str) -> T:
    """Read a review of one kind and version."""
    if not body:
        raise BadReview("request body is empty")
    found = identity(body)
    if found.kind != kind:
        raise BadReview(f"expected {kind}, got {found.kind or 'a document without kind'}")
    if found.api_version != api_version:
        raise BadReview(
            f"{kind} {found.api_version or 'without apiVersion'} is not spoken here: use {api_version}"
        )
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"not a {kind}: {error}") from error
