"""Deployments: ReplicaSets by template, rolled over as the strategy says."""

from collections.abc import Sequence

from kubewright.api import AlreadyExists, label_selector
from kubewright.api.builtin import apps_v1
from kubewright.controller import Context, Controller, Index, Options, Result, needs, owned, watch
from kubewright.devcluster import clock
from kubewright.devcluster.claims import claim, family_of, is_orphaned
from kubewright.devcluster.deployment_sets import (
    DESIRED,
    MAXIMUM,
    PAST,
    REVISION,
    carried_annotations,
    history_limit,
    replica_set_for,
    revision_of,
    same_template,
    sizes_told,
    surge_and_unavailable,
    wanted_of,
)
from kubewright.devcluster.deployment_status import status_of
from kubewright.devcluster.leaving import unless_leaving
from kubewright.devcluster.rollouts import Batch, proportional, scale_down, scale_up
from kubewright.devcluster.statuses import SOON, Reporter

NAME = "deployment-controller"

sets_by_family: Index[apps_v1.ReplicaSet] = Index(apps_v1.ReplicaSet, family_of)
deployments_by_namespace: Index[apps_v1.Deployment] = Index(
    apps_v1.Deployment, lambda item: [item.metadata.namespace]
)


class Rollout:
    """One pass over one Deployment and its ReplicaSets, oldest first."""

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
        """The present ReplicaSet was made in this pass."""
        self.annotations: dict[str, str] = {}
        """What the Deployment is to be told with its status: an annotation alone would move its generation."""
        self.collisions = deployment.status.collision_count
        self._wanted = wanted_of(deployment)
        self._surge, self._unavailable = surge_and_unavailable(deployment)

    @property
    def sets(self) -> list[apps_v1.ReplicaSet]:
        """All ReplicaSets, the present one last."""
        return [*self.old, *([self.new] if self.new is not None else [])]

    async def step(self) -> None:
        """Move one step towards the template and size that are wanted."""
        deployment = self._deployment
        if self.new is not None:
            await self._announce(self.new)
        if deployment.spec.paused or self._is_resized():
            await self._resize_all()
        elif deployment.spec.strategy.type == "Recreate":
            await self._recreate()
        else:
            await self._roll()
        await self._forget_old()

    def _is_resized(self) -> bool:
        """Tell whether the wanted size changed since the ReplicaSets were last scaled."""
        return any(
            item.spec.replicas and item.metadata.annotations.get(DESIRED) not in (None, str(self._wanted))
            for item in self.sets
        )

    async def _resize_all(self) -> None:
        active = [item for item in self.sets if item.spec.replicas]
        if len(active) <= 1:
            sole = active[0] if active else self.new or (self.old[-1] if self.old else None)
            if sole is not None:
                await self._resize(sole, self._wanted)
            return
        if self.new is not None and _is_saturated(self.new, self._wanted):
            for item in self.old:
                await self._resize(item, 0)
        elif self._deployment.spec.strategy.type == "RollingUpdate":
            newest_first = active[::-1]
            sizes = proportional(self._wanted, self._surge, [_batch(item) for item in newest_first])
            for item, size in zip(newest_first, sizes, strict=True):
                await self._resize(item, size)

    async def _recreate(self) -> None:
        for item in list(self.old):
            await self._resize(item, 0)
        if all(_is_gone(item) for item in self.old):
            await self._ensure_new(self._wanted)

    async def _roll(self) -> None:
        batches = [_batch(item) for item in self.old]
        present = _batch(self.new) if self.new is not None else Batch(0, 0)
        await self._ensure_new(scale_up(self._wanted, self._surge, present, batches))
        if self.new is None:
            return
        fewer = scale_down(self._wanted, self._unavailable, _batch(self.new), batches)
        for item, size in zip(list(self.old), fewer, strict=True):
            await self._resize(item, size)

    async def _ensure_new(self, size: int) -> None:
        if self.new is not None:
            await self._resize(self.new, size)
            return
        deployment, ctx = self._deployment, self._ctx
        revision = max((revision_of(item) for item in self.old), default=0) + 1
        made = replica_set_for(deployment, self.collisions or 0, revision, size)
        try:
            self.new = await ctx.create(made)
        except AlreadyExists:
            taken = await ctx.live.find(apps_v1.ReplicaSet, made.metadata.name)
            ours = taken is not None and deployment.metadata.uid in family_of(taken)
            if taken is None or not ours or not same_template(taken, deployment.spec.template):
                # The name is another's: the next pass draws another.
                self.collisions = (self.collisions or 0) + 1
            return
        self.created = True
        self._set_revision(revision)
        if size:
            name = self.new.metadata.name
            ctx.event("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}")

    async def _announce(self, new: apps_v1.ReplicaSet) -> None:
        """Give the present ReplicaSet the highest revision, as after a rollback."""
        revision = revision_of(new)
        if self.old and (highest := max(revision_of(item) for item in self.old)) >= revision:
            revision = highest + 1
        told = {**carried_annotations(self._deployment), REVISION: str(revision)}
        if revision != revision_of(new):
            known = new.metadata.annotations
            told[PAST] = ",".join(filter(None, (known.get(PAST), known.get(REVISION))))
        if not told.items() <= new.metadata.annotations.items():
            self.new = await self._ctx.patch(new, {"metadata": {"annotations": told}})
        self._set_revision(revision)

    def _set_revision(self, revision: int) -> None:
        if self._deployment.metadata.annotations.get(REVISION) != str(revision):
            self.annotations = {REVISION: str(revision)}

    async def _resize(self, item: apps_v1.ReplicaSet, size: int) -> None:
        before = item.spec.replicas or 0
        told = sizes_told(self._deployment)
        if before == size and (told.items() <= item.metadata.annotations.items() or not before):
            return
        change = {"metadata": {"annotations": told}, "spec": {"replicas": size}}
        changed = await self._ctx.patch(item, change)
        self.old = [changed if old is item else old for old in self.old]
        self.new = changed if self.new is item else self.new
        if before != size:
            direction = "up" if size > before else "down"
            note = f"Scaled {direction} replica set {item.metadata.name} from {before} to {size}"
            self._ctx.event("ScalingReplicaSet", note)

    async def _forget_old(self) -> None:
        idle = [item for item in self.old if not item.spec.replicas and not item.status.replicas]
        for item in idle[: max(len(idle) - history_limit(self._deployment), 0)]:
            if item.metadata.deletion_timestamp is None:
                await self._ctx.delete(item)


def _batch(item: apps_v1.ReplicaSet) -> Batch:
    told = item.metadata.annotations.get(MAXIMUM, "")
    return Batch(item.spec.replicas or 0, item.status.available_replicas, int(told) if told.isdigit() else 0)


def _is_gone(item: apps_v1.ReplicaSet) -> bool:
    """Tell whether the last Pod has ended, as far as the ReplicaSet's controller has seen."""
    status = item.status
    seen = status.observed_generation >= item.metadata.generation
    return seen and not item.spec.replicas and not status.replicas and not status.terminating_replicas


def _is_saturated(item: apps_v1.ReplicaSet, wanted: int) -> bool:
    told = item.metadata.annotations.get(DESIRED)
    full = (item.spec.replicas or 0) == wanted and told == str(wanted)
    return full and item.status.available_replicas == wanted


_reporter = Reporter()


@unless_leaving
async def reconcile(deployment: apps_v1.Deployment, ctx: Context) -> Result | None:
    """Move the Deployment's ReplicaSets one step towards its template and size, and sum them up."""
    sets = await claim(deployment, label_selector(deployment.spec.selector), sets_by_family, ctx)
    sets.sort(key=lambda item: (revision_of(item), item.metadata.name))
    rollout = Rollout(deployment, sets, ctx)
    if deployment.metadata.deletion_timestamp is None:
        await rollout.step()
    now = clock.now().replace(microsecond=0)
    status, again = status_of(deployment, rollout.sets, rollout.new, now, created=rollout.created)
    status.collision_count = rollout.collisions
    if not await _reporter.write(deployment, status, ctx, rollout.annotations):
        return SOON
    return SOON if status.collision_count != deployment.status.collision_count else again


def controller() -> Controller[apps_v1.Deployment]:
    """Declare the controller."""
    return Controller(
        apps_v1.Deployment,
        reconcile,
        name=NAME,
        when=_reporter.is_news,
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
        options=Options(reporter=NAME, reconcile_terminating=True),
    )
