"""ControllerRevisions: the templates a StatefulSet or DaemonSet has had, numbered."""

from collections.abc import Mapping, Sequence
from typing import Any

from kubewright.api import AlreadyExists, Meta, Object, to_wire
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Context, Index
from kubewright.devcluster.claims import family_of
from kubewright.devcluster.hashes import short_hash

HASH = "controller.kubernetes.io/hash"
HASH_LABEL = "controller-revision-hash"
HISTORY = 10

revisions_by_owner: Index[apps_v1.ControllerRevision] = Index(apps_v1.ControllerRevision, family_of)


def template_data(template: core_v1.PodTemplateSpec) -> dict[str, Any]:
    """Make the patch that brings a template back, as `kubectl rollout undo` applies it."""
    return {"spec": {"template": {**to_wire(template), "$patch": "replace"}}}


def number_of(revision: apps_v1.ControllerRevision) -> int:
    """Give the order of a revision, for sorting."""
    return revision.revision


def hash_of(revision: apps_v1.ControllerRevision) -> str:
    """Read the hash of a revision, which kinds of owners have under labels of their own."""
    labels = revision.metadata.labels
    return labels.get(HASH_LABEL) or labels.get(HASH, "")


class History:
    """The revisions of one owner, oldest first; the last is the present one."""

    def __init__(self, revisions: Sequence[apps_v1.ControllerRevision]) -> None:
        self.revisions: list[apps_v1.ControllerRevision] = sorted(revisions, key=number_of)

    @property
    def latest(self) -> apps_v1.ControllerRevision:
        """The revision of the present template."""
        return self.revisions[-1]

    def named(self, name: str) -> apps_v1.ControllerRevision | None:
        """Find a revision by its name."""
        return next((item for item in self.revisions if item.metadata.name == name), None)


async def record(
    owner: Object,
    template: core_v1.PodTemplateSpec,
    labels: Mapping[str, str],
    ctx: Context,
    *,
    hashed: str = HASH,
    collisions: int = 0,
) -> History:
    """Have the present template as the latest revision, its hash under a label; one it has had is moved up."""
    known = History(await ctx.list(revisions_by_owner, owner.metadata.uid))
    data = template_data(template)
    equal = next((item for item in reversed(known.revisions) if item.data == data), None)
    if equal is not None and equal is known.latest:
        return known
    number = known.latest.revision + 1 if known.revisions else 1
    if equal is not None:
        raised = await ctx.patch(equal, {"revision": number})
        others = [item for item in known.revisions if item is not equal]
        return History([*others, raised])
    text = short_hash(data, collisions)
    revision = apps_v1.ControllerRevision(
        Meta(
            f"{owner.metadata.name}-{text}",
            namespace=owner.metadata.namespace,
            labels={**labels, hashed: text},
            annotations=dict(owner.metadata.annotations),
        ),
        data=data,
        revision=number,
    )
    try:
        return History([*known.revisions, await ctx.create(revision)])
    except AlreadyExists:
        return await record(owner, template, labels, ctx, hashed=hashed, collisions=collisions + 1)


async def forget_old(history: History, used: set[str], limit: int | None, ctx: Context) -> None:
    """Delete the oldest revisions that nothing uses, beyond the limit."""
    idle = [
        item
        for item in history.revisions[:-1]
        if item.metadata.name not in used and hash_of(item) not in used
    ]
    surplus = len(idle) - (HISTORY if limit is None else limit)
    for item in idle[: max(surplus, 0)]:
        await ctx.delete(item)
