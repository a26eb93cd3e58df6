"""Requests that a kind answers itself: connections, special subresources, kinds that are never stored."""

from dataclasses import replace
from typing import Literal

from kubewright.api import GroupVersionKind
from kubewright.devserver.handlers.bodies import read_kind, read_object
from kubewright.devserver.handlers.call import Call
from kubewright.devserver.merge import update_managed_fields
from kubewright.devserver.objects import JsonObject, encode, order_object, section
from kubewright.devserver.objects.metadata import wipe_system_fields
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.admission import Operation
from kubewright.devserver.request.negotiation import Format
from kubewright.devserver.request.options import WriteOptions, write_options
from kubewright.devserver.strategy import Endpoint, Invocation, Outcome
from kubewright.http.server import Answer

_FLAGS = ("stdin", "stdout", "stderr", "tty")
_TOKEN_SECONDS = 3600
# The scheduler names the Pod it means by uid and version.
# The real server makes this answer anew, so that nobody owns it.
_UNMANAGED = frozenset({"SelfSubjectRulesReview"})
_KEEPS_SYSTEM_FIELDS = "Binding"


async def connect(call: Call, endpoint: Endpoint | None) -> Answer:
    """Let a kind answer one of its special subresources, if admission agrees."""
    gvk = call.resource.subresources[call.info.subresource].gvk
    if gvk.kind.endswith("Options"):
        return await _open(call, endpoint, gvk)
    if endpoint is None:
        raise _unanswered(call)
    if call.info.verb != "create":
        return await _invoke(call, endpoint, WriteOptions(), call.format(), gvk, None)
    form = call.format()
    options = write_options(call.request, "CreateOptions")
    body: JsonObject = {}
    if call.core.types.has(gvk):
        body = read_kind(call.core, call.request, gvk, options.field_validation, call.warnings).object
    body["kind"], body["apiVersion"] = gvk.kind, gvk.api_version
    if gvk.kind == "TokenRequest":
        body["spec"]["expirationSeconds"] = body["spec"].get("expirationSeconds") or _TOKEN_SECONDS
    return await _make(call, endpoint, options, form, gvk, body)


async def create_transient(call: Call, endpoint: Endpoint) -> Answer:
    """Let a kind that is never stored answer what a client creates of it."""
    form = call.format()
    options = write_options(call.request, "CreateOptions")
    body = read_object(call.core, call.request, call.resource, options.field_validation, call.warnings)
    return await _make(call, endpoint, options, form, call.resource.gvk, body.object)


async def _make(
    call: Call,
    endpoint: Endpoint,
    options: WriteOptions,
    form: Format,
    gvk: GroupVersionKind,
    body: JsonObject,
) -> Answer:
    scope = call.scope(options, subresource=call.info.subresource)
    if gvk.kind != _KEEPS_SYSTEM_FIELDS:
        wipe_system_fields(body)
    scope.place(body)
    types = call.core.types
    schema, empty = types.merge_schema(gvk), types.zero(gvk)
    write = replace(scope.write(), api_version=gvk.api_version)
    if gvk.kind not in _UNMANAGED:
        body = update_managed_fields(schema, empty, body, write)
    operation = _operation(call, gvk, "CREATE", body, options)
    await call.core.admission.admit(operation)
    return await _invoke(call, endpoint, options, form, gvk, body)


async def _open(call: Call, endpoint: Endpoint | None, gvk: GroupVersionKind) -> Answer:
    """Open a connection; what admission changes in its options changes nothing."""
    asked = _connection(call, gvk)
    operation = _operation(call, gvk, "CONNECT", asked, None)
    await call.core.admission.admit(operation)
    await call.core.admission.validate(_operation(call, gvk, "CONNECT", asked, None))
    if endpoint is None:
        raise _unanswered(call)
    return await _invoke(call, endpoint, WriteOptions(), call.format(), gvk, None)


def _connection(call: Call, gvk: GroupVersionKind) -> JsonObject:
    """Read from a query what a connection is to be like."""
    request = call.request
    options: JsonObject = {"kind": gvk.kind, "apiVersion": gvk.api_version}
    if gvk.kind.endswith("ProxyOptions"):
        path = f"/{'/'.join(call.info.rest)}" if call.info.rest else request.one("path")
        return options | ({"path": path} if path else {})
    if gvk.kind == "PodPortForwardOptions":
        ports = [int(text) for each in request.query.get("ports", ()) for text in each.split(",") if text]
        return options | ({"ports": ports} if ports else {})
    options |= {name: True for name in _FLAGS if request.flag(name)}
    if container := request.one("container"):
        options["container"] = container
    if command := request.query.get("command"):
        options["command"] = list(command)
    return options


def _operation(
    call: Call,
    gvk: GroupVersionKind,
    verb: Literal["CREATE", "CONNECT"],
    obj: JsonObject,
    options: WriteOptions | None,
) -> Operation:
    return Operation(
        gvk,
        call.resource.gvr,
        call.info.subresource,
        verb,
        call.info.name or section(obj, "metadata").get("name", ""),
        call.info.namespace,
        obj,
        None,
        None if options is None else options.wire("CreateOptions"),
        call.user,
        options is not None and options.dry_run,
        call.warnings,
    )


async def _invoke(
    call: Call,
    endpoint: Endpoint,
    options: WriteOptions,
    form: Format,
    gvk: GroupVersionKind,
    body: JsonObject | None,
) -> Answer:
    async def judge(made: JsonObject) -> None:
        await call.core.admission.validate(_operation(call, gvk, "CREATE", made, options))

    outcome = await endpoint(
        Invocation(
            call.api,
            call.request,
            call.info.verb,
            gvk,
            call.info.namespace,
            call.info.name,
            call.info.subresource,
            body,
            options,
            call.user,
            call.warnings,
            call.core.clock,
            judge,
        )
    )
    if not isinstance(outcome, Outcome):
        return outcome
    return call.plain(outcome.status, encode(order_object(outcome.object)), form)


def _unanswered(call: Call) -> StatusError:
    name = f"{call.resource.group_resource}/{call.info.subresource}"
    return StatusError(501, "NotImplemented", f"the development server does not answer {name}")
