"""The verbs as HTTP handlers: read the request, do the work, write the response."""

from collections.abc import Coroutine
from typing import Any

from kubewright.api import GroupVersionKind, problems
from kubewright.devserver.handlers.bodies import read_kind, read_object, read_options
from kubewright.devserver.handlers.connect import create_transient
from kubewright.devserver.handlers.delete import warn_about_orphans
from kubewright.devserver.handlers.patch import applied, document_patch, patch_type, patched
from kubewright.devserver.handlers.pipeline import delete_undecodable, run_create, run_delete, run_update
from kubewright.devserver.handlers.read import (
    Page,
    get_record,
    list_body,
    list_page,
    object_revision,
    protobuf_list,
    wait_for_revision,
)
from kubewright.devserver.handlers.resource_request import ResourceRequest
from kubewright.devserver.handlers.scale import (
    SCALE,
    apply_to_scale,
    patch_scale,
    read_scale,
    replace_scale,
    scale_columns,
)
from kubewright.devserver.handlers.selection import ObjectSelection, select_objects
from kubewright.devserver.handlers.shard_selector import GATE as SHARDS_GATE
from kubewright.devserver.handlers.update import check_name, replacement
from kubewright.devserver.handlers.watch import WatchStream
from kubewright.devserver.objects import meta
from kubewright.devserver.objects.metadata import drop_repeated_owners
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import UNSAFE_DELETION, UnconvertibleObjects, converting
from kubewright.devserver.request.negotiation import PROTOBUF, ResponseFormat, negotiate_watch
from kubewright.devserver.request.options import (
    APPLY_PATCH,
    UNDECODABLE,
    DeleteOptions,
    ListParameters,
    WriteParameters,
    delete_options,
    invalid_delete_options,
    list_options,
    write_options,
)
from kubewright.devserver.request.responses import warning_header
from kubewright.http.server import Response, ServerResponse, Stream

DELETE_OPTIONS = GroupVersionKind("meta.k8s.io", "v1", "DeleteOptions")

Later = Coroutine[Any, Any, ServerResponse]


def get(target: ResourceRequest) -> Response | Later:
    """Respond with one object, its status or its scale."""
    form = target.format()
    revision = object_revision(target.request.one("resourceVersion"))
    if revision > target.core.store.revision:
        return _get_later(target, form, revision)
    if target.resource.converter is not None:
        return _get_converted(target, form)
    return _get_now(target, form)


async def _get_converted(target: ResourceRequest, form: ResponseFormat) -> ServerResponse:
    # kube-apiserver calls the conversion webhook for each get: its result may have changed.
    record = get_record(
        target.resource, target.info.namespace, target.info.name, target.context.max_visible_revision()
    )
    try:
        await target.resource.prepare([record], refresh=True)
        # The object may have changed meanwhile: its newer state needs the converter too.
        return await converting(lambda: _get_now(target, form))
    except UnconvertibleObjects as error:
        raise error.of_object(target.core.gates) from None


async def _get_later(target: ResourceRequest, form: ResponseFormat, revision: int) -> ServerResponse:
    await wait_for_revision(target.core, revision)
    return await _get_converted(target, form)


def _get_now(target: ResourceRequest, form: ResponseFormat) -> Response:
    record = get_record(
        target.resource, target.info.namespace, target.info.name, target.context.max_visible_revision()
    )
    try:
        if target.info.subresource == "scale":
            scale = read_scale(target.resource, record)
            return target.respond(200, scale, form, scale_columns(target.resource))
        return target.respond(200, target.resource.render(record), form)
    except UnconvertibleObjects as error:
        raise error.of_object(target.core.gates) from None


def _selection(target: ResourceRequest, options: ListParameters) -> ObjectSelection:
    shards = options.shards if target.core.gates.enabled(SHARDS_GATE) else ""
    return select_objects(
        target.resource,
        target.info.namespace,
        target.info.name,
        options.labels,
        options.fields,
        shards,
    )


def _list_options(target: ResourceRequest) -> ListParameters:
    options = list_options(target.request, watch=False)
    limit = target.context.max_visible_revision()
    if limit is not None and not options.token:
        options.resource_version, options.match, options.stale = str(limit), "Exact", True
    return options


def list_objects(target: ResourceRequest) -> Response | Later:
    """Respond with a list."""
    form = target.format(many=True)
    options = _list_options(target)
    chosen = _selection(target, options)
    if target.resource.converter is not None:
        return _list_later(target, chosen, _converted_page(target, chosen, options), form)
    page = list_page(target.core, chosen, options)
    if isinstance(page, Page):
        return _list_response(target, chosen, page, form)
    return _list_later(target, chosen, page, form)


async def _list_later(
    target: ResourceRequest, chosen: ObjectSelection, page: Coroutine[Any, Any, Page], form: ResponseFormat
) -> ServerResponse:
    return _list_response(target, chosen, await page, form)


async def _converted_page(target: ResourceRequest, chosen: ObjectSelection, options: ListParameters) -> Page:
    """Return the page of a list whose records need the conversion webhook; all are converted in one call."""
    resource = target.resource
    try:
        if not chosen.whole:
            # As in kube-apiserver, selectors see converted objects: one failed conversion fails the list.
            await resource.prepare(resource.collection.records(chosen.prefix))
        found = await converting(lambda: list_page(target.core, chosen, options))
        page = found if isinstance(found, Page) else await found
        await resource.prepare(page.records)
    except UnconvertibleObjects as error:
        raise error.of_list(target.core.gates) from None
    return page


def _list_response(
    target: ResourceRequest, chosen: ObjectSelection, page: Page, form: ResponseFormat
) -> Response:
    target.check_form(form, many=True)
    if form.media == PROTOBUF and form.form == "object":
        return target.respond_written(200, protobuf_list(target.core, chosen, page), PROTOBUF)
    include = target.include() if form.form == "Table" else ""
    return target.respond_encoded(200, list_body(target.core, chosen, page, form, include), form)


def watch(target: ResourceRequest) -> Stream:
    """Respond with a stream of changes."""
    form = negotiate_watch(target.request.headers.get("accept", ""), custom=target.resource.custom)
    watch_list = target.core.gates.enabled("WatchList")
    options = list_options(target.request, watch=True, watch_list=watch_list)
    chosen = _selection(target, options)
    include = target.include() if form.form == "Table" else ""
    stream = WatchStream(target.core, chosen, options, form, include, target.context).response()
    stream.headers = [warning_header(text) for text in target.context.warnings]
    return stream


async def create_object(target: ResourceRequest) -> ServerResponse:
    """Create an object, or let its kind handle the request if it is never stored."""
    endpoint = target.resource.strategy.endpoints.get("")
    if endpoint is not None:
        return await create_transient(target, endpoint)
    form = target.format()
    options = write_options(target.request, "CreateOptions")
    body = read_object(
        target.core, target.request, target.resource, options.field_validation, target.context.warnings
    )
    write = target.write(options)
    write.name = meta(body.object).get("name", "")
    return target.respond(201, await run_create(write, body.object), form)


async def update_object(target: ResourceRequest) -> ServerResponse:
    """Replace an object, its status or its scale."""
    form = target.format()
    part = target.info.subresource
    options = write_options(target.request, "UpdateOptions")
    write = target.write(options, subresource=part)
    if part == "scale":
        scale = read_kind(
            target.core, target.request, SCALE, options.field_validation, target.context.warnings
        )
        data = await replace_scale(write, scale.object)
        return target.respond(200, data, form, scale_columns(target.resource))
    body = read_object(
        target.core, target.request, target.resource, options.field_validation, target.context.warnings
    )
    write.place(body.object)
    check_name(write, body.object)
    drop_repeated_owners(body.object, write.warnings)
    change = replacement(write, body.object, forget=body.forget)
    data, created = await run_update(write, change, uid=meta(body.object).get("uid", ""))
    return target.respond(201 if created else 200, data, form)


async def patch_object(target: ResourceRequest) -> ServerResponse:
    """Patch an object, its status or its scale."""
    kind = patch_type(target.request, target.resource)
    form = target.format()
    part = target.info.subresource
    options = write_options(target.request, "PatchOptions", patch_type=kind)
    write = target.write(options, subresource=part)
    if kind == APPLY_PATCH and part != "scale":
        data, created = await run_update(write, applied(write, target.request.body), may_create=not part)
        return target.respond(201 if created else 200, data, form)
    if part == "scale" and kind == APPLY_PATCH:
        data = await apply_to_scale(write, target.request.body)
        return target.respond(200, data, form, scale_columns(target.resource))
    if part == "scale":
        patch = document_patch(kind, target.request.body, target.core.types.patch_schema(SCALE))
        data = await patch_scale(write, patch)
        return target.respond(200, data, form, scale_columns(target.resource))
    schema = None if target.resource.custom else target.core.types.patch_schema(target.resource.gvk)
    data, _ = await run_update(write, patched(write, document_patch(kind, target.request.body, schema)))
    return target.respond(200, data, form)


def _delete_options(target: ResourceRequest) -> DeleteOptions:
    body = read_options(target.core, target.request, DELETE_OPTIONS) if target.request.body else None
    return delete_options(target.request, body, unsafe=target.core.gates.enabled(UNSAFE_DELETION))


async def delete_object(target: ResourceRequest) -> ServerResponse:
    """Delete an object."""
    form = target.format()
    options = _delete_options(target)
    write = target.write(WriteParameters(dry_run=options.dry_run))
    if options.undecodable:
        done = await delete_undecodable(write, options)
    else:
        done = await run_delete(write, options)
    accepted = not done.gone and options.orphan_dependents is False
    return target.respond(202 if accepted else 200, done.body, form)


async def delete_collection(target: ResourceRequest) -> ServerResponse:
    """Delete all objects that a list with the same options would show."""
    form = target.format(many=True)
    found = list_options(target.request, watch=False)
    chosen = _selection(target, found)
    options = _delete_options(target)
    if options.undecodable:
        text = "is not allowed with DELETECOLLECTION, try again after removing the option"
        raise invalid_delete_options([problems.invalid(UNDECODABLE, True, text)])
    warn_about_orphans(target.write(WriteParameters(dry_run=options.dry_run)), options)
    page = await _converted_page(target, chosen, found)
    for record in page.records:
        write = target.write(WriteParameters(dry_run=options.dry_run))
        write.in_collection = True
        namespace, _, write.name = record.key.rpartition("/")
        write.namespace = namespace or write.namespace
        try:
            await run_delete(write, options)
        except StatusError as error:
            if not error.is_not_found:
                raise
    return _list_response(target, chosen, page, form)
