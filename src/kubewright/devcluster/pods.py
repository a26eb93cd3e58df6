"""Pods as the controllers above them see them: which count, which serve, which go first."""

from datetime import datetime, timedelta

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.controller import Change, Index
from kubewright.devcluster.claims import family_of
from kubewright.devcluster.conditions import condition_of, is_true

pods_by_family: Index[core_v1.Pod] = Index(core_v1.Pod, family_of)


def is_ready(pod: core_v1.Pod) -> bool:
    """Tell whether a Pod serves."""
    return is_true(pod.status.conditions, "Ready")


def is_active(pod: core_v1.Pod) -> bool:
    """Tell whether a Pod counts: it has neither ended nor is it on its way out."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in ("Succeeded", "Failed")


def counts_anew(change: Change[core_v1.Pod]) -> bool:
    """Predicate: pass what changes how a Pod counts; where it runs, and its times, do not."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return _counted(old) != _counted(new)


def _counted(pod: core_v1.Pod) -> tuple[object, ...]:
    ready = condition_of(pod.status.conditions, "Ready")
    meta = pod.metadata
    return (
        (ready.status, ready.last_transition_time) if ready is not None else None,
        pod.status.phase,
        meta.deletion_timestamp,
        meta.labels,
        meta.owner_references,
        meta.finalizers,
    )


def available_in(pod: core_v1.Pod, min_ready_seconds: int, now: datetime) -> timedelta | None:
    """Tell how long until a Pod has been ready for long enough; zero when it has, None while it is not ready."""
    condition = condition_of(pod.status.conditions, "Ready")
    if condition is None or condition.status != "True":
        return None
    since = condition.last_transition_time or now
    return max(since + timedelta(seconds=min_ready_seconds) - now, timedelta(0))


def deletion_rank(pod: core_v1.Pod) -> tuple[bool, bool, bool, int, int, float]:
    """Order Pods by how little is lost with them.

    Unassigned, pending, not ready, cheap by annotation, often restarted, then the youngest go first.
    """
    created = pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        pod.status.phase == "Running",
        is_ready(pod),
        _cost(pod),
        -max((item.restart_count for item in pod.status.container_statuses), default=0),
        -created.timestamp() if created else 0.0,
    )


def _cost(pod: core_v1.Pod) -> int:
    try:
        return int(pod.metadata.annotations.get("controller.kubernetes.io/pod-deletion-cost", "0"))
    except ValueError:
        return 0


def pod_from(
    template: core_v1.PodTemplateSpec, *, namespace: str, name: str = "", generate_name: str = ""
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
