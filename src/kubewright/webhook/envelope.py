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


def read_review(
    decoder: msgspec.json.Decoder[T], body: bytes, kind: str, *api_versions: str
) -> tuple[T, str]:
    """Read a review of a kind in one of some versions; gives the one it is in, too."""
    if not body:
        raise BadReview("request body is empty")
    found = identity(body)
    if found.kind != kind:
        raise BadReview(f"expected {kind}, got {found.kind or 'a document without kind'}")
    if found.api_version not in api_versions:
        raise BadReview(
            f"{kind} {found.api_version or 'without apiVersion'} is not spoken here: use {api_versions[0]}"
        )
    try:
        return decoder.decode(body), found.api_version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"not a {kind}: {error}") from error
