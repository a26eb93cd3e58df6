"""The node controllers: registration, health, the TTL annotation, taint-based eviction, and Pods of deleted nodes."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from kubewright.api import Conflict, to_wire
from kubewright.api.builtin import coordination_v1, core_v1
from kubewright.controller import Change, Context, Controller, Index, Options, Result, needs, watch
from kubewright.devcluster import clock
from kubewright.devcluster.node_filters import toleration_matches
from kubewright.devcluster.statuses import FIELD_MANAGER, condition_of, is_true
from kubewright.devcluster.workloads import is_pod_finished

NODE_CONTROLLER = "node-controller"
TTL = "node.alpha.kubernetes.io/ttl"
_STEPS = ((100, 0), (500, 15), (1000, 30), (2000, 60))
_LONGEST = 300
EVICTION_CONTROLLER = "taint-eviction-controller"
QUARANTINE = timedelta(seconds=40)
"""How long a node must be gone before its Pods are force-deleted."""
NO_EXECUTE = "NoExecute"
LEASES = "kube-node-lease"
STARTUP_GRACE = 60.0
MONITOR_GRACE = 50.0
"""Seconds without a heartbeat after which a node is Unknown; a node that has never reported has more of them."""
CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
pods_by_node: Index[core_v1.Pod] = Index(
    core_v1.Pod, lambda pod: [pod.spec.node_name] if pod.spec.node_name else []
)


def ttl_seconds(nodes: int) -> int:
    """Return for how long kubelets may cache Secrets and ConfigMaps, which grows with the number of nodes."""
    return next((seconds for most, seconds in _STEPS if nodes <= most), _LONGEST)


class NodeRegistration:
    """Publish the RegisteredNode Event and set the TTL annotation of nodes."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def is_relevant(self, change: Change[core_v1.Node]) -> bool:
        """Return True for new nodes and changed annotations."""
        if change.after is None:
            if change.before is not None:
                self._known.discard(change.before.meta.uid)
            return False
        return change.before is None or change.before.meta.annotations != change.after.meta.annotations

    async def reconcile(self, node: core_v1.Node, ctx: Context) -> Result | None:
        """Publish an Event for a new node, and set its TTL annotation."""
        name = node.metadata.name
        if node.metadata.uid not in self._known:
            self._known.add(node.metadata.uid)
            ctx.event("RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")
        desired = str(ttl_seconds(len(await ctx.list(core_v1.Node))))
        if node.metadata.annotations.get(TTL) != desired:
            await ctx.patch(node, {"metadata": {"annotations": {TTL: desired}}})
        return None


def unknown_conditions(node: core_v1.Node, now: datetime) -> list[core_v1.NodeCondition]:
    """Return the conditions of a node that has stopped reporting, or never has."""
    found: list[core_v1.NodeCondition] = []
    for name in CONDITIONS:
        before = condition_of(node.status.conditions, name)
        if before is None:
            condition = core_v1.NodeCondition(
                type=name,
                status="Unknown",
                reason="NodeStatusNeverUpdated",
                message="Kubelet never posted node status.",
                last_heartbeat_time=node.metadata.creation_timestamp,
                last_transition_time=now,
            )
        elif before.status == "Unknown":
            condition = before
        else:
            condition = msgspec.structs.replace(
                before,
                status="Unknown",
                reason="NodeStatusUnknown",
                message="Kubelet stopped posting node status.",
                last_transition_time=now,
            )
        found.append(condition)
    return found


def health_taints(node: core_v1.Node, now: datetime, *, evict: bool) -> list[core_v1.Taint]:
    """Return the taints of a node as its condition Ready requires; `evict` means that its Pods may be evicted."""
    ready = condition_of(node.status.conditions, "Ready")
    key = {"False": NOT_READY, "Unknown": UNREACHABLE}.get(ready.status if ready is not None else "")
    effects = ("NoSchedule", *((NO_EXECUTE,) if evict else ())) if key else ()
    kept = [
        item
        for item in node.spec.taints
        if item.key not in (NOT_READY, UNREACHABLE) or (item.key == key and item.effect in effects)
    ]
    present = {(item.key, item.effect) for item in kept}
    added = [
        core_v1.Taint(key=key, effect=effect, time_added=now)
        for effect in effects
        if key and (key, effect) not in present
    ]
    return [*kept, *added]


class NodeHealth:
    """Set the conditions of nodes without heartbeats to Unknown, and taint nodes that are not ready.

    A heartbeat is a change of the condition Ready's heartbeat time or of the node's Lease. Ages are counted on the
    local clock from when a change was seen, so the clocks of kubelets do not matter.
    """

    def __init__(self) -> None:
        self._heartbeats: dict[str, tuple[tuple[object, object], float]] = {}

    def is_relevant(self, change: Change[core_v1.Node]) -> bool:
        """Return True for new nodes, heartbeats and changed taints."""
        old, new = change.old, change.new
        if new is None:
            if change.before is not None:
                self._heartbeats.pop(change.before.meta.uid, None)
            return False
        before = None if old is None else (old.status.conditions, old.spec.taints)
        return before != (new.status.conditions, new.spec.taints)

    async def reconcile(self, node: core_v1.Node, ctx: Context) -> Result | None:
        """Update conditions and taints, and requeue for when the next heartbeat is overdue."""
        ready = condition_of(node.status.conditions, "Ready")
        now = clock.now().replace(microsecond=0)
        left = await self._grace_left(node, ready, ctx)
        if left <= 0 and (ready is None or ready.status != "Unknown"):
            conditions = unknown_conditions(node, now)
            others = [item for item in node.status.conditions if item.type not in CONDITIONS]
            version = node.metadata.resource_version
            status = {"conditions": [to_wire(item) for item in (*others, *conditions)]}
            patch = {"metadata": {"resourceVersion": version}, "status": status}
            # A conflict means that the node has reported: its event enqueues it again.
            try:
                node = await ctx.patch(node, patch, subresource="status")
            except Conflict:
                return None
            if ready is not None and ready.status == "True":
                name = node.metadata.name
                ctx.event("NodeNotReady", f"Node {name} status is now: NodeNotReady")
        others_ready = any(
            is_true(other.status.conditions, "Ready")
            for other in await ctx.list(core_v1.Node)
            if other.metadata.uid != node.metadata.uid
        )
        taints = health_taints(node, now, evict=others_ready)
        if taints != node.spec.taints:
            version = node.metadata.resource_version
            wire = [to_wire(item) for item in taints] or None
            await ctx.patch(node, {"metadata": {"resourceVersion": version}, "spec": {"taints": wire}})
        return Result(after=timedelta(seconds=left)) if left > 0 else None

    async def _grace_left(
        self, node: core_v1.Node, ready: core_v1.NodeCondition | None, ctx: Context
    ) -> float:
        lease = await ctx.live.find(coordination_v1.Lease, node.metadata.name, LEASES)
        seen = (
            ready.last_heartbeat_time if ready is not None else None,
            lease.spec.renew_time if lease is not None else None,
        )
        now = asyncio.get_running_loop().time()
        before = self._heartbeats.get(node.metadata.uid)
        if before is None or before[0] != seen:
            created = node.metadata.creation_timestamp
            never = seen == (None, None) and created is not None
            age = (clock.now() - created).total_seconds() if never and created is not None else 0.0
            before = self._heartbeats[node.metadata.uid] = (seen, now - age)
        grace = STARTUP_GRACE if ready is None else MONITOR_GRACE
        return before[1] + grace - now


def min_toleration_time(pod: core_v1.Pod, taints: Sequence[core_v1.Taint]) -> timedelta | None:
    """Return how long a Pod tolerates NoExecute taints; None means forever."""
    limits: list[int] = []
    for taint in taints:
        fitting = [item for item in pod.spec.tolerations if toleration_matches(item, taint)]
        if not fitting:
            return timedelta(0)
        limits += [item.toleration_seconds for item in fitting if item.toleration_seconds is not None]
    return timedelta(seconds=max(min(limits), 0)) if limits else None


class TaintEviction:
    """Evict Pods from nodes with NoExecute taints, and delete the Pods of nodes that are gone."""

    def __init__(self) -> None:
        self._since: dict[str, datetime] = {}
        """When the time of toleration started, by the Pod's uid."""

    def is_relevant(self, change: Change[core_v1.Pod]) -> bool:
        """Return False: only changes of its node lead to an eviction. Drop the state of deleted Pods."""
        if change.after is None and change.before is not None:
            self._since.pop(change.before.meta.uid, None)
        return False

    async def reconcile(self, pod: core_v1.Pod, ctx: Context) -> Result | None:
        """Delete a Pod whose time of toleration is over."""
        node = await ctx.find(core_v1.Node, pod.spec.node_name, "")
        limit = QUARANTINE if node is None else min_toleration_time(pod, _no_execute_taints(node))
        if limit is None:
            self._since.pop(pod.metadata.uid, None)
            return None
        now = clock.now()
        left = self._since.setdefault(pod.metadata.uid, now) + limit - now
        if left > timedelta(0):
            return Result(after=left)
        if node is None:
            # The node may have been registered again while the cache was behind, so ask the server.
            if await ctx.live.find(core_v1.Node, pod.spec.node_name, "") is None:
                await _force_delete(pod, ctx)
        elif pod.metadata.deletion_timestamp is None:
            await _evict(pod, ctx)
        return None


async def _evict(pod: core_v1.Pod, ctx: Context) -> None:
    ctx.event("TaintManagerEviction", f"Marking for deletion Pod {pod.key}")
    await _set_disruption_target(
        pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", ctx
    )
    await ctx.delete(pod)


async def _force_delete(pod: core_v1.Pod, ctx: Context) -> None:
    if not is_pod_finished(pod):
        await _set_disruption_target(
            pod, "DeletionByPodGC", "PodGC: node no longer exists", ctx, phase="Failed"
        )
    await ctx.delete(pod, grace_period_seconds=0)


async def _set_disruption_target(
    pod: core_v1.Pod, reason: str, message: str, ctx: Context, *, phase: str = ""
) -> None:
    condition = core_v1.PodCondition(
        type="DisruptionTarget",
        status="True",
        reason=reason,
        message=message,
        observed_generation=pod.metadata.generation,
    )
    await ctx.patch_status(pod, core_v1.PodStatus(phase=phase, conditions=[condition]))


def _no_execute_taints_changed(change: Change[core_v1.Node]) -> bool:
    """Return True for deleted nodes and for changed NoExecute taints."""
    return change.new is None or _no_execute_taints(change.new) != (
        _no_execute_taints(change.old) if change.old else []
    )


def _no_execute_taints(node: core_v1.Node) -> list[core_v1.Taint]:
    return [taint for taint in node.spec.taints if taint.effect == NO_EXECUTE]


def controllers() -> tuple[Controller[core_v1.Node], Controller[core_v1.Node], Controller[core_v1.Pod]]:
    """Declare the controllers of the registration and the health of nodes, and the taint eviction controller."""
    registration, health, eviction = NodeRegistration(), NodeHealth(), TaintEviction()
    nodes = Controller(
        core_v1.Node,
        registration,
        name=NODE_CONTROLLER,
        when=registration.is_relevant,
        needs=[needs(core_v1.Node, "patch")],
        options=Options(reporter=NODE_CONTROLLER, field_manager=FIELD_MANAGER),
    )
    healthy = Controller(
        core_v1.Node,
        health,
        name="node-lifecycle-controller",
        when=health.is_relevant,
        needs=[needs(core_v1.Node, "patch"), needs(coordination_v1.Lease, "get")],
        options=Options(reporter=NODE_CONTROLLER, field_manager=FIELD_MANAGER),
    )
    pods = Controller(
        core_v1.Pod,
        eviction,
        name=EVICTION_CONTROLLER,
        when=eviction.is_relevant,
        watches=[
            watch(
                core_v1.Node,
                via=pods_by_node,
                key=lambda node: node.metadata.name,
                when=_no_execute_taints_changed,
            )
        ],
        needs=[needs(core_v1.Pod, "delete")],
        options=Options(
            reporter=EVICTION_CONTROLLER, field_manager=FIELD_MANAGER, reconcile_terminating=True
        ),
    )
    return nodes, healthy, pods
