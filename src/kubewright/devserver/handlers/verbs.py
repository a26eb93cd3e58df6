"""The verbs as HTTP knows them: read the request, do the work, shape the answer."""

from collections.abc import Coroutine
from typing import Any

from kubewright.api import GroupVersionKind
from kubewright.devserver.handlers.bodies import read_kind, read_object, read_options
from kubewright.devserver.handlers.call import Call
from kubewright.devserver.handlers.connect import create_transient
from kubewright.devserver.handlers.create import create
from kubewright.devserver.handlers.delete import delete
from kubewright.devserver.handlers.patch import applied, document_patch, patch_type, patched
from kubewright.devserver.handlers.read import (
    Page,
    get_record,
    list_body,
    list_page,
    object_revision,
    wait_for_revision,
)
from kubewright.devserver.handlers.scale import (
    SCALE,
    apply_to_scale,
    patch_scale,
    read_scale,
    replace_scale,
    scale_columns,
)
from kubewright.devserver.handlers.selection import Selection, selection
from kubewright.devserver.handlers.update import replacement, update
from kubewright.devserver.handlers.watch import Watch
from kubewright.devserver.objects import meta
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import converting
from kubewright.devserver.request.negotiation import Format, negotiate_watch
from kubewright.devserver.request.options import (
    APPLY_PATCH,
    DeleteOptions,
    ListOptions,
    WriteOptions,
    delete_options,
    list_options,
    write_options,
)
from kubewright.devserver.request.responses import warning_header
from kubewright.http.server import Answer, Response, Stream

DELETE_OPTIONS = GroupVersionKind("meta.k8s.io", "v1", "DeleteOptions")

Later = Coroutine[Any, Any, Answer]


def get(call: Call) -> Response | Later:
    """Answer with one object, its status or its scale."""
    form = call.format()
    revision = object_revision(call.request.one("resourceVersion"))
    if revision > call.core.store.revision:
        return _get_later(call, form, revision)
    if call.resource.converter is not None:
        return _get_converted(call, form)
    return _get_now(call, form)


async def _get_converted(call: Call, form: Format) -> Answer:
    # Asked for by name, an object is converted each time: who converts may have changed its mind.
    record = get_record(call.resource, call.info.namespace, call.info.name, call.horizon())
    await call.resource.prepare([record], again=True)
    # The object may have changed meanwhile: its newer state needs the converter too.
    return await converting(lambda: _get_now(call, form))


async def _get_later(call: Call, form: Format, revision: int) -> Answer:
    await wait_for_revision(call.core, revision)
    return await _get_converted(call, form)


def _get_now(call: Call, form: Format) -> Response:
    record = get_record(call.resource, call.info.namespace, call.info.name, call.horizon())
    if call.info.subresource == "scale":
        return call.answer(200, read_scale(call.resource, record), form, scale_columns(call.resource))
    return call.answer(200, call.resource.render(record), form)


def _selection(call: Call, labels: str, fields: str) -> Selection:
    return selection(call.resource, call.info.namespace, call.info.name, labels, fields)


def _list_options(call: Call) -> ListOptions:
    options = list_options(call.request, watch=False)
    horizon = call.horizon()
    if horizon is not None and not options.token:
        options.resource_version, options.match = str(horizon), "Exact"
    return options


def list_objects(call: Call) -> Response | Later:
    """Answer with a list."""
    form = call.format(many=True)
    options = _list_options(call)
    chosen = _selection(call, options.labels, options.fields)
    if call.resource.converter is not None:
        return _list_later(call, chosen, _converted_page(call, chosen, options), form)
    page = list_page(call.core, chosen, options)
    if isinstance(page, Page):
        return _list_answer(call, chosen, page, form)
    return _list_later(call, chosen, page, form)


async def _list_later(call: Call, chosen: Selection, page: Coroutine[Any, Any, Page], form: Format) -> Answer:
    return _list_answer(call, chosen, await page, form)


async def _converted_page(call: Call, chosen: Selection, options: ListOptions) -> Page:
    """Find the records of a list of a kind whose versions need a converter; all are converted in one go."""
    resource = call.resource
    if not chosen.whole:
        # As on the real server, selectors look at converted objects: one that cannot be converted spoils the list.
        await resource.prepare(resource.collection.records(chosen.prefix))
    found = await converting(lambda: list_page(call.core, chosen, options))
    page = found if isinstance(found, Page) else await found
    await resource.prepare(page.records)
    return page


def _list_answer(call: Call, chosen: Selection, page: Page, form: Format) -> Response:
    include = call.include() if form.form == "Table" else ""
    return call.plain(200, list_body(call.core, chosen, page, form, include), form)


def watch(call: Call) -> Stream:
    """Answer with a stream of changes."""
    form = negotiate_watch(call.request.headers.get("accept", ""), custom=call.resource.custom)
    options = list_options(call.request, watch=True)
    chosen = _selection(call, options.labels, options.fields)
    include = call.include() if form.form == "Table" else ""
    stream = Watch(call.core, chosen, options, form, include, call.horizon).answer()
    stream.headers = [warning_header(text) for text in call.warnings]
    return stream


async def create_object(call: Call) -> Answer:
    """Create an object, or let its kind answer when it is never stored."""
    endpoint = call.resource.strategy.endpoints.get("")
    if endpoint is not None:
        return await create_transient(call, endpoint)
    form = call.format()
    options = write_options(call.request, "CreateOptions")
    body = read_object(call.core, call.request, call.resource, options.field_validation, call.warnings)
    scope = call.scope(options)
    scope.name = meta(body.object).get("name", "")
    return call.answer(201, await create(scope, body.object, call.api), form)


async def update_object(call: Call) -> Answer:
    """Replace an object, its status or its scale."""
    form = call.format()
    part = call.info.subresource
    options = write_options(call.request, "UpdateOptions")
    scope = call.scope(options, subresource=part)
    if part == "scale":
        scale = read_kind(call.core, call.request, SCALE, options.field_validation, call.warnings)
        data = await replace_scale(scope, scale.object, call.api)
        return call.answer(200, data, form, scale_columns(call.resource))
    body = read_object(call.core, call.request, call.resource, options.field_validation, call.warnings)
    change = replacement(scope, body.object, forget=body.forget)
    data, created = await update(scope, change, call.api, uid=meta(body.object).get("uid", ""))
    return call.answer(201 if created else 200, data, form)


async def patch_object(call: Call) -> Answer:
    """Patch an object, its status or its scale."""
    kind = patch_type(call.request, call.resource)
    form = call.format()
    part = call.info.subresource
    options = write_options(call.request, "PatchOptions", patch_type=kind)
    scope = call.scope(options, subresource=part)
    if kind == APPLY_PATCH and part != "scale":
        data, created = await update(scope, applied(scope, call.request.body), call.api, may_create=not part)
        return call.answer(201 if created else 200, data, form)
    if part == "scale" and kind == APPLY_PATCH:
        data = await apply_to_scale(scope, call.request.body, call.api)
        return call.answer(200, data, form, scale_columns(call.resource))
    if part == "scale":
        patch = document_patch(kind, call.request.body, call.core.types.patch_schema(SCALE))
        data = await patch_scale(scope, patch, call.api)
        return call.answer(200, data, form, scale_columns(call.resource))
    schema = None if call.resource.custom else call.core.types.patch_schema(call.resource.gvk)
    data, _ = await update(scope, patched(scope, document_patch(kind, call.request.body, schema)), call.api)
    return call.answer(200, data, form)


def _delete_options(call: Call) -> DeleteOptions:
    if not call.request.body:
        return delete_options(call.request, None)
    return delete_options(call.request, read_options(call.core, call.request, DELETE_OPTIONS))


async def delete_object(call: Call) -> Answer:
    """Delete an object."""
    form = call.format()
    options = _delete_options(call)
    scope = call.scope(WriteOptions(dry_run=options.dry_run))
    done = await delete(scope, options)
    accepted = not done.gone and options.orphan_dependents is False
    return call.answer(202 if accepted else 200, done.body, form)


async def delete_collection(call: Call) -> Answer:
    """Delete all objects that a list with the same options would show."""
    form = call.format(many=True)
    found = list_options(call.request, watch=False)
    chosen = _selection(call, found.labels, found.fields)
    options = _delete_options(call)
    page = await _converted_page(call, chosen, found)
    whole = call.scope(WriteOptions(dry_run=options.dry_run))
    await call.core.admission.admit(whole.operation("DELETE", None, None, options.wire()))
    for record in page.records:
        scope = call.scope(WriteOptions(dry_run=options.dry_run))
        scope.collective = True
        namespace, _, scope.name = record.key.rpartition("/")
        scope.namespace = namespace or scope.namespace
        try:
            await delete(scope, options)
        except StatusError as error:
            if error.reason != "NotFound":
                raise
    return _list_answer(call, chosen, page, form)
