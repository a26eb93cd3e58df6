"""The Pods of a Job: how they are made, which have failed, which may go, and when the next may come."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from kubewright.api import ApiError
from kubewright.api.builtin import batch_v1, core_v1
from kubewright.controller import Context
from kubewright.devcluster.conditions import condition_of
from kubewright.devcluster.job_policies import judge
from kubewright.devcluster.pods import deletion_rank, pod_from

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
FIRST_BACKOFF = timedelta(seconds=10)
LONGEST_BACKOFF = timedelta(minutes=10)
_LONGEST_PREFIX = 58
"""The server adds five letters to the name of a Pod, and cuts off what goes beyond this."""


def is_tracked(pod: core_v1.Pod) -> bool:
    """Tell whether a Pod waits to be counted."""
    return TRACKING in pod.metadata.finalizers


def is_over(pod: core_v1.Pod) -> bool:
    """Tell whether a Pod has ended."""
    return pod.status.phase in ("Succeeded", "Failed")


def waits_for_ends(job: batch_v1.Job) -> bool:
    """Tell whether a Pod on its way out holds its place until it has ended."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def has_failed(job: batch_v1.Job, pod: core_v1.Pod) -> bool:
    """Tell whether a Pod counts as failed; one that is deleted does, unless its end is waited for."""
    if pod.status.phase == "Failed":
        return True
    leaving = pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"
    return leaving and not waits_for_ends(job)


def index_of(pod: core_v1.Pod) -> int:
    """Read the completion index of a Pod; -1 where it has none."""
    return _number(pod, INDEX, -1)


def _number(pod: core_v1.Pod, annotation: str, default: int = 0) -> int:
    text = pod.metadata.annotations.get(annotation, "")
    return int(text) if text.isdecimal() else default


def failures_of(pod: core_v1.Pod) -> int:
    """Tell how many Pods of its index failed before this one."""
    return _number(pod, FAILURES)


def all_failures_of(pod: core_v1.Pod) -> int:
    """Tell how many Pods of its index failed before this one, those included that a policy ignored."""
    return _number(pod, FAILURES) + _number(pod, IGNORED_FAILURES)


def pod_for(job: batch_v1.Job, index: int | None, replaced: core_v1.Pod | None = None) -> core_v1.Pod:
    """Make a Pod of a Job, for a completion index where the Job has those; `replaced` failed before it."""
    name = job.metadata.name
    suffix = "-" if index is None else f"-{index}-"
    prefix = name[: _LONGEST_PREFIX - len(suffix)] + suffix
    pod = pod_from(job.spec.template, generate_name=prefix, namespace=job.metadata.namespace)
    pod.metadata.finalizers = [*pod.metadata.finalizers, TRACKING]
    if index is None:
        return pod
    pod.metadata.annotations[INDEX] = pod.metadata.labels[INDEX] = str(index)
    pod.spec.hostname = f"{name}-{index}"
    field = core_v1.ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']")
    told = core_v1.EnvVar(name="JOB_COMPLETION_INDEX", value_from=core_v1.EnvVarSource(field_ref=field))
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if all(item.name != told.name for item in container.env):
            container.env = [*container.env, told]
    if job.spec.backoff_limit_per_index is not None:
        pod.metadata.annotations.update(_failure_counts(job, replaced))
    return pod


def _failure_counts(job: batch_v1.Job, replaced: core_v1.Pod | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURES: "0"}
    failures, ignored = failures_of(replaced), _number(replaced, IGNORED_FAILURES)
    if judge(job.spec.pod_failure_policy, replaced)[0] == "Ignore":
        ignored += 1
    else:
        failures += 1
    return {FAILURES: str(failures), **({IGNORED_FAILURES: str(ignored)} if ignored else {})}


def retry_delay(failures: int) -> timedelta:
    """Tell how long a Job waits after its last failure before it makes another Pod."""
    if failures == 0:
        return timedelta(0)
    return min(FIRST_BACKOFF * 2 ** min(failures - 1, 10), LONGEST_BACKOFF)


def retry_at(job: batch_v1.Job, pods: Iterable[core_v1.Pod]) -> datetime | None:
    """Tell when the next Pod may come: the later, the more have failed since one ended well."""
    good: list[datetime] = []
    bad: list[datetime] = []
    for pod in pods:
        if pod.status.phase == "Succeeded":
            good.append(finished_at(pod))
        elif has_failed(job, pod):
            bad.append(finished_at(pod))
    since = [end for end in bad if not good or end > max(good)]
    return max(since) + retry_delay(len(since)) if since else None


def finished_at(pod: core_v1.Pod) -> datetime:
    """Tell when a Pod ended, by its containers, or else by when it was no longer ready."""
    ends = [item.state.terminated for item in pod.status.container_statuses]
    times = [end.finished_at for end in ends if end is not None and end.finished_at is not None]
    if times and len(times) == len(ends):
        return max(times)
    ready = condition_of(pod.status.conditions, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    meta = pod.metadata
    if meta.deletion_timestamp is not None:
        return meta.deletion_timestamp - timedelta(seconds=meta.deletion_grace_period_seconds or 0)
    assert meta.creation_timestamp is not None, "a Pod that the server knows has a creation time"
    return meta.creation_timestamp


def surplus(job: batch_v1.Job, active: Sequence[core_v1.Pod], count: int) -> list[core_v1.Pod]:
    """Choose at least `count` Pods to delete; those whose index is not wanted, or taken, go in any case."""
    unwanted: list[core_v1.Pod] = []
    staying: dict[object, core_v1.Pod] = {}
    for pod in sorted(active, key=deletion_rank, reverse=True):
        if job.spec.completion_mode != "Indexed":
            staying[pod.metadata.uid] = pod
        elif 0 <= index_of(pod) < (job.spec.completions or 0) and index_of(pod) not in staying:
            staying[index_of(pod)] = pod
        else:
            unwanted.append(pod)
    rest = sorted(staying.values(), key=deletion_rank)
    return unwanted + rest[: max(count - len(unwanted), 0)]


def to_be_replaced(
    job: batch_v1.Job, pods: Iterable[core_v1.Pod], settled: set[int]
) -> dict[int, core_v1.Pod]:
    """Give, for each index that is still to succeed, the last Pod that failed for it.

    It is kept until another takes its place, which is told how many failed before it.
    """
    found: dict[int, core_v1.Pod] = {}
    for pod in pods:
        index = index_of(pod)
        if not is_tracked(pod) or index < 0 or index in settled or not has_failed(job, pod):
            continue
        last = found.get(index)
        if last is None or (all_failures_of(last), finished_at(last)) <= (
            all_failures_of(pod),
            finished_at(pod),
        ):
            found[index] = pod
    return found


async def free(pod: core_v1.Pod, ctx: Context) -> None:
    """Take our finalizer off a Pod."""
    kept = [text for text in pod.metadata.finalizers if text != TRACKING]
    patch = {"metadata": {"uid": pod.metadata.uid, "finalizers": kept or None}}
    try:
        await ctx.patch(pod, patch)
    except ApiError as error:
        if error.status.code not in (404, 409):
            raise
