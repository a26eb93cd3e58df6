"""The scheduler: a node for each Pod that has none."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from kubewright.api import Meta, Quantity
from kubewright.api.builtin import core_v1
from kubewright.controller import Change, Context, Controller, Index, Result, needs, watch
from kubewright.devcluster.conditions import condition_of

SCHEDULER = "default-scheduler"
RETRY_AFTER = timedelta(seconds=60)
_COUNTED = ("cpu", "memory", "pods")
_ZERO = Quantity("0")

pods_by_node = Index(core_v1.Pod, lambda pod: [pod.spec.node_name])
waiting_pods = Index(core_v1.Pod, lambda pod: ["waiting"] if _waits(pod) else [])


def _waits(pod: core_v1.Pod) -> bool:
    return (
        not pod.spec.node_name
        and pod.spec.scheduler_name == SCHEDULER
        and not pod.spec.scheduling_gates
        and pod.metadata.deletion_timestamp is None
        and pod.status.phase not in ("Succeeded", "Failed")
    )


def requests_of(pod: core_v1.Pod) -> dict[str, Quantity]:
    """Sum up what the containers of a Pod ask for."""
    total: dict[str, Quantity] = {"pods": Quantity("1")}
    for container in pod.spec.containers:
        for name, amount in container.resources.requests.items():
            total[name] = total.get(name, _ZERO) + amount
    for container in pod.spec.init_containers:
        for name, amount in container.resources.requests.items():
            total[name] = max(total.get(name, _ZERO), amount)
    return total


def tolerates(pod: core_v1.Pod, taint: core_v1.Taint) -> bool:
    """Tell whether a Pod may run in spite of a taint."""
    return any(
        toleration.effect in ("", taint.effect)
        and (
            (toleration.operator == "Exists" and toleration.key in ("", taint.key))
            or (
                toleration.key == taint.key
                and toleration.value == taint.value
                and toleration.operator != "Exists"
            )
        )
        for toleration in pod.spec.tolerations
    )


def obstacle(pod: core_v1.Pod, node: core_v1.Node, others: Sequence[core_v1.Pod]) -> str:
    """Say why a Pod cannot run on a node, or nothing when it can."""
    if node.spec.unschedulable:
        return "node(s) were unschedulable"
    for taint in node.spec.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not tolerates(pod, taint):
            return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    if not pod.spec.node_selector.items() <= node.metadata.labels.items():
        return "node(s) didn't match Pod's node affinity/selector"
    used: dict[str, Quantity] = {}
    for other in others:
        if other.status.phase not in ("Succeeded", "Failed"):
            for name, amount in requests_of(other).items():
                used[name] = used.get(name, _ZERO) + amount
    room = node.status.allocatable or node.status.capacity
    for name, amount in requests_of(pod).items():
        if name in room or name in _COUNTED:
            free = room.get(name, _ZERO)
            if used.get(name, _ZERO) + amount > free:
                return "Too many pods" if name == "pods" else f"Insufficient {name}"
    return ""


async def reconcile(pod: core_v1.Pod, ctx: Context) -> Result | None:
    """Bind a Pod to the node with the fewest Pods that has room for it."""
    if not _waits(pod):
        return None
    choices: list[tuple[int, str]] = []
    obstacles: Counter[str] = Counter()
    nodes = await ctx.list(core_v1.Node)
    for node in nodes:
        others = await ctx.list(pods_by_node, node.metadata.name)
        if reason := obstacle(pod, node, others):
            obstacles[reason] += 1
        else:
            choices.append((len(others), node.metadata.name))
    if not choices:
        await _tell_unschedulable(pod, len(nodes), obstacles, ctx)
        return Result(after=RETRY_AFTER)
    _, chosen = min(choices)
    target = core_v1.ObjectReference(kind="Node", name=chosen)
    await ctx.create(
        core_v1.Binding(Meta(pod.metadata.name, namespace=pod.metadata.namespace), target=target), owned=False
    )
    ctx.event("Scheduled", f"Successfully assigned {pod.key} to {chosen}", action="Binding")
    return None


async def _tell_unschedulable(pod: core_v1.Pod, nodes: int, obstacles: Counter[str], ctx: Context) -> None:
    reasons = ", ".join(f"{count} {text}" for text, count in sorted(obstacles.items()))
    message = f"0/{nodes} nodes are available: {reasons}." if nodes else "no nodes available to schedule pods"
    before = condition_of(pod.status.conditions, "PodScheduled")
    if before is not None and before.message == message:
        return
    ctx.warn("FailedScheduling", message, action="Scheduling")
    unscheduled = core_v1.PodCondition(
        type="PodScheduled", status="False", reason="Unschedulable", message=message
    )
    await ctx.patch_status(pod, core_v1.PodStatus(conditions=[unscheduled]))


def _room_may_have_grown(change: Change[core_v1.Node]) -> bool:
    if change.old is None or change.new is None:
        return True
    old, new = change.old, change.new
    return (old.spec, old.status.allocatable, old.metadata.labels) != (
        new.spec,
        new.status.allocatable,
        new.metadata.labels,
    )


def _waiting(_: core_v1.Node) -> str:
    return "waiting"


def _needs_a_look(change: Change[core_v1.Pod]) -> bool:
    return change.new is not None and _waits(change.new)


def controller() -> Controller[core_v1.Pod]:
    """Declare the scheduler."""
    return Controller(
        core_v1.Pod,
        reconcile,
        name="default-scheduler",
        when=_needs_a_look,
        watches=[watch(core_v1.Node, via=waiting_pods, key=_waiting, when=_room_may_have_grown)],
        needs=[needs(core_v1.Binding, "create")],
    )
