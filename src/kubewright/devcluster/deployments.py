"""The Deployment controller: creates a ReplicaSet per template, rolls from old to new ones, and reports the progress."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from kubewright.api import AlreadyExists, Meta, label_selector, to_wire
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.controller import Context, Controller, Index, Options, Result, needs, owned, watch
from kubewright.devcluster import clock
from kubewright.devcluster.namespaces import ignore_terminating_namespace
from kubewright.devcluster.rollouts import SetSize, limits, proportional, scale_down, scale_up
from kubewright.devcluster.statuses import FIELD_MANAGER, REQUEUE_SOON, StatusWriter, condition_of
from kubewright.devcluster.workloads import claim_children, controller_keys, is_orphaned, short_hash

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
"""The earlier revisions of a ReplicaSet that was rolled back to."""
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
DEFAULT_HISTORY_LIMIT = 10
COMPLETE = "NewReplicaSetAvailable"
PAUSED = "DeploymentPaused"
DEFAULT_DEADLINE = 600
MANAGED_CONDITIONS = ("Available", "Progressing", "ReplicaFailure")
NAME = "deployment-controller"
replica_sets_by_controller: Index[apps_v1.ReplicaSet] = Index(apps_v1.ReplicaSet, controller_keys)
deployments_by_namespace: Index[apps_v1.Deployment] = Index(
    apps_v1.Deployment, lambda item: [item.metadata.namespace]
)
_status_writer = StatusWriter()


def desired_replicas(deployment: apps_v1.Deployment) -> int:
    """Return the desired number of Pods."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def history_limit(deployment: apps_v1.Deployment) -> int:
    """Return how many old ReplicaSets are kept for rollbacks."""
    limit = deployment.spec.revision_history_limit
    return DEFAULT_HISTORY_LIMIT if limit is None else limit


def surge_and_unavailable(deployment: apps_v1.Deployment) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable as numbers of Pods."""
    rolling = deployment.spec.strategy.rolling_update
    if deployment.spec.strategy.type != "RollingUpdate" or rolling is None:
        return 0, 0
    return limits(desired_replicas(deployment), rolling.max_surge, rolling.max_unavailable)


def same_template(replica_set: apps_v1.ReplicaSet, template: core_v1.PodTemplateSpec) -> bool:
    """Return True if a ReplicaSet was created from a template."""
    return _without_hash(replica_set.spec.template) == _without_hash(template)


def _without_hash(template: core_v1.PodTemplateSpec) -> core_v1.PodTemplateSpec:
    labels = {key: value for key, value in template.metadata.labels.items() if key != HASH_LABEL}
    return msgspec.structs.replace(
        template, metadata=msgspec.structs.replace(template.metadata, labels=labels)
    )


def revision_of(replica_set: apps_v1.ReplicaSet) -> int:
    """Return the revision of a ReplicaSet."""
    text = replica_set.metadata.annotations.get(REVISION, "")
    return int(text) if text.isdigit() else 0


def copied_annotations(deployment: apps_v1.Deployment) -> dict[str, str]:
    """Return the annotations that are copied to ReplicaSets."""
    left_out = (REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, LAST_APPLIED)
    return {key: value for key, value in deployment.metadata.annotations.items() if key not in left_out}


def size_annotations(deployment: apps_v1.Deployment) -> dict[str, str]:
    """Return the annotations with the desired and the maximum number of Pods of the whole Deployment."""
    desired = desired_replicas(deployment)
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(desired + surge_and_unavailable(deployment)[0])}


def replica_set_for(
    deployment: apps_v1.Deployment, collisions: int, revision: int, replicas: int
) -> apps_v1.ReplicaSet:
    """Build the ReplicaSet for the Deployment's current template."""
    spec = deployment.spec
    text = short_hash(to_wire(spec.template), collisions)
    labels = {**spec.template.metadata.labels, HASH_LABEL: text}
    template = msgspec.structs.replace(
        spec.template, metadata=msgspec.structs.replace(spec.template.metadata, labels=labels)
    )
    annotations = {**copied_annotations(deployment), **size_annotations(deployment), REVISION: str(revision)}
    return apps_v1.ReplicaSet(
        Meta(
            f"{deployment.metadata.name}-{text}",
            namespace=deployment.metadata.namespace,
            labels=dict(labels),
            annotations=annotations,
        ),
        spec=apps_v1.ReplicaSetSpec(
            replicas=replicas,
            min_ready_seconds=spec.min_ready_seconds,
            selector=meta_v1.LabelSelector(
                match_labels={**spec.selector.match_labels, HASH_LABEL: text},
                match_expressions=spec.selector.match_expressions,
            ),
            template=template,
        ),
    )


def status_of(
    deployment: apps_v1.Deployment,
    sets: Sequence[apps_v1.ReplicaSet],
    new: apps_v1.ReplicaSet | None,
    now: datetime,
    *,
    created: bool = False,
) -> tuple[apps_v1.DeploymentStatus, Result | None]:
    """Return the status, and when to requeue; `created` means that the new ReplicaSet was created in this reconcile."""
    total = sum(item.status.replicas for item in sets)
    available = sum(item.status.available_replicas for item in sets)
    desired, (_, unavailable) = desired_replicas(deployment), surge_and_unavailable(deployment)
    status = apps_v1.DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=total,
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(item.status.ready_replicas for item in sets),
        available_replicas=available,
        unavailable_replicas=max(sum(item.spec.replicas or 0 for item in sets) - available, 0),
        terminating_replicas=sum(item.status.terminating_replicas or 0 for item in sets),
    )
    progress, again = _progress(deployment, status, new, now, created=created)
    availability = _availability(deployment, available >= desired - unavailable, now)
    found = [*progress, availability] if created else [availability, *progress]
    found += _failure(deployment, sets, now)
    # Unchanged conditions and those of other controllers keep their position; changed ones go to the end.
    kept = [
        item
        for item in deployment.status.conditions
        if item.type not in MANAGED_CONDITIONS or any(item is other for other in found)
    ]
    status.conditions = kept + [item for item in found if not any(item is other for other in kept)]
    return status, again


def _availability(deployment: apps_v1.Deployment, enough: bool, now: datetime) -> apps_v1.DeploymentCondition:
    reason, message = (
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if enough
        else ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    return _condition(deployment, "Available", "True" if enough else "False", reason, message, now)


def _failure(
    deployment: apps_v1.Deployment, sets: Sequence[apps_v1.ReplicaSet], now: datetime
) -> list[apps_v1.DeploymentCondition]:
    for item in reversed(sets):
        found = condition_of(item.status.conditions, "ReplicaFailure")
        if found is not None and found.status == "True":
            return [_condition(deployment, found.type, found.status, found.reason, found.message, now)]
    return []


def _progress(
    deployment: apps_v1.Deployment,
    status: apps_v1.DeploymentStatus,
    new: apps_v1.ReplicaSet | None,
    now: datetime,
    *,
    created: bool,
) -> tuple[list[apps_v1.DeploymentCondition], Result | None]:
    """Return the condition Progressing, or none if there is no progress deadline."""
    limit = deployment.spec.progress_deadline_seconds
    if limit is not None and limit >= 2**31 - 1:
        return [], None
    before = condition_of(deployment.status.conditions, "Progressing")
    name = new.metadata.name if new is not None else deployment.metadata.name
    if deployment.spec.paused:
        text = "Deployment is paused"
        return [_condition(deployment, "Progressing", "Unknown", PAUSED, text, now)], None
    if _is_complete(deployment, status):
        text = f'ReplicaSet "{name}" has successfully progressed.'
        return [_condition(deployment, "Progressing", "True", COMPLETE, text, now)], None
    if before is not None and before.reason == COMPLETE and status.replicas == status.updated_replicas:
        # A complete rollout stays complete while Pods are replaced.
        return [before], None
    deadline = timedelta(seconds=DEFAULT_DEADLINE if limit is None else limit)
    if created or before is None or _is_progressing(deployment, status, before):
        reason, text = "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.'
        if created:
            reason, text = "NewReplicaSetCreated", f'Created new replica set "{name}"'
        elif before is None:
            reason, text = "FoundNewReplicaSet", f'Found new replica set "{name}"'
        going = _condition(deployment, "Progressing", "True", reason, text, now, renewed=True)
        return [going], Result(after=deadline)
    if before.reason == "ProgressDeadlineExceeded":
        return [before], None
    left = (before.last_update_time or now) + deadline - now
    if left > timedelta(0):
        return [before], Result(after=left)
    text = f'ReplicaSet "{name}" has timed out progressing.'
    return [_condition(deployment, "Progressing", "False", "ProgressDeadlineExceeded", text, now)], None


def _is_complete(deployment: apps_v1.Deployment, status: apps_v1.DeploymentStatus) -> bool:
    desired = desired_replicas(deployment)
    return status.updated_replicas == status.replicas == status.available_replicas == desired


def _is_progressing(
    deployment: apps_v1.Deployment, status: apps_v1.DeploymentStatus, before: apps_v1.DeploymentCondition
) -> bool:
    reported = deployment.status
    return (
        status.updated_replicas > reported.updated_replicas
        or status.replicas - status.updated_replicas < reported.replicas - reported.updated_replicas
        or status.ready_replicas > reported.ready_replicas
        or status.available_replicas > reported.available_replicas
        or before.reason in (PAUSED, COMPLETE)
    )


def _condition(
    deployment: apps_v1.Deployment,
    type: str,  # noqa: A002 (the field's name)
    status: str,
    reason: str,
    message: str,
    now: datetime,
    *,
    renewed: bool = False,
) -> apps_v1.DeploymentCondition:
    """Return the condition; if status and reason are unchanged, the existing one with its old message."""
    before = condition_of(deployment.status.conditions, type)
    if before is not None and (before.status, before.reason) == (status, reason) and not renewed:
        return before
    return apps_v1.DeploymentCondition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        last_update_time=now,
        last_transition_time=(
            before.last_transition_time if before is not None and before.status == status else now
        ),
    )


class Rollout:
    """One reconcile of a Deployment and its ReplicaSets, oldest first."""

    def __init__(
        self, deployment: apps_v1.Deployment, sets: Sequence[apps_v1.ReplicaSet], ctx: Context
    ) -> None:
        self._deployment = deployment
        self._ctx = ctx
        template = deployment.spec.template
        self.new: apps_v1.ReplicaSet | None = next(
            (item for item in sets if same_template(item, template)), None
        )
        self.old: list[apps_v1.ReplicaSet] = [item for item in sets if item is not self.new]
        self.created: bool = False
        """The new ReplicaSet was created in this reconcile."""
        self.annotations: dict[str, str] = {}
        """Annotations to write together with the status: written alone they would increase the generation."""
        self.collisions = deployment.status.collision_count
        self._desired = desired_replicas(deployment)
        self._surge, self._unavailable = surge_and_unavailable(deployment)

    @property
    def sets(self) -> list[apps_v1.ReplicaSet]:
        """All ReplicaSets, the new one last."""
        return [*self.old, *([self.new] if self.new is not None else [])]

    async def step(self) -> None:
        """Move one step towards the desired template and size."""
        deployment = self._deployment
        if self.new is not None:
            await self._sync_revision(self.new)
        if deployment.spec.paused or self._size_changed():
            await self._scale_all()
        elif deployment.spec.strategy.type == "Recreate":
            await self._recreate()
        else:
            await self._roll()
        await self._prune_history()

    def _size_changed(self) -> bool:
        """Return True if the desired size changed since the ReplicaSets were last scaled."""
        return any(
            item.spec.replicas
            and item.metadata.annotations.get(DESIRED_REPLICAS) not in (None, str(self._desired))
            for item in self.sets
        )

    async def _scale_all(self) -> None:
        active = [item for item in self.sets if item.spec.replicas]
        if len(active) <= 1:
            sole = active[0] if active else self.new or (self.old[-1] if self.old else None)
            if sole is not None:
                await self._scale(sole, self._desired)
            return
        if self.new is not None and _is_saturated(self.new, self._desired):
            for item in self.old:
                await self._scale(item, 0)
        elif self._deployment.spec.strategy.type == "RollingUpdate":
            newest_first = active[::-1]
            sizes = proportional(self._desired, self._surge, [_set_size(item) for item in newest_first])
            for item, size in zip(newest_first, sizes, strict=True):
                await self._scale(item, size)

    async def _recreate(self) -> None:
        for item in list(self.old):
            await self._scale(item, 0)
        if all(_is_scaled_down(item) for item in self.old):
            await self._ensure_new(self._desired)

    async def _roll(self) -> None:
        set_sizes = [_set_size(item) for item in self.old]
        present = _set_size(self.new) if self.new is not None else SetSize(0, 0)
        await self._ensure_new(scale_up(self._desired, self._surge, present, set_sizes))
        if self.new is None:
            return
        fewer = scale_down(self._desired, self._unavailable, _set_size(self.new), set_sizes)
        for item, size in zip(list(self.old), fewer, strict=True):
            await self._scale(item, size)

    async def _ensure_new(self, size: int) -> None:
        if self.new is not None:
            await self._scale(self.new, size)
            return
        deployment, ctx = self._deployment, self._ctx
        revision = max((revision_of(item) for item in self.old), default=0) + 1
        made = replica_set_for(deployment, self.collisions or 0, revision, size)
        try:
            self.new = await ctx.create(made)
        except AlreadyExists:
            taken = await ctx.live.find(apps_v1.ReplicaSet, made.metadata.name)
            ours = taken is not None and deployment.metadata.uid in controller_keys(taken)
            if taken is None or not ours or not same_template(taken, deployment.spec.template):
                # Another ReplicaSet has the name: the next reconcile computes a different hash.
                self.collisions = (self.collisions or 0) + 1
            return
        self.created = True
        self._set_revision(revision)
        if size:
            name = self.new.metadata.name
            ctx.event("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}")

    async def _sync_revision(self, new: apps_v1.ReplicaSet) -> None:
        """Set the highest revision on the new ReplicaSet, also after a rollback."""
        revision = revision_of(new)
        if self.old and (highest := max(revision_of(item) for item in self.old)) >= revision:
            revision = highest + 1
        annotations = {**copied_annotations(self._deployment), REVISION: str(revision)}
        if revision != revision_of(new):
            known = new.metadata.annotations
            annotations[REVISION_HISTORY] = ",".join(
                filter(None, (known.get(REVISION_HISTORY), known.get(REVISION)))
            )
        if not annotations.items() <= new.metadata.annotations.items():
            self.new = await self._ctx.patch(new, {"metadata": {"annotations": annotations}})
        self._set_revision(revision)

    def _set_revision(self, revision: int) -> None:
        if self._deployment.metadata.annotations.get(REVISION) != str(revision):
            self.annotations = {REVISION: str(revision)}

    async def _scale(self, item: apps_v1.ReplicaSet, size: int) -> None:
        before = item.spec.replicas or 0
        annotations = size_annotations(self._deployment)
        if before == size and (annotations.items() <= item.metadata.annotations.items() or not before):
            return
        change = {"metadata": {"annotations": annotations}, "spec": {"replicas": size}}
        changed = await self._ctx.patch(item, change)
        self.old = [changed if old is item else old for old in self.old]
        self.new = changed if self.new is item else self.new
        if before != size:
            direction = "up" if size > before else "down"
            note = f"Scaled {direction} replica set {item.metadata.name} from {before} to {size}"
            self._ctx.event("ScalingReplicaSet", note)

    async def _prune_history(self) -> None:
        idle = [item for item in self.old if not item.spec.replicas and not item.status.replicas]
        for item in idle[: max(len(idle) - history_limit(self._deployment), 0)]:
            if item.metadata.deletion_timestamp is None:
                await self._ctx.delete(item)


def _set_size(item: apps_v1.ReplicaSet) -> SetSize:
    text = item.metadata.annotations.get(MAX_REPLICAS, "")
    return SetSize(
        item.spec.replicas or 0, item.status.available_replicas, int(text) if text.isdigit() else 0
    )


def _is_scaled_down(item: apps_v1.ReplicaSet) -> bool:
    """Return True if the ReplicaSet's controller has observed that no Pod is left."""
    status = item.status
    seen = status.observed_generation >= item.metadata.generation
    return seen and not item.spec.replicas and not status.replicas and not status.terminating_replicas


def _is_saturated(item: apps_v1.ReplicaSet, desired: int) -> bool:
    recorded = item.metadata.annotations.get(DESIRED_REPLICAS)
    full = (item.spec.replicas or 0) == desired and recorded == str(desired)
    return full and item.status.available_replicas == desired


@ignore_terminating_namespace
async def reconcile(deployment: apps_v1.Deployment, ctx: Context) -> Result | None:
    """Move the ReplicaSets one step towards the desired template and size, and update the status."""
    sets = await claim_children(
        deployment, label_selector(deployment.spec.selector), replica_sets_by_controller, ctx
    )
    sets.sort(key=lambda item: (revision_of(item), item.metadata.name))
    rollout = Rollout(deployment, sets, ctx)
    if deployment.metadata.deletion_timestamp is None:
        await rollout.step()
    now = clock.now().replace(microsecond=0)
    status, again = status_of(deployment, rollout.sets, rollout.new, now, created=rollout.created)
    status.collision_count = rollout.collisions
    if not await _status_writer.write(deployment, status, ctx, rollout.annotations):
        return REQUEUE_SOON
    return REQUEUE_SOON if status.collision_count != deployment.status.collision_count else again


def controller() -> Controller[apps_v1.Deployment]:
    """Declare the Deployment controller."""
    return Controller(
        apps_v1.Deployment,
        reconcile,
        name=NAME,
        when=_status_writer.is_external_change,
        owns=[owned(apps_v1.ReplicaSet)],
        watches=[
            watch(
                apps_v1.ReplicaSet,
                via=deployments_by_namespace,
                key=lambda item: item.metadata.namespace,
                when=is_orphaned,
            )
        ],
        needs=[needs(apps_v1.ReplicaSet, "delete")],
        concurrency=8,
        options=Options(reporter=NAME, field_manager=FIELD_MANAGER, reconcile_terminating=True),
    )
