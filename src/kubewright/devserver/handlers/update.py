"""The steps of changing an object; `pipeline` runs them in order.

Every PUT and PATCH is an `ObjectChange`: a function from the current object to the new one, which can run again
after a race with another writer.
"""

from collections.abc import Callable

from kubewright.api import FieldError, names, problems
from kubewright.devserver.handlers.object_write import ObjectWrite
from kubewright.devserver.objects import JsonObject, copy, decode, encode_sorted, meta
from kubewright.devserver.objects.metadata import (
    check_meta,
    check_meta_update,
    check_qualified_finalizers,
    drop_repeated_owners,
)
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.options import parse_revision
from kubewright.devserver.storage import Record, WriteConflict

ObjectChange = Callable[[JsonObject | None], JsonObject]
"""Return the new object, managedFields included, from a copy of the current one; None if there is none."""


_GROUPS_IN_KEYS = {"apiextensions.k8s.io", "apiregistration.k8s.io"}
_KEY_PREFIXES = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
"""How the keys of built-in kinds begin where that is not their resource."""


def check_uid(write: ObjectWrite, uid: str, old: JsonObject) -> None:
    """Raise Conflict if a client means an object with another uid."""
    found = old["metadata"].get("uid", "")
    if uid and uid != found:
        # A dry run does not reach the storage, which puts its own prefix before the key.
        key = f"{'' if write.options.dry_run else '/registry'}{storage_path(write)}"
        raise write.conflict(
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
        )


def storage_path(write: ObjectWrite) -> str:
    """Return the key under which kube-apiserver stores the target in etcd, without the prefix of all keys."""
    resource = write.resource
    if resource.custom or resource.group in _GROUPS_IN_KEYS:
        prefix = f"{resource.group}/{resource.plural}"
    else:
        prefix = _KEY_PREFIXES.get(resource.plural, resource.plural)
    return f"/{prefix}/{write.key}"


def check_unborn(write: ObjectWrite, obj: JsonObject) -> None:
    """Raise Conflict if a client that may create an object by PUT or apply names the uid of an existing one."""
    if uid := meta(obj).get("uid"):
        raise write.conflict(
            f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        )


def check_name(write: ObjectWrite, obj: JsonObject) -> None:
    """Raise BadRequest unless the object has the name in the URL."""
    name = meta(obj).get("name", "")
    if not name:
        raise StatusError.bad_request(
            f"the name of the object ({write.name} based on URL) was undeterminable: name must be provided"
        )
    if name != write.name:
        raise StatusError.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({write.name})"
        )


def check_revision(write: ObjectWrite, new: JsonObject, record: Record) -> None:
    """Raise Conflict if the client's resourceVersion is not the current one."""
    resource, revision = write.resource, read_revision(new)
    if revision == 0:
        if not resource.strategy.allow_unconditional_update:
            error = problems.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise StatusError.invalid(resource.group, resource.plural, write.name, [error])
        meta(new)["resourceVersion"] = str(record.revision)
    elif revision != record.revision:
        raise write.conflict()


def read_revision(obj: JsonObject) -> int:
    """Return the client's resourceVersion, 0 if there is none; raise an error if it is not a number."""
    try:
        return parse_revision(str(meta(obj).get("resourceVersion", "")))
    except ValueError as error:
        raise StatusError.unknown(str(error)) from None


def prepare_update(write: ObjectWrite, new: JsonObject, old: JsonObject) -> None:
    """Restore what this endpoint cannot change and count the generation, in place."""
    resource, strategy = write.resource, write.resource.strategy
    # Webhooks may have removed or changed the namespace.
    write.place(new)
    metadata, before = meta(new), meta(old)
    _restore(metadata, before, "generation")
    part = strategy.parts.get(write.subresource)
    changed = False
    if write.subresource == "status":
        strategy.prepare_status_update(new, old)
    elif part is not None:
        part.prepare(new, old)
    else:
        if resource.has_status:
            _restore(new, old, "status")
        changed = strategy.generation_sees_dropped_fields and _changed(write, new, old)
        strategy.prepare_update(new, old)
    if write.subresource and strategy.date is not None:
        strategy.date(new, old, write.core.clock.stamp())
    metadata = meta(new)
    counts = write.subresource != "status" if part is None else part.counts
    if counts and strategy.has_generation and (changed or _changed(write, new, old)):
        metadata["generation"] = before.get("generation", 0) + 1
    if not metadata.get("uid"):
        metadata["uid"] = before.get("uid", "")
    _restore(metadata, before, "creationTimestamp")
    if before.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = before["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in before and metadata.get("deletionGracePeriodSeconds") is None:
        metadata["deletionGracePeriodSeconds"] = before["deletionGracePeriodSeconds"]


def _restore(new: JsonObject, old: JsonObject, name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def _changed(write: ObjectWrite, new: JsonObject, old: JsonObject) -> bool:
    ignored = {"metadata", "status"} if write.resource.has_status else {"metadata"}
    strategy = write.resource.strategy
    if strategy.generation_sees_annotations and meta(new).get("annotations") != meta(old).get("annotations"):
        return True
    after = {name: value for name, value in new.items() if name not in ignored}
    before = {name: value for name, value in old.items() if name not in ignored}
    return not stored_alike(write, after, before)


def stored_alike(write: ObjectWrite, new: JsonObject, old: JsonObject) -> bool:
    """Return True if parts of two objects are stored alike; compares JSON, since Python takes 1, 1.0 and True for equal."""
    differing = [name for name in new | old if encode_sorted(new.get(name)) != encode_sorted(old.get(name))]
    if not differing or write.resource.custom:
        return not differing
    # Go does not distinguish an empty list of a built-in kind from none: compare as it would be stored.
    gvk = write.resource.gvk
    named: JsonObject = {"kind": gvk.kind, "apiVersion": gvk.api_version}
    formed = write.resource.codec.form(named | {name: new[name] for name in differing if name in new})
    return all(encode_sorted(formed.get(name)) == encode_sorted(old.get(name)) for name in differing)


def validate_update(write: ObjectWrite, new: JsonObject, old: JsonObject) -> None:
    """Raise Invalid with everything that is wrong with a changed object."""
    if errors := _errors(write, new, old):
        raise write.invalid(errors, meta(new).get("name", ""))


def _errors(write: ObjectWrite, new: JsonObject, old: JsonObject) -> list[FieldError]:
    resource, strategy = write.resource, write.resource.strategy
    if (kind := new.get("kind", resource.kind)) != resource.kind:
        return [problems.invalid("kind", kind, f"must be {resource.kind}")]
    errors = check_meta(new, names.path_segment, namespaced=resource.namespaced, qualified_finalizers=False)
    errors += check_meta_update(new, old)
    errors += _check_meta_again(write, new, old)
    if part := strategy.parts.get(write.subresource):
        return errors + part.validate(new, old)
    if write.subresource == "status":
        found = resource.codec.validate_status(new, old, write.warnings)
        return errors + strategy.validate_status_update(new, old) + found
    found = resource.codec.validate(new, old, write.warnings)
    return errors + strategy.validate_update(new, old) + found


def _check_meta_again(write: ObjectWrite, new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Repeat metadata checks for the kind, which the order of errors shows, and their number if the kind repeats errors."""
    resource, strategy = write.resource, write.resource.strategy
    checks = strategy.meta_checks
    if write.subresource == "status" and not checks.status:
        return []
    if resource.custom or write.subresource:
        qualified = checks.qualified and not resource.custom
        return check_meta_update(new, old) + (check_qualified_finalizers(new) if qualified else [])
    errors: list[FieldError] = []
    if checks.whole:
        errors += check_meta(
            new, strategy.name_check, namespaced=resource.namespaced, qualified_finalizers=checks.qualified
        )
    if checks.changes:
        errors += check_meta_update(new, old)
        errors += check_qualified_finalizers(new) if checks.qualified else []
    return errors


def replacement(write: ObjectWrite, body: JsonObject, *, forget: bool) -> ObjectChange:
    """Return the change of a PUT; `forget` drops all field managers."""
    drop_repeated_owners(body, write.warnings)

    def change(old: JsonObject | None) -> JsonObject:
        return write.manage_fields(old, copy(body), reset=forget)

    return change


async def store_updated(write: ObjectWrite, record: Record, new: JsonObject, old: JsonObject) -> bytes:
    """Store a changed object, or remove it if this write ends its deletion; return its bytes.

    Nothing is stored for a dry run, nor if nothing changed. Raise WriteConflict if another writer was faster.
    """
    resource = write.resource
    if write.record() is not record:
        raise WriteConflict
    if not write.options.dry_run:
        # Not stored since 1.24, but still a field.
        meta(new).pop("selfLink", None)
    if _ends_deletion(write, new, old):
        if not write.options.dry_run:
            write.core.store.delete(resource.collection, record)
        return resource.codec.encode(new)
    codec = resource.codec
    # Read again: the new object may share parts with `old`, changed in both by admission.
    formed = codec.form(new, None if resource.custom else resource.read(record))
    if write.options.dry_run:
        # A dry run does not reach etcd: it compares with what it has read.
        if record.shape == resource.storage_codec.shape and codec.write(formed) == resource.render(record):
            return resource.render(record)
        return await write.dry_run_result(new, create=False)
    if resource.storage_codec is codec:
        if await write.is_stored(formed, record):
            return resource.render(record)
        if not resource.custom and write.is_defaulted(formed):
            return await write.put(formed, record)
        return await write.commit(new, record)
    # Another version may not show what changes in etcd, such as a field that only the stored version has.
    stored = await resource.to_storage(new)
    if resource.strategy.restore_stored is not None:
        resource.strategy.restore_stored(stored, decode(record.data), write.subresource)
    if await write.is_stored(resource.storage_codec.form(stored), record):
        await resource.prepare([record])
        return resource.render(record)
    return await write.commit_stored(stored, record)


def _ends_deletion(write: ObjectWrite, new: JsonObject, old: JsonObject) -> bool:
    before = old["metadata"]
    if meta(new).get("finalizers") or not before.get("deletionTimestamp"):
        return False
    return not before.get("deletionGracePeriodSeconds") and write.resource.strategy.deletable(new)
