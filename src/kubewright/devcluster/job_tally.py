"""What the Pods of a Job have come to: successes, failures, and the indexes of both."""

from collections.abc import Sequence

from kubewright.api.builtin import batch_v1, core_v1
from kubewright.devcluster.job_indexes import parse_indexes
from kubewright.devcluster.job_pods import failures_of, has_failed, index_of, is_tracked
from kubewright.devcluster.job_policies import judge


class Tally:
    """What the Pods of a Job have come to, those included that its status does not count yet."""

    def __init__(self, job: batch_v1.Job, pods: Sequence[core_v1.Pod]) -> None:
        spec, status = job.spec, job.status
        self._job = job
        self.indexed: bool = spec.completion_mode == "Indexed"
        self.per_index: bool = self.indexed and spec.backoff_limit_per_index is not None
        noted = status.uncounted_terminated_pods or batch_v1.UncountedTerminatedPods()
        waiting = [pod for pod in pods if is_tracked(pod) and self.is_wanted(pod)]
        good = [pod for pod in waiting if pod.status.phase == "Succeeded"]
        bad = [pod for pod in waiting if has_failed(job, pod)]
        self.failed_uids: set[str] = {pod.metadata.uid for pod in bad}
        counted = sum(pod.metadata.uid not in noted.failed and self.counts(pod) for pod in bad)
        self.failed: int = status.failed + len(noted.failed) + counted
        wanted = spec.completions or 0
        self.done: set[int] = parse_indexes(status.completed_indexes, wanted) | {
            index_of(pod) for pod in good
        }
        fresh = sum(pod.metadata.uid not in noted.succeeded for pod in good)
        self.succeeded: int = status.succeeded + len(noted.succeeded) + fresh
        self.lost: set[int] = set()
        if self.indexed:
            self.succeeded = len(self.done)
        if self.per_index:
            self.lost = parse_indexes(status.failed_indexes or "", wanted)
            self.lost |= {index_of(pod) for pod in bad if self._is_last(pod)}

    def is_wanted(self, pod: core_v1.Pod) -> bool:
        """Tell whether a Pod is one of the Job's indexes, where it has those."""
        return not self.indexed or 0 <= index_of(pod) < (self._job.spec.completions or 0)

    def counts(self, pod: core_v1.Pod) -> bool:
        """Tell whether the failure of a Pod counts."""
        return judge(self._job.spec.pod_failure_policy, pod)[0] != "Ignore"

    def _is_last(self, pod: core_v1.Pod) -> bool:
        action, _ = judge(self._job.spec.pod_failure_policy, pod)
        enough = failures_of(pod) >= (self._job.spec.backoff_limit_per_index or 0)
        return action == "FailIndex" or (action != "Ignore" and enough)
