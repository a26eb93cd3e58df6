"""The DaemonSet controller: runs one Pod on each eligible node."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from kubewright.api import label_selector
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Change, Context, Controller, Index, Options, Result, needs, owned, watch
from kubewright.devcluster import clock
from kubewright.devcluster.namespaces import ignore_terminating_namespace
from kubewright.devcluster.node_filters import matches_node, tolerates
from kubewright.devcluster.revisions import HASH_LABEL, forget_old, hash_of, record
from kubewright.devcluster.rollouts import resolve
from kubewright.devcluster.statuses import FIELD_MANAGER
from kubewright.devcluster.workloads import (
    affects_pod_counts,
    claim_children,
    is_orphaned,
    is_ready,
    pod_from_template,
    pods_by_controller,
    time_until_available,
)

NAME = "daemonset-controller"
GENERATION_LABEL = "pod-template-generation"
GENERATION = "deprecated.daemonset.template.generation"
_DEFAULT_TOLERATIONS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)

sets_by_namespace: Index[apps_v1.DaemonSet] = Index(apps_v1.DaemonSet, lambda item: [item.metadata.namespace])
all_sets: Index[apps_v1.DaemonSet] = Index(apps_v1.DaemonSet, lambda _: ["all"])


def pod_on(owner: apps_v1.DaemonSet, node: str, revision: str) -> core_v1.Pod:
    """Build the Pod for a node, with a node affinity that allows no other node."""
    pod = pod_from_template(
        owner.spec.template, generate_name=f"{owner.metadata.name}-", namespace=owner.metadata.namespace
    )
    pod.metadata.labels[HASH_LABEL] = revision
    if GENERATION in owner.metadata.annotations:
        pod.metadata.labels[GENERATION_LABEL] = owner.metadata.annotations[GENERATION]
    term = core_v1.NodeSelectorTerm(
        match_fields=[core_v1.NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])]
    )
    before = pod.spec.affinity or core_v1.Affinity()
    own = before.node_affinity or core_v1.NodeAffinity()
    only = msgspec.structs.replace(
        own,
        required_during_scheduling_ignored_during_execution=core_v1.NodeSelector(node_selector_terms=[term]),
    )
    pod.spec.affinity = msgspec.structs.replace(before, node_affinity=only)
    known = {(item.key, item.effect) for item in pod.spec.tolerations}
    pod.spec.tolerations = [
        *pod.spec.tolerations,
        *(
            core_v1.Toleration(key=key, operator="Exists", effect=effect)
            for key, effect in _DEFAULT_TOLERATIONS
            if (key, effect) not in known
        ),
    ]
    return pod


def should_run(owner: apps_v1.DaemonSet, node: core_v1.Node) -> bool:
    """Return True if the DaemonSet should run a Pod on the node."""
    return _fits(owner, node, ("NoSchedule", "NoExecute"))


def should_continue(owner: apps_v1.DaemonSet, node: core_v1.Node) -> bool:
    """Return True if a Pod that already runs on the node may stay: a NoSchedule taint does not stop it."""
    return _fits(owner, node, ("NoExecute",))


def _fits(owner: apps_v1.DaemonSet, node: core_v1.Node, effects: Sequence[str]) -> bool:
    pod = pod_on(owner, node.metadata.name, "")
    desired = core_v1.Pod(pod.metadata, spec=owner.spec.template.spec)
    return matches_node(desired, node) and all(
        tolerates(pod, taint) for taint in node.spec.taints if taint.effect in effects
    )


def node_of(pod: core_v1.Pod) -> str:
    """Return the name of the node that a Pod runs on, or is created for."""
    if pod.spec.node_name or pod.spec.affinity is None or pod.spec.affinity.node_affinity is None:
        return pod.spec.node_name
    required = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    for term in required.node_selector_terms if required is not None else ():
        for item in term.match_fields:
            if item.key == "metadata.name" and item.values:
                return item.values[0]
    return ""


class DaemonSetSync:
    """One reconcile of a DaemonSet, with its nodes and its Pods."""

    def __init__(
        self,
        owner: apps_v1.DaemonSet,
        nodes: Sequence[core_v1.Node],
        pods: Sequence[core_v1.Pod],
        revision: str,
        ctx: Context,
        now: datetime,
    ) -> None:
        self._owner = owner
        self._ctx = ctx
        self._revision = revision
        self._now = now
        self._eligible = {node.metadata.name for node in nodes if should_run(owner, node)}
        self._continuing = {node.metadata.name for node in nodes if should_continue(owner, node)}
        self._max_surge, self._max_unavailable = self._limits()
        self._pods: defaultdict[str, list[core_v1.Pod]] = defaultdict(list)
        for pod in sorted(pods, key=lambda pod: (str(pod.metadata.creation_timestamp), self._is_new(pod))):
            self._pods[node_of(pod)].append(pod)

    def _limits(self) -> tuple[int, int]:
        """Return maxSurge and maxUnavailable as numbers of nodes."""
        rolling = self._owner.spec.update_strategy.rolling_update or apps_v1.RollingUpdateDaemonSet()
        surge = resolve(rolling.max_surge, len(self._eligible), round_up=True)
        most = 1 if rolling.max_unavailable is None else rolling.max_unavailable
        unavailable = resolve(most, len(self._eligible), round_up=True)
        return surge, unavailable if surge else max(unavailable, 1)

    def _is_new(self, pod: core_v1.Pod) -> bool:
        return pod.metadata.labels.get(HASH_LABEL) == self._revision

    def _is_available(self, pod: core_v1.Pod) -> bool:
        return time_until_available(pod, self._owner.spec.min_ready_seconds, self._now) == timedelta(0)

    async def step(self) -> None:
        """Create missing Pods, delete surplus ones, and replace outdated ones within the limits of the strategy."""
        for node in sorted(self._eligible | self._pods.keys()):
            ended = [pod for pod in self._not_terminating(node) if pod.status.phase == "Failed"]
            for pod in ended:
                self._ctx.warn(
                    "FailedDaemonPod",
                    f"Found failed daemon pod {pod.key} on node {node}, will try to kill it",
                )
                await self._delete(pod)
            left = [pod for pod in self._not_terminating(node) if pod not in ended]
            if node in self._eligible and not left and not self._pods[node]:
                await self._create(node)
            for pod in self._surplus(left) if node in self._continuing else left:
                await self._delete(pod)
        if self._owner.spec.update_strategy.type != "RollingUpdate":
            return
        await (self._surge_update() if self._max_surge else self._rolling_update())

    def _surplus(self, pods: Sequence[core_v1.Pod]) -> list[core_v1.Pod]:
        """Return the surplus Pods of a node: all but the oldest, or all but the oldest of each revision during a surge."""
        if not self._max_surge:
            return list(pods[1:])
        new, old = self._by_revision(pods)
        return [*new[1:], *old[1:]]

    def _by_revision(self, pods: Sequence[core_v1.Pod]) -> tuple[list[core_v1.Pod], list[core_v1.Pod]]:
        """Split Pods into those of the current revision and the others."""
        return [pod for pod in pods if self._is_new(pod)], [pod for pod in pods if not self._is_new(pod)]

    async def _rolling_update(self) -> None:
        """Delete outdated Pods, up to maxUnavailable; the next reconcile creates their replacements."""
        unavailable = sum(
            not any(map(self._is_available, self._not_terminating(node))) for node in self._eligible
        )
        for node in sorted(self._eligible):
            for pod in self._not_terminating(node):
                if self._is_new(pod):
                    continue
                if self._is_available(pod):
                    if unavailable >= self._max_unavailable:
                        continue
                    unavailable += 1
                await self._delete(pod)

    async def _surge_update(self) -> None:
        """Create new Pods, up to maxSurge, and delete the outdated ones once the new ones are available."""
        surging = 0
        waiting: list[str] = []
        for node in sorted(self._eligible):
            new, old = self._by_revision(self._not_terminating(node))
            if not old:
                continue
            if not new and self._is_available(old[0]):
                waiting.append(node)
            elif not new:
                await self._create(node)
            elif self._is_available(new[0]):
                await self._delete(old[0])
            else:
                surging += 1
        for node in waiting[: max(self._max_surge - surging, 0)]:
            await self._create(node)

    def _not_terminating(self, node: str) -> list[core_v1.Pod]:
        return [pod for pod in self._pods[node] if pod.metadata.deletion_timestamp is None]

    async def _create(self, node: str) -> None:
        made = await self._ctx.create(pod_on(self._owner, node, self._revision))
        self._pods[node].append(made)
        self._ctx.event("SuccessfulCreate", f"Created pod: {made.metadata.name}")

    async def _delete(self, pod: core_v1.Pod) -> None:
        await self._ctx.delete(pod)
        self._ctx.event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

    def status(self) -> apps_v1.DaemonSetStatus:
        """Count the nodes by what runs on them."""
        first = {node: (self._not_terminating(node) or self._pods[node])[:1] for node in self._eligible}
        pods = [pod for found in first.values() for pod in found]
        available = sum(map(self._is_available, pods))
        return apps_v1.DaemonSetStatus(
            observed_generation=self._owner.metadata.generation,
            desired_number_scheduled=len(self._eligible),
            current_number_scheduled=len(pods),
            number_misscheduled=sum(
                bool(pods) for node, pods in self._pods.items() if node not in self._eligible
            ),
            number_ready=sum(map(is_ready, pods)),
            number_available=available,
            number_unavailable=len(self._eligible) - available,
            updated_number_scheduled=sum(map(self._is_new, pods)),
            collision_count=self._owner.status.collision_count,
            conditions=self._owner.status.conditions,
        )

    def used(self) -> set[str]:
        """Return the revisions in use."""
        return {pod.metadata.labels.get(HASH_LABEL, "") for pods in self._pods.values() for pod in pods} | {
            self._revision
        }


@ignore_terminating_namespace
async def reconcile(owner: apps_v1.DaemonSet, ctx: Context) -> Result | None:
    """Run a Pod on each eligible node."""
    pods = await claim_children(owner, label_selector(owner.spec.selector), pods_by_controller, ctx)
    if owner.metadata.deletion_timestamp is not None:
        return None
    labels = owner.spec.template.metadata.labels
    history = await record(owner, owner.spec.template, labels, ctx, hashed=HASH_LABEL)
    revision = hash_of(history.latest)
    now = clock.now()
    sync = DaemonSetSync(owner, await ctx.list(core_v1.Node), pods, revision, ctx, now)
    await sync.step()
    await ctx.patch_status(owner, sync.status())
    await forget_old(history, sync.used(), owner.spec.revision_history_limit, ctx)
    waits = [time_until_available(pod, owner.spec.min_ready_seconds, now) for pod in pods]
    pending = [wait for wait in waits if wait]
    return Result(after=min(pending)) if pending else None


def _eligibility_may_change(change: Change[core_v1.Node]) -> bool:
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return (old.spec, old.metadata.labels) != (new.spec, new.metadata.labels)


def _all_sets_key(_: core_v1.Node) -> str:
    return "all"


def controller() -> Controller[apps_v1.DaemonSet]:
    """Declare the DaemonSet controller."""
    return Controller(
        apps_v1.DaemonSet,
        reconcile,
        name=NAME,
        owns=[owned(core_v1.Pod, when=affects_pod_counts), owned(apps_v1.ControllerRevision)],
        watches=[
            watch(core_v1.Node, via=all_sets, key=_all_sets_key, when=_eligibility_may_change),
            watch(
                core_v1.Pod,
                via=sets_by_namespace,
                key=lambda pod: pod.metadata.namespace,
                when=is_orphaned,
            ),
        ],
        needs=[needs(core_v1.Pod, "delete"), needs(apps_v1.ControllerRevision, "delete")],
        concurrency=4,
        options=Options(reporter=NAME, field_manager=FIELD_MANAGER, reconcile_terminating=True),
    )
