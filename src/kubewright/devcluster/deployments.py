"""Deployments: ReplicaSets by template, rolled over as the strategy says."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from kubewright.api import AlreadyExists, Meta, to_wire
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.controller import Context, Controller, Index, Result, needs, owned
from kubewright.devcluster.conditions import condition_of
from kubewright.devcluster.rollouts import Batch, limits, scale_down, scale_up

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def _controller_uids(replica_set: apps_v1.ReplicaSet) -> list[str]:
    return [owner.uid for owner in replica_set.metadata.owner_references if owner.controller]


sets_by_controller = Index(apps_v1.ReplicaSet, _controller_uids)


def wanted_of(deployment: apps_v1.Deployment) -> int:
    """Tell how many Pods are wanted."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def template_hash(template: core_v1.PodTemplateSpec, collisions: int = 0) -> str:
    """Give a short text that differs between templates, in letters that form no words."""
    text = msgspec.json.encode([to_wire(template), collisions], order="sorted")
    number = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
    letters: list[str] = []
    for _ in range(10):
        number, index = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return "".join(letters)


def same_template(replica_set: apps_v1.ReplicaSet, template: core_v1.PodTemplateSpec) -> bool:
    """Tell whether a ReplicaSet was made from a template."""
    mine, wanted = to_wire(replica_set.spec.template), to_wire(template)
    mine.get("metadata", {}).get("labels", {}).pop(HASH_LABEL, None)
    wanted.get("metadata", {}).get("labels", {}).pop(HASH_LABEL, None)
    return mine == wanted


def revision_of(replica_set: apps_v1.ReplicaSet) -> int:
    """Read the revision a ReplicaSet stands for."""
    return int(replica_set.metadata.annotations.get(REVISION, "0"))


def replica_set_for(
    deployment: apps_v1.Deployment, collisions: int, revision: int, replicas: int
) -> apps_v1.ReplicaSet:
    """Make the ReplicaSet of a Deployment's present template."""
    spec = deployment.spec
    text = template_hash(spec.template, collisions)
    template = msgspec.structs.replace(
        spec.template,
        metadata=msgspec.structs.replace(
            spec.template.metadata, labels={**spec.template.metadata.labels, HASH_LABEL: text}
        ),
    )
    selector = msgspec.structs.replace(
        spec.selector, match_labels={**spec.selector.match_labels, HASH_LABEL: text}
    )
    return apps_v1.ReplicaSet(
        Meta(
            f"{deployment.metadata.name}-{text}",
            namespace=deployment.metadata.namespace,
            labels=dict(template.metadata.labels),
            annotations={
                **carried_annotations(deployment),
                **sizes_told(deployment),
                REVISION: str(revision),
            },
        ),
        spec=apps_v1.ReplicaSetSpec(
            replicas=replicas,
            min_ready_seconds=spec.min_ready_seconds,
            selector=meta_v1.LabelSelector(
                match_labels=selector.match_labels, match_expressions=selector.match_expressions
            ),
            template=template,
        ),
    )


def carried_annotations(deployment: apps_v1.Deployment) -> dict[str, str]:
    """Give the annotations that a ReplicaSet takes over."""
    left_out = (REVISION, DESIRED, MAXIMUM, LAST_APPLIED)
    return {key: value for key, value in deployment.metadata.annotations.items() if key not in left_out}


def sizes_told(deployment: apps_v1.Deployment) -> dict[str, str]:
    """Give the annotations that tell a ReplicaSet the size of the whole."""
    wanted = wanted_of(deployment)
    return {DESIRED: str(wanted), MAXIMUM: str(wanted + surge_and_unavailable(deployment)[0])}


def surge_and_unavailable(deployment: apps_v1.Deployment) -> tuple[int, int]:
    """Give how many Pods more or fewer than wanted there may be in a rollout."""
    rolling = deployment.spec.strategy.rolling_update
    if deployment.spec.strategy.type != "RollingUpdate" or rolling is None:
        return 0, 0
    return limits(wanted_of(deployment), rolling.max_surge, rolling.max_unavailable)


async def reconcile(deployment: apps_v1.Deployment, ctx: Context) -> Result | None:
    """Move the Deployment's ReplicaSets one step towards its template and size."""
    sets = await ctx.list(sets_by_controller, deployment.metadata.uid)
    sets.sort(key=lambda item: (revision_of(item), item.metadata.name))
    collisions = deployment.status.collision_count
    if deployment.metadata.deletion_timestamp is None:
        new = next((item for item in sets if same_template(item, deployment.spec.template)), None)
        old = [item for item in sets if item is not new]
        new, collisions = await _roll(deployment, new, old, ctx)
        sets = [*old, *([new] if new is not None else [])]
        await _forget_old(deployment, old, ctx)
    else:
        new = next((item for item in sets if same_template(item, deployment.spec.template)), None)
    status, again = status_of(deployment, sets, new, datetime.now(UTC).replace(microsecond=0))
    status.collision_count = collisions
    await ctx.patch_status(deployment, status)
    return again


async def _roll(
    deployment: apps_v1.Deployment,
    new: apps_v1.ReplicaSet | None,
    old: list[apps_v1.ReplicaSet],
    ctx: Context,
) -> tuple[apps_v1.ReplicaSet | None, int | None]:
    wanted = wanted_of(deployment)
    collisions = deployment.status.collision_count
    surge, unavailable = surge_and_unavailable(deployment)
    recreate = deployment.spec.strategy.type == "Recreate"
    if recreate and not deployment.spec.paused:
        for item in old:
            await _resize(deployment, item, 0, ctx)
        if not all(_is_gone(item) for item in old):
            return new, collisions
    batches = [_batch(item) for item in old]
    if new is None:
        if deployment.spec.paused:
            return None, collisions
        size = wanted if recreate else scale_up(wanted, surge, Batch(0, 0), batches)
        return await _create(deployment, old, size, ctx)
    await _announce(deployment, new, old, ctx)
    if deployment.spec.paused:
        if not any(batch.replicas for batch in batches):
            new = await _resize(deployment, new, wanted, ctx)
        return new, collisions
    size = wanted if recreate else scale_up(wanted, surge, _batch(new), batches)
    new = await _resize(deployment, new, size, ctx)
    if not recreate:
        for item, fewer in zip(old, scale_down(wanted, unavailable, _batch(new), batches), strict=True):
            await _resize(deployment, item, fewer, ctx)
    return new, collisions


def _is_gone(replica_set: apps_v1.ReplicaSet) -> bool:
    """Tell whether the last Pod has ended, as far as the ReplicaSet's controller has seen."""
    status = replica_set.status
    seen = status.observed_generation >= replica_set.metadata.generation
    return seen and not replica_set.spec.replicas and not status.replicas and not status.terminating_replicas


def _batch(replica_set: apps_v1.ReplicaSet) -> Batch:
    return Batch(replica_set.spec.replicas or 0, replica_set.status.available_replicas)


async def _create(
    deployment: apps_v1.Deployment, old: Sequence[apps_v1.ReplicaSet], size: int, ctx: Context
) -> tuple[apps_v1.ReplicaSet | None, int | None]:
    collisions = deployment.status.collision_count
    revision = max((revision_of(item) for item in old), default=0) + 1
    made = replica_set_for(deployment, collisions or 0, revision, size)
    try:
        created = await ctx.create(made)
    except AlreadyExists:
        # Its name is taken by another template's or another owner's ReplicaSet: draw another.
        taken = await ctx.live.get(apps_v1.ReplicaSet, made.metadata.name)
        if (
            taken is not None
            and same_template(taken, deployment.spec.template)
            and _owned_by(taken, deployment)
        ):
            return taken, collisions
        return None, (collisions or 0) + 1
    await _set_revision(deployment, revision, ctx)
    if size:
        ctx.event("ScalingReplicaSet", f"Scaled up replica set {created.metadata.name} from 0 to {size}")
    return created, collisions


def _owned_by(replica_set: apps_v1.ReplicaSet, deployment: apps_v1.Deployment) -> bool:
    return any(owner.uid == deployment.metadata.uid for owner in replica_set.metadata.owner_references)


async def _announce(
    deployment: apps_v1.Deployment,
    new: apps_v1.ReplicaSet,
    old: Sequence[apps_v1.ReplicaSet],
    ctx: Context,
) -> None:
    """Give the present ReplicaSet the highest revision, as after a rollback."""
    revision = revision_of(new)
    if old and (highest := max(revision_of(item) for item in old)) >= revision:
        revision = highest + 1
    told = {**carried_annotations(deployment), **sizes_told(deployment), REVISION: str(revision)}
    if not told.items() <= new.metadata.annotations.items():
        await ctx.patch(new, {"metadata": {"annotations": told}})
    await _set_revision(deployment, revision, ctx)


async def _set_revision(deployment: apps_v1.Deployment, revision: int, ctx: Context) -> None:
    if deployment.metadata.annotations.get(REVISION) != str(revision):
        # Through the status, so that the generation stays: an annotation alone would move it.
        change = {"metadata": {"annotations": {REVISION: str(revision)}}}
        await ctx.patch(deployment, change, subresource="status")


async def _resize(
    deployment: apps_v1.Deployment, replica_set: apps_v1.ReplicaSet, size: int, ctx: Context
) -> apps_v1.ReplicaSet:
    before = replica_set.spec.replicas or 0
    if before == size:
        return replica_set
    told = sizes_told(deployment)
    changed = await ctx.patch(replica_set, {"metadata": {"annotations": told}, "spec": {"replicas": size}})
    direction = "up" if size > before else "down"
    note = f"Scaled {direction} replica set {replica_set.metadata.name} from {before} to {size}"
    ctx.event("ScalingReplicaSet", note)
    return changed


async def _forget_old(deployment: apps_v1.Deployment, old: list[apps_v1.ReplicaSet], ctx: Context) -> None:
    limit = deployment.spec.revision_history_limit
    idle = [item for item in old if not item.spec.replicas and not item.status.replicas]
    surplus = len(idle) - (10 if limit is None else limit)
    for item in idle[: max(surplus, 0)]:
        if item.metadata.deletion_timestamp is None:
            await ctx.delete(item)


def status_of(
    deployment: apps_v1.Deployment,
    sets: Sequence[apps_v1.ReplicaSet],
    new: apps_v1.ReplicaSet | None,
    now: datetime,
) -> tuple[apps_v1.DeploymentStatus, Result | None]:
    """Sum up the ReplicaSets; and say when to look again, for the progress deadline."""
    wanted = wanted_of(deployment)
    total = sum(item.status.replicas for item in sets)
    available = sum(item.status.available_replicas for item in sets)
    status = apps_v1.DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=total,
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(item.status.ready_replicas for item in sets),
        available_replicas=available,
        unavailable_replicas=max(total - available, 0),
        terminating_replicas=sum(item.status.terminating_replicas or 0 for item in sets),
    )
    least = wanted - surge_and_unavailable(deployment)[1]
    progress, again = _progress(deployment, status, new, now)
    status.conditions = [_availability(deployment, available >= least, now), *progress]
    return status, again


def _availability(deployment: apps_v1.Deployment, enough: bool, now: datetime) -> apps_v1.DeploymentCondition:
    reason, message = (
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if enough
        else ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    return _condition(deployment, "Available", "True" if enough else "False", reason, message, now)


def _progress(
    deployment: apps_v1.Deployment,
    status: apps_v1.DeploymentStatus,
    new: apps_v1.ReplicaSet | None,
    now: datetime,
) -> tuple[list[apps_v1.DeploymentCondition], Result | None]:
    name = new.metadata.name if new is not None else deployment.metadata.name
    before = condition_of(deployment.status.conditions, "Progressing")
    if deployment.spec.paused:
        paused = _condition(
            deployment, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now
        )
        return [paused], None
    wanted = wanted_of(deployment)
    complete = (
        status.updated_replicas == wanted
        and status.replicas == wanted
        and status.available_replicas == wanted
    )
    if complete:
        message = f'ReplicaSet "{name}" has successfully progressed.'
        return [_condition(deployment, "Progressing", "True", "NewReplicaSetAvailable", message, now)], None
    moved = before is None or (
        status.updated_replicas > deployment.status.updated_replicas
        or status.ready_replicas > deployment.status.ready_replicas
        or status.available_replicas > deployment.status.available_replicas
        or before.reason == "DeploymentPaused"
        or deployment.status.observed_generation != deployment.metadata.generation
    )
    deadline = timedelta(seconds=deployment.spec.progress_deadline_seconds or 600)
    since = now if moved or before is None else before.last_update_time or now
    if now - since >= deadline:
        message = f'ReplicaSet "{name}" has timed out progressing.'
        late = _condition(deployment, "Progressing", "False", "ProgressDeadlineExceeded", message, now)
        return [late], None
    if moved or before is None:
        message = f'ReplicaSet "{name}" is progressing.'
        going = _condition(deployment, "Progressing", "True", "ReplicaSetUpdated", message, now, always=True)
        return [going], Result(after=deadline)
    return [before], Result(after=max(since + deadline - now, timedelta(seconds=1)))


def _condition(
    deployment: apps_v1.Deployment,
    type: str,  # noqa: A002 (the field's name)
    status: str,
    reason: str,
    message: str,
    now: datetime,
    *,
    always: bool = False,
) -> apps_v1.DeploymentCondition:
    """Make a condition whose times move only with what they time."""
    before = condition_of(deployment.status.conditions, type)
    same = before is not None and (before.status, before.reason, before.message) == (status, reason, message)
    return apps_v1.DeploymentCondition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        last_update_time=before.last_update_time if before is not None and same and not always else now,
        last_transition_time=(
            before.last_transition_time if before is not None and before.status == status else now
        ),
    )


def controller() -> Controller[apps_v1.Deployment]:
    """Declare the controller."""
    return Controller(
        apps_v1.Deployment,
        reconcile,
        name="deployment-controller",
        owns=[owned(apps_v1.ReplicaSet)],
        needs=[needs(apps_v1.Deployment, "patch", subresource="status"), needs(apps_v1.ReplicaSet, "delete")],
        concurrency=8,
    )
