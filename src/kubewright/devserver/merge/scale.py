"""Server-side apply to the scale subresource: it owns one field of the object behind it."""

from collections.abc import Sequence
from typing import Any

from kubewright.devserver.merge.conflicts import ApplyConflicts, OwnershipConflict
from kubewright.devserver.merge.fieldsets import FieldSet, difference, insert
from kubewright.devserver.merge.managers import read_managers, write_managers
from kubewright.devserver.merge.ownership import FieldWrite, apply, check_applied
from kubewright.devserver.merge.schema import MergeSchema
from kubewright.devserver.merge.values import metadata_of
from kubewright.devserver.objects import JsonObject, is_object

SCALE_VERSION = "autoscaling/v1"
_REPLICAS = ("f:spec", "f:replicas")


def apply_scale(
    schema: MergeSchema,
    live: JsonObject,
    replicas: Sequence[str],
    config: JsonObject,
    scale_schema: MergeSchema,
    write: FieldWrite,
    *,
    force: bool = False,
    empty: JsonObject | None = None,
) -> JsonObject:
    """Return the live object with a Scale applied to it; `replicas` names the fields that lead to its number.

    The Scale itself is read by `scale_schema`. `write` is in the object's own version with the subresource `scale`; conflicts name fields of the Scale.
    """
    check_applied(config, scale_schema)
    part: JsonObject = {key: live[key] for key in ("apiVersion", "kind") if key in live}
    part["metadata"] = {key: item for key, item in metadata_of(live).items() if key in {"name", "namespace"}}
    spec: JsonObject = config.get("spec") or {}
    desired = spec.get("replicas")
    if desired is not None:
        _set(part, replicas, desired)
    try:
        return apply(schema, live, part, write, force=force, empty=empty)
    except ApplyConflicts as problem:
        raise ApplyConflicts(
            [_scale_conflict(conflict, write.api_version) for conflict in problem.conflicts]
        ) from None


def scale_owners(live: JsonObject, replicas: Sequence[str]) -> list[JsonObject]:
    """Return the managedFields of a Scale: the managers of the replicas."""
    return [
        {
            **{key: entry[key] for key in ("manager", "operation") if key in entry},
            "apiVersion": SCALE_VERSION,
            **{key: entry[key] for key in ("time", "fieldsType") if key in entry},
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
            **{key: entry[key] for key in ("subresource",) if key in entry},
        }
        for entry in metadata_of(live).get("managedFields") or ()
        if _owns(entry.get("fieldsV1"), replicas)
    ]


def disown(obj: JsonObject, path: Sequence[str]) -> None:
    """Remove a field from the managedFields of an object, in place."""
    gone: FieldSet = {}
    insert(gone, [f"f:{name}" for name in path])
    managers = read_managers(metadata_of(obj).get("managedFields") or ())
    kept = {
        manager: managed.owning(fields)
        for manager, managed in managers.items()
        if (fields := difference(managed.fields, gone))
    }
    obj["metadata"]["managedFields"] = write_managers(kept)


def _owns(fields: Any, path: Sequence[str]) -> bool:
    for name in path:
        if not is_object(fields) or f"f:{name}" not in fields:
            return False
        fields = fields[f"f:{name}"]
    return True


def _scale_conflict(conflict: OwnershipConflict, api_version: str) -> OwnershipConflict:
    """Return a conflict over the object's field as a conflict over `.spec.replicas` of the Scale."""
    name = conflict.manager.removesuffix(f" using {api_version}")
    return OwnershipConflict(name if name == conflict.manager else f"{name} using {SCALE_VERSION}", _REPLICAS)


def _set(value: JsonObject, path: Sequence[str], item: object) -> None:
    *parents, last = path
    for name in parents:
        value = value.setdefault(name, {})
    value[last] = item
