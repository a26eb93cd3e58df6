"""Changing an object: every PUT and PATCH is a function from the old object to the new one."""

from collections.abc import Callable

from kubewright.api import FieldError, names, problems
from kubewright.devserver.handlers.create import insert
from kubewright.devserver.handlers.scope import Scope
from kubewright.devserver.merge import keep_timestamps
from kubewright.devserver.objects import JsonObject, copy, encode_sorted, meta
from kubewright.devserver.objects.metadata import (
    check_meta,
    check_meta_update,
    check_qualified_finalizers,
    drop_repeated_owners,
)
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import converting
from kubewright.devserver.request.options import parse_revision
from kubewright.devserver.storage import Conflict, Record
from kubewright.devserver.strategy.access import Access

Change = Callable[[JsonObject | None], JsonObject]
"""Make the new object from a copy of the old one, field ownership included; None when there is none."""

MAX_RACES = 100


async def update(
    scope: Scope, change: Change, api: Access, *, may_create: bool = False, uid: str = ""
) -> tuple[bytes, bool]:
    """Change or create the target; gives its bytes and whether it is new. Races with other writers are run again."""
    for _ in range(MAX_RACES):
        record = scope.record()
        try:
            if record is None:
                if not (may_create or scope.resource.strategy.allow_create_on_update):
                    raise scope.not_found()
                return await _create(scope, change, api), True
            return await _replace(scope, record, change, api, uid), False
        except Conflict:
            continue
    raise scope.conflict()


async def _create(scope: Scope, change: Change, api: Access) -> bytes:
    obj = await converting(lambda: change(None))
    if uid := meta(obj).get("uid"):
        raise scope.conflict(
            f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        )
    scope.place(obj)
    _check_name(scope, obj)
    return await insert(scope, await scope.admit("CREATE", obj, None), api)


async def _replace(scope: Scope, record: Record, change: Change, api: Access, uid: str) -> bytes:
    resource, strategy = scope.resource, scope.resource.strategy
    old = await scope.read(record)
    if uid and uid != old["metadata"].get("uid"):
        raise _uid_precondition(scope, uid, old["metadata"].get("uid", ""))
    # Read once more, which is the cheapest copy.
    new = await converting(lambda: change(resource.read(record)))
    scope.place(new)
    _check_name(scope, new)
    new = await scope.admit("UPDATE", new, old)
    drop_repeated_owners(new, scope.warnings)
    _check_revision(scope, new, record)
    _prepare(scope, new, old)
    if strategy.before_commit is not None and not scope.subresource:
        await strategy.before_commit(api, new, old)
    if errors := _errors(scope, new, old):
        raise StatusError.invalid(resource.home_group, resource.kind, scope.name, errors)
    scope.warnings.extend(strategy.warnings(new, old))
    new = keep_timestamps(new, old)
    await scope.judge("UPDATE", new, old)
    return await _store(scope, record, new, old)


async def _store(scope: Scope, record: Record, new: JsonObject, old: JsonObject) -> bytes:
    resource = scope.resource
    if scope.record() is not record:
        raise Conflict
    if _ends_deletion(scope, new, old):
        if not scope.options.dry_run:
            scope.core.store.delete(resource.collection, record)
        return resource.codec.encode(new)
    codec = resource.codec
    # Read anew: what the new object shares with the old one may have been changed in both.
    formed = codec.form(new, None if resource.custom else resource.read(record))
    if record.shape == resource.storage_codec.shape and codec.write(formed) == resource.render(record):
        return resource.render(record)
    if scope.options.dry_run:
        return await scope.rehearse(new)
    if resource.storage_codec is codec:
        return await scope.put(formed, record)
    return await scope.commit(new, record)


def _ends_deletion(scope: Scope, new: JsonObject, old: JsonObject) -> bool:
    before = old["metadata"]
    if meta(new).get("finalizers") or not before.get("deletionTimestamp"):
        return False
    return not before.get("deletionGracePeriodSeconds") and scope.resource.strategy.deletable(new)


def _check_name(scope: Scope, obj: JsonObject) -> None:
    name = meta(obj).get("name", "")
    if not name:
        raise StatusError.bad_request(
            f"the name of the object ({scope.name} based on URL) was undeterminable: name must be provided"
        )
    if name != scope.name:
        raise StatusError.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({scope.name})"
        )


def _check_revision(scope: Scope, new: JsonObject, record: Record) -> None:
    resource = scope.resource
    try:
        revision = parse_revision(str(meta(new).get("resourceVersion", "")))
    except ValueError as error:
        raise StatusError.unknown(str(error)) from None
    if revision == 0:
        if not resource.strategy.allow_unconditional_update:
            error = problems.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise StatusError.invalid(resource.group, resource.plural, scope.name, [error])
        meta(new)["resourceVersion"] = str(record.revision)
    elif revision != record.revision:
        raise scope.conflict()


def _prepare(scope: Scope, new: JsonObject, old: JsonObject) -> None:
    resource, strategy = scope.resource, scope.resource.strategy
    metadata, before = meta(new), meta(old)
    _restore(metadata, before, "generation")
    part = strategy.parts.get(scope.subresource)
    if scope.subresource == "status":
        strategy.prepare_status_update(new, old)
    elif part is not None:
        part.prepare(new, old)
    else:
        if resource.has_status:
            _restore(new, old, "status")
        strategy.prepare_update(new, old)
    if scope.subresource and strategy.date is not None:
        strategy.date(new, old, scope.core.clock.stamp())
    metadata = meta(new)
    counts = scope.subresource != "status" if part is None else part.counts
    if counts and strategy.has_generation and _changed(scope, new, old):
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


def _changed(scope: Scope, new: JsonObject, old: JsonObject) -> bool:
    ignored = {"metadata", "status"} if scope.resource.has_status else {"metadata"}
    strategy = scope.resource.strategy
    if strategy.generation_sees_annotations and meta(new).get("annotations") != meta(old).get("annotations"):
        return True
    after = {name: value for name, value in new.items() if name not in ignored}
    before = {name: value for name, value in old.items() if name not in ignored}
    return not _alike(scope, after, before)


def _alike(scope: Scope, new: JsonObject, old: JsonObject) -> bool:
    """Tell whether parts of an object would be stored as the parts there are: Python takes 1, 1.0 and True for equal."""
    differing = [name for name in new | old if encode_sorted(new.get(name)) != encode_sorted(old.get(name))]
    if not differing or scope.resource.custom:
        return not differing
    # What Go stores of a built-in kind does not tell an empty list from none.
    gvk = scope.resource.gvk
    named: JsonObject = {"kind": gvk.kind, "apiVersion": gvk.api_version}
    formed = scope.resource.codec.form(named | {name: new[name] for name in differing if name in new})
    return all(encode_sorted(formed.get(name)) == encode_sorted(old.get(name)) for name in differing)


def _errors(scope: Scope, new: JsonObject, old: JsonObject) -> list[FieldError]:
    resource, strategy = scope.resource, scope.resource.strategy
    if (kind := new.get("kind", resource.kind)) != resource.kind:
        return [problems.invalid("kind", kind, f"must be {resource.kind}")]
    errors = check_meta(new, names.path_segment, namespaced=resource.namespaced, qualified_finalizers=False)
    errors += check_meta_update(new, old)
    errors += _check_meta_again(scope, new, old)
    if part := strategy.parts.get(scope.subresource):
        return errors + part.validate(new, old)
    if scope.subresource == "status":
        return errors + strategy.validate_status_update(new, old) + resource.codec.validate_status(new, old)
    return errors + strategy.validate_update(new, old) + resource.codec.validate(new, old)


def _check_meta_again(scope: Scope, new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check metadata once more for the kind: clients see the same causes again, as often as the real server finds them."""
    resource, strategy = scope.resource, scope.resource.strategy
    if resource.custom or scope.subresource:
        return check_meta_update(new, old)
    checks = strategy.meta_checks
    whole = check_meta(
        new, strategy.name_check, namespaced=resource.namespaced, qualified_finalizers=checks.qualified
    )
    changes = check_meta_update(new, old)
    if checks.qualified:
        changes += check_qualified_finalizers(new)
    return whole * checks.whole + changes * checks.changes


def replacement(scope: Scope, body: JsonObject, *, forget: bool) -> Change:
    """Make the change that a PUT asks for; it may ask to forget who owns what."""

    def change(old: JsonObject | None) -> JsonObject:
        return scope.manage_fields(old, copy(body), reset=forget)

    return change


def _uid_precondition(scope: Scope, wanted: str, found: str) -> StatusError:
    key = f"/registry/{scope.resource.collection.name}/{scope.key}"
    return scope.conflict(
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
