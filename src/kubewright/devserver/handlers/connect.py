"""Requests that a kind responds to itself: connections, special subresources, and kinds that are never stored."""

from typing import Literal

from msgspec.structs import replace

from kubewright.api import GroupVersionKind, problems
from kubewright.devserver.handlers.bodies import read_kind, read_object
from kubewright.devserver.handlers.resource_request import ResourceRequest
from kubewright.devserver.merge import update_managed_fields
from kubewright.devserver.objects import JsonObject, encode, order_object, section
from kubewright.devserver.objects.metadata import drop_repeated_owners, wipe_system_fields
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.admission import AdmissionAttributes
from kubewright.devserver.request.identity import AuthorizationAttributes, forbidden
from kubewright.devserver.request.negotiation import ResponseFormat
from kubewright.devserver.request.options import WriteParameters, write_options
from kubewright.devserver.strategy import EndpointRequest, EndpointResult, SubresourceEndpoint
from kubewright.http.server import ServerResponse

_FLAGS = ("stdin", "stdout", "stderr", "tty")
_TOKEN_SECONDS = 3600
# The scheduler names the Pod it means by uid and version.
# kube-apiserver responds with a new object, which has no managedFields.
_UNMANAGED = frozenset({"SelfSubjectRulesReview"})
_KEEPS_SYSTEM_FIELDS = "Binding"


async def connect(target: ResourceRequest, endpoint: SubresourceEndpoint | None) -> ServerResponse:
    """Run admission, then the kind's endpoint of a subresource."""
    gvk = target.resource.subresources[target.info.subresource].gvk
    if gvk.kind.endswith("Options"):
        return await _open(target, endpoint, gvk)
    if endpoint is None:
        raise _not_served(target)
    if target.info.verb != "create":
        return await _invoke(target, endpoint, WriteParameters(), target.format(), gvk, None)
    form = target.format()
    options = write_options(target.request, "CreateOptions")
    body: JsonObject = {}
    if target.core.types.has(gvk):
        body = read_kind(
            target.core, target.request, gvk, options.field_validation, target.context.warnings
        ).object
    body["kind"], body["apiVersion"] = gvk.kind, gvk.api_version
    if gvk.kind == "TokenRequest":
        body["spec"]["expirationSeconds"] = body["spec"].get("expirationSeconds") or _TOKEN_SECONDS
    return await _make(target, endpoint, options, form, gvk, body)


async def create_transient(target: ResourceRequest, endpoint: SubresourceEndpoint) -> ServerResponse:
    """Run admission, then the endpoint of a kind that is never stored."""
    form = target.format(plain=True)
    options = write_options(target.request, "CreateOptions")
    body = read_object(
        target.core, target.request, target.resource, options.field_validation, target.context.warnings
    )
    return await _make(target, endpoint, options, form, target.resource.gvk, body.object)


async def _make(
    target: ResourceRequest,
    endpoint: SubresourceEndpoint,
    options: WriteParameters,
    form: ResponseFormat,
    gvk: GroupVersionKind,
    body: JsonObject,
) -> ServerResponse:
    write = target.write(options, subresource=target.info.subresource)
    if gvk.kind != _KEEPS_SYSTEM_FIELDS:
        wipe_system_fields(body)
    write.place(body)
    drop_repeated_owners(body, write.warnings)
    types = target.core.types
    schema, empty = types.merge_schema(gvk), types.zero(gvk)
    field_write = replace(write.field_write(), api_version=gvk.api_version)
    if gvk.kind not in _UNMANAGED:
        body = update_managed_fields(schema, empty, body, field_write)
    attributes = _attributes(target, gvk, "CREATE", body, options)
    await target.core.admission.admit(attributes)
    drop_repeated_owners(body, write.warnings, admitted=True)
    return await _invoke(target, endpoint, options, form, gvk, body)


async def _open(
    target: ResourceRequest, endpoint: SubresourceEndpoint | None, gvk: GroupVersionKind
) -> ServerResponse:
    """Open a connection; changes of its options by admission are ignored, as in kube-apiserver."""
    connection = _connection(target, gvk)
    attributes = _attributes(target, gvk, "CONNECT", connection, None)
    await target.core.admission.admit(attributes)
    await target.core.admission.validate(_attributes(target, gvk, "CONNECT", connection, None))
    if endpoint is None:
        raise _not_served(target)
    return await _invoke(target, endpoint, WriteParameters(), target.format(), gvk, None)


def _connection(target: ResourceRequest, gvk: GroupVersionKind) -> JsonObject:
    """Return the options object of a connection from the query."""
    request = target.request
    options: JsonObject = {"kind": gvk.kind, "apiVersion": gvk.api_version}
    if gvk.kind.endswith("ProxyOptions"):
        path = f"/{'/'.join(target.info.rest)}" if target.info.rest else request.one("path")
        return options | ({"path": path} if path else {})
    if gvk.kind == "PodPortForwardOptions":
        texts = [text for each in request.query.get("ports", ()) for text in each.split(",")]
        return options | ({"ports": [_port(text) for text in texts]} if texts else {})
    options |= {name: True for name in _FLAGS if request.flag(name)}
    if container := request.one("container"):
        options["container"] = container
    if command := request.query.get("command"):
        options["command"] = list(command)
    return options


def _port(text: str) -> int:
    """Parse a port as kube-apiserver does, with its message."""
    if not text.isdecimal() or not text.isascii():
        why = "invalid syntax"
    elif int(text) > 65535:
        why = "value out of range"
    else:
        return int(text)
    why = f"strconv.ParseUint: parsing {problems.quoted(text)}: {why}"
    raise StatusError.bad_request(f"cannot convert to []int32: {why}")


def _attributes(
    target: ResourceRequest,
    gvk: GroupVersionKind,
    verb: Literal["CREATE", "CONNECT"],
    obj: JsonObject,
    options: WriteParameters | None,
) -> AdmissionAttributes:
    return AdmissionAttributes(
        target.context,
        gvk,
        target.resource.gvr,
        target.info.subresource,
        verb,
        target.info.name or section(obj, "metadata").get("name", ""),
        target.info.namespace,
        obj,
        None,
        None if options is None else options.wire("CreateOptions"),
        options is not None and options.dry_run,
    )


async def _invoke(
    target: ResourceRequest,
    endpoint: SubresourceEndpoint,
    options: WriteParameters,
    form: ResponseFormat,
    gvk: GroupVersionKind,
    body: JsonObject | None,
) -> ServerResponse:
    async def run_validating_admission(created: JsonObject) -> None:
        await target.core.admission.validate(_attributes(target, gvk, "CREATE", created, options))

    def authorize_create() -> None:
        if not core.types.release.enabled("AuthorizePodWebsocketUpgradeCreatePermission"):
            return
        attributes = replace(AuthorizationAttributes.of(target.info), verb="create")
        decision = core.authorizer.authorize(target.context.user, attributes)
        if not decision.allowed:
            raise forbidden(target.context.user, attributes, decision.reason)

    core = target.core
    outcome = await endpoint(
        EndpointRequest(
            target.context,
            core.api,
            core.clock,
            gvk,
            body,
            options,
            run_validating_admission,
            authorize_create,
        )
    )
    if not isinstance(outcome, EndpointResult):
        return outcome
    document = outcome.object
    if not core.types.release.is_current:
        # Earlier releases write some empty fields, such as a creationTimestamp.
        found = GroupVersionKind.parse(document["apiVersion"], document["kind"])
        document = core.types.decode(found, document)[0]
    return target.respond_encoded(outcome.status, encode(order_object(document)), form)


def _not_served(target: ResourceRequest) -> StatusError:
    name = f"{target.resource.group_resource}/{target.info.subresource}"
    return StatusError(501, "NotImplemented", f"the development server does not implement {name}")
