"""The scheduler: a node for each Pod that has none."""

from collections import Counter
from datetime import timedelta

from kubewright.api import ApiError, Meta
from kubewright.api.builtin import core_v1, storage_v1
from kubewright.controller import Change, Context, Controller, Index, Options, Result, needs, watch
from kubewright.devcluster.conditions import condition_of
from kubewright.devcluster.ledger import Ledger
from kubewright.devcluster.nodes import Place, Tenant, explanation, is_hopeless, obstacle
from kubewright.devcluster.storage import SELECTED_NODE
from kubewright.devcluster.volumes import choose, claims_of, pods_by_claim, reserve

NAME = "default-scheduler"
RETRY_AFTER = timedelta(seconds=60)
_UNASKED = " not found"
"""How a message ends, in kube-scheduler's words, when no node was asked: a plugin finds no notes of another's."""

waiting_pods: Index[core_v1.Pod] = Index(core_v1.Pod, lambda pod: ["waiting"] if is_waiting(pod) else [])


def is_waiting(pod: core_v1.Pod) -> bool:
    """Tell whether a Pod is this scheduler's to place."""
    return (
        not pod.spec.node_name
        and pod.spec.scheduler_name == NAME
        and not pod.spec.scheduling_gates
        and pod.metadata.deletion_timestamp is None
        and pod.status.phase not in ("Succeeded", "Failed")
    )


class Scheduler:
    """Place Pods, keeping account of those that are placed."""

    def __init__(self) -> None:
        self._ledger = Ledger()

    def concerns(self, change: Change[core_v1.Pod]) -> bool:
        """Predicate: pass Pods that wait for a node; every change enters the account."""
        self._ledger.observe(change)
        return change.new is not None and is_waiting(change.new)

    async def reconcile(self, pod: core_v1.Pod, ctx: Context) -> Result | None:
        """Bind a Pod to the node with the fewest Pods that has room for it."""
        if not is_waiting(pod):
            return None
        if not await _volumes_are_bound(pod, ctx):
            return Result(after=RETRY_AFTER)
        places = [self._ledger.place(node) for node in await ctx.list(core_v1.Node)]
        choices: list[tuple[int, str]] = []
        obstacles: Counter[str] = Counter()
        hopeless = 0
        for place in places:
            if reason := obstacle(pod, place, places):
                obstacles[reason] += 1
                hopeless += is_hopeless(pod, place, reason)
            else:
                choices.append((len(place.tenants), place.node.metadata.name))
        if not choices:
            await _tell_unschedulable(pod, explanation(len(places), obstacles, hopeless), ctx)
            return Result(after=RETRY_AFTER)
        await self._bind(pod, min(choices)[1], ctx)
        return None

    async def _bind(self, pod: core_v1.Pod, node: str, ctx: Context) -> None:
        meta = Meta(pod.metadata.name, namespace=pod.metadata.namespace)
        target = core_v1.ObjectReference(kind="Node", name=node)
        self._ledger.put(Tenant.of(pod, node))
        try:
            await ctx.create(core_v1.Binding(meta, target=target), owned=False)
        except ApiError as error:
            self._ledger.remove(pod.metadata.uid)
            if error.status.code in (404, 409):
                # The Pod is gone, or has its node already.
                return
            raise
        ctx.event("Scheduled", f"Successfully assigned {pod.key} to {node}", action="Binding")


async def _volumes_are_bound(pod: core_v1.Pod, ctx: Context) -> bool:
    """Tell whether every claim of the Pod has its volume; those that wait for a Pod are told where it will run."""
    bound = True
    for name in claims_of(pod):
        claim = await ctx.find(core_v1.PersistentVolumeClaim, name)
        if claim is None:
            total = len(await ctx.list(core_v1.Node))
            missing = f'0/{total} nodes are available: persistentvolumeclaim "{name}" not found.'
            await _tell_unschedulable(pod, missing + _UNASKED, ctx)
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
        await _tell_unschedulable(pod, text + _UNASKED, ctx)
        return
    fitting = [node.metadata.name for node in nodes if not obstacle(pod, Place(node))]
    if not fitting:
        return
    if volume := choose(await ctx.list(core_v1.PersistentVolume), claim):
        await reserve(claim, volume, ctx)
    elif SELECTED_NODE not in claim.metadata.annotations:
        await ctx.patch(claim, {"metadata": {"annotations": {SELECTED_NODE: fitting[0]}}})


async def _tell_unschedulable(pod: core_v1.Pod, message: str, ctx: Context) -> None:
    before = condition_of(pod.status.conditions, "PodScheduled")
    if before is not None and before.message == message:
        return
    ctx.warn("FailedScheduling", message, action="Scheduling")
    unscheduled = core_v1.PodCondition(
        type="PodScheduled", status="False", reason="Unschedulable", message=message
    )
    await ctx.patch_status(pod, core_v1.PodStatus(conditions=[unscheduled]))


def _room_may_have_grown(change: Change[core_v1.Node]) -> bool:
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    before = (old.spec, old.status.allocatable, old.metadata.labels)
    return before != (new.spec, new.status.allocatable, new.metadata.labels)


def _frees_room(change: Change[core_v1.Pod]) -> bool:
    return change.old is not None and bool(change.old.spec.node_name) and change.new is None


def _users(claim: core_v1.PersistentVolumeClaim) -> str:
    return str(claim.key)


def _waiting(_: object) -> str:
    return "waiting"


def controller() -> Controller[core_v1.Pod]:
    """Declare the scheduler."""
    scheduler = Scheduler()
    return Controller(
        core_v1.Pod,
        scheduler,
        name=NAME,
        when=scheduler.concerns,
        watches=[
            watch(core_v1.Node, via=waiting_pods, key=_waiting, when=_room_may_have_grown),
            watch(core_v1.Pod, via=waiting_pods, key=_waiting, when=_frees_room),
            watch(core_v1.PersistentVolumeClaim, via=pods_by_claim, key=_users),
            watch(storage_v1.StorageClass, via=waiting_pods, key=_waiting),
            watch(core_v1.PersistentVolume, map=lambda _: []),
        ],
        needs=[
            needs(core_v1.Binding, "create"),
            needs(core_v1.PersistentVolumeClaim, "patch"),
            needs(core_v1.PersistentVolume, "patch"),
        ],
        options=Options(reporter=NAME),
    )
