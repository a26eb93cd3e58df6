"""StatefulSets: Pods with names that last, made and replaced in order."""

from datetime import datetime, timedelta

from kubewright.api import AlreadyExists, Meta, from_wire, label_selector
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Change, Context, Controller, Index, Options, Result, needs, owned, watch
from kubewright.devcluster import clock
from kubewright.devcluster.claim_retention import are_leaving, bind_to_owners
from kubewright.devcluster.claims import claim, is_orphaned
from kubewright.devcluster.leaving import unless_leaving
from kubewright.devcluster.pods import available_in, counts_anew, is_ready, pod_from, pods_by_family
from kubewright.devcluster.revisions import HASH_LABEL, History, forget_old, record

NAME = "statefulset-controller"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"

sets_by_namespace: Index[apps_v1.StatefulSet] = Index(
    apps_v1.StatefulSet, lambda item: [item.metadata.namespace]
)


def ordinal_of(pod: core_v1.Pod) -> int:
    """Read a Pod's number off its name; -1 where it has none."""
    text = pod.metadata.name.rpartition("-")[2]
    return int(text) if text.isdigit() else -1


def wanted_ordinals(owner: apps_v1.StatefulSet) -> range:
    """Give the numbers of the Pods that are wanted."""
    first = owner.spec.ordinals.start if owner.spec.ordinals is not None else 0
    return range(first, first + (1 if owner.spec.replicas is None else owner.spec.replicas))


def pod_of(owner: apps_v1.StatefulSet, ordinal: int, revision: apps_v1.ControllerRevision) -> core_v1.Pod:
    """Make the Pod of a number as a revision wants it."""
    name = f"{owner.metadata.name}-{ordinal}"
    template = from_wire(core_v1.PodTemplateSpec, _template_wire(revision))
    pod = pod_from(template, name=name, namespace=owner.metadata.namespace)
    pod.metadata.labels.update({POD_NAME: name, POD_INDEX: str(ordinal), HASH_LABEL: revision.metadata.name})
    pod.metadata.generate_name = f"{owner.metadata.name}-"
    pod.spec.hostname, pod.spec.subdomain = name, owner.spec.service_name
    claimed = {item.metadata.name for item in owner.spec.volume_claim_templates}
    pod.spec.volumes = [volume for volume in pod.spec.volumes if volume.name not in claimed] + [
        core_v1.Volume(
            name=claim_name,
            persistent_volume_claim=core_v1.PersistentVolumeClaimVolumeSource(
                claim_name=f"{claim_name}-{name}"
            ),
        )
        for claim_name in sorted(claimed)
    ]
    return pod


def _template_wire(revision: apps_v1.ControllerRevision) -> dict[str, object]:
    data = revision.data or {}
    return {key: value for key, value in data["spec"]["template"].items() if key != "$patch"}


def claims_of(owner: apps_v1.StatefulSet, ordinal: int) -> list[core_v1.PersistentVolumeClaim]:
    """Make the claims of a Pod's number."""
    pod = f"{owner.metadata.name}-{ordinal}"
    return [
        core_v1.PersistentVolumeClaim(
            Meta(
                f"{item.metadata.name}-{pod}",
                namespace=owner.metadata.namespace,
                labels={**item.metadata.labels, **owner.spec.selector.match_labels},
                annotations=dict(item.metadata.annotations),
            ),
            spec=item.spec,
        )
        for item in owner.spec.volume_claim_templates
    ]


class Pass:
    """One pass over one StatefulSet and its Pods."""

    def __init__(
        self, owner: apps_v1.StatefulSet, pods: list[core_v1.Pod], history: History, ctx: Context
    ) -> None:
        self._owner = owner
        self._ctx = ctx
        self._parallel = owner.spec.pod_management_policy == "Parallel"
        self.update: apps_v1.ControllerRevision = history.latest
        self.current: apps_v1.ControllerRevision = history.named(owner.status.current_revision) or self.update
        wanted = wanted_ordinals(owner)
        self.members: dict[int, core_v1.Pod] = {
            ordinal_of(pod): pod for pod in pods if ordinal_of(pod) in wanted
        }
        self.surplus: list[core_v1.Pod] = sorted(
            (pod for pod in pods if ordinal_of(pod) not in wanted), key=ordinal_of, reverse=True
        )

    async def step(self) -> None:
        """Make missing Pods, take surplus ones away, then replace outdated ones: each in order."""
        for pod in self.members.values():
            await bind_to_owners(self._owner, pod, self._ctx, surplus=False)
        for pod in self.surplus:
            await bind_to_owners(self._owner, pod, self._ctx, surplus=True)
        if not await self._fill():
            return
        if not await self._shrink():
            return
        await self._replace()

    async def _fill(self) -> bool:
        """Tell whether all wanted Pods are there and healthy, as far as the next step needs it."""
        for ordinal in wanted_ordinals(self._owner):
            pod = self.members.get(ordinal)
            if pod is not None and pod.status.phase in ("Succeeded", "Failed"):
                if pod.metadata.deletion_timestamp is None:
                    await self._delete(pod)
                pod = None if pod.metadata.deletion_timestamp is None else pod
                if not self._parallel or pod is not None:
                    return False
            if pod is None:
                await self._create(ordinal)
                if not self._parallel:
                    return False
            elif not self._parallel and not _is_healthy(pod):
                return False
        return True

    async def _shrink(self) -> bool:
        for pod in self.surplus:
            if pod.metadata.deletion_timestamp is None:
                await self._delete(pod)
            if not self._parallel:
                return False
        return True

    async def _replace(self) -> None:
        strategy = self._owner.spec.update_strategy
        if strategy.type == "OnDelete":
            return
        for ordinal in reversed(wanted_ordinals(self._owner)):
            pod = self.members.get(ordinal)
            if pod is None or ordinal < self._partition:
                return
            if _revision(pod) != self.update.metadata.name and pod.metadata.deletion_timestamp is None:
                await self._delete(pod)
                return
            if not _is_healthy(pod):
                return

    @property
    def _partition(self) -> int:
        rolling = self._owner.spec.update_strategy.rolling_update
        first = wanted_ordinals(self._owner).start
        return first + (rolling.partition or 0 if rolling is not None else 0)

    def _revision_for(self, ordinal: int) -> apps_v1.ControllerRevision:
        """Choose the revision of a Pod made now: the old one below the partition and while the update is under way."""
        if self._owner.spec.update_strategy.type != "RollingUpdate":
            return self.update
        first = wanted_ordinals(self._owner).start
        untouched = ordinal - first < self._owner.status.current_replicas
        return self.current if ordinal < self._partition or untouched else self.update

    async def _create(self, ordinal: int) -> None:
        owner, ctx = self._owner, self._ctx
        if await are_leaving(owner, f"{owner.metadata.name}-{ordinal}", ctx):
            return
        for wanted in claims_of(owner, ordinal):
            try:
                made = await ctx.create(wanted, owned=False)
            except AlreadyExists:
                continue
            name = f"{owner.metadata.name}-{ordinal}"
            told = (
                f"Create Claim {made.metadata.name} Pod {name} in StatefulSet {owner.metadata.name} success"
            )
            ctx.event("SuccessfulCreate", told)
        try:
            pod = await ctx.create(pod_of(owner, ordinal, self._revision_for(ordinal)))
        except AlreadyExists:
            # The last of this name is still on its way out: its end leads here again.
            return
        self.members[ordinal] = pod
        told = f"Create Pod {pod.metadata.name} in StatefulSet {owner.metadata.name} successful"
        ctx.event("SuccessfulCreate", told)

    async def _delete(self, pod: core_v1.Pod) -> None:
        await self._ctx.delete(pod)
        told = f"Delete Pod {pod.metadata.name} in StatefulSet {self._owner.metadata.name} successful"
        self._ctx.event("SuccessfulDelete", told)

    def status(self, now: datetime) -> apps_v1.StatefulSetStatus:
        """Count the Pods by revision and readiness."""
        owner = self._owner
        pods = [*self.members.values(), *self.surplus]
        least = owner.spec.min_ready_seconds
        staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        current, update = self.current.metadata.name, self.update.metadata.name
        status = apps_v1.StatefulSetStatus(
            observed_generation=owner.metadata.generation,
            replicas=len(pods),
            ready_replicas=sum(_is_running(pod) and is_ready(pod) for pod in pods),
            available_replicas=sum(
                _is_running(pod) and available_in(pod, least, now) == timedelta(0) for pod in pods
            ),
            current_replicas=sum(_revision(pod) == current for pod in staying),
            updated_replicas=sum(_revision(pod) == update for pod in staying),
            current_revision=current,
            update_revision=update,
            collision_count=owner.status.collision_count or 0,
            conditions=owner.status.conditions,
        )
        done = status.updated_replicas == status.replicas == status.ready_replicas
        if done and owner.spec.update_strategy.type == "RollingUpdate":
            status.current_revision, status.current_replicas = update, status.updated_replicas
        return status

    def used(self) -> set[str]:
        """Name the revisions that Pods or the status refer to."""
        pods = [*self.members.values(), *self.surplus]
        return {self.current.metadata.name, self.update.metadata.name, *map(_revision, pods)}


def _revision(pod: core_v1.Pod) -> str:
    return pod.metadata.labels.get(HASH_LABEL, "")


def _is_running(pod: core_v1.Pod) -> bool:
    return pod.status.phase == "Running"


def _is_healthy(pod: core_v1.Pod) -> bool:
    return _is_running(pod) and is_ready(pod) and pod.metadata.deletion_timestamp is None


def _is_gone(change: Change[core_v1.PersistentVolumeClaim]) -> bool:
    """Predicate: pass the end of claims, for which the next Pod of a name may wait."""
    return change.new is None


@unless_leaving
async def reconcile(owner: apps_v1.StatefulSet, ctx: Context) -> Result | None:
    """Move the Pods one step on, in order."""
    pods = await claim(owner, label_selector(owner.spec.selector), pods_by_family, ctx)
    if owner.metadata.deletion_timestamp is not None:
        return None
    history = await record(owner, owner.spec.template, owner.spec.template.metadata.labels, ctx)
    work = Pass(owner, pods, history, ctx)
    await work.step()
    now = clock.now()
    await ctx.patch_status(owner, work.status(now))
    await forget_old(history, work.used(), owner.spec.revision_history_limit, ctx)
    waits = [available_in(pod, owner.spec.min_ready_seconds, now) for pod in work.members.values()]
    pending = [wait for wait in waits if wait]
    return Result(after=min(pending)) if pending else None


def controller() -> Controller[apps_v1.StatefulSet]:
    """Declare the controller."""
    return Controller(
        apps_v1.StatefulSet,
        reconcile,
        name=NAME,
        owns=[owned(core_v1.Pod, when=counts_anew), owned(apps_v1.ControllerRevision)],
        watches=[
            watch(
                core_v1.Pod,
                via=sets_by_namespace,
                key=lambda pod: pod.metadata.namespace,
                when=is_orphaned,
            ),
            watch(
                core_v1.PersistentVolumeClaim,
                via=sets_by_namespace,
                key=lambda item: item.metadata.namespace,
                when=_is_gone,
            ),
        ],
        needs=[
            needs(core_v1.Pod, "delete"),
            needs(apps_v1.ControllerRevision, "delete"),
            needs(core_v1.PersistentVolumeClaim, "create", "patch"),
        ],
        concurrency=4,
        options=Options(reporter=NAME, reconcile_terminating=True),
    )
