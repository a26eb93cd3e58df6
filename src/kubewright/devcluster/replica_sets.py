"""The ReplicaSet and ReplicationController controllers: keep the desired number of Pods.

Both are one controller, `PodReplicas`: a ReplicationController differs in its selector, in its status, and in its name.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from kubewright.api import ApiError, LabelMatcher, label_selector
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Context, Controller, Index, Options, Result, needs, owned, watch
from kubewright.devcluster import clock
from kubewright.devcluster.batching import batched
from kubewright.devcluster.namespaces import ignore_terminating_namespace
from kubewright.devcluster.statuses import FIELD_MANAGER, REQUEUE_SOON, StatusWriter, condition_of
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

REPLICA_SETS = "replicaset-controller"
REPLICATION_CONTROLLERS = "replication-controller"
FAILURE = "ReplicaFailure"
BURST = 500
"""Maximum number of Pods created or deleted in one reconcile."""

R = TypeVar("R", apps_v1.ReplicaSet, core_v1.ReplicationController)
C = TypeVar("C", apps_v1.ReplicaSetCondition, core_v1.ReplicationControllerCondition)


def template_of(owner: apps_v1.ReplicaSet | core_v1.ReplicationController) -> core_v1.PodTemplateSpec:
    """Return the template of the Pods; the API server requires one."""
    return owner.spec.template or core_v1.PodTemplateSpec(spec=core_v1.PodSpec(containers=[]))


def selector_of(owner: apps_v1.ReplicaSet | core_v1.ReplicationController) -> LabelMatcher:
    """Return the selector of the Pods."""
    selector = owner.spec.selector
    return label_selector({"matchLabels": selector} if isinstance(selector, dict) else selector)


def status_of(
    owner: R, pods: Sequence[core_v1.Pod], failure: str, now: datetime
) -> apps_v1.ReplicaSetStatus | core_v1.ReplicationControllerStatus:
    """Return the status, counted from the Pods."""
    active = [pod for pod in pods if is_active(pod)]
    desired = template_of(owner).metadata.labels.items()
    least = owner.spec.min_ready_seconds
    counts: dict[str, Any] = {
        "replicas": len(active),
        "fully_labeled_replicas": sum(desired <= pod.metadata.labels.items() for pod in active),
        "ready_replicas": sum(is_ready(pod) for pod in active),
        "available_replicas": sum(time_until_available(pod, least, now) == timedelta(0) for pod in active),
        "observed_generation": owner.metadata.generation,
    }
    if isinstance(owner, core_v1.ReplicationController):
        conditions = _conditions(
            owner.status.conditions, core_v1.ReplicationControllerCondition, failure, now
        )
        return core_v1.ReplicationControllerStatus(**counts, conditions=conditions)
    terminating = sum(pod.metadata.deletion_timestamp is not None for pod in pods)
    return apps_v1.ReplicaSetStatus(
        **counts,
        terminating_replicas=terminating,
        conditions=_conditions(owner.status.conditions, apps_v1.ReplicaSetCondition, failure, now),
    )


def _conditions(present: Sequence[C], kind: type[C], failure: str, now: datetime) -> list[C]:
    others = [item for item in present if item.type != FAILURE]
    if not failure:
        return others
    before = condition_of(present, FAILURE)
    if before is not None and before.message == failure:
        return [*others, before]
    made = kind(
        type=FAILURE,
        status="True",
        reason="FailedCreate",
        message=failure,
        last_transition_time=now.replace(microsecond=0),
    )
    return [*others, made]


class PodReplicas:
    """Keep the desired number of Pods of a ReplicaSet or a ReplicationController."""

    def __init__(self) -> None:
        self.status_writer: StatusWriter = StatusWriter()

    async def reconcile(self, owner: R, ctx: Context) -> Result | None:
        """Create missing Pods, delete surplus ones, and update the status."""
        pods = await claim_children(owner, selector_of(owner), pods_by_controller, ctx)
        failure: ApiError | None = None
        if owner.metadata.deletion_timestamp is None:
            try:
                await _scale(owner, pods, ctx)
            except ApiError as error:
                failure = error
        now = clock.now()
        message = failure.status.message if failure is not None else ""
        written = await self.status_writer.write(owner, status_of(owner, pods, message, now), ctx)
        if failure is not None:
            raise failure
        if not written:
            return REQUEUE_SOON
        waits = [
            time_until_available(pod, owner.spec.min_ready_seconds, now) for pod in pods if is_active(pod)
        ]
        pending = [wait for wait in waits if wait]
        return Result(after=min(pending)) if pending else None


async def _scale(owner: R, pods: list[core_v1.Pod], ctx: Context) -> None:
    """Create or delete Pods to reach the desired number; `pods` is updated in place."""
    active = [pod for pod in pods if is_active(pod)]
    desired = 1 if owner.spec.replicas is None else owner.spec.replicas
    name, namespace = owner.metadata.name, owner.metadata.namespace
    for _ in range(min(desired - len(active), BURST)):
        try:
            made = await ctx.create(
                pod_from_template(template_of(owner), generate_name=f"{name}-", namespace=namespace)
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


def _controller(kind: type[R], name: str) -> Controller[R]:
    replicas = PodReplicas()
    by_namespace: Index[R] = Index(kind, lambda item: [item.metadata.namespace])
    return Controller(
        kind,
        batched(ignore_terminating_namespace(replicas.reconcile)),
        name=name,
        when=replicas.status_writer.is_external_change,
        owns=[owned(core_v1.Pod, when=affects_pod_counts)],
        watches=[
            watch(core_v1.Pod, via=by_namespace, key=lambda pod: pod.metadata.namespace, when=is_orphaned)
        ],
        needs=[needs(core_v1.Pod, "delete")],
        concurrency=8,
        options=Options(reporter=name, field_manager=FIELD_MANAGER, reconcile_terminating=True),
    )


def controllers() -> tuple[Controller[apps_v1.ReplicaSet], Controller[core_v1.ReplicationController]]:
    """Declare the ReplicaSet controller and the ReplicationController controller."""
    return (
        _controller(apps_v1.ReplicaSet, REPLICA_SETS),
        _controller(core_v1.ReplicationController, REPLICATION_CONTROLLERS),
    )
