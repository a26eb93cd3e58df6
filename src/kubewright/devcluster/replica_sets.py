"""ReplicaSets: as many Pods as wanted, no more and no fewer."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from kubewright.api import Meta
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Context, Controller, Index, Result, needs, owned
from kubewright.devcluster.conditions import condition_of, is_true

BURST = 500
"""Pods made or deleted in one pass; the next pass does the rest."""


def _controller_uids(pod: core_v1.Pod) -> list[str]:
    return [owner.uid for owner in pod.metadata.owner_references if owner.controller]


pods_by_controller = Index(core_v1.Pod, _controller_uids)


def is_ready(pod: core_v1.Pod) -> bool:
    """Tell whether a Pod serves."""
    return is_true(pod.status.conditions, "Ready")


def is_active(pod: core_v1.Pod) -> bool:
    """Tell whether a Pod counts: it has neither ended nor is it on its way out."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in ("Succeeded", "Failed")


def available_in(pod: core_v1.Pod, min_ready_seconds: int, now: datetime) -> timedelta | None:
    """Tell how long until a Pod has been ready for long enough; zero when it has, None while it is not ready."""
    condition = condition_of(pod.status.conditions, "Ready")
    if condition is None or condition.status != "True":
        return None
    since = condition.last_transition_time or now
    return max(since + timedelta(seconds=min_ready_seconds) - now, timedelta(0))


def deletion_rank(pod: core_v1.Pod) -> tuple[bool, bool, bool, float]:
    """Order Pods by how little is lost with them: unassigned, pending, not ready, then the youngest."""
    created = pod.metadata.creation_timestamp
    age_rank = -created.timestamp() if created else 0.0
    return (bool(pod.spec.node_name), pod.status.phase == "Running", is_ready(pod), age_rank)


def pod_from(
    template: core_v1.PodTemplateSpec, *, generate_name: str, namespace: str, name: str = ""
) -> core_v1.Pod:
    """Make a Pod of a template."""
    return core_v1.Pod(
        Meta(
            name,
            generate_name=generate_name,
            namespace=namespace,
            labels=dict(template.metadata.labels),
            annotations=dict(template.metadata.annotations),
            finalizers=list(template.metadata.finalizers),
        ),
        spec=template.spec,
    )


def status_of(
    replica_set: apps_v1.ReplicaSet, pods: Sequence[core_v1.Pod], now: datetime
) -> apps_v1.ReplicaSetStatus:
    """Count a ReplicaSet's Pods."""
    active = [pod for pod in pods if is_active(pod)]
    wanted = replica_set.spec.template.metadata.labels.items()
    least = replica_set.spec.min_ready_seconds
    return apps_v1.ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum(wanted <= pod.metadata.labels.items() for pod in active),
        ready_replicas=sum(is_ready(pod) for pod in active),
        available_replicas=sum(available_in(pod, least, now) == timedelta(0) for pod in active),
        terminating_replicas=sum(pod.metadata.deletion_timestamp is not None for pod in pods),
        observed_generation=replica_set.metadata.generation,
        conditions=replica_set.status.conditions,
    )


async def reconcile(replica_set: apps_v1.ReplicaSet, ctx: Context) -> Result | None:
    """Create missing Pods, delete surplus ones, count the rest."""
    pods = await ctx.list(pods_by_controller, replica_set.metadata.uid)
    if replica_set.metadata.deletion_timestamp is None:
        pods = await _scale(replica_set, pods, ctx)
    now = datetime.now(UTC)
    await ctx.patch_status(replica_set, status_of(replica_set, pods, now))
    waits = [available_in(pod, replica_set.spec.min_ready_seconds, now) for pod in pods if is_active(pod)]
    pending = [wait for wait in waits if wait]
    return Result(after=min(pending)) if pending else None


async def _scale(replica_set: apps_v1.ReplicaSet, pods: list[core_v1.Pod], ctx: Context) -> list[core_v1.Pod]:
    active = [pod for pod in pods if is_active(pod)]
    wanted = 1 if replica_set.spec.replicas is None else replica_set.spec.replicas
    for _ in range(min(wanted - len(active), BURST)):
        made = await ctx.create(
            pod_from(
                replica_set.spec.template,
                generate_name=f"{replica_set.metadata.name}-",
                namespace=replica_set.metadata.namespace,
            )
        )
        ctx.event("SuccessfulCreate", f"Created pod: {made.metadata.name}")
        pods.append(made)
    surplus = sorted(active, key=deletion_rank)[: max(len(active) - wanted, 0)]
    for pod in surplus[:BURST]:
        await ctx.delete(pod)
        ctx.event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
        pods.remove(pod)
    return pods


def controller() -> Controller[apps_v1.ReplicaSet]:
    """Declare the controller."""
    return Controller(
        apps_v1.ReplicaSet,
        reconcile,
        name="replicaset-controller",
        owns=[owned(core_v1.Pod)],
        needs=[needs(core_v1.Pod, "delete")],
        concurrency=8,
    )
