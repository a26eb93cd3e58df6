"""Request bodies: media type, kind and fields are checked in kube-apiserver's order."""

from typing import Any, NamedTuple, cast

from kubewright.api import GroupVersionKind, problems
from kubewright.devserver.core import Core
from kubewright.devserver.merge import resets_ownership
from kubewright.devserver.objects import JsonObject, split_api_version
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ServedResource
from kubewright.devserver.request.negotiation import OFFERED, PROTOBUF, YAML
from kubewright.devserver.wire import (
    PARSE_ERROR,
    UnknownKind,
    WireDecodeError,
    find_kind,
    in_document_order,
    parse_json,
    parse_yaml,
    sort_keys,
    yaml_errors,
)
from kubewright.http.server import JSON, Request

_META_GROUP = "meta.k8s.io"
_FIRST_EVICTION = GroupVersionKind("policy", "v1beta1", "Eviction")
_SUMMARY = 30


class DecodedBody(NamedTuple):
    """A client's object, and whether it resets field ownership."""

    object: JsonObject
    forget: bool


def media_type(request: Request) -> str:
    """Return the body's media type without parameters; the default is JSON."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() or JSON


def parse(core: Core, request: Request, default: GroupVersionKind) -> tuple[Any, list[str]]:
    """Parse a body in any accepted format; also list repeated fields."""
    media = media_type(request)
    if media == JSON:
        return parse_json(request.body)
    if media == YAML:
        value, repeated = parse_yaml(request.body)
        # YAML becomes JSON first, whose keys are sorted: unknown fields are reported in that order.
        return sort_keys(value), repeated
    if media == PROTOBUF:
        return core.types.decode_protobuf(request.body, default)[1], []
    raise StatusError.unsupported_media_type(OFFERED)


def read_object(
    core: Core, request: Request, resource: ServedResource, validation: str, warnings: list[str]
) -> DecodedBody:
    """Read the object a client sends to a resource, canonical and with its defaults."""
    return read_kind(core, request, resource.gvk, validation, warnings, resource=resource)


def read_kind(
    core: Core,
    request: Request,
    gvk: GroupVersionKind,
    validation: str,
    warnings: list[str],
    *,
    resource: ServedResource | None = None,
) -> DecodedBody:
    """Read an object that should be of a kind; a resource adds its own defaults and schema."""
    try:
        value, strict = parse(core, request, gvk)
    except UnknownKind as error:
        raise unhandled(error.gvk, gvk, str(error)) from None
    except WireDecodeError as error:
        where = PARSE_ERROR if media_type(request) == JSON else ""
        raise _unrecognized(gvk, f"{where}{error}", request.body) from None
    if value is None:
        value = {}
    custom = resource is not None and resource.custom
    if not custom or not isinstance(value, dict):
        try:
            header = find_kind(value)
        except WireDecodeError as error:
            raise _unrecognized(gvk, str(error), request.body) from None
        value = cast(JsonObject, value) | header
    value = cast(JsonObject, value)
    forget = resets_ownership(value)
    found = _custom_kind(value, gvk, request.body) if custom else _builtin_kind(core, value, gvk)
    try:
        obj, unknown = resource.codec.decode(value) if resource is not None else core.types.decode(gvk, value)
    except WireDecodeError as error:
        raise unhandled(found, gvk, str(error)) from None
    if not custom and media_type(request) == JSON:
        strict = [text for text in _outside_of_unknown(strict, unknown) if not _is_raw(core, gvk, text)]
    faults = [*strict, *unknown]
    if strict and unknown and not custom and media_type(request) == JSON:
        faults = in_document_order(request.body, faults)
    if strict and validation == "Strict" and media_type(request) == YAML:
        faults = [yaml_errors(strict), *unknown]
    report_strict(faults, validation, warnings, found, gvk)
    if custom and found.kind != gvk.kind:
        obj["kind"] = found.kind
    if resource is not None:
        resource.codec.default(obj)
    return DecodedBody(obj, forget)


def _is_raw(core: Core, gvk: GroupVersionKind, repeated: str) -> bool:
    return core.types.is_raw(gvk, repeated.removeprefix('duplicate field "').removesuffix('"'))


def _outside_of_unknown(repeated: list[str], unknown: list[str]) -> list[str]:
    """Return the repeated fields that are neither unknown nor inside of an unknown field: those are not read at all."""
    if not repeated or not unknown:
        return repeated
    skipped = [text.removeprefix('unknown field "').removesuffix('"') for text in unknown]
    found: list[str] = []
    for text in repeated:
        path = text.removeprefix('duplicate field "').removesuffix('"')
        if not any(path == name or path.startswith((f"{name}.", f"{name}[")) for name in skipped):
            found.append(text)
    return found


def read_options(core: Core, request: Request, gvk: GroupVersionKind) -> JsonObject:
    """Read an options object, which may name any group version."""
    try:
        value, _ = parse(core, request, gvk)
    except WireDecodeError as error:
        raise StatusError.bad_request(f"{PARSE_ERROR}{error}") from None
    if not isinstance(value, dict):
        raise StatusError.bad_request("decoded object cannot be converted to DeleteOptions")
    value = cast(JsonObject, value)
    kind, version = value.get("kind") or gvk.kind, value.get("apiVersion") or "v1"
    if kind != gvk.kind:
        text = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise StatusError.bad_request(text)
    try:
        return core.types.decode(gvk, value)[0]
    except WireDecodeError as error:
        raise StatusError.bad_request(str(error)) from None


def report_strict(
    found: list[str], validation: str, warnings: list[str], kind: GroupVersionKind, expected: GroupVersionKind
) -> None:
    """Reject unknown and repeated fields or warn about them, according to `fieldValidation`."""
    if not found or validation == "Ignore":
        return
    if validation == "Strict":
        raise unhandled(kind, expected, f"strict decoding error: {', '.join(found)}")
    warnings.extend(found)


def unhandled(found: GroupVersionKind, expected: GroupVersionKind, why: str) -> StatusError:
    """Return the error for a body of another kind."""
    version = problems.quoted(found.version)
    return StatusError.bad_request(
        f"{found.kind} in version {version} cannot be handled as a {expected.kind}: {why}"
    )


def _builtin_kind(core: Core, value: JsonObject, gvk: GroupVersionKind) -> GroupVersionKind:
    group, version = split_api_version(str(value.get("apiVersion") or gvk.api_version))
    found = GroupVersionKind(group, version, str(value.get("kind") or gvk.kind))
    if found == gvk:
        return found
    if found.kind == gvk.kind and gvk.group == _META_GROUP:
        # Every group version has the options kinds under its own name too.
        return gvk
    if found == _FIRST_EVICTION and gvk.kind == found.kind:
        # Clients older than policy/v1 still evict with it, although it is no longer served.
        return gvk
    if not core.types.has(found):
        where = problems.quoted(found.api_version)
        text = f'no kind "{found.kind}" is registered for version {where} in scheme "pkg/api/legacyscheme/scheme.go:30"'
        raise unhandled(found, gvk, text)
    try:
        core.types.decode(found, value)
    except WireDecodeError as error:
        raise unhandled(found, gvk, str(error)) from None
    if found.kind == gvk.kind:
        raise StatusError.bad_request(
            f"the API version in the data ({found.api_version}) does not match the expected API version "
            f"({gvk.api_version})"
        )
    internal = gvk.group.partition(".")[0] or "core"
    raise unhandled(
        found,
        gvk,
        f"converting ({found.version}.{found.kind}) to ({internal}.{gvk.kind}): unknown conversion",
    )


def _custom_kind(value: JsonObject, gvk: GroupVersionKind, body: bytes) -> GroupVersionKind:
    kind = value.get("kind")
    if not kind:
        shown = body.decode(errors="replace")
        raise _unrecognized(gvk, f"Object 'Kind' is missing in '{shown}'", body)
    found = GroupVersionKind(*split_api_version(str(value.get("apiVersion") or "")), str(kind))
    if found.api_version != gvk.api_version:
        raise StatusError.bad_request(
            f"the API version in the data ({found.api_version}) does not match the expected API version "
            f"({gvk.api_version})"
        )
    return found


def _unrecognized(gvk: GroupVersionKind, why: str, body: bytes) -> StatusError:
    shown = "<empty>"
    if body[:1] == b"{":
        shown = body[:_SUMMARY].decode(errors="replace")
    elif body:
        shown = body[:_SUMMARY].hex()
    if len(body) > _SUMMARY:
        shown += " ..."
    return StatusError.bad_request(
        f"the object provided is unrecognized (must be of type {gvk.kind}): {why} ({shown})"
    )
