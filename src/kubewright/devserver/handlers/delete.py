"""Deleting objects: at once, after their grace, or when the last finalizer is gone."""

from dataclasses import dataclass

from kubewright.devserver.handlers.scope import Scope
from kubewright.devserver.objects import JsonObject, copy, encode, meta
from kubewright.devserver.objects.clock import format_time, parse_time
from kubewright.devserver.objects.metadata import FOREGROUND, ORPHAN
from kubewright.devserver.objects.status import StatusError, success
from kubewright.devserver.request.options import DeleteOptions
from kubewright.devserver.storage import Conflict, Record

MAX_RACES = 100


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a deletion answers with, and whether the object is gone."""

    body: bytes
    gone: bool


async def delete(scope: Scope, options: DeleteOptions) -> Deletion:
    """Delete the target as far as its finalizers and grace allow."""
    for _ in range(MAX_RACES):
        record = scope.record()
        if record is None:
            raise scope.not_found()
        try:
            return await _delete(scope, record, options)
        except Conflict:
            continue
    raise scope.conflict()


async def _delete(scope: Scope, record: Record, options: DeleteOptions) -> Deletion:
    old = await scope.read(record)
    _check_preconditions(scope, old, options)
    if not scope.admitted:
        await _ask(scope, old, options)
    if scope.record() is not record:
        raise Conflict
    new = copy(old)
    if scope.resource.strategy.begin_delete is not None:
        return await _begin(scope, record, new, old, options)
    pending, grace = _grace(scope, new, options)
    if pending:
        return Deletion(_answer(scope, old), gone=False)
    finalizers = _finalizers(scope, new, options)
    if finalizers:
        meta(new)["finalizers"] = finalizers
        if grace is None:
            _mark_deleting(scope, new)
    else:
        meta(new).pop("finalizers", None)
    if finalizers or grace:
        return Deletion(await _write(scope, record, new, old, options), gone=False)
    return _remove(scope, record, new if grace == 0 else old, options)


def _remove(scope: Scope, record: Record, last: JsonObject, options: DeleteOptions) -> Deletion:
    if not options.dry_run:
        revision = scope.core.store.delete(scope.resource.collection, record)
        meta(last)["resourceVersion"] = str(revision)
    return Deletion(_answer(scope, last), gone=True)


async def _ask(scope: Scope, old: JsonObject, options: DeleteOptions) -> None:
    operation = scope.operation("DELETE", None, copy(old), options.wire())
    if not scope.collective:
        await scope.core.admission.admit(operation)
    await scope.core.admission.validate(operation)


async def _begin(
    scope: Scope, record: Record, new: JsonObject, old: JsonObject, options: DeleteOptions
) -> Deletion:
    """Start the deletion of a kind that others bring to its end, such as a namespace."""
    strategy = scope.resource.strategy
    if not meta(new).get("deletionTimestamp"):
        meta(new)["deletionTimestamp"] = scope.core.clock.stamp()
        if finalizers := _finalizers(scope, new, options):
            meta(new)["finalizers"] = finalizers
        if strategy.begin_delete is not None:
            strategy.begin_delete(new)
        return Deletion(await _write(scope, record, new, old, options), gone=False)
    if meta(old).get("finalizers") or not strategy.deletable(old):
        return Deletion(scope.resource.render(record), gone=False)
    return _remove(scope, record, old, options)


def _check_preconditions(scope: Scope, old: JsonObject, options: DeleteOptions) -> None:
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
    for title, wanted, found, hint in checks:
        if wanted is not None and wanted != found:
            why = f"the {title} in the precondition ({wanted}) does not match the {title} in record ({found}). {hint}"
            raise StatusError.conflict(scope.resource.group, scope.resource.kind, scope.name, why)


def _grace(scope: Scope, obj: JsonObject, options: DeleteOptions) -> tuple[bool, int | None]:
    """Work out the grace period, in place; gives (already pending, seconds or None when not graceful)."""
    metadata = meta(obj)
    wanted = options.grace_period
    if wanted is not None and wanted < 0:
        wanted = 1
    before = metadata.get("deletionTimestamp")
    if before:
        present = metadata.get("deletionGracePeriodSeconds")
        if not present:
            return False, None
        if wanted is None or wanted >= present:
            return True, None
        now = scope.core.clock.seconds()
        moment = parse_time(before) - present + wanted
        if moment < now:
            moment, wanted = now, 1 if wanted else 0
        metadata["deletionTimestamp"] = format_time(moment)
        metadata["deletionGracePeriodSeconds"] = wanted
        return False, wanted
    seconds = scope.resource.strategy.grace_period(obj, wanted)
    if seconds is None:
        return False, None
    metadata["deletionTimestamp"] = format_time(scope.core.clock.seconds() + seconds)
    metadata["deletionGracePeriodSeconds"] = seconds
    if metadata.get("generation", 0) > 0:
        metadata["generation"] += 1
    return False, seconds


def _finalizers(scope: Scope, obj: JsonObject, options: DeleteOptions) -> list[str]:
    """Give the finalizers with which the object waits for the garbage collector, if it must."""
    present: list[str] = meta(obj).get("finalizers") or []
    strategy = scope.resource.strategy
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
        if strategy.orphan_warning:
            scope.warnings.append(strategy.orphan_warning)
    if orphan:
        kept.append(ORPHAN)
    if foreground:
        kept.append(FOREGROUND)
    return present if set(kept) == set(present) else kept


def _mark_deleting(scope: Scope, obj: JsonObject) -> None:
    metadata = meta(obj)
    now = scope.core.clock.seconds()
    present = metadata.get("deletionTimestamp")
    if not present and metadata.get("generation", 0) > 0:
        metadata["generation"] += 1
    if not present or parse_time(present) > now:
        metadata["deletionTimestamp"] = format_time(now)
    metadata["deletionGracePeriodSeconds"] = 0


async def _write(
    scope: Scope, record: Record, new: JsonObject, old: JsonObject, options: DeleteOptions
) -> bytes:
    resource = scope.resource
    if new == old:
        return resource.render(record)
    if options.dry_run:
        return resource.codec.encode(new)
    return await scope.commit(new, record)


def _answer(scope: Scope, obj: JsonObject) -> bytes:
    resource = scope.resource
    if resource.strategy.returns_deleted:
        return resource.codec.encode(obj)
    details = {
        "name": scope.name,
        "group": resource.group,
        "kind": resource.plural,
        "uid": meta(obj).get("uid", ""),
    }
    return encode(success(details))
