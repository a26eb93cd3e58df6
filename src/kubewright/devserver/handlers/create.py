"""Creating an object: the one way in for POST, for PUT that may create, and for apply."""

from kubewright.api import names, problems
from kubewright.devserver.handlers.scope import Scope
from kubewright.devserver.objects import JsonObject, copy, decode, meta
from kubewright.devserver.objects.metadata import (
    check_meta,
    drop_repeated_owners,
    fill_system_fields,
    generate_name,
    wipe_system_fields,
)
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import converting
from kubewright.devserver.storage import Conflict
from kubewright.devserver.strategy.access import Access

MAX_NAME_ATTEMPTS = 8


async def create(scope: Scope, obj: JsonObject, api: Access) -> bytes:
    """Create a client's decoded object; gives its bytes as stored."""
    resource = scope.resource
    if resource.terminating:
        why = "create not allowed while custom resource definition is terminating"
        raise StatusError.forbidden(resource.group, resource.plural, meta(obj).get("name", ""), why)
    wipe_system_fields(obj)
    scope.place(obj)
    drop_repeated_owners(obj, scope.warnings)
    fresh = obj
    obj = await converting(lambda: scope.manage_fields(None, fresh))
    obj = await scope.admit("CREATE", obj, None)
    drop_repeated_owners(obj, scope.warnings)
    if meta(obj).get("name") or not meta(obj).get("generateName"):
        return await insert(scope, obj, api)
    for attempt in range(MAX_NAME_ATTEMPTS):
        candidate = copy(obj)
        name = meta(candidate)["name"] = generate_name(meta(candidate)["generateName"])
        try:
            return await insert(scope, candidate, api)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            if attempt == MAX_NAME_ATTEMPTS - 1:
                raise StatusError.no_unique_name(resource.group, resource.plural, name) from None
    raise AssertionError("unreachable: the last attempt returns or raises")


async def insert(scope: Scope, obj: JsonObject, api: Access) -> bytes:
    """Complete, check and store an object that admission has let pass."""
    core, resource, strategy = scope.core, scope.resource, scope.resource.strategy
    metadata = meta(obj)
    fill_system_fields(obj, core.clock.stamp())
    scope.place(obj)
    if resource.has_status and not strategy.status_on_create:
        _reset_status(scope, obj)
    if strategy.has_generation:
        metadata["generation"] = 1
    if strategy.sign is not None:
        strategy.sign(obj, scope.user)
    strategy.prepare_create(obj)
    scope.name = metadata.get("name", "")
    if strategy.before_commit is not None:
        await strategy.before_commit(api, obj, None)
    _check(scope, obj)
    scope.warnings.extend(strategy.warnings(obj, None))
    await scope.judge("CREATE", obj, None)
    return await _store(scope, obj)


def _reset_status(scope: Scope, obj: JsonObject) -> None:
    obj.pop("status", None)
    if not scope.resource.custom:
        zero = scope.core.types.zero(scope.resource.gvk)
        if "status" in zero:
            obj["status"] = zero["status"]


def _check(scope: Scope, obj: JsonObject) -> None:
    resource, strategy = scope.resource, scope.resource.strategy
    kind = obj.get("kind", resource.kind)
    if kind != resource.kind:
        error = problems.invalid("kind", kind, f"must be {resource.kind}")
        raise StatusError.invalid(resource.group, kind, scope.name, [error])
    errors = check_meta(
        obj,
        strategy.name_check,
        namespaced=resource.namespaced,
        qualified_finalizers=strategy.meta_checks.qualified and not resource.custom,
    )
    errors += strategy.validate(obj)
    errors += resource.codec.validate(obj, None)
    if not errors:
        errors = [
            problems.invalid("metadata.name", scope.name, text) for text in names.path_segment(scope.name)
        ]
    if errors:
        raise StatusError.invalid(resource.home_group, resource.kind, scope.name, errors)


async def _store(scope: Scope, obj: JsonObject) -> bytes:
    resource = scope.resource
    existing = scope.record()
    if existing is not None:
        deleting = bool(decode(existing.data)["metadata"].get("deletionTimestamp"))
        raise StatusError.already_exists(resource.group, resource.plural, scope.name, deleting=deleting)
    if meta(obj).get("resourceVersion"):
        raise StatusError.unknown("resourceVersion should not be set on objects to be created")
    if scope.options.dry_run:
        return await scope.rehearse(obj)
    try:
        return await scope.commit(obj, None)
    except Conflict:
        raise StatusError.already_exists(resource.group, resource.plural, scope.name) from None
