"""One look at a Job: end it, pause it or go on with it, and count each Pod once, whatever fails meanwhile."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from kubewright.api import ApiError
from kubewright.api.builtin import batch_v1, core_v1
from kubewright.controller import Context
from kubewright.devcluster.conditions import condition_of, is_true
from kubewright.devcluster.job_indexes import format_indexes
from kubewright.devcluster.job_pods import (
    TRACKING,
    all_failures_of,
    finished_at,
    free,
    has_failed,
    index_of,
    is_over,
    is_tracked,
    pod_for,
    retry_at,
    retry_delay,
    surplus,
    to_be_replaced,
    waits_for_ends,
)
from kubewright.devcluster.job_policies import judge, success_told
from kubewright.devcluster.job_tally import Tally
from kubewright.devcluster.pods import is_active, is_ready
from kubewright.devcluster.statuses import WholeStatus

BACKOFF_LIMIT = 6

Condition = batch_v1.JobCondition


class Verdict(NamedTuple):
    """How a Job ends: type, reason and message of its last condition."""

    type: str
    reason: str
    message: str


class Pass:
    """One pass over one Job and its Pods."""

    def __init__(self, job: batch_v1.Job, pods: Sequence[core_v1.Pod], ctx: Context, now: datetime) -> None:
        self._job = job
        self._ctx = ctx
        self._now = now.replace(microsecond=0)
        self._exact = now
        self._pods = list(pods)
        self._tally = tally = Tally(job, pods)
        self.status: batch_v1.JobStatus = batch_v1.JobStatus(
            start_time=job.status.start_time,
            completion_time=job.status.completion_time,
            succeeded=job.status.succeeded,
            failed=job.status.failed,
            completed_indexes=format_indexes(tally.done) if tally.indexed else "",
            failed_indexes=format_indexes(tally.lost) if tally.per_index else None,
            conditions=list(job.status.conditions),
            uncounted_terminated_pods=job.status.uncounted_terminated_pods
            or batch_v1.UncountedTerminatedPods(),
        )
        self.stored: WholeStatus = WholeStatus(job, job.status)
        settled = tally.done | tally.lost | {index_of(pod) for pod in self.active}
        self._replaced = to_be_replaced(job, pods, settled) if tally.per_index else {}
        self.again: datetime | None = None
        """When to look again."""

    @property
    def active(self) -> list[core_v1.Pod]:
        """The Pods that still work."""
        return [pod for pod in self._pods if is_active(pod)]

    @property
    def _leaving(self) -> list[core_v1.Pod]:
        return [pod for pod in self._pods if not is_over(pod) and not is_active(pod)]

    async def run(self) -> None:
        """End, pause or go on; then count what ended."""
        if self.status.start_time is None and not self._job.spec.suspend:
            self.status.start_time = self._now
        verdict = self._verdict()
        if verdict is not None:
            for pod in self.active:
                await self._delete(pod)
        elif self._job.spec.suspend:
            await self._suspend()
        else:
            self._resume()
            await self._scale()
            verdict = self._completed()
        await self._count(verdict)
        if verdict is not None and not self._leaving:
            self._end(verdict)
        self._fill_counts()

    def _verdict(self) -> Verdict | None:
        """Say how the Job ends, if it does before all of its work is done."""
        spec, tally = self._job.spec, self._tally
        for target, type_ in (("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")):
            found = condition_of(self.status.conditions, target)
            if found is not None and found.status == "True":
                return Verdict(type_, found.reason, found.message)
        for pod in self._pods:
            action, told = judge(spec.pod_failure_policy, pod) if has_failed(self._job, pod) else ("", "")
            if action == "FailJob":
                return Verdict("Failed", "PodFailurePolicy", told)
        limit = BACKOFF_LIMIT if spec.backoff_limit is None else spec.backoff_limit
        if tally.failed > limit or self._restarts_exceed(limit):
            return Verdict("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        if self._is_late():
            return Verdict("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
        if spec.max_failed_indexes is not None and len(tally.lost) > spec.max_failed_indexes:
            told = "Job has exceeded the specified maximal number of failed indexes"
            return Verdict("Failed", "MaxFailedIndexesExceeded", told)
        if tally.lost and len(tally.lost) + len(tally.done) >= (spec.completions or 0):
            return Verdict("Failed", "FailedIndexes", "Job has failed indexes")
        if told := success_told(spec.success_policy, tally.done, spec.completions or 0):
            return Verdict("Complete", "SuccessPolicy", told)
        return None

    def _completed(self) -> Verdict | None:
        wanted = self._job.spec.completions
        enough = self._tally.succeeded >= (1 if wanted is None else wanted)
        if not enough or self.active:
            return None
        return Verdict("Complete", "CompletionsReached", "Reached expected number of succeeded pods")

    def _restarts_exceed(self, limit: int) -> bool:
        if self._job.spec.template.spec.restart_policy != "OnFailure":
            return False
        restarts = sum(
            item.restart_count
            for pod in self._pods
            if pod.status.phase in ("Running", "Pending")
            for item in (*pod.status.init_container_statuses, *pod.status.container_statuses)
        )
        return restarts > 0 if limit == 0 else restarts >= limit

    def _is_late(self) -> bool:
        limit, began = self._job.spec.active_deadline_seconds, self.status.start_time
        if limit is None or began is None or self._job.spec.suspend:
            return False
        due = began + timedelta(seconds=limit)
        if self._exact < due:
            self._look_at(due)
        return self._exact >= due

    async def _suspend(self) -> None:
        for pod in self.active:
            await self._dismiss(pod)
        if not is_true(self.status.conditions, "Suspended"):
            self._set("Suspended", "True", "JobSuspended", "Job suspended")
            self._ctx.event("Suspended", "Job suspended")
        self.status.start_time = None

    def _resume(self) -> None:
        if is_true(self.status.conditions, "Suspended"):
            self._set("Suspended", "False", "JobResumed", "Job resumed")
            self._ctx.event("Resumed", "Job resumed")

    async def _scale(self) -> None:
        spec, active = self._job.spec, self.active
        parallelism = 1 if spec.parallelism is None else spec.parallelism
        if spec.completions is None:
            wanted = len(active) if self._tally.succeeded else parallelism
        else:
            wanted = max(min(spec.completions - self._tally.succeeded, parallelism), 0)
        if too_many := surplus(self._job, active, max(len(active) - wanted, 0)):
            for pod in too_many:
                await self._dismiss(pod)
            return
        missing = wanted - len(active)
        if waits_for_ends(self._job):
            missing -= len(self._leaving)
        if missing <= 0:
            return
        due = None if self._tally.per_index else retry_at(self._job, self._pods)
        if due is not None and self._exact < due:
            self._look_at(due)
            return
        for index in self._free_indexes(missing) if self._tally.indexed else [None] * missing:
            await self._create(index)

    def _free_indexes(self, count: int) -> list[int]:
        """Choose the indexes to begin with; those that failed lately are waited with."""
        taken = self._tally.done | self._tally.lost | {index_of(pod) for pod in self.active}
        if waits_for_ends(self._job):
            taken |= {index_of(pod) for pod in self._leaving}
        free_ones = [index for index in range(self._job.spec.completions or 0) if index not in taken][:count]
        chosen: list[int] = []
        for index in free_ones:
            failed = self._replaced.get(index)
            due = None if failed is None else finished_at(failed) + retry_delay(all_failures_of(failed) + 1)
            if due is not None and self._exact < due:
                self._look_at(due)
            else:
                chosen.append(index)
        return chosen

    async def _create(self, index: int | None) -> None:
        replaced = None if index is None else self._replaced.get(index)
        try:
            made = await self._ctx.create(pod_for(self._job, index, replaced))
        except ApiError as error:
            self._ctx.warn("FailedCreate", f"Error creating: {error.status.message}")
            raise
        self._pods.append(made)
        self._ctx.event("SuccessfulCreate", f"Created pod: {made.metadata.name}")

    async def _dismiss(self, pod: core_v1.Pod) -> None:
        """Delete a Pod that shall not count."""
        await free(pod, self._ctx)
        pod.metadata.finalizers = [text for text in pod.metadata.finalizers if text != TRACKING]
        await self._delete(pod)

    async def _delete(self, pod: core_v1.Pod) -> None:
        await self._ctx.delete(pod)
        pod.metadata.deletion_timestamp = self._now
        self._ctx.event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

    async def _count(self, verdict: Verdict | None) -> None:
        """Note the Pods that ended, free them of our finalizer, and only then add them to the totals.

        Where the Job ends, all of them have: those that still run count as failed, unless the Job is a success.
        """
        noted = self.status.uncounted_terminated_pods or batch_v1.UncountedTerminatedPods()
        known = {*noted.succeeded, *noted.failed}
        ended = [pod for pod in self._pods if is_tracked(pod) and self._has_ended(pod, verdict)]
        for pod in ended:
            if pod.metadata.uid in known or not self._tally.is_wanted(pod):
                continue
            if pod.status.phase != "Succeeded":
                if self._is_failure(pod, verdict):
                    noted.failed.append(pod.metadata.uid)
            elif not self._tally.indexed:
                noted.succeeded.append(pod.metadata.uid)
        if verdict is not None:
            target = "FailureTarget" if verdict.type == "Failed" else "SuccessCriteriaMet"
            self._set(target, "True", verdict.reason, verdict.message)
        if ended:
            self.status.uncounted_terminated_pods = noted
            self._fill_counts()
            await self.stored.write(self.status, self._ctx)
        for pod in ended:
            await free(pod, self._ctx)
        self.status.failed += len(noted.failed)
        self.status.succeeded = (
            len(self._tally.done) if self._tally.indexed else self.status.succeeded + len(noted.succeeded)
        )
        self.status.uncounted_terminated_pods = batch_v1.UncountedTerminatedPods()

    def _has_ended(self, pod: core_v1.Pod, verdict: Verdict | None) -> bool:
        if verdict is not None or pod.status.phase == "Succeeded":
            return True
        uid = pod.metadata.uid
        return uid in self._tally.failed_uids and all(
            item.metadata.uid != uid for item in self._replaced.values()
        )

    def _is_failure(self, pod: core_v1.Pod, verdict: Verdict | None) -> bool:
        failed = pod.metadata.uid in self._tally.failed_uids
        return (failed or (verdict is not None and verdict.type == "Failed")) and self._tally.counts(pod)

    def _end(self, verdict: Verdict) -> None:
        self._set(*verdict[:1], "True", *verdict[1:])
        if verdict.type == "Complete":
            self.status.completion_time = self._now
            self._ctx.event("Completed", "Job completed")
        else:
            self._ctx.warn(verdict.reason, verdict.message)

    def _set(self, type: str, status: str, reason: str, message: str) -> None:  # noqa: A002 (the field's name)
        before = condition_of(self.status.conditions, type)
        if before is not None and before.status == status:
            return
        made = Condition(
            type=type,
            status=status,
            reason=reason,
            message=message,
            last_probe_time=self._now,
            last_transition_time=self._now,
        )
        self.status.conditions = [item for item in self.status.conditions if item.type != type] + [made]

    def _fill_counts(self) -> None:
        self.status.active = len(self.active)
        self.status.ready = sum(is_ready(pod) for pod in self.active)
        self.status.terminating = len(self._leaving)

    def _look_at(self, moment: datetime) -> None:
        self.again = moment if self.again is None else min(self.again, moment)
