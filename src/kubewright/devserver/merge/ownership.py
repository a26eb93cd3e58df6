"""Maintain `metadata.managedFields` while objects are created, updated and applied."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from kubewright.devserver.merge.conflicts import ApplyConflicts
from kubewright.devserver.merge.fieldsets import FieldSet, difference, has, insert, union
from kubewright.devserver.merge.last_applied import KUBECTL, may_be_taken, with_annotation
from kubewright.devserver.merge.managers import (
    APPLY,
    UPDATE,
    Managed,
    Managers,
    cap_update_managers,
    manager_id,
    read_managers,
    write_managers,
)
from kubewright.devserver.merge.schema import ApplyError, MergeSchema
from kubewright.devserver.merge.updater import Convert, Updater
from kubewright.devserver.merge.validation import check_fits
from kubewright.devserver.merge.values import metadata_of, same
from kubewright.devserver.objects import JsonObject, is_list, is_object, section

# The manager of all fields of an object that existed before its first apply.
BEFORE_FIRST_APPLY = "before-first-apply"
_NEVER_OWNED = (
    ("apiVersion",),
    ("kind",),
    ("metadata",),
    ("metadata", "name"),
    ("metadata", "namespace"),
    ("metadata", "creationTimestamp"),
    ("metadata", "selfLink"),
    ("metadata", "uid"),
    ("metadata", "clusterName"),
    ("metadata", "generation"),
    ("metadata", "managedFields"),
    ("metadata", "resourceVersion"),
)


def field_paths(field_names: Iterable[Sequence[str]]) -> FieldSet:
    """Make a set of paths from sequences of field names."""
    fields: FieldSet = {}
    for names in field_names:
        insert(fields, [f"f:{name}" for name in names])
    return fields


_STRIPPED = field_paths(_NEVER_OWNED)


class FieldWrite(Struct, frozen=True):
    """The manager, version, subresource and time (RFC 3339, whole seconds) of a write."""

    manager: str
    api_version: str
    time: str
    subresource: str = ""


def resets_ownership(value: Any) -> bool:
    """Return True if a request's object resets all ownership: managedFields `[]` or `[{}]`."""
    metadata = value.get("metadata") if is_object(value) else None
    entries = metadata.get("managedFields") if is_object(metadata) else None
    return is_list(entries) and (not entries or (len(entries) == 1 and not entries[0]))


def update_managed_fields(
    schema: MergeSchema,
    live: JsonObject,
    new: JsonObject,
    write: FieldWrite,
    *,
    reset_fields: Iterable[Sequence[str]] = (),
    reset: bool = False,
    convert: Convert | None = None,
) -> JsonObject:
    """Return the new object with its managedFields.

    On creation `live` is the kind's empty object. With `reset` the request drops all ownership, which decoding may
    have hidden.
    """
    managers = _managers_for_update(live, new, write, reset=reset or resets_ownership(new))
    if not managers and metadata_of(live).get("uid"):
        # The object has no managedFields: an update does not start to track it.
        return _with_managers(new, {})
    updater = Updater(schema, write.api_version, field_paths(reset_fields), convert)
    return _with_managers(new, _update(updater, live, new, managers, write))


def check_applied(config: JsonObject, schema: MergeSchema) -> None:
    """Refuse a configuration that does not fit its schema."""
    try:
        check_fits(config, schema)
    except ApplyError as problem:
        raise ApplyError(f"failed to create typed patch object ({_described(config)}): {problem}") from None


def _check_live(live: JsonObject, schema: MergeSchema, failed: str, purpose: str = "") -> None:
    """Raise ApplyError if the stored object, whose schema may have changed since, does not fit its schema."""
    try:
        check_fits(live, schema)
    except ApplyError as problem:
        where = f"({_described(live)}){purpose and f' {purpose}'}"
        raise ApplyError(f"{failed} {where}: {problem}") from None


def apply(
    schema: MergeSchema,
    live: JsonObject,
    config: JsonObject,
    write: FieldWrite,
    *,
    force: bool = False,
    empty: JsonObject | None = None,
    reset_fields: Iterable[Sequence[str]] = (),
    convert: Convert | None = None,
    check_live: bool = False,
) -> JsonObject:
    """Return the live object with a configuration applied to it, and its managedFields.

    `live` is the kind's empty object when there is none yet; `empty` is that object, for kinds whose empty
    object is not empty. Raise `ApplyConflicts` when others own what would change, unless forced. With `check_live`,
    the live object may not fit the schema, because it was stored under another one.
    """
    updater = Updater(schema, write.api_version, field_paths(reset_fields), convert)
    managers = read_managers(metadata_of(live).get("managedFields") or ())
    if not managers:
        if check_live or metadata_of(live).get("uid"):
            failed = "failed to create manager for existing fields: failed to convert new object"
            _check_live(live, schema, failed, "to smd typed")
        before = FieldWrite(BEFORE_FIRST_APPLY, write.api_version, write.time, write.subresource)
        managers = _update(updater, empty or {}, live, {}, before)
    check_applied(config, schema)
    if check_live:
        _check_live(live, schema, "failed to create typed live object")
    if write.manager != KUBECTL:
        return _apply(updater, live, config, managers, write, force=force)
    try:
        result = _apply(updater, live, config, managers, write, force=force)
    except ApplyConflicts as problem:
        free = may_be_taken(live, schema, write.api_version)
        conflicts = [conflict for conflict in problem.conflicts if not has(free, conflict.path)]
        if conflicts:
            raise ApplyConflicts(conflicts) from None
        result = _apply(updater, live, config, managers, write, force=True)
    return with_annotation(result, config)


def keep_timestamps(
    new: JsonObject, old: JsonObject, alike: Callable[[JsonObject, JsonObject], bool] = same
) -> JsonObject:
    """Return the new object with the old managedFields when it differs from the old one in nothing but their times.

    `alike` compares the objects without managedFields.
    """
    fresh, former = metadata_of(new).get("managedFields"), metadata_of(old).get("managedFields")
    if not fresh or not former or len(fresh) != len(former) or fresh == former:
        return new
    if not all(same(_timeless(a), _timeless(b)) for a, b in zip(fresh, former, strict=True)):
        return new
    if not alike(_without_managers(new), _without_managers(old)):
        return new
    return {**new, "metadata": {**new["metadata"], "managedFields": former}}


def _apply(
    updater: Updater,
    live: JsonObject,
    config: JsonObject,
    managers: Managers,
    write: FieldWrite,
    *,
    force: bool,
) -> JsonObject:
    applier = manager_id(write.manager, APPLY, write.api_version, write.subresource)
    new, managers = updater.apply(_without_managers(live), config, managers, applier, force=force)
    owned = managers.get(applier)
    if owned is not None:
        fields = difference(owned.fields, _STRIPPED)
        if not fields:
            del managers[applier]
        else:
            time = owned.time if new is None else write.time
            managers[applier] = Managed(fields, owned.api_version, time)
    return _with_managers(live if new is None else new, managers)


def _update(
    updater: Updater, live: JsonObject, new: JsonObject, managers: Managers, write: FieldWrite
) -> Managers:
    managers, changed = updater.update(_without_managers(live), _without_managers(new), managers)
    changed = difference(changed, _STRIPPED)
    if changed:
        manager = manager_id(write.manager, UPDATE, write.api_version, write.subresource)
        previous = managers.get(manager)
        fields = union(changed, previous.fields) if previous else changed
        managers[manager] = Managed(fields, write.api_version, write.time)
    cap_update_managers(managers)
    return managers


def _managers_for_update(live: JsonObject, new: JsonObject, write: FieldWrite, *, reset: bool) -> Managers:
    if not write.subresource:
        if reset:
            return {}
        if managers := _readable_managers(new):
            return managers
    return _readable_managers(live)


def _readable_managers(value: JsonObject) -> Managers:
    try:
        return read_managers(metadata_of(value).get("managedFields") or ())
    except ApplyError:
        return {}


def _without_managers(value: JsonObject) -> JsonObject:
    metadata = metadata_of(value)
    if "managedFields" not in metadata:
        return value
    return {**value, "metadata": {key: item for key, item in metadata.items() if key != "managedFields"}}


def _with_managers(value: JsonObject, managers: Managers) -> JsonObject:
    value = _without_managers(value)
    if not managers:
        return value
    return {**value, "metadata": {**metadata_of(value), "managedFields": write_managers(managers)}}


def _timeless(entry: JsonObject) -> JsonObject:
    return {key: item for key, item in entry.items() if key != "time"}


def _described(value: JsonObject) -> str:
    metadata = section(value, "metadata")
    # What is not a text has no place in a name.
    parts = (metadata.get(name) for name in ("namespace", "name"))
    where = "/".join(part if isinstance(part, str) else "" for part in parts)
    group, _, version = value.get("apiVersion", "").rpartition("/")
    return f"{where}; {group}/{version}, Kind={value.get('kind', '')}"
