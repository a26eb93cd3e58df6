"""ReplicaSets: as many Pods as wanted, no more and no fewer."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from kubewright.api import ApiError, label_selector
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Context, Controller, Index, Options, Result, needs, owned, watch
from kubewright.devcluster import clock
from kubewright.devcluster.claims import claim, is_orphaned
from kubewright.devcluster.conditions import condition_of
from kubewright.devcluster.leaving import unless_leaving
from kubewright.devcluster.pacing import paced
from kubewright.devcluster.pods import (
    available_in,
    counts_anew,
    deletion_rank,
    is_active,
    is_ready,
    pod_from,
    pods_by_family,
)
from kubewright.devcluster.statuses import SOON, Reporter

NAME = "replicaset-controller"
FAILURE = "ReplicaFailure"
BURST = 500
"""Pods made or deleted in one pass; the next pass does the rest."""

sets_by_namespace: Index[apps_v1.ReplicaSet] = Index(
    apps_v1.ReplicaSet, lambda item: [item.metadata.namespace]
)


def status_of(
    replica_set: apps_v1.ReplicaSet, pods: Sequence[core_v1.Pod], failure: str, now: datetime
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


_reporter = Reporter()


@paced
@unless_leaving
async def reconcile(replica_set: apps_v1.ReplicaSet, ctx: Context) -> Result | None:
    """Create missing Pods, delete surplus ones, count the rest."""
    pods = await claim(replica_set, label_selector(replica_set.spec.selector), pods_by_family, ctx)
    failure: ApiError | None = None
    if replica_set.metadata.deletion_timestamp is None:
        try:
            await _scale(replica_set, pods, ctx)
        except ApiError as error:
            failure = error
    now = clock.now()
    told = failure.status.message if failure is not None else ""
    written = await _reporter.write(replica_set, status_of(replica_set, pods, told, now), ctx)
    if failure is not None:
        raise failure
    if not written:
        return SOON
    waits = [available_in(pod, replica_set.spec.min_ready_seconds, now) for pod in pods if is_active(pod)]
    pending = [wait for wait in waits if wait]
    return Result(after=min(pending)) if pending else None


async def _scale(replica_set: apps_v1.ReplicaSet, pods: list[core_v1.Pod], ctx: Context) -> None:
    """Bring the number of active Pods to what is wanted; `pods` is kept true."""
    active = [pod for pod in pods if is_active(pod)]
    wanted = 1 if replica_set.spec.replicas is None else replica_set.spec.replicas
    name, namespace = replica_set.metadata.name, replica_set.metadata.namespace
    for _ in range(min(wanted - len(active), BURST)):
        try:
            made = await ctx.create(
                pod_from(replica_set.spec.template, generate_name=f"{name}-", namespace=namespace)
            )
        except ApiError as error:
            ctx.warn("FailedCreate", f"Error creating: {error.status.message}")
            raise
        ctx.event("SuccessfulCreate", f"Created pod: {made.metadata.name}")
        pods.append(made)
    surplus = sorted(active, key=deletion_rank)[: max(len(active) - wanted, 0)]
    for pod in surplus[:BURST]:
        await ctx.delete(pod)
        ctx.event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
        # Whoever waits for its end must not read that there is nothing to wait for.
        pod.metadata.deletion_timestamp = clock.now()


def controller() -> Controller[apps_v1.ReplicaSet]:
    """Declare the controller."""
    return Controller(
        apps_v1.ReplicaSet,
        reconcile,
        name=NAME,
        when=_reporter.is_news,
        owns=[owned(core_v1.Pod, when=counts_anew)],
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
