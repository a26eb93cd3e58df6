"""The ReplicaSet controller: keeps the desired number of Pods."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from kubewright.api import ApiError, label_selector
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Context, Controller, Index, Options, Result, needs, owned, watch
from kubewright.devcluster import clock
from kubewright.devcluster.batching import batched
from kubewright.devcluster.namespaces import ignore_terminating_namespace
from kubewright.devcluster.statuses import REQUEUE_SOON, StatusWriter, condition_of
from kubewright.devcluster.workloads import (
    affects_pod_counts,
    claim_children,
    deletion_rank,
    is_active,
    is_orphaned,
    is_ready,
    pod_from_template,
    pods_by_controller,
    time_until_available,
)

NAME = "replicaset-controller"
FAILURE = "ReplicaFailure"
BURST = 500
"""Maximum number of Pods created or deleted in one reconcile."""

sets_by_namespace: Index[apps_v1.ReplicaSet] = Index(
    apps_v1.ReplicaSet, lambda item: [item.metadata.namespace]
)


def status_of(
    replica_set: apps_v1.ReplicaSet, pods: Sequence[core_v1.Pod], failure: str, now: datetime
) -> apps_v1.ReplicaSetStatus:
    """Return the status, counted from the Pods."""
    active = [pod for pod in pods if is_active(pod)]
    desired = replica_set.spec.template.metadata.labels.items()
    least = replica_set.spec.min_ready_seconds
    return apps_v1.ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum(desired <= pod.metadata.labels.items() for pod in active),
        ready_replicas=sum(is_ready(pod) for pod in active),
        available_replicas=sum(time_until_available(pod, least, now) == timedelta(0) for pod in active),
        terminating_replicas=sum(pod.metadata.deletion_timestamp is not None for pod in pods),
        observed_generation=replica_set.metadata.generation,
        conditions=_conditions(replica_set, failure, now),
    )


def _conditions(
    replica_set: apps_v1.ReplicaSet, failure: str, now: datetime
) -> list[apps_v1.ReplicaSetCondition]:
    others = [item for item in replica_set.status.conditions if item.type != FAILURE]
    if not failure:
        return others
    before = condition_of(replica_set.status.conditions, FAILURE)
    if before is not None and before.message == failure:
        return [*others, before]
    made = apps_v1.ReplicaSetCondition(
        type=FAILURE,
        status="True",
        reason="FailedCreate",
        message=failure,
        last_transition_time=now.replace(microsecond=0),
    )
    return [*others, made]


_status_writer = StatusWriter()


@batched
@ignore_terminating_namespace
async def reconcile(replica_set: apps_v1.ReplicaSet, ctx: Context) -> Result | None:
    """Create missing Pods, delete surplus ones, and update the status."""
    pods = await claim_children(
        replica_set, label_selector(replica_set.spec.selector), pods_by_controller, ctx
    )
    failure: ApiError | None = None
    if replica_set.metadata.deletion_timestamp is None:
        try:
            await _scale(replica_set, pods, ctx)
        except ApiError as error:
            failure = error
    now = clock.now()
    message = failure.status.message if failure is not None else ""
    written = await _status_writer.write(replica_set, status_of(replica_set, pods, message, now), ctx)
    if failure is not None:
        raise failure
    if not written:
        return REQUEUE_SOON
    waits = [
        time_until_available(pod, replica_set.spec.min_ready_seconds, now) for pod in pods if is_active(pod)
    ]
    pending = [wait for wait in waits if wait]
    return Result(after=min(pending)) if pending else None


async def _scale(replica_set: apps_v1.ReplicaSet, pods: list[core_v1.Pod], ctx: Context) -> None:
    """Create or delete Pods to reach the desired number; `pods` is updated in place."""
    active = [pod for pod in pods if is_active(pod)]
    desired = 1 if replica_set.spec.replicas is None else replica_set.spec.replicas
    name, namespace = replica_set.metadata.name, replica_set.metadata.namespace
    for _ in range(min(desired - len(active), BURST)):
        try:
            made = await ctx.create(
                pod_from_template(replica_set.spec.template, generate_name=f"{name}-", namespace=namespace)
            )
        except ApiError as error:
            ctx.warn("FailedCreate", f"Error creating: {error.status.message}")
            raise
        ctx.event("SuccessfulCreate", f"Created pod: {made.metadata.name}")
        pods.append(made)
    surplus = sorted(active, key=deletion_rank)[: max(len(active) - desired, 0)]
    for pod in surplus[:BURST]:
        await ctx.delete(pod)
        ctx.event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
        # The status must count this Pod as terminating before the cache shows it.
        pod.metadata.deletion_timestamp = clock.now()


def controller() -> Controller[apps_v1.ReplicaSet]:
    """Declare the ReplicaSet controller."""
    return Controller(
        apps_v1.ReplicaSet,
        reconcile,
        name=NAME,
        when=_status_writer.is_external_change,
        owns=[owned(core_v1.Pod, when=affects_pod_counts)],
        watches=[
            watch(
                core_v1.Pod,
                via=sets_by_namespace,
                key=lambda pod: pod.metadata.namespace,
                when=is_orphaned,
            )
        ],
        needs=[needs(core_v1.Pod, "delete")],
        concurrency=8,
        options=Options(reporter=NAME, reconcile_terminating=True),
    )
