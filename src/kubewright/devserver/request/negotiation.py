"""The form and format of a response: the Accept header, as kube-apiserver reads it."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from kubewright.devserver.objects.status import StatusError
from kubewright.http.server import JSON

YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
OFFERED = (JSON, YAML, PROTOBUF)
_STREAMED = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")

Form = Literal["object", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]


class Clause(NamedTuple):
    """One clause of an Accept header."""

    media: str
    params: dict[str, str]
    quality: float


class ResponseFormat(NamedTuple):
    """The form of a response and its media type."""

    media: str
    form: Form
    version: str = "v1"


@lru_cache(maxsize=256)
def parse_accept(header: str) -> tuple[Clause, ...]:
    """Return the clauses of an Accept header, by preference."""
    clauses: list[Clause] = []
    for part in header.split(","):
        media, *raw = (piece.strip() for piece in part.split(";"))
        if not media:
            continue
        params = dict[str, str]()
        for item in raw:
            name, _, value = item.partition("=")
            params[name.strip()] = value.strip().strip('"')
        try:
            quality = float(params.pop("q", "1"))
        except ValueError:
            quality = 1.0
        clauses.append(Clause(media.lower(), params, quality))
    clauses.sort(key=lambda clause: (-clause.quality, clause.media.count("*")))
    return tuple(clauses)


def _offers(media: str, offered: str) -> bool:
    if media in ("*/*", offered):
        return True
    kind, _, sub = media.partition("/")
    return sub == "*" and offered.startswith(f"{kind}/")


@lru_cache(maxsize=512)
def negotiate(header: str, *, custom: bool, many: bool = False) -> ResponseFormat:
    """Choose the form of a response with an object or a list; raise if no accepted form is available."""
    clauses = parse_accept(header)
    if not clauses:
        return ResponseFormat(JSON, "object")
    if not custom:
        # The router of built-in resources supports only the wildcard for everything.
        clauses = tuple(clause for clause in clauses if clause.media in ("*/*", *OFFERED))
    for clause in clauses:
        form = _form(clause.params)
        for media in OFFERED:
            if form is not None and _offers(clause.media, media) and _written(form, media, custom=custom):
                return ResponseFormat(media, form, clause.params.get("v", "v1"))
    if custom or clauses:
        raise StatusError.not_acceptable(OFFERED)
    raise unroutable((*OFFERED, *_STREAMED) if many else OFFERED)


def unroutable(offered: Iterable[str]) -> StatusError:
    """Return the error of the router of built-in resources and documents."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
    return StatusError(406, "NotAcceptable", message, {})


def check_accepted(header: str, offered: Sequence[str]) -> None:
    """Raise NotAcceptable if a document, which is written in these media types, is not accepted."""
    accepted = {clause.media for clause in parse_accept(header)}
    if accepted and not accepted & {"*/*", *offered}:
        raise unroutable(offered)


def _written(form: Form, media: str, *, custom: bool) -> bool:
    """Return True if a form exists in a media type: Tables and custom resources are not messages of protobuf."""
    return media != PROTOBUF or (form != "Table" and not (custom and form == "object"))


def _form(params: dict[str, str]) -> Form | None:
    requested = params.get("as", "")
    if not requested:
        return "object"
    if params.get("g") != "meta.k8s.io" or params.get("v") not in ("v1", "v1beta1"):
        return None
    if requested == "Table":
        return "Table"
    if requested == "PartialObjectMetadata":
        return "PartialObjectMetadata"
    return "PartialObjectMetadataList" if requested == "PartialObjectMetadataList" else None


@lru_cache(maxsize=128)
def negotiate_watch(header: str, *, custom: bool) -> ResponseFormat:
    """Choose the form of a watch: as for lists, but there is no stream of YAML documents."""
    found = negotiate(header, custom=custom, many=True)
    if found.media == YAML:
        raise StatusError.not_acceptable(_STREAMED)
    return found


@lru_cache(maxsize=128)
def negotiate_plain(header: str) -> str | None:
    """Return the media type of a Status or a discovery document, or None if none is accepted."""
    for clause in parse_accept(header) or (Clause(JSON, {}, 1.0),):
        for media in OFFERED:
            if not clause.params.get("as") and _offers(clause.media, media):
                return media
    return None


def aggregated_version(header: str) -> str:
    """Return the version of aggregated discovery that is requested, or nothing for the older form."""
    for clause in parse_accept(header):
        if not _offers(clause.media, JSON):
            continue
        requested = clause.params.get("as", "")
        if not requested:
            return ""
        version = clause.params.get("v", "")
        group = clause.params.get("g")
        if (
            requested == "APIGroupDiscoveryList"
            and group == "apidiscovery.k8s.io"
            and version in ("v2", "v2beta1")
        ):
            return version
    return ""
