"""The status of a Deployment: its ReplicaSets summed up, and whether it gets on."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from kubewright.api.builtin import apps_v1
from kubewright.controller import Result
from kubewright.devcluster.conditions import condition_of
from kubewright.devcluster.deployment_sets import surge_and_unavailable, wanted_of

DONE = "NewReplicaSetAvailable"
PAUSED = "DeploymentPaused"
DEADLINE = 600
OURS = ("Available", "Progressing", "ReplicaFailure")


def status_of(
    deployment: apps_v1.Deployment,
    sets: Sequence[apps_v1.ReplicaSet],
    new: apps_v1.ReplicaSet | None,
    now: datetime,
    *,
    created: bool = False,
) -> tuple[apps_v1.DeploymentStatus, Result | None]:
    """Sum up the ReplicaSets, of which the new one may just have been made; and say when to look again."""
    total = sum(item.status.replicas for item in sets)
    available = sum(item.status.available_replicas for item in sets)
    wanted, (_, unavailable) = wanted_of(deployment), surge_and_unavailable(deployment)
    status = apps_v1.DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=total,
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(item.status.ready_replicas for item in sets),
        available_replicas=available,
        unavailable_replicas=max(sum(item.spec.replicas or 0 for item in sets) - available, 0),
        terminating_replicas=sum(item.status.terminating_replicas or 0 for item in sets),
    )
    progress, again = _progress(deployment, status, new, now, created=created)
    availability = _availability(deployment, available >= wanted - unavailable, now)
    found = [*progress, availability] if created else [availability, *progress]
    found += _failure(deployment, sets, now)
    # Those that are as they were keep their place, as do others' own; those that change go to the end.
    kept = [
        item
        for item in deployment.status.conditions
        if item.type not in OURS or any(item is other for other in found)
    ]
    status.conditions = kept + [item for item in found if not any(item is other for other in kept)]
    return status, again


def _availability(deployment: apps_v1.Deployment, enough: bool, now: datetime) -> apps_v1.DeploymentCondition:
    reason, message = (
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if enough
        else ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    return _condition(deployment, "Available", "True" if enough else "False", reason, message, now)


def _failure(
    deployment: apps_v1.Deployment, sets: Sequence[apps_v1.ReplicaSet], now: datetime
) -> list[apps_v1.DeploymentCondition]:
    for item in reversed(sets):
        found = condition_of(item.status.conditions, "ReplicaFailure")
        if found is not None and found.status == "True":
            return [_condition(deployment, found.type, found.status, found.reason, found.message, now)]
    return []


def _progress(
    deployment: apps_v1.Deployment,
    status: apps_v1.DeploymentStatus,
    new: apps_v1.ReplicaSet | None,
    now: datetime,
    *,
    created: bool,
) -> tuple[list[apps_v1.DeploymentCondition], Result | None]:
    """Give the condition Progressing, which has no say where no deadline is set."""
    limit = deployment.spec.progress_deadline_seconds
    if limit is not None and limit >= 2**31 - 1:
        return [], None
    before = condition_of(deployment.status.conditions, "Progressing")
    name = new.metadata.name if new is not None else deployment.metadata.name
    if deployment.spec.paused:
        text = "Deployment is paused"
        return [_condition(deployment, "Progressing", "Unknown", PAUSED, text, now)], None
    if _is_complete(deployment, status):
        text = f'ReplicaSet "{name}" has successfully progressed.'
        return [_condition(deployment, "Progressing", "True", DONE, text, now)], None
    if before is not None and before.reason == DONE and status.replicas == status.updated_replicas:
        # A rollout that was complete stays so while Pods come and go.
        return [before], None
    deadline = timedelta(seconds=DEADLINE if limit is None else limit)
    if created or before is None or _moves(deployment, status, before):
        reason, text = "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.'
        if created:
            reason, text = "NewReplicaSetCreated", f'Created new replica set "{name}"'
        elif before is None:
            reason, text = "FoundNewReplicaSet", f'Found new replica set "{name}"'
        going = _condition(deployment, "Progressing", "True", reason, text, now, renewed=True)
        return [going], Result(after=deadline)
    if before.reason == "ProgressDeadlineExceeded":
        return [before], None
    left = (before.last_update_time or now) + deadline - now
    if left > timedelta(0):
        return [before], Result(after=left)
    text = f'ReplicaSet "{name}" has timed out progressing.'
    return [_condition(deployment, "Progressing", "False", "ProgressDeadlineExceeded", text, now)], None


def _is_complete(deployment: apps_v1.Deployment, status: apps_v1.DeploymentStatus) -> bool:
    wanted = wanted_of(deployment)
    return status.updated_replicas == status.replicas == status.available_replicas == wanted


def _moves(
    deployment: apps_v1.Deployment, status: apps_v1.DeploymentStatus, before: apps_v1.DeploymentCondition
) -> bool:
    told = deployment.status
    return (
        status.updated_replicas > told.updated_replicas
        or status.replicas - status.updated_replicas < told.replicas - told.updated_replicas
        or status.ready_replicas > told.ready_replicas
        or status.available_replicas > told.available_replicas
        or before.reason in (PAUSED, DONE)
    )


def _condition(
    deployment: apps_v1.Deployment,
    type: str,  # noqa: A002 (the field's name)
    status: str,
    reason: str,
    message: str,
    now: datetime,
    *,
    renewed: bool = False,
) -> apps_v1.DeploymentCondition:
    """Make a condition; one with the same status and reason stays as it is, its text included."""
    before = condition_of(deployment.status.conditions, type)
    if before is not None and (before.status, before.reason) == (status, reason) and not renewed:
        return before
    return apps_v1.DeploymentCondition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        last_update_time=now,
        last_transition_time=(
            before.last_transition_time if before is not None and before.status == status else now
        ),
    )
