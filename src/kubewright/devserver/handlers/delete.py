"""The steps of deleting an object: at once, after its grace period, or when its last finalizer is gone."""

from dataclasses import dataclass

from kubewright.devserver.handlers.object_write import ObjectWrite
from kubewright.devserver.objects import JsonObject, copy, encode, meta
from kubewright.devserver.objects.clock import format_time, parse_time
from kubewright.devserver.objects.metadata import FOREGROUND, ORPHAN
from kubewright.devserver.objects.status import StatusError, success
from kubewright.devserver.request.options import DeleteOptions
from kubewright.devserver.storage import Record


@dataclass(frozen=True, slots=True)
class Deletion:
    """The response of a deletion, and whether the object is gone."""

    body: bytes
    gone: bool


async def finish_delete(
    write: ObjectWrite, record: Record, old: JsonObject, options: DeleteOptions
) -> Deletion:
    """Remove the object, or mark it as terminating if it has finalizers or a grace period."""
    new = copy(old)
    if write.resource.strategy.begin_delete is not None:
        return await _begin(write, record, new, old, options)
    pending, grace = _grace(write, new, options)
    if pending:
        return Deletion(_response_body(write, old), gone=False)
    finalizers = _finalizers(write, new, options)
    if finalizers:
        meta(new)["finalizers"] = finalizers
        if grace is None:
            _mark_deleting(write, new)
    else:
        meta(new).pop("finalizers", None)
    if finalizers or grace:
        return Deletion(await _write(write, record, new, old, options), gone=False)
    if grace is None or options.dry_run:
        return _remove(write, record, old if grace is None else new, options)
    # As in kube-apiserver, watches see that the object is being deleted before they see that it is gone.
    await write.commit(new, record)
    marked = write.record()
    if marked is None:
        raise write.not_found()
    return _remove(write, marked, new, options)


def _remove(write: ObjectWrite, record: Record, last: JsonObject, options: DeleteOptions) -> Deletion:
    if not options.dry_run:
        revision = write.core.store.delete(write.resource.collection, record)
        meta(last)["resourceVersion"] = str(revision)
    return Deletion(_response_body(write, last), gone=True)


async def _begin(
    write: ObjectWrite, record: Record, new: JsonObject, old: JsonObject, options: DeleteOptions
) -> Deletion:
    """Start the deletion of a kind that a controller finishes, such as a namespace."""
    strategy = write.resource.strategy
    if not meta(new).get("deletionTimestamp"):
        meta(new)["deletionTimestamp"] = write.core.clock.stamp()
        if finalizers := _finalizers(write, new, options):
            meta(new)["finalizers"] = finalizers
        if strategy.begin_delete is not None:
            strategy.begin_delete(new)
        return Deletion(await _write(write, record, new, old, options), gone=False)
    if meta(old).get("finalizers") or not strategy.deletable(old):
        return Deletion(write.resource.render(record), gone=False)
    return _remove(write, record, old, options)


def warn_about_orphans(write: ObjectWrite, options: DeleteOptions) -> None:
    """Warn if the dependents of a kind stay by default and the client did not choose; also if there is no object."""
    warning = write.resource.strategy.orphan_warning
    if warning and options.orphan_dependents is None and options.propagation is None:
        write.warnings.append(warning)


def check_preconditions(write: ObjectWrite, old: JsonObject, options: DeleteOptions) -> None:
    """Raise Conflict if the preconditions of a deletion are not met."""
    metadata = meta(old)
    checks = (
        ("UID", options.uid, metadata.get("uid"), "The object might have been deleted and then recreated"),
        (
            "ResourceVersion",
            options.resource_version,
            metadata.get("resourceVersion"),
            "The object might have been modified",
        ),
    )
    for title, requested, found, hint in checks:
        if requested is not None and requested != found:
            why = f"the {title} in the precondition ({requested}) does not match the {title} in record ({found}). {hint}"
            raise StatusError.conflict(write.resource.group, write.resource.kind, write.name, why)


def _grace(write: ObjectWrite, obj: JsonObject, options: DeleteOptions) -> tuple[bool, int | None]:
    """Set the grace period, in place; return (already deleting, seconds or None without a grace period)."""
    metadata = meta(obj)
    requested = options.grace_period
    if requested is not None and requested < 0:
        requested = 1
    before = metadata.get("deletionTimestamp")
    if before:
        present = metadata.get("deletionGracePeriodSeconds")
        if not present:
            return False, None
        if requested is None or requested >= present:
            return True, None
        now = write.core.clock.seconds()
        moment = parse_time(before) - present + requested
        if moment < now:
            moment, requested = now, 1 if requested else 0
        metadata["deletionTimestamp"] = format_time(moment)
        metadata["deletionGracePeriodSeconds"] = requested
        return False, requested
    seconds = write.resource.strategy.grace_period(obj, requested)
    if seconds is None:
        return False, None
    metadata["deletionTimestamp"] = format_time(write.core.clock.seconds() + seconds)
    metadata["deletionGracePeriodSeconds"] = seconds
    if metadata.get("generation", 0) > 0:
        metadata["generation"] += 1
    return False, seconds


def _finalizers(write: ObjectWrite, obj: JsonObject, options: DeleteOptions) -> list[str]:
    """Return the finalizers, with those for which the garbage collector orphans or deletes dependents."""
    present: list[str] = meta(obj).get("finalizers") or []
    strategy = write.resource.strategy
    if strategy.default_propagation == "Unsupported":
        return present
    kept = [name for name in present if name not in (ORPHAN, FOREGROUND)]
    if options.orphan_dependents is not None:
        orphan, foreground = options.orphan_dependents, False
    elif options.propagation is not None:
        orphan, foreground = options.propagation == "Orphan", options.propagation == "Foreground"
    elif ORPHAN in present or FOREGROUND in present:
        orphan, foreground = ORPHAN in present, FOREGROUND in present
    else:
        orphan, foreground = strategy.default_propagation == "Orphan", False
    if orphan:
        kept.append(ORPHAN)
    if foreground:
        kept.append(FOREGROUND)
    return present if set(kept) == set(present) else kept


def _mark_deleting(write: ObjectWrite, obj: JsonObject) -> None:
    metadata = meta(obj)
    now = write.core.clock.seconds()
    present = metadata.get("deletionTimestamp")
    if not present and metadata.get("generation", 0) > 0:
        metadata["generation"] += 1
    if not present or parse_time(present) > now:
        metadata["deletionTimestamp"] = format_time(now)
    metadata["deletionGracePeriodSeconds"] = 0


async def _write(
    write: ObjectWrite, record: Record, new: JsonObject, old: JsonObject, options: DeleteOptions
) -> bytes:
    resource = write.resource
    if new == old:
        return resource.render(record)
    if options.dry_run:
        return resource.codec.encode(new)
    return await write.commit(new, record)


def _response_body(write: ObjectWrite, obj: JsonObject) -> bytes:
    resource = write.resource
    if resource.strategy.returns_deleted:
        return resource.codec.encode(obj)
    details = {
        "name": write.name,
        "group": resource.group,
        "kind": resource.plural,
        "uid": meta(obj).get("uid", ""),
    }
    return encode(success(details))
