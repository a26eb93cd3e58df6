"""Server-side apply to the scale subresource: it owns one field of the object behind it."""

from collections.abc import Sequence

from kubewright.devserver.merge.conflicts import ApplyConflicts, Conflict
from kubewright.devserver.merge.ownership import Write, apply
from kubewright.devserver.merge.schema import MergeSchema
from kubewright.devserver.merge.values import Wire, metadata_of

SCALE_VERSION = "autoscaling/v1"
_REPLICAS = ("f:spec", "f:replicas")


def apply_scale(
    schema: MergeSchema,
    live: Wire,
    replicas: Sequence[str],
    config: Wire,
    write: Write,
    *,
    force: bool = False,
    empty: Wire | None = None,
) -> Wire:
    """Return the live object with a Scale applied to it; `replicas` names the fields that lead to its number.

    `write` is in the object's own version with the subresource `scale`; conflicts are told in the Scale's terms.
    """
    part: Wire = {key: live[key] for key in ("apiVersion", "kind") if key in live}
    part["metadata"] = {key: item for key, item in metadata_of(live).items() if key in {"name", "namespace"}}
    spec: Wire = config.get("spec") or {}
    wanted = spec.get("replicas")
    if wanted is not None:
        _set(part, replicas, wanted)
    try:
        return apply(schema, live, part, write, force=force, empty=empty)
    except ApplyConflicts as problem:
        raise ApplyConflicts(
            [_retold(conflict, write.api_version) for conflict in problem.conflicts]
        ) from None


def _retold(conflict: Conflict, api_version: str) -> Conflict:
    """Tell a conflict over the object's field as one over the Scale's."""
    name = conflict.manager.removesuffix(f" using {api_version}")
    return Conflict(name if name == conflict.manager else f"{name} using {SCALE_VERSION}", _REPLICAS)


def _set(value: Wire, path: Sequence[str], item: object) -> None:
    *parents, last = path
    for name in parents:
        value = value.setdefault(name, {})
    value[last] = item
