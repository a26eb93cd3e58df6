"""Pods that their node no longer keeps: it drives them away by a taint, or is no more."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from kubewright.api.builtin import core_v1
from kubewright.controller import Change, Context, Controller, Index, Options, Result, needs, watch
from kubewright.devcluster import clock
from kubewright.devcluster.nodes import covers

NAME = "taint-eviction-controller"
QUARANTINE = timedelta(seconds=40)
"""For how long a node must be gone until its Pods are given up."""
DRIVES_AWAY = "NoExecute"

pods_by_node: Index[core_v1.Pod] = Index(
    core_v1.Pod, lambda pod: [pod.spec.node_name] if pod.spec.node_name else []
)


def patience(pod: core_v1.Pod, taints: Sequence[core_v1.Taint]) -> timedelta | None:
    """Tell how long a Pod may stay with the taints that drive Pods away; None: as long as it likes."""
    limits: list[int] = []
    for taint in taints:
        fitting = [item for item in pod.spec.tolerations if covers(item, taint)]
        if not fitting:
            return timedelta(0)
        limits += [item.toleration_seconds for item in fitting if item.toleration_seconds is not None]
    return timedelta(seconds=max(min(limits), 0)) if limits else None


class Evictions:
    """Delete the Pods that may not stay where they are."""

    def __init__(self) -> None:
        self._since: dict[str, datetime] = {}
        """By uid: since when a Pod is to go."""

    def concerns(self, change: Change[core_v1.Pod]) -> bool:
        """Predicate: pass no Pod of its own account; only its node can drive it away."""
        if change.after is None and change.before is not None:
            self._since.pop(change.before.meta.uid, None)
        return False

    async def reconcile(self, pod: core_v1.Pod, ctx: Context) -> Result | None:
        """Delete a Pod whose time on its node is over."""
        node = await ctx.find(core_v1.Node, pod.spec.node_name, "")
        limit = QUARANTINE if node is None else patience(pod, _driving(node))
        if limit is None:
            self._since.pop(pod.metadata.uid, None)
            return None
        now = clock.now()
        left = self._since.setdefault(pod.metadata.uid, now) + limit - now
        if left > timedelta(0):
            return Result(after=left)
        if node is None:
            # It may have been registered again while the cache was behind: a Pod is not given up by an old view.
            if await ctx.live.find(core_v1.Node, pod.spec.node_name, "") is None:
                await _give_up(pod, ctx)
        elif pod.metadata.deletion_timestamp is None:
            await _drive_away(pod, ctx)
        return None


async def _drive_away(pod: core_v1.Pod, ctx: Context) -> None:
    ctx.event("TaintManagerEviction", f"Marking for deletion Pod {pod.key}")
    await _tell(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", ctx)
    await ctx.delete(pod)


async def _give_up(pod: core_v1.Pod, ctx: Context) -> None:
    if pod.status.phase not in ("Succeeded", "Failed"):
        await _tell(pod, "DeletionByPodGC", "PodGC: node no longer exists", ctx, phase="Failed")
    await ctx.delete(pod, grace_period_seconds=0)


async def _tell(pod: core_v1.Pod, reason: str, message: str, ctx: Context, *, phase: str = "") -> None:
    condition = core_v1.PodCondition(
        type="DisruptionTarget",
        status="True",
        reason=reason,
        message=message,
        observed_generation=pod.metadata.generation,
    )
    await ctx.patch_status(pod, core_v1.PodStatus(phase=phase, conditions=[condition]))


def _drives_away(change: Change[core_v1.Node]) -> bool:
    """Predicate: pass nodes that are gone or whose driving taints change."""
    return change.new is None or _driving(change.new) != (_driving(change.old) if change.old else [])


def _driving(node: core_v1.Node) -> list[core_v1.Taint]:
    return [taint for taint in node.spec.taints if taint.effect == DRIVES_AWAY]


def controller() -> Controller[core_v1.Pod]:
    """Declare the controller."""
    evictions = Evictions()
    return Controller(
        core_v1.Pod,
        evictions,
        name=NAME,
        when=evictions.concerns,
        watches=[
            watch(core_v1.Node, via=pods_by_node, key=lambda node: node.metadata.name, when=_drives_away)
        ],
        needs=[needs(core_v1.Pod, "delete")],
        options=Options(reporter=NAME, reconcile_terminating=True),
    )
