"""Defaulting and validation of every object's metadata."""

import secrets
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.objects import JsonObject, meta
from kubewright.devserver.objects.status import StatusError

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
MAX_ANNOTATIONS = 256 * 1024

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_MAX_BASE = 58
_STANDARD_FINALIZERS = frozenset({"kubernetes", ORPHAN, FOREGROUND})

NameCheck = Callable[[str], list[str]]


def _random_uid(_: JsonObject) -> str:
    return str(uuid.uuid4())


UID_SOURCE: ContextVar[Callable[[JsonObject], str]] = ContextVar("kubewright_uids", default=_random_uid)
"""Makes the uid of a new object; a simulation makes it from the object's name, so that runs can be compared."""


def generate_name(base: str) -> str:
    """Append five random letters to a generateName."""
    return base[:_MAX_BASE] + "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))


def wipe_system_fields(obj: JsonObject) -> None:
    """Drop from a client's new object what only the server sets."""
    metadata = meta(obj)
    for name in ("uid", "selfLink", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(name, None)


def fill_system_fields(obj: JsonObject, stamp: str) -> None:
    """Set the uid and the creation time of a new object."""
    metadata = meta(obj)
    metadata["creationTimestamp"] = stamp
    metadata["uid"] = UID_SOURCE.get()(obj)


def place_in_namespace(obj: JsonObject, namespace: str) -> None:
    """Set the namespace of the URL, none for a cluster-scoped object; raise BadRequest if the object has another."""
    metadata = meta(obj)
    if not namespace:
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = namespace
    elif metadata["namespace"] != namespace:
        raise StatusError.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def drop_repeated_owners(obj: JsonObject, warnings: list[str], *, admitted: bool = False) -> None:
    """Drop repeated owner references and warn of them, before mutating admission or after it (`admitted`)."""
    owners: list[JsonObject] = obj.get("metadata", {}).get("ownerReferences") or []
    if len(owners) < 2:
        return
    kept: list[JsonObject] = []
    repeated: list[str] = []
    for owner in owners:
        if owner in kept:
            repeated.append(owner.get("uid", ""))
        else:
            kept.append(owner)
    if repeated:
        obj["metadata"]["ownerReferences"] = kept
        uids = ", ".join(dict.fromkeys(repeated))
        when = " after mutating admission happens" if admitted else ""
        warnings.append(
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, "
            f"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
        )


def check_meta(
    obj: JsonObject, name_check: NameCheck, *, namespaced: bool, qualified_finalizers: bool
) -> list[FieldError]:
    """Check a new object's metadata, after its name was generated."""
    metadata = meta(obj)
    errors: list[FieldError] = []
    base, name = metadata.get("generateName", ""), metadata.get("name", "")
    if base:
        found = names.generated(name_check, base)
        errors += [problems.invalid("metadata.generateName", base, text) for text in found]
    if not name:
        errors.append(problems.required("metadata.name", "name or generateName is required"))
    else:
        errors += [problems.invalid("metadata.name", name, text) for text in name_check(name)]
    errors += _check_namespace(metadata, namespaced=namespaced)
    if metadata.get("generation", 0) < 0:
        text = "must be greater than or equal to 0"
        errors.append(problems.invalid("metadata.generation", metadata["generation"], text))
    errors += _check_descriptions(metadata)
    errors += _check_finalizers(metadata, qualified=qualified_finalizers)
    errors += _check_managed_fields(metadata)
    return errors


_IMMUTABLE = {
    **dict.fromkeys(("name", "namespace", "uid"), ""),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")),
}
"""Fields that an update cannot change, with the value that an error shows for an absent one."""


def check_meta_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check what an update does to metadata."""
    metadata, before = meta(new), meta(old)
    errors: list[FieldError] = []
    if before.get("deletionTimestamp"):
        added = sorted(set(metadata.get("finalizers") or ()) - set(before.get("finalizers") or ()))
        if added:
            listed = ", ".join(problems.quoted(name) for name in added)
            text = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            errors.append(problems.forbidden("metadata.finalizers", text))
    for name, absent in _IMMUTABLE.items():
        if metadata.get(name) != before.get(name):
            value = metadata.get(name, absent)
            errors.append(problems.invalid(f"metadata.{name}", value, "field is immutable"))
    errors += _check_descriptions(metadata)
    errors += _check_managed_fields(metadata)
    return errors


def _check_namespace(metadata: JsonObject, *, namespaced: bool) -> list[FieldError]:
    namespace = metadata.get("namespace", "")
    if not namespaced:
        return [problems.forbidden("metadata.namespace", "not allowed on this type")] if namespace else []
    if not namespace:
        return [problems.required("metadata.namespace")]
    return [
        problems.invalid("metadata.namespace", namespace, text) for text in names.dns1123_label(namespace)
    ]


def _check_descriptions(metadata: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    labels: dict[str, str] = metadata.get("labels") or {}
    for key, value in labels.items():
        errors += [problems.invalid("metadata.labels", key, text) for text in names.qualified_name(key)]
        errors += [problems.invalid("metadata.labels", value, text) for text in names.label_value(value)]
    annotations: dict[str, str] = metadata.get("annotations") or {}
    for key in annotations:
        found = names.qualified_name(key.lower())
        errors += [problems.invalid("metadata.annotations", key, text) for text in found]
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        errors.append(problems.too_long("metadata.annotations", MAX_ANNOTATIONS))
    return errors + _check_owners(metadata)


def _check_owners(metadata: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    controller = ""
    owners: list[JsonObject] = metadata.get("ownerReferences") or []
    for index, owner in enumerate(owners):
        field = f"metadata.ownerReferences[{index}]"
        version = str(owner.get("apiVersion", ""))
        if version and (version.count("/") > 1 or not version.rpartition("/")[2]):
            text = "must be <group>/<version> or <version>"
            errors.append(problems.invalid(f"{field}.apiVersion", version, text))
        errors += [
            problems.required(f"{field}.{name}", "must not be empty")
            for name in ("apiVersion", "kind", "name", "uid")
            if not owner.get(name)
        ]
        if (version, owner.get("kind")) == ("v1", "Event"):
            text = "/v1, Kind=Event is disallowed from being an owner"
            errors.append(problems.invalid(field, owner, text))
        if owner.get("controller"):
            found = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                text = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {found}"
                )
                errors.append(problems.invalid("metadata.ownerReferences", owners, text))
            else:
                controller = found
    return errors


def check_qualified_finalizers(obj: JsonObject) -> list[FieldError]:
    """Return errors for finalizers that are neither standard nor qualified by a domain."""
    finalizers: list[str] = meta(obj).get("finalizers") or []
    return [error for index, name in enumerate(finalizers) for error in _check_finalizer(index, name)]


def _check_finalizer(index: int, name: str) -> list[FieldError]:
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [problems.invalid(f"metadata.finalizers[{index}]", name, text)]


def _check_finalizers(metadata: JsonObject, *, qualified: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    finalizers: list[str] = metadata.get("finalizers") or []
    for index, name in enumerate(finalizers):
        found = names.qualified_name(name)
        errors += [problems.invalid("metadata.finalizers", name, text) for text in found]
        if qualified:
            errors += _check_finalizer(index, name)
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        text = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        errors.append(problems.invalid("metadata.finalizers", finalizers, text))
    return errors


def _check_managed_fields(metadata: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    entries: list[Any] = metadata.get("managedFields") or []
    for index, entry in enumerate(entries):
        field = f"metadata.managedFields[{index}]"
        if entry.get("operation") not in ("Apply", "Update"):
            text = "must be `Apply` or `Update`"
            errors.append(problems.invalid(f"{field}.operation", entry.get("operation", ""), text))
        if entry.get("fieldsType", "FieldsV1") not in ("", "FieldsV1"):
            errors.append(problems.invalid(f"{field}.fieldsType", entry["fieldsType"], "must be `FieldsV1`"))
    return errors


def finalizer_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Warn of finalizers that are not domain-qualified, as custom resources may have them."""
    before = set((old or {}).get("metadata", {}).get("finalizers") or ())
    warnings: list[str] = []
    for name in sorted(set(meta(new).get("finalizers") or ()) - before):
        if "/" in name or name in _STANDARD_FINALIZERS:
            continue
        path = " including a path (/)" if "." in name else ""
        warnings.append(
            f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name{path} '
            "to avoid accidental conflicts with other finalizer writers"
        )
    return warnings
