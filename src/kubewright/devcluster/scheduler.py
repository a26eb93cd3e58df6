"""The scheduler: binds each pending Pod to the node with the fewest Pods that has room for it.

How it works: `Scheduler` sees every change of a Pod and keeps `Allocations`, the Pods and the sum of their requests
per node, so that placing a Pod reads no other Pods. For a pending Pod it checks that its volumes are bound, applies
the filters of `node_filters` to each node, and creates a Binding. If no node fits, the condition PodScheduled and a
FailedScheduling Event say why; the Pod is tried again after a change of a node, a deleted Pod, a change of its
claims, or 60 seconds. If it would fit without Pods of lower priority, those are deleted (`preemption`), and the node
is nominated for it: until it is bound there, it counts for Pods of the same or a lower priority.

Invariant: a Pod counts in `Allocations` from before its Binding is sent until it is deleted or has finished. It is
removed again if the Binding fails. So Pods that are scheduled one after the other never share the same free
resources, even while the cache does not show the earlier Bindings yet.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, timedelta

from kubewright.api import ApiError, Meta, MicroTime, Quantity
from kubewright.api.builtin import core_v1, events_v1, policy_v1, storage_v1
from kubewright.controller import Change, Context, Controller, Index, Options, Result, needs, watch
from kubewright.devcluster.node_filters import (
    AssignedPod,
    NodeInfo,
    fit_error_message,
    is_unresolvable,
    preemption_error,
    unschedulable_reason,
)
from kubewright.devcluster.preemption import preemption_candidate
from kubewright.devcluster.provisioner import SELECTED_NODE
from kubewright.devcluster.statuses import condition_of
from kubewright.devcluster.volumes import claims_of, find_volume, pods_by_claim, reserve
from kubewright.devcluster.workloads import is_pod_finished

NAME = "default-scheduler"
RETRY_AFTER = timedelta(seconds=60)
_NO_NODE_EXAMINED = " not found"
"""The end of kube-scheduler's message when no node was examined, from a plugin that misses another plugin's state."""
_ZERO = Quantity("0")


class Allocations:
    """The Pods on each node and the sum of their requests; a Pod counts as soon as a node is chosen for it."""

    def __init__(self) -> None:
        self._nominated: dict[str, AssignedPod] = {}
        self._pods: defaultdict[str, dict[str, AssignedPod]] = defaultdict(dict)
        self._node_names: dict[str, str] = {}
        self._used: defaultdict[str, dict[str, Quantity]] = defaultdict(dict)
        self._repelling: defaultdict[str, dict[str, AssignedPod]] = defaultdict(dict)
        """The Pods with required anti-affinity, by node: few, while each placement looks at all of them."""

    def observe(self, change: Change[core_v1.Pod]) -> None:
        """Update the allocations from a change of a Pod."""
        old, new = change.before, change.new
        if old is not None and (new is None or new.metadata.uid != old.meta.uid):
            self.remove(old.meta.uid)
        if new is None:
            return
        if is_pod_finished(new):
            self.remove(new.metadata.uid)
        elif new.spec.node_name:
            self.put(AssignedPod.of(new))
        elif new.status.nominated_node_name:
            self.nominate(new, new.status.nominated_node_name)

    def nominate(self, pod: core_v1.Pod, node: str) -> None:
        """Reserve room for a Pod on a node that other Pods have yet to leave."""
        self._nominated[pod.metadata.uid] = AssignedPod.of(pod, node)

    def put(self, assigned: AssignedPod) -> None:
        """Add a Pod to its node, replacing an earlier entry."""
        self._nominated.pop(assigned.uid, None)
        on_node = self._pods[assigned.node]
        if on_node.get(assigned.uid) == assigned:
            return
        self.remove(assigned.uid)
        on_node[assigned.uid] = assigned
        if assigned.anti_affinity:
            self._repelling[assigned.node][assigned.uid] = assigned
        self._node_names[assigned.uid] = assigned.node
        used = self._used[assigned.node]
        for name, amount in assigned.requests.items():
            used[name] = used.get(name, _ZERO) + amount

    def remove(self, uid: str) -> None:
        """Remove a Pod."""
        self._nominated.pop(uid, None)
        node = self._node_names.pop(uid, None)
        if node is None:
            return
        assigned = self._pods[node].pop(uid)
        self._repelling[node].pop(uid, None)
        used = self._used[node]
        for name, amount in assigned.requests.items():
            used[name] = used[name] - amount

    def node_info(self, node: core_v1.Node, pod: core_v1.Pod | None = None) -> NodeInfo:
        """Return a node with its Pods, and those that are nominated for it and go before `pod`."""
        name = node.metadata.name
        nominated = [
            other
            for other in self._nominated.values()
            if pod is not None
            and other.node == name
            and other.uid != pod.metadata.uid
            and other.priority >= (pod.spec.priority or 0)
        ]
        if not nominated:
            return NodeInfo(node, self._pods[name].values(), self._used[name], self._repelling[name].values())
        used = dict(self._used[name])
        for other in nominated:
            for resource, amount in other.requests.items():
                used[resource] = used.get(resource, _ZERO) + amount
        repelling = [*self._repelling[name].values(), *(other for other in nominated if other.anti_affinity)]
        return NodeInfo(node, [*self._pods[name].values(), *nominated], used, repelling)


waiting_pods: Index[core_v1.Pod] = Index(core_v1.Pod, lambda pod: ["waiting"] if is_waiting(pod) else [])


def is_waiting(pod: core_v1.Pod) -> bool:
    """Return True if this scheduler should choose a node for the Pod."""
    return (
        not pod.spec.node_name
        and pod.spec.scheduler_name == NAME
        and not pod.spec.scheduling_gates
        and pod.metadata.deletion_timestamp is None
        and not is_pod_finished(pod)
    )


class Scheduler:
    """Choose nodes for Pods and track what is allocated on each node."""

    def __init__(self) -> None:
        self._allocations = Allocations()

    def is_relevant(self, change: Change[core_v1.Pod]) -> bool:
        """Record the change, and return True for Pods that wait for a node."""
        self._allocations.observe(change)
        return change.new is not None and is_waiting(change.new)

    async def reconcile(self, pod: core_v1.Pod, ctx: Context) -> Result | None:
        """Bind a Pod to the node with the fewest Pods that has room for it."""
        if not is_waiting(pod):
            return None
        if not await _volumes_are_bound(pod, ctx):
            return Result(after=RETRY_AFTER)
        node_infos = [self._allocations.node_info(node, pod) for node in await ctx.list(core_v1.Node)]
        choices: list[tuple[int, str]] = []
        reasons: Counter[str] = Counter()
        resolvable: list[NodeInfo] = []
        for info in node_infos:
            if reason := unschedulable_reason(pod, info, node_infos):
                reasons[reason] += 1
                if not is_unresolvable(pod, info, reason):
                    resolvable.append(info)
            else:
                choices.append((len(info.pods), info.node.metadata.name))
        if not choices:
            nominated, why = await self._preempt(pod, node_infos, resolvable, ctx)
            message = fit_error_message(len(node_infos), reasons, why)
            await _report_unschedulable(pod, message, ctx, nominated=nominated)
            return Result(after=RETRY_AFTER)
        await self._bind(pod, min(choices)[1], ctx)
        return None

    async def _preempt(
        self, pod: core_v1.Pod, nodes: Sequence[NodeInfo], resolvable: Sequence[NodeInfo], ctx: Context
    ) -> tuple[str, str]:
        """Delete Pods of lower priority to make room for a Pod; return the nominated node, or why there is none."""
        current = pod.status.nominated_node_name
        if pod.spec.preemption_policy == "Never":
            return current, "not eligible due to preemptionPolicy=Never."
        priority = pod.spec.priority or 0
        nominated = next((info for info in nodes if info.node.metadata.name == current), None)
        if nominated and any(other.terminating and other.priority < priority for other in nominated.pods):
            return current, "not eligible due to a terminating pod on the nominated node."
        found = None
        if any(other.priority < priority for info in resolvable for other in info.pods):
            budgets = await ctx.live.list(policy_v1.PodDisruptionBudget, all_namespaces=True)
            found = preemption_candidate(pod, resolvable, nodes, budgets)
        if found is None:
            return "", preemption_error(len(nodes), len(nodes) - len(resolvable))
        self._allocations.nominate(pod, found.node)
        for victim in found.victims:
            await _delete_victim(pod, victim, ctx)
        return found.node, ""

    async def _bind(self, pod: core_v1.Pod, node: str, ctx: Context) -> None:
        meta = Meta(pod.metadata.name, namespace=pod.metadata.namespace)
        target = core_v1.ObjectReference(kind="Node", name=node)
        self._allocations.put(AssignedPod.of(pod, node))
        try:
            await ctx.create(core_v1.Binding(meta, target=target), owned=False)
        except ApiError as error:
            self._allocations.remove(pod.metadata.uid)
            if error.status.code in (404, 409):
                # The Pod is gone or already bound.
                return
            raise
        ctx.event("Scheduled", f"Successfully assigned {pod.key} to {node}", action="Binding")


async def _delete_victim(pod: core_v1.Pod, victim: AssignedPod, ctx: Context) -> None:
    found = await ctx.live.find(core_v1.Pod, victim.name, victim.namespace)
    if found is None or found.metadata.uid != victim.uid or found.metadata.deletion_timestamp is not None:
        return
    condition = core_v1.PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="PreemptionByScheduler",
        message=f"{NAME}: preempting to accommodate a higher priority pod",
        observed_generation=found.metadata.generation,
    )
    try:
        await ctx.patch_status(found, core_v1.PodStatus(conditions=[condition]))
        await ctx.delete(found)
    except ApiError as error:
        if error.status.code not in (404, 409):
            raise
        return
    await ctx.create(_preempted_event(pod, found), owned=False)


def _preempted_event(pod: core_v1.Pod, victim: core_v1.Pod) -> events_v1.Event:
    meta = victim.metadata
    return events_v1.Event(
        Meta(f"{meta.name[:200]}.{pod.metadata.uid}", namespace=meta.namespace),
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note=f"Preempted by pod {pod.metadata.uid} on node {victim.spec.node_name}",
        reporting_controller=NAME,
        reporting_instance=NAME,
        event_time=MicroTime.now(UTC),
        regarding=core_v1.ObjectReference(
            api_version="v1", kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid
        ),
    )


async def _volumes_are_bound(pod: core_v1.Pod, ctx: Context) -> bool:
    """Return True if all claims of the Pod are bound; set the selected node on those that wait for a consumer."""
    bound = True
    for name in claims_of(pod):
        claim = await ctx.find(core_v1.PersistentVolumeClaim, name)
        if claim is None:
            total = len(await ctx.list(core_v1.Node))
            missing = f'0/{total} nodes are available: persistentvolumeclaim "{name}" not found.'
            await _report_unschedulable(pod, missing + _NO_NODE_EXAMINED, ctx)
            return False
        if claim.status.phase == "Bound":
            continue
        bound = False
        await _select_node(pod, claim, ctx)
    return bound


async def _select_node(pod: core_v1.Pod, claim: core_v1.PersistentVolumeClaim, ctx: Context) -> None:
    nodes = await ctx.list(core_v1.Node)
    storage = await ctx.find(storage_v1.StorageClass, claim.spec.storage_class_name or "", "")
    if storage is None or storage.volume_binding_mode != "WaitForFirstConsumer":
        text = f"0/{len(nodes)} nodes are available: pod has unbound immediate PersistentVolumeClaims."
        await _report_unschedulable(pod, text + _NO_NODE_EXAMINED, ctx)
        return
    fitting = [node.metadata.name for node in nodes if not unschedulable_reason(pod, NodeInfo(node))]
    if not fitting:
        return
    if volume := find_volume(await ctx.list(core_v1.PersistentVolume), claim):
        await reserve(claim, volume, ctx)
    elif SELECTED_NODE not in claim.metadata.annotations:
        await ctx.patch(claim, {"metadata": {"annotations": {SELECTED_NODE: fitting[0]}}})


async def _report_unschedulable(pod: core_v1.Pod, message: str, ctx: Context, *, nominated: str = "") -> None:
    before = condition_of(pod.status.conditions, "PodScheduled")
    reported = before is not None and before.message == message
    if reported and pod.status.nominated_node_name == nominated:
        return
    ctx.warn("FailedScheduling", message, action="Scheduling")
    unscheduled = core_v1.PodCondition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable",
        message=message,
        observed_generation=pod.metadata.generation,
    )
    await ctx.patch_status(pod, core_v1.PodStatus(conditions=[unscheduled], nominated_node_name=nominated))


def _may_fit_more_pods(change: Change[core_v1.Node]) -> bool:
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    before = (old.spec, old.status.allocatable, old.metadata.labels)
    return before != (new.spec, new.status.allocatable, new.metadata.labels)


def _frees_resources(change: Change[core_v1.Pod]) -> bool:
    old, new = change.old, change.new
    if old is None or not old.spec.node_name:
        return False
    return new is None or (is_pod_finished(new) and not is_pod_finished(old))


def _claim_key(claim: core_v1.PersistentVolumeClaim) -> str:
    return str(claim.key)


def _waiting_key(_: object) -> str:
    return "waiting"


def controller() -> Controller[core_v1.Pod]:
    """Declare the scheduler."""
    scheduler = Scheduler()
    return Controller(
        core_v1.Pod,
        scheduler,
        name=NAME,
        when=scheduler.is_relevant,
        watches=[
            watch(core_v1.Node, via=waiting_pods, key=_waiting_key, when=_may_fit_more_pods),
            watch(core_v1.Pod, via=waiting_pods, key=_waiting_key, when=_frees_resources),
            watch(core_v1.PersistentVolumeClaim, via=pods_by_claim, key=_claim_key),
            watch(storage_v1.StorageClass, via=waiting_pods, key=_waiting_key),
            watch(core_v1.PersistentVolume, map=lambda _: []),
        ],
        needs=[
            needs(core_v1.Binding, "create"),
            needs(core_v1.PersistentVolumeClaim, "patch"),
            needs(core_v1.PersistentVolume, "patch"),
            needs(core_v1.Pod, "get", "delete"),
            needs(policy_v1.PodDisruptionBudget, "list"),
            needs(events_v1.Event, "create"),
        ],
        options=Options(reporter=NAME, field_manager="kube-scheduler"),
    )
