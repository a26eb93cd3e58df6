"""The Pods of a Job: completion indexes, failure and success policies, retry delays, and counts."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from kubewright.api import ApiError
from kubewright.api.builtin import batch_v1, core_v1
from kubewright.controller import Context
from kubewright.devcluster.statuses import condition_of
from kubewright.devcluster.workloads import deletion_rank, pod_from_template

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
FIRST_BACKOFF = timedelta(seconds=10)
LONGEST_BACKOFF = timedelta(minutes=10)
_LONGEST_PREFIX = 58
"""Longest prefix of a generated Pod name; the API server appends five characters and truncates longer prefixes."""


def parse_indexes(text: str, below: int) -> set[int]:
    """Parse completion indexes such as `0-2,5`, ignoring those not below `below` and malformed parts."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), min(int(last or first) + 1, below)))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Format indexes, with three or more consecutive ones as a range."""
    return ",".join(
        f"{first}-{last}" if last > first + 1 else ",".join(map(str, range(first, last + 1)))
        for first, last in _runs(sorted(set(indexes)))
    )


def _runs(ordered: list[int]) -> Iterator[tuple[int, int]]:
    start = previous = None
    for index in ordered:
        if start is None or previous is None:
            start = previous = index
        elif index == previous + 1:
            previous = index
        else:
            yield start, previous
            start = previous = index
    if start is not None and previous is not None:
        yield start, previous


def match_failure_policy(policy: batch_v1.PodFailurePolicy | None, pod: core_v1.Pod) -> tuple[str, str]:
    """Return the action of the first matching rule of a pod failure policy (default `Count`), and its message."""
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        message = ""
        if rule.on_exit_codes is not None:
            message = _by_exit_code(rule.on_exit_codes, pod, where)
        elif rule.on_pod_conditions:
            message = _by_condition(rule.on_pod_conditions, pod, where)
        if message:
            return rule.action, f"{message} matching {rule.action} rule at index {number}"
    return "Count", ""


def _by_exit_code(rule: batch_v1.PodFailurePolicyOnExitCodesRequirement, pod: core_v1.Pod, where: str) -> str:
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        end = status.state.terminated
        if end is None or end.exit_code == 0 or rule.container_name not in (None, "", status.name):
            continue
        if (end.exit_code in rule.values) == (rule.operator == "In"):
            return f"Container {status.name} for pod {where} failed with exit code {end.exit_code}"
    return ""


def _by_condition(
    patterns: list[batch_v1.PodFailurePolicyOnPodConditionsPattern], pod: core_v1.Pod, where: str
) -> str:
    for pattern in patterns:
        for item in pod.status.conditions:
            if (item.type, item.status) == (pattern.type, pattern.status or "True"):
                return f"Pod {where} has condition {item.type}"
    return ""


def match_success_policy(
    policy: batch_v1.SuccessPolicy | None, done: Collection[int], completions: int
) -> str:
    """Return the message of the first success policy rule that is met, or an empty string."""
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        named = parse_indexes(rule.succeeded_indexes, completions) if rule.succeeded_indexes else None
        counted = set(done) if named is None else named & set(done)
        needed = rule.succeeded_count if rule.succeeded_count is not None else len(named or ())
        if len(counted) >= needed and needed > 0:
            return f"Matched rules at index {number}"
    return ""


def is_tracked(pod: core_v1.Pod) -> bool:
    """Return True if the Pod is not counted yet."""
    return TRACKING in pod.metadata.finalizers


def waits_for_termination(job: batch_v1.Job) -> bool:
    """Return True if a terminating Pod is replaced only after it has finished."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def has_failed(job: batch_v1.Job, pod: core_v1.Pod) -> bool:
    """Return True if the Pod counts as failed; a terminating Pod does, unless the Job waits for its termination."""
    if pod.status.phase == "Failed":
        return True
    terminating = pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"
    return terminating and not waits_for_termination(job)


def index_of(pod: core_v1.Pod) -> int:
    """Return the completion index of a Pod, or -1 if it has none."""
    return _annotation_number(pod, INDEX, -1)


def _annotation_number(pod: core_v1.Pod, annotation: str, default: int = 0) -> int:
    text = pod.metadata.annotations.get(annotation, "")
    return int(text) if text.isdecimal() else default


def failures_of(pod: core_v1.Pod) -> int:
    """Return how many Pods of the same index failed before this one."""
    return _annotation_number(pod, FAILURES)


def all_failures_of(pod: core_v1.Pod) -> int:
    """Return how many Pods of the same index failed before this one, including ignored failures."""
    return _annotation_number(pod, FAILURES) + _annotation_number(pod, IGNORED_FAILURES)


def pod_for(job: batch_v1.Job, index: int | None, replaced: core_v1.Pod | None = None) -> core_v1.Pod:
    """Build a Pod of a Job, for a completion index if the Job is indexed; `replaced` is the failed Pod before it."""
    name = job.metadata.name
    suffix = "-" if index is None else f"-{index}-"
    prefix = name[: _LONGEST_PREFIX - len(suffix)] + suffix
    pod = pod_from_template(job.spec.template, generate_name=prefix, namespace=job.metadata.namespace)
    pod.metadata.finalizers = [*pod.metadata.finalizers, TRACKING]
    if index is None:
        return pod
    pod.metadata.annotations[INDEX] = pod.metadata.labels[INDEX] = str(index)
    pod.spec.hostname = f"{name}-{index}"
    field = core_v1.ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']")
    variable = core_v1.EnvVar(name="JOB_COMPLETION_INDEX", value_from=core_v1.EnvVarSource(field_ref=field))
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if all(item.name != variable.name for item in container.env):
            container.env = [*container.env, variable]
    if job.spec.backoff_limit_per_index is not None:
        pod.metadata.annotations.update(_failure_counts(job, replaced))
    return pod


def _failure_counts(job: batch_v1.Job, replaced: core_v1.Pod | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURES: "0"}
    failures, ignored = failures_of(replaced), _annotation_number(replaced, IGNORED_FAILURES)
    if match_failure_policy(job.spec.pod_failure_policy, replaced)[0] == "Ignore":
        ignored += 1
    else:
        failures += 1
    return {FAILURES: str(failures), **({IGNORED_FAILURES: str(ignored)} if ignored else {})}


def retry_delay(failures: int) -> timedelta:
    """Return how long a Job waits after its last failure before it creates another Pod."""
    if failures == 0:
        return timedelta(0)
    return min(FIRST_BACKOFF * 2 ** min(failures - 1, 10), LONGEST_BACKOFF)


def retry_at(job: batch_v1.Job, pods: Iterable[core_v1.Pod]) -> datetime | None:
    """Return when the next Pod may be created: the delay grows with the failures since the last success."""
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
    """Return when the Pod finished, from its containers, or else from when it was no longer ready."""
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
    """Return at least `count` Pods to delete, including all with an invalid or a duplicate index."""
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


def last_failed_pods(
    job: batch_v1.Job, pods: Iterable[core_v1.Pod], settled: set[int]
) -> dict[int, core_v1.Pod]:
    """Return the last failed Pod of each index that has neither succeeded nor failed for good.

    It is kept until its replacement exists, which takes over its failure count.
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


async def remove_tracking_finalizer(pod: core_v1.Pod, ctx: Context) -> None:
    """Remove the job-tracking finalizer from a Pod."""
    kept = [text for text in pod.metadata.finalizers if text != TRACKING]
    patch = {"metadata": {"uid": pod.metadata.uid, "finalizers": kept or None}}
    try:
        await ctx.patch(pod, patch)
    except ApiError as error:
        if error.status.code not in (404, 409):
            raise


class JobCounts:
    """The successes and failures of a Job's Pods, including those that its status does not count yet."""

    def __init__(self, job: batch_v1.Job, pods: Sequence[core_v1.Pod]) -> None:
        spec, status = job.spec, job.status
        self._job = job
        self.indexed: bool = spec.completion_mode == "Indexed"
        self.per_index: bool = self.indexed and spec.backoff_limit_per_index is not None
        noted = status.uncounted_terminated_pods or batch_v1.UncountedTerminatedPods()
        waiting = [pod for pod in pods if is_tracked(pod) and self.has_valid_index(pod)]
        good = [pod for pod in waiting if pod.status.phase == "Succeeded"]
        bad = [pod for pod in waiting if has_failed(job, pod)]
        self.failed_uids: set[str] = {pod.metadata.uid for pod in bad}
        counted = sum(pod.metadata.uid not in noted.failed and self.counts_as_failure(pod) for pod in bad)
        self.failed: int = status.failed + len(noted.failed) + counted
        desired = spec.completions or 0
        self.completed_indexes: set[int] = parse_indexes(status.completed_indexes, desired) | {
            index_of(pod) for pod in good
        }
        fresh = sum(pod.metadata.uid not in noted.succeeded for pod in good)
        self.succeeded: int = status.succeeded + len(noted.succeeded) + fresh
        self.failed_indexes: set[int] = set()
        if self.indexed:
            self.succeeded = len(self.completed_indexes)
        if self.per_index:
            self.failed_indexes = parse_indexes(status.failed_indexes or "", desired)
            self.failed_indexes |= {index_of(pod) for pod in bad if self._exhausts_index(pod)}

    def has_valid_index(self, pod: core_v1.Pod) -> bool:
        """Return True unless the Job is indexed and the Pod's index is out of range."""
        return not self.indexed or 0 <= index_of(pod) < (self._job.spec.completions or 0)

    def counts_as_failure(self, pod: core_v1.Pod) -> bool:
        """Return True if the failure of a Pod counts towards the backoff limit."""
        return match_failure_policy(self._job.spec.pod_failure_policy, pod)[0] != "Ignore"

    def _exhausts_index(self, pod: core_v1.Pod) -> bool:
        action, _ = match_failure_policy(self._job.spec.pod_failure_policy, pod)
        enough = failures_of(pod) >= (self._job.spec.backoff_limit_per_index or 0)
        return action == "FailIndex" or (action != "Ignore" and enough)
