"""DaemonSets: one Pod on each node that is meant."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from kubewright.api import label_selector
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Change, Context, Controller, Index, Options, Result, needs, owned, watch
from kubewright.devcluster import clock
from kubewright.devcluster.claims import claim, is_orphaned
from kubewright.devcluster.leaving import unless_leaving
from kubewright.devcluster.nodes import matches_node, tolerates
from kubewright.devcluster.pods import available_in, counts_anew, is_ready, pod_from, pods_by_family
from kubewright.devcluster.revisions import HASH_LABEL, forget_old, hash_of, record
from kubewright.devcluster.rollouts import resolve

NAME = "daemonset-controller"
GENERATION_LABEL = "pod-template-generation"
GENERATION = "deprecated.daemonset.template.generation"
_TOLERATED = (
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
    """Make the Pod for a node; the scheduler can choose no other."""
    pod = pod_from(
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
            for key, effect in _TOLERATED
            if (key, effect) not in known
        ),
    ]
    return pod


def is_meant(owner: apps_v1.DaemonSet, node: core_v1.Node) -> bool:
    """Tell whether a node shall have a Pod of the DaemonSet."""
    return _fits(owner, node, ("NoSchedule", "NoExecute"))


def may_stay(owner: apps_v1.DaemonSet, node: core_v1.Node) -> bool:
    """Tell whether a Pod that is there already may go on: a taint that keeps new ones off does not end it."""
    return _fits(owner, node, ("NoExecute",))


def _fits(owner: apps_v1.DaemonSet, node: core_v1.Node, effects: Sequence[str]) -> bool:
    pod = pod_on(owner, node.metadata.name, "")
    wanted = core_v1.Pod(pod.metadata, spec=owner.spec.template.spec)
    return matches_node(wanted, node) and all(
        tolerates(pod, taint) for taint in node.spec.taints if taint.effect in effects
    )


def node_of(pod: core_v1.Pod) -> str:
    """Tell the node a Pod is on, or is made for."""
    if pod.spec.node_name or pod.spec.affinity is None or pod.spec.affinity.node_affinity is None:
        return pod.spec.node_name
    required = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    for term in required.node_selector_terms if required is not None else ():
        for item in term.match_fields:
            if item.key == "metadata.name" and item.values:
                return item.values[0]
    return ""


class Pass:
    """One pass over one DaemonSet, its nodes and its Pods."""

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
        self._meant = {node.metadata.name for node in nodes if is_meant(owner, node)}
        self._kept = {node.metadata.name for node in nodes if may_stay(owner, node)}
        self._surge, self._may_miss = self._limits()
        self._pods: defaultdict[str, list[core_v1.Pod]] = defaultdict(list)
        for pod in sorted(pods, key=lambda pod: (str(pod.metadata.creation_timestamp), self._is_new(pod))):
            self._pods[node_of(pod)].append(pod)

    def _limits(self) -> tuple[int, int]:
        """Give on how many nodes a rollout may have a Pod more, and on how many none that is available."""
        rolling = self._owner.spec.update_strategy.rolling_update or apps_v1.RollingUpdateDaemonSet()
        surge = resolve(rolling.max_surge, len(self._meant), round_up=True)
        most = 1 if rolling.max_unavailable is None else rolling.max_unavailable
        may_miss = resolve(most, len(self._meant), round_up=True)
        return surge, may_miss if surge else max(may_miss, 1)

    def _is_new(self, pod: core_v1.Pod) -> bool:
        return pod.metadata.labels.get(HASH_LABEL) == self._revision

    def _is_available(self, pod: core_v1.Pod) -> bool:
        return available_in(pod, self._owner.spec.min_ready_seconds, self._now) == timedelta(0)

    async def step(self) -> None:
        """Make missing Pods, take surplus ones away, replace outdated ones as far as may be missing."""
        for node in sorted(self._meant | self._pods.keys()):
            ended = [pod for pod in self._staying(node) if pod.status.phase == "Failed"]
            for pod in ended:
                self._ctx.warn(
                    "FailedDaemonPod",
                    f"Found failed daemon pod {pod.key} on node {node}, will try to kill it",
                )
                await self._delete(pod)
            left = [pod for pod in self._staying(node) if pod not in ended]
            if node in self._meant and not left and not self._pods[node]:
                await self._create(node)
            for pod in self._surplus(left) if node in self._kept else left:
                await self._delete(pod)
        if self._owner.spec.update_strategy.type != "RollingUpdate":
            return
        await (self._overlap() if self._surge else self._replace())

    def _surplus(self, pods: Sequence[core_v1.Pod]) -> list[core_v1.Pod]:
        """Give the Pods that a node has too many: it keeps the oldest, or one of each sort while they overlap."""
        if not self._surge:
            return list(pods[1:])
        new, old = self._by_revision(pods)
        return [*new[1:], *old[1:]]

    def _by_revision(self, pods: Sequence[core_v1.Pod]) -> tuple[list[core_v1.Pod], list[core_v1.Pod]]:
        """Part the Pods of the present revision from those of others."""
        return [pod for pod in pods if self._is_new(pod)], [pod for pod in pods if not self._is_new(pod)]

    async def _replace(self) -> None:
        """Delete outdated Pods, as many as may be missing; the next pass makes those that follow."""
        missing = sum(not any(map(self._is_available, self._staying(node))) for node in self._meant)
        for node in sorted(self._meant):
            for pod in self._staying(node):
                if self._is_new(pod):
                    continue
                if self._is_available(pod):
                    if missing >= self._may_miss:
                        continue
                    missing += 1
                await self._delete(pod)

    async def _overlap(self) -> None:
        """Make new Pods beside outdated ones, which go when those are available."""
        surging = 0
        waiting: list[str] = []
        for node in sorted(self._meant):
            new, old = self._by_revision(self._staying(node))
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
        for node in waiting[: max(self._surge - surging, 0)]:
            await self._create(node)

    def _staying(self, node: str) -> list[core_v1.Pod]:
        return [pod for pod in self._pods[node] if pod.metadata.deletion_timestamp is None]

    async def _create(self, node: str) -> None:
        made = await self._ctx.create(pod_on(self._owner, node, self._revision))
        self._pods[node].append(made)
        self._ctx.event("SuccessfulCreate", f"Created pod: {made.metadata.name}")

    async def _delete(self, pod: core_v1.Pod) -> None:
        await self._ctx.delete(pod)
        self._ctx.event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

    def status(self) -> apps_v1.DaemonSetStatus:
        """Count the nodes that have what they shall, and those that have what they shall not."""
        first = {node: (self._staying(node) or self._pods[node])[:1] for node in self._meant}
        pods = [pod for found in first.values() for pod in found]
        available = sum(map(self._is_available, pods))
        return apps_v1.DaemonSetStatus(
            observed_generation=self._owner.metadata.generation,
            desired_number_scheduled=len(self._meant),
            current_number_scheduled=len(pods),
            number_misscheduled=sum(
                bool(pods) for node, pods in self._pods.items() if node not in self._meant
            ),
            number_ready=sum(map(is_ready, pods)),
            number_available=available,
            number_unavailable=len(self._meant) - available,
            updated_number_scheduled=sum(map(self._is_new, pods)),
            collision_count=self._owner.status.collision_count,
            conditions=self._owner.status.conditions,
        )

    def used(self) -> set[str]:
        """Name the revisions that Pods were made from."""
        return {pod.metadata.labels.get(HASH_LABEL, "") for pods in self._pods.values() for pod in pods} | {
            self._revision
        }


@unless_leaving
async def reconcile(owner: apps_v1.DaemonSet, ctx: Context) -> Result | None:
    """See that each node that is meant has its Pod."""
    pods = await claim(owner, label_selector(owner.spec.selector), pods_by_family, ctx)
    if owner.metadata.deletion_timestamp is not None:
        return None
    labels = owner.spec.template.metadata.labels
    history = await record(owner, owner.spec.template, labels, ctx, hashed=HASH_LABEL)
    revision = hash_of(history.latest)
    now = clock.now()
    work = Pass(owner, await ctx.list(core_v1.Node), pods, revision, ctx, now)
    await work.step()
    await ctx.patch_status(owner, work.status())
    await forget_old(history, work.used(), owner.spec.revision_history_limit, ctx)
    waits = [available_in(pod, owner.spec.min_ready_seconds, now) for pod in pods]
    pending = [wait for wait in waits if wait]
    return Result(after=min(pending)) if pending else None


def _node_matters(change: Change[core_v1.Node]) -> bool:
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return (old.spec, old.metadata.labels) != (new.spec, new.metadata.labels)


def _everyone(_: core_v1.Node) -> str:
    return "all"


def controller() -> Controller[apps_v1.DaemonSet]:
    """Declare the controller."""
    return Controller(
        apps_v1.DaemonSet,
        reconcile,
        name=NAME,
        owns=[owned(core_v1.Pod, when=counts_anew), owned(apps_v1.ControllerRevision)],
        watches=[
            watch(core_v1.Node, via=all_sets, key=_everyone, when=_node_matters),
            watch(
                core_v1.Pod,
                via=sets_by_namespace,
                key=lambda pod: pod.metadata.namespace,
                when=is_orphaned,
            ),
        ],
        needs=[needs(core_v1.Pod, "delete"), needs(apps_v1.ControllerRevision, "delete")],
        concurrency=4,
        options=Options(reporter=NAME, reconcile_terminating=True),
    )
