"""ControllerRevisions: the numbered history of a StatefulSet's or DaemonSet's templates."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from kubewright.api import AlreadyExists, JsonObject, Meta, Object, from_wire, kind_of, to_wire
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Context, Index, RetryLater
from kubewright.devcluster.workloads import controller_keys, short_hash

HASH = "controller.kubernetes.io/hash"
HASH_LABEL = "controller-revision-hash"
HISTORY = 10

revisions_by_owner: Index[apps_v1.ControllerRevision] = Index(apps_v1.ControllerRevision, controller_keys)


def template_data(template: JsonObject) -> JsonObject:
    """Build the patch that restores a template, in the format of `kubectl rollout undo`, with sorted keys."""
    return _sorted_keys({"spec": {"template": {**template, "$patch": "replace"}}})


def _sorted_keys(value: Any) -> Any:
    if isinstance(value, dict):
        found = cast(JsonObject, value)
        return {key: _sorted_keys(found[key]) for key in sorted(found)}
    if isinstance(value, list):
        return [_sorted_keys(item) for item in cast("list[Any]", value)]
    return value


def template_of(revision: apps_v1.ControllerRevision) -> core_v1.PodTemplateSpec:
    """Return the template that a revision restores."""
    data = revision.data or {}
    stored = {key: value for key, value in data["spec"]["template"].items() if key != "$patch"}
    return from_wire(core_v1.PodTemplateSpec, stored)


async def _stored_template(owner: Object, template: core_v1.PodTemplateSpec, ctx: Context) -> JsonObject:
    """Read the template as the server has it: with empty objects, which the decoded one no longer has."""
    found = await ctx.live.get(kind_of(owner), owner.metadata.name, owner.metadata.namespace)
    stored = found["spec"]["template"]
    if (
        found["metadata"]["uid"] != owner.metadata.uid
        or from_wire(core_v1.PodTemplateSpec, stored) != template
    ):
        raise RetryLater(f"{owner.key} has changed: waiting for the cache to show it")
    return stored


def number_of(revision: apps_v1.ControllerRevision) -> int:
    """Return the revision number, for sorting."""
    return revision.revision


def hash_of(revision: apps_v1.ControllerRevision) -> str:
    """Return the hash of a revision, whose label differs between StatefulSets and DaemonSets."""
    labels = revision.metadata.labels
    return labels.get(HASH_LABEL) or labels.get(HASH, "")


class RevisionHistory:
    """The revisions of one owner, oldest first."""

    def __init__(self, revisions: Sequence[apps_v1.ControllerRevision]) -> None:
        self.revisions: list[apps_v1.ControllerRevision] = sorted(revisions, key=number_of)

    @property
    def latest(self) -> apps_v1.ControllerRevision:
        """The revision of the current template."""
        return self.revisions[-1]

    def named(self, name: str) -> apps_v1.ControllerRevision | None:
        """Return the revision with the name, or None."""
        return next((item for item in self.revisions if item.metadata.name == name), None)


async def record(
    owner: Object,
    template: core_v1.PodTemplateSpec,
    labels: Mapping[str, str],
    ctx: Context,
    *,
    hashed: str = HASH,
    collisions: int = 0,
) -> RevisionHistory:
    """Record the current template as the latest revision; an equal earlier revision gets a new number instead."""
    known = RevisionHistory(await ctx.list(revisions_by_owner, owner.metadata.uid))
    equal = next((item for item in reversed(known.revisions) if template_of(item) == template), None)
    if equal is not None and equal is known.latest:
        return known
    number = known.latest.revision + 1 if known.revisions else 1
    if equal is not None:
        raised = await ctx.patch(equal, {"revision": number})
        others = [item for item in known.revisions if item is not equal]
        return RevisionHistory([*others, raised])
    text = short_hash(to_wire(template), collisions)
    revision = apps_v1.ControllerRevision(
        Meta(
            f"{owner.metadata.name}-{text}",
            namespace=owner.metadata.namespace,
            labels={**labels, hashed: text},
            annotations=dict(owner.metadata.annotations),
        ),
        data=template_data(await _stored_template(owner, template, ctx)),
        revision=number,
    )
    try:
        return RevisionHistory([*known.revisions, await ctx.create(revision)])
    except AlreadyExists:
        return await record(owner, template, labels, ctx, hashed=hashed, collisions=collisions + 1)


async def forget_old(history: RevisionHistory, used: set[str], limit: int | None, ctx: Context) -> None:
    """Delete the oldest unused revisions beyond the limit."""
    idle = [
        item
        for item in history.revisions[:-1]
        if item.metadata.name not in used and hash_of(item) not in used
    ]
    surplus = len(idle) - (HISTORY if limit is None else limit)
    for item in idle[: max(surplus, 0)]:
        await ctx.delete(item)
