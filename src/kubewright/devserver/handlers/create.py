"""The steps of creating an object; `pipeline` runs them in order."""

from kubewright.api import names, problems
from kubewright.devserver.handlers.object_write import ObjectWrite
from kubewright.devserver.objects import JsonObject, decode, meta
from kubewright.devserver.objects.metadata import (
    check_meta,
    drop_repeated_owners,
    fill_system_fields,
    wipe_system_fields,
)
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import UnconvertibleObjects
from kubewright.devserver.request.options import parse_revision


def begin_create(write: ObjectWrite, obj: JsonObject) -> None:
    """Drop what clients cannot set and place the object in its namespace; raise if its CRD is terminating."""
    resource = write.resource
    if resource.terminating:
        why = "create not allowed while custom resource definition is terminating"
        raise StatusError.forbidden(resource.group, resource.plural, meta(obj).get("name", ""), why)
    wipe_system_fields(obj)
    write.place(obj)
    drop_repeated_owners(obj, write.warnings)


def prepare_create(write: ObjectWrite, obj: JsonObject) -> None:
    """Set what the server and the kind set on new objects, in place."""
    resource, strategy = write.resource, write.resource.strategy
    metadata = meta(obj)
    fill_system_fields(obj, write.core.clock.stamp())
    write.place(obj)
    if resource.has_status and not strategy.status_on_create:
        _reset_status(write, obj)
    if strategy.has_generation:
        metadata["generation"] = 1
    if strategy.sign is not None:
        strategy.sign(obj, write.context.user)
    strategy.prepare_create(obj)
    write.name = metadata.get("name", "")


def _reset_status(write: ObjectWrite, obj: JsonObject) -> None:
    obj.pop("status", None)
    if not write.resource.custom:
        zero = write.core.types.zero(write.resource.gvk)
        if "status" in zero:
            obj["status"] = zero["status"]


def validate_create(write: ObjectWrite, obj: JsonObject) -> None:
    """Raise Invalid with everything that is wrong with a new object."""
    resource, strategy = write.resource, write.resource.strategy
    kind = obj.get("kind", resource.kind)
    if kind != resource.kind:
        error = problems.invalid("kind", kind, f"must be {resource.kind}")
        raise StatusError.invalid(resource.group, kind, write.name, [error])
    checks = strategy.meta_checks
    metadata_errors = check_meta(
        obj,
        strategy.name_check if checks.created else names.path_segment,
        namespaced=resource.namespaced,
        qualified_finalizers=checks.qualified and not resource.custom,
    )
    errors = metadata_errors if checks.created else []
    errors = errors + strategy.validate(obj) + resource.codec.validate(obj, None, write.warnings)
    if not errors:
        errors = metadata_errors or [
            problems.invalid("metadata.name", write.name, text) for text in names.path_segment(write.name)
        ]
    if errors:
        raise write.invalid(errors)


async def store_created(write: ObjectWrite, obj: JsonObject) -> bytes:
    """Store a new object, unless this is a dry run; return its bytes.

    Raise AlreadyExists if there is one, WriteConflict if another writer was faster.
    """
    meta(obj).pop("selfLink", None)
    if not write.options.dry_run and _revision(obj):
        raise StatusError.unknown("resourceVersion should not be set on objects to be created")
    if write.options.dry_run:
        if await _is_readable(write):
            raise already_exists(write, obj)
        return await write.dry_run_result(obj, create=True)
    # kube-apiserver converts the object before it asks etcd: a failed conversion is reported first.
    stored = await write.resource.to_storage(obj)
    if write.record() is not None:
        raise already_exists(write, obj)
    return await write.commit_stored(stored, None)


async def _is_readable(write: ObjectWrite) -> bool:
    """Return True if the object exists; a dry run reads it, and takes one that cannot be converted for missing."""
    record = write.record()
    if record is None:
        return False
    try:
        await write.read(record)
    except UnconvertibleObjects:
        return False
    return True


def already_exists(write: ObjectWrite, obj: JsonObject) -> StatusError:
    """Return the error for an object that exists, also if it is being deleted or its name was to be generated."""
    resource, existing = write.resource, write.record()
    deleting = existing is not None and bool(decode(existing.data)["metadata"].get("deletionTimestamp"))
    error = StatusError.no_unique_name if meta(obj).get("generateName") else StatusError.already_exists
    return error(resource.group, resource.plural, write.name, deleting=deleting)


def _revision(obj: JsonObject) -> int:
    """Return the resourceVersion that a client sent; as in kube-apiserver, one that is not a number is ignored."""
    try:
        return parse_revision(str(meta(obj).get("resourceVersion", "")))
    except ValueError:
        return 0
