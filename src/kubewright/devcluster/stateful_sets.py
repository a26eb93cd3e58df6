"""The StatefulSet controller: Pods with stable names and claims, created, updated and deleted in order."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from kubewright.api import (
    AlreadyExists,
    Meta,
    Object,
    OwnerReference,
    label_selector,
    owner_reference,
    to_wire,
)
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Change, Context, Controller, Index, Options, Result, needs, owned, watch
from kubewright.devcluster import clock
from kubewright.devcluster.namespaces import ignore_terminating_namespace
from kubewright.devcluster.revisions import HASH_LABEL, RevisionHistory, forget_old, record, template_of
from kubewright.devcluster.statuses import FIELD_MANAGER
from kubewright.devcluster.workloads import (
    affects_pod_counts,
    claim_children,
    is_orphaned,
    is_pod_finished,
    is_ready,
    pod_from_template,
    pods_by_controller,
    time_until_available,
)

NAME = "statefulset-controller"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
sets_by_namespace: Index[apps_v1.StatefulSet] = Index(
    apps_v1.StatefulSet, lambda item: [item.metadata.namespace]
)


def claim_names(owner: apps_v1.StatefulSet, pod: str) -> list[str]:
    """Return the names of the claims of a Pod."""
    return [f"{item.metadata.name}-{pod}" for item in owner.spec.volume_claim_templates]


def claim_owners(owner: apps_v1.StatefulSet, *, surplus: bool) -> tuple[bool, bool]:
    """Return True if a claim is owned by its StatefulSet, and whether by its Pod, according to the retention policy."""
    policy = owner.spec.persistent_volume_claim_retention_policy
    if policy is None:
        return False, False
    with_pod = policy.when_scaled == "Delete" and surplus
    return policy.when_deleted == "Delete" and not with_pod, with_pod


async def set_claim_owners(
    owner: apps_v1.StatefulSet, pod: core_v1.Pod, ctx: Context, *, surplus: bool
) -> None:
    """Set the owner references of a Pod's claims according to the retention policy; the garbage collector deletes them."""
    with_set, with_pod = claim_owners(owner, surplus=surplus)
    for name in claim_names(owner, pod.metadata.name):
        claim = await ctx.find(core_v1.PersistentVolumeClaim, name)
        if claim is None:
            continue
        known = claim.metadata.owner_references
        changes = [*_owner_patch(known, owner, with_set), *_owner_patch(known, pod, with_pod)]
        if changes:
            patch = {"metadata": {"uid": claim.metadata.uid, "ownerReferences": changes}}
            await ctx.patch(claim, patch, type="strategic")


async def claims_await_deletion(owner: apps_v1.StatefulSet, pod: str, ctx: Context) -> bool:
    """Return True if claims of this Pod's predecessor are still to be deleted, so that the Pod must wait."""
    for name in claim_names(owner, pod):
        claim = await ctx.find(core_v1.PersistentVolumeClaim, name)
        if claim is not None and any(
            (item.kind, item.name) == ("Pod", pod) for item in claim.metadata.owner_references
        ):
            return True
    return False


def _owner_patch(known: Sequence[OwnerReference], owner: Object, desired: bool) -> list[dict[str, Any]]:
    uid = owner.metadata.uid
    there = any(item.uid == uid for item in known)
    if desired and not there:
        return [to_wire(owner_reference(owner))]
    return [{"$patch": "delete", "uid": uid}] if there and not desired else []


def ordinal_of(pod: core_v1.Pod) -> int:
    """Return the ordinal in a Pod's name, or -1 if it has none."""
    text = pod.metadata.name.rpartition("-")[2]
    return int(text) if text.isdigit() else -1


def desired_ordinals(owner: apps_v1.StatefulSet) -> range:
    """Return the ordinals of the desired Pods."""
    first = owner.spec.ordinals.start if owner.spec.ordinals is not None else 0
    return range(first, first + (1 if owner.spec.replicas is None else owner.spec.replicas))


def pod_of(owner: apps_v1.StatefulSet, ordinal: int, revision: apps_v1.ControllerRevision) -> core_v1.Pod:
    """Build the Pod of an ordinal from a revision."""
    name = f"{owner.metadata.name}-{ordinal}"
    pod = pod_from_template(template_of(revision), name=name, namespace=owner.metadata.namespace)
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


def claims_for_ordinal(owner: apps_v1.StatefulSet, ordinal: int) -> list[core_v1.PersistentVolumeClaim]:
    """Build the claims of an ordinal."""
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


class StatefulSetSync:
    """One reconcile of a StatefulSet and its Pods."""

    def __init__(
        self, owner: apps_v1.StatefulSet, pods: list[core_v1.Pod], history: RevisionHistory, ctx: Context
    ) -> None:
        self._owner = owner
        self._ctx = ctx
        self._parallel = owner.spec.pod_management_policy == "Parallel"
        self.update: apps_v1.ControllerRevision = history.latest
        self.current: apps_v1.ControllerRevision = history.named(owner.status.current_revision) or self.update
        desired = desired_ordinals(owner)
        self.pods: dict[int, core_v1.Pod] = {
            ordinal_of(pod): pod for pod in pods if ordinal_of(pod) in desired
        }
        self.surplus: list[core_v1.Pod] = sorted(
            (pod for pod in pods if ordinal_of(pod) not in desired), key=ordinal_of, reverse=True
        )

    async def step(self) -> None:
        """Create missing Pods, delete surplus ones, then replace outdated ones, each in order."""
        for pod in self.pods.values():
            await set_claim_owners(self._owner, pod, self._ctx, surplus=False)
        for pod in self.surplus:
            await set_claim_owners(self._owner, pod, self._ctx, surplus=True)
        if not await self._create_missing():
            return
        if not await self._delete_surplus():
            return
        await self._update_outdated()

    async def _create_missing(self) -> bool:
        """Create missing Pods; return True if the desired Pods are healthy enough for the next step."""
        for ordinal in desired_ordinals(self._owner):
            pod = self.pods.get(ordinal)
            if pod is not None and is_pod_finished(pod):
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

    async def _delete_surplus(self) -> bool:
        for pod in self.surplus:
            if pod.metadata.deletion_timestamp is None:
                await self._delete(pod)
            if not self._parallel:
                return False
        return True

    async def _update_outdated(self) -> None:
        strategy = self._owner.spec.update_strategy
        if strategy.type == "OnDelete":
            return
        for ordinal in reversed(desired_ordinals(self._owner)):
            pod = self.pods.get(ordinal)
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
        first = desired_ordinals(self._owner).start
        return first + (rolling.partition or 0 if rolling is not None else 0)

    def _revision_for(self, ordinal: int) -> apps_v1.ControllerRevision:
        """Return the revision for a new Pod: the current one below the partition and for Pods that are not updated yet."""
        if self._owner.spec.update_strategy.type != "RollingUpdate":
            return self.update
        first = desired_ordinals(self._owner).start
        untouched = ordinal - first < self._owner.status.current_replicas
        return self.current if ordinal < self._partition or untouched else self.update

    async def _create(self, ordinal: int) -> None:
        owner, ctx = self._owner, self._ctx
        if await claims_await_deletion(owner, f"{owner.metadata.name}-{ordinal}", ctx):
            return
        for desired in claims_for_ordinal(owner, ordinal):
            try:
                made = await ctx.create(desired, owned=False)
            except AlreadyExists:
                continue
            name = f"{owner.metadata.name}-{ordinal}"
            message = (
                f"Create Claim {made.metadata.name} Pod {name} in StatefulSet {owner.metadata.name} success"
            )
            ctx.event("SuccessfulCreate", message)
        try:
            pod = await ctx.create(pod_of(owner, ordinal, self._revision_for(ordinal)))
        except AlreadyExists:
            # The previous Pod of this name is still terminating; its deletion triggers another reconcile.
            return
        self.pods[ordinal] = pod
        message = f"Create Pod {pod.metadata.name} in StatefulSet {owner.metadata.name} successful"
        ctx.event("SuccessfulCreate", message)

    async def _delete(self, pod: core_v1.Pod) -> None:
        await self._ctx.delete(pod)
        message = f"Delete Pod {pod.metadata.name} in StatefulSet {self._owner.metadata.name} successful"
        self._ctx.event("SuccessfulDelete", message)

    def status(self, now: datetime) -> apps_v1.StatefulSetStatus:
        """Return the status, counted by revision and readiness."""
        owner = self._owner
        pods = [*self.pods.values(), *self.surplus]
        least = owner.spec.min_ready_seconds
        staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        current, update = self.current.metadata.name, self.update.metadata.name
        status = apps_v1.StatefulSetStatus(
            observed_generation=owner.metadata.generation,
            replicas=len(pods),
            ready_replicas=sum(_is_running(pod) and is_ready(pod) for pod in pods),
            available_replicas=sum(
                _is_running(pod) and time_until_available(pod, least, now) == timedelta(0) for pod in pods
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
        """Return the names of the revisions in use."""
        pods = [*self.pods.values(), *self.surplus]
        return {self.current.metadata.name, self.update.metadata.name, *map(_revision, pods)}


def _revision(pod: core_v1.Pod) -> str:
    return pod.metadata.labels.get(HASH_LABEL, "")


def _is_running(pod: core_v1.Pod) -> bool:
    return pod.status.phase == "Running"


def _is_healthy(pod: core_v1.Pod) -> bool:
    return _is_running(pod) and is_ready(pod) and pod.metadata.deletion_timestamp is None


def _is_deleted(change: Change[core_v1.PersistentVolumeClaim]) -> bool:
    """Return True for deleted claims, for which a new Pod of the same name may wait."""
    return change.new is None


@ignore_terminating_namespace
async def reconcile(owner: apps_v1.StatefulSet, ctx: Context) -> Result | None:
    """Move the Pods one step towards the desired state, in order."""
    pods = await claim_children(owner, label_selector(owner.spec.selector), pods_by_controller, ctx)
    if owner.metadata.deletion_timestamp is not None:
        return None
    history = await record(owner, owner.spec.template, owner.spec.template.metadata.labels, ctx)
    sync = StatefulSetSync(owner, pods, history, ctx)
    await sync.step()
    now = clock.now()
    await ctx.patch_status(owner, sync.status(now))
    await forget_old(history, sync.used(), owner.spec.revision_history_limit, ctx)
    waits = [time_until_available(pod, owner.spec.min_ready_seconds, now) for pod in sync.pods.values()]
    pending = [wait for wait in waits if wait]
    return Result(after=min(pending)) if pending else None


def controller() -> Controller[apps_v1.StatefulSet]:
    """Declare the StatefulSet controller."""
    return Controller(
        apps_v1.StatefulSet,
        reconcile,
        name=NAME,
        owns=[owned(core_v1.Pod, when=affects_pod_counts), owned(apps_v1.ControllerRevision)],
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
                when=_is_deleted,
            ),
        ],
        needs=[
            needs(core_v1.Pod, "delete"),
            needs(apps_v1.ControllerRevision, "delete"),
            needs(core_v1.PersistentVolumeClaim, "create", "patch"),
        ],
        concurrency=4,
        options=Options(reporter=NAME, field_manager=FIELD_MANAGER, reconcile_terminating=True),
    )
