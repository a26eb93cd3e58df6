"""Reading the bodies of admission, conversion and token reviews."""

from typing import TypeVar

import msgspec

from kubewright.api import KubewrightError

T = TypeVar("T", bound=msgspec.Struct)


class BadReview(KubewrightError):
    """The body is not a supported review."""


class Typed(msgspec.Struct, gc=False, rename="camel"):
    """apiVersion and kind, which every document has."""

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
    """Read a review of a kind in one of several versions; return its version too."""
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
