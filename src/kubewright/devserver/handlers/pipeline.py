"""The path of a request through the server: every step in order, each calling the module that does it.

All requests (`RequestPipeline.handle`):

1. authenticate: client certificate, token or impersonation name the user; a `RequestContext` is created;
2. authorize: RBAC;
3. route: find the resource and the handler of the verb (`routing`), which reads options and body (`verbs`, `bodies`);
4. read or write: reads end here;
5. respond: negotiated format, warnings, or a Status for an error.

Writes (`run_create`, `run_update`, `run_delete`) go through these steps of kube-apiserver, in its order:

    change           the new object from body or patch, with managedFields (`update`, `patch`)
    mutate           mutating admission (`admission`)
    escalation       RBAC: nothing is granted that the writer does not hold (`auth.escalation`)
    prepare          what the server and the kind set or restore (`create`, `update`, `strategy`)
    validate         schema and rules of the kind
    admit            validating admission, and quota
    store            one revision, or nothing for a dry run (`object_write`, `storage`)

The store compares the record that a write started from: when another writer was faster, an update or deletion starts
again with the current object, as often as `MAX_RACES`.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from kubewright.devserver.auth import RequestAuthenticator, RoleAuthorizer, impersonated
from kubewright.devserver.faults import Faults
from kubewright.devserver.handlers.create import (
    already_exists,
    begin_create,
    prepare_create,
    store_created,
    validate_create,
)
from kubewright.devserver.handlers.delete import (
    Deletion,
    check_preconditions,
    finish_delete,
    warn_about_orphans,
)
from kubewright.devserver.handlers.object_write import ObjectWrite
from kubewright.devserver.handlers.update import (
    ObjectChange,
    check_name,
    check_revision,
    check_uid,
    check_unborn,
    prepare_update,
    read_revision,
    storage_path,
    store_updated,
    stored_alike,
    validate_update,
)
from kubewright.devserver.handlers.websocket_watch import is_websocket_watch, over_websocket
from kubewright.devserver.merge import keep_timestamps
from kubewright.devserver.objects import JsonObject, copy, encode, meta
from kubewright.devserver.objects.metadata import drop_repeated_owners, generate_name, wipe_system_fields
from kubewright.devserver.objects.status import StatusError, success
from kubewright.devserver.registry import UnconvertibleObjects, converting
from kubewright.devserver.request.context import RequestContext
from kubewright.devserver.request.identity import AuthorizationAttributes, forbidden
from kubewright.devserver.request.info import request_info
from kubewright.devserver.request.options import DeleteOptions, check_timeout
from kubewright.devserver.request.responses import refuse
from kubewright.devserver.storage import JournalError, Record, WriteConflict
from kubewright.http.server import PendingResponse, Request, ServerResponse

MAX_NAME_ATTEMPTS = 8
MAX_RACES = 100

_log = logging.getLogger("kubewright.devserver")


class RequestPipeline:
    """Authenticate, authorize and route requests, and respond with a Status when one of the steps raises."""

    def __init__(
        self,
        authenticator: RequestAuthenticator,
        authorizer: RoleAuthorizer,
        faults: Faults,
        route: Callable[[RequestContext], PendingResponse],
    ) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._faults = faults
        self._route = route

    def handle(self, request: Request) -> PendingResponse:
        """Return the response to a request, at once or as a coroutine."""
        try:
            context = self._authenticate(request)
            self._authorize(context)
            response = self._faults.around(context, lambda: self._respond(context))
        except StatusError as error:
            return refuse(request, error, [])
        except Exception as error:
            return _internal_error(request, error, [])
        return over_websocket(request, response) if is_websocket_watch(context) else response

    def _authenticate(self, request: Request) -> RequestContext:
        info = request_info(request)
        check_timeout(request, info)
        user = self._authenticator.authenticate(request.headers, request.peer)
        if _impersonates(request.headers):
            user = impersonated(user, request, AuthorizationAttributes.of(info), self._authorizer)
        return RequestContext(request, info, user, revision_limit=self._faults.max_visible_revision)

    def _authorize(self, context: RequestContext) -> None:
        attributes = AuthorizationAttributes.of(context.info)
        decision = self._authorizer.authorize(context.user, attributes)
        if not decision.allowed:
            raise forbidden(context.user, attributes, decision.reason)

    def _respond(self, context: RequestContext) -> PendingResponse:
        try:
            response = self._route(context)
        except StatusError as error:
            return refuse(context.request, error, context.warnings)
        return self._respond_later(context, response) if isinstance(response, Coroutine) else response

    @staticmethod
    async def _respond_later(
        context: RequestContext, response: Coroutine[Any, Any, ServerResponse]
    ) -> ServerResponse:
        try:
            return await response
        except StatusError as error:
            return refuse(context.request, error, context.warnings)
        except Exception as error:
            return _internal_error(context.request, error, context.warnings)


def _impersonates(headers: Iterable[str]) -> bool:
    """Return True if one of the headers is about impersonation; each request is asked."""
    for name in headers:  # noqa: SIM110 (a generator takes several times as long)
        if name.startswith("impersonate-"):
            return True
    return False


def _internal_error(request: Request, error: Exception, warnings: list[str]) -> ServerResponse:
    """Log an unexpected error and respond with InternalError: a full disk is logged once, a bug with its traceback."""
    if not isinstance(error, JournalError):
        _log.error("handling %s %s failed", request.method, request.path, exc_info=error)
    elif error.first:
        _log.error("%s", error)
    return refuse(request, StatusError.internal(str(error)), warnings)


async def run_create(write: ObjectWrite, obj: JsonObject) -> bytes:
    """Create a decoded object; return its bytes as stored."""
    begin_create(write, obj)
    obj = await converting(lambda: write.manage_fields(None, obj))
    obj = await write.run_mutating_admission("CREATE", obj, None)
    drop_repeated_owners(obj, write.warnings, admitted=True)
    write.check_escalation(obj, None)
    metadata = meta(obj)
    if metadata.get("name") or not metadata.get("generateName"):
        return await _insert(write, obj)
    for _ in range(MAX_NAME_ATTEMPTS - 1):
        try:
            return await _insert(write, _with_generated_name(write, obj))
        except StatusError as error:
            # Also if a webhook rejected the object with this reason.
            if error.reason != "AlreadyExists":
                raise
    return await _insert(write, _with_generated_name(write, obj))


def _with_generated_name(write: ObjectWrite, obj: JsonObject) -> JsonObject:
    made = copy(obj)
    base: str = meta(made)["generateName"]
    meta(made)["name"] = generate_name(base) if write.resource.strategy.generates_names else base
    return made


async def _insert(write: ObjectWrite, obj: JsonObject, *, by_update: bool = False) -> bytes:
    """Run the steps of a create that follow the choice of a name."""
    prepare_create(write, obj)
    await write.allocate(obj, None)
    validate_create(write, obj)
    write.warnings.extend(write.resource.strategy.warnings(obj, None))
    if by_update:
        write.check_may_create()
    await write.run_validating_admission("CREATE", obj, None)
    if by_update and write.record() is not None:
        # Another writer created it meanwhile: the change is made again, to that object.
        raise WriteConflict
    try:
        return await store_created(write, obj)
    except WriteConflict:
        if by_update:
            raise
        raise already_exists(write, obj) from None


async def run_update(
    write: ObjectWrite, change: ObjectChange, *, may_create: bool = False, uid: str = ""
) -> tuple[bytes, bool]:
    """Change the target, or create it where that is allowed; return its bytes and whether it is new."""
    for _ in range(MAX_RACES):
        record = write.record()
        try:
            if record is None:
                if not (may_create or write.resource.strategy.allow_create_on_update):
                    raise write.not_found()
                check_uid(write, uid, {"metadata": {}})
                return await _create_by_update(write, change), True
            return await _update(write, record, change, uid), False
        except WriteConflict:
            continue
    raise write.conflict()


async def _create_by_update(write: ObjectWrite, change: ObjectChange) -> bytes:
    obj = await converting(lambda: change(None))
    check_unborn(write, obj)
    write.place(obj)
    check_name(write, obj)
    obj = await write.run_mutating_admission("CREATE", obj, None)
    drop_repeated_owners(obj, write.warnings, admitted=True)
    read_revision(obj)
    # Only POST refuses one; kube-apiserver takes the object of a PUT or an apply as it is, and shows it in a dry run.
    if not write.options.dry_run:
        meta(obj).pop("resourceVersion", None)
    write.check_escalation(obj, None)
    wipe_system_fields(obj)
    try:
        return await _insert(write, obj, by_update=True)
    except StatusError as error:
        if error.reason != "AlreadyExists" or not meta(obj).get("generateName"):
            raise
        # kube-apiserver takes the reason of a webhook's rejection for one of the storage.
        group, plural = write.resource.group, write.resource.plural
        raise StatusError.no_unique_name(group, plural, write.name) from None


async def _update(write: ObjectWrite, record: Record, change: ObjectChange, uid: str) -> bytes:
    old = await write.read(record)
    check_uid(write, uid, old)
    # Reading again is the cheapest copy.
    new = await converting(lambda: change(write.resource.read(record)))
    write.place(new)
    check_name(write, new)
    new = await write.run_mutating_admission("UPDATE", new, old)
    drop_repeated_owners(new, write.warnings, admitted=True)
    write.check_escalation(new, old)
    check_revision(write, new, record)
    prepare_update(write, new, old)
    await write.allocate(new, old)
    validate_update(write, new, old)
    strategy = write.resource.strategy
    warn = strategy.status_warnings if write.subresource == "status" else strategy.warnings
    write.warnings.extend(warn(new, old))
    new = keep_timestamps(new, old, lambda after, before: stored_alike(write, after, before))
    await write.run_validating_admission("UPDATE", new, old)
    return await store_updated(write, record, new, old)


async def run_delete(write: ObjectWrite, options: DeleteOptions) -> Deletion:
    """Delete the target as far as its finalizers and its grace period allow."""
    warn_about_orphans(write, options)
    for _ in range(MAX_RACES):
        record = write.record()
        if record is None:
            raise write.not_found()
        try:
            return await _delete(write, record, options)
        except WriteConflict:
            continue
    raise write.conflict()


async def delete_undecodable(write: ObjectWrite, options: DeleteOptions) -> Deletion:
    """Delete an object that cannot be converted to the version of the request, without admission and finalizers.

    Raise Forbidden without the permission for it, Conflict if the object can be read.
    """
    resource = write.resource
    verb = "unsafe-delete-ignore-read-errors"
    wanted = AuthorizationAttributes(
        verb, resource.group, resource.version, resource.plural, namespace=write.namespace, name=write.name
    )
    decision = write.core.authorizer.authorize(write.context.user, wanted)
    if not decision.allowed:
        attributes = write.attributes("DELETE", None, None, options.wire())
        raise attributes.forbidden(f'not permitted to do "{verb}", reason: {decision.reason}')
    record = write.record()
    if record is None:
        raise write.not_found()
    try:
        await write.read(record)
    except UnconvertibleObjects:
        if not options.dry_run:
            if write.record() is not record:
                raise write.conflict() from None
            write.core.store.delete(resource.collection, record)
        return Deletion(encode(success({"name": write.name, "kind": resource.kind}, 200)), gone=True)
    raise write.conflict(
        f"StorageError: invalid object, Code: 4, Key: /registry{storage_path(write)}, ResourceVersion: 0, AdditionalErrorMsg: "
        "unsafe deletion is not allowed because the object is decodable from storage"
    )


async def _delete(write: ObjectWrite, record: Record, options: DeleteOptions) -> Deletion:
    try:
        old = await write.read(record)
    except UnconvertibleObjects as error:
        raise error.of_object(write.core.gates) from None
    check_preconditions(write, old, options)
    if not write.admitted:
        attributes = write.attributes("DELETE", None, copy(old), options.wire())
        await write.core.admission.admit(attributes)
        await write.core.admission.validate(attributes)
    if write.record() is not record:
        raise WriteConflict
    return await finish_delete(write, record, old, options)
