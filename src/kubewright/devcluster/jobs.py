"""The Job controller: runs Pods until enough succeed or too many fail, and deletes Jobs after their TTL.

Each Pod is counted exactly once. A finished Pod keeps the job-tracking finalizer until its uid is in
`status.uncountedTerminatedPods`; then the finalizer is removed, and only then the totals increase. A crash at any
point leaves a state from which the next reconcile continues.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from kubewright.api import ApiError, label_selector
from kubewright.api.builtin import batch_v1, core_v1
from kubewright.controller import Change, Context, Controller, Index, Options, Result, needs, on, owned, watch
from kubewright.devcluster import clock
from kubewright.devcluster.job_pods import (
    TRACKING,
    JobCounts,
    all_failures_of,
    finished_at,
    format_indexes,
    has_failed,
    index_of,
    is_tracked,
    last_failed_pods,
    match_failure_policy,
    match_success_policy,
    pod_for,
    remove_tracking_finalizer,
    retry_at,
    retry_delay,
    surplus,
    waits_for_termination,
)
from kubewright.devcluster.namespaces import ignore_terminating_namespace
from kubewright.devcluster.statuses import FIELD_MANAGER, StoredStatus, condition_of, is_true
from kubewright.devcluster.workloads import (
    claim_children,
    is_active,
    is_orphaned,
    is_pod_finished,
    is_ready,
    pods_by_controller,
)

NAME = "job-controller"
TTL_NAME = "ttl-after-finished-controller"
BACKOFF_LIMIT = 6

JobCondition = batch_v1.JobCondition
jobs_by_namespace: Index[batch_v1.Job] = Index(batch_v1.Job, lambda job: [job.metadata.namespace])


class JobOutcome(NamedTuple):
    """How a Job ends: type, reason and message of its final condition."""

    type: str
    reason: str
    message: str


class JobSync:
    """One reconcile of a Job and its Pods."""

    def __init__(self, job: batch_v1.Job, pods: Sequence[core_v1.Pod], ctx: Context, now: datetime) -> None:
        self._job = job
        self._ctx = ctx
        self._now = now.replace(microsecond=0)
        self._exact = now
        self._pods = list(pods)
        self._counts = counts = JobCounts(job, pods)
        self.status: batch_v1.JobStatus = batch_v1.JobStatus(
            start_time=job.status.start_time,
            completion_time=job.status.completion_time,
            succeeded=job.status.succeeded,
            failed=job.status.failed,
            completed_indexes=format_indexes(counts.completed_indexes) if counts.indexed else "",
            failed_indexes=format_indexes(counts.failed_indexes) if counts.per_index else None,
            conditions=list(job.status.conditions),
            uncounted_terminated_pods=job.status.uncounted_terminated_pods
            or batch_v1.UncountedTerminatedPods(),
        )
        self.stored: StoredStatus = StoredStatus(job, job.status)
        settled = counts.completed_indexes | counts.failed_indexes | {index_of(pod) for pod in self.active}
        self._last_failed = last_failed_pods(job, pods, settled) if counts.per_index else {}
        self.requeue_at: datetime | None = None
        """When to reconcile again."""

    @property
    def active(self) -> list[core_v1.Pod]:
        """The Pods that are neither finished nor terminating."""
        return [pod for pod in self._pods if is_active(pod)]

    @property
    def _terminating(self) -> list[core_v1.Pod]:
        return [pod for pod in self._pods if not is_pod_finished(pod) and not is_active(pod)]

    async def run(self) -> None:
        """Finish, suspend or continue the Job, then count finished Pods."""
        if self.status.start_time is None and not self._job.spec.suspend:
            self.status.start_time = self._now
        outcome = self._outcome()
        if outcome is not None:
            for pod in self.active:
                await self._delete(pod)
        elif self._job.spec.suspend:
            await self._suspend()
        else:
            self._resume()
            await self._scale()
            outcome = self._completion()
        await self._count_finished(outcome)
        if outcome is not None and not self._terminating:
            self._end(outcome)
        self._fill_counts()

    def _outcome(self) -> JobOutcome | None:
        """Return the outcome of a Job that ends before all completions are reached, or None."""
        spec, counts = self._job.spec, self._counts
        for target, type_ in (("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")):
            found = condition_of(self.status.conditions, target)
            if found is not None and found.status == "True":
                return JobOutcome(type_, found.reason, found.message)
        for pod in self._pods:
            action, message = (
                match_failure_policy(spec.pod_failure_policy, pod) if has_failed(self._job, pod) else ("", "")
            )
            if action == "FailJob":
                return JobOutcome("Failed", "PodFailurePolicy", message)
        limit = BACKOFF_LIMIT if spec.backoff_limit is None else spec.backoff_limit
        if counts.failed > limit or self._restarts_exceed(limit):
            return JobOutcome("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        if self._is_late():
            return JobOutcome("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
        if spec.max_failed_indexes is not None and len(counts.failed_indexes) > spec.max_failed_indexes:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return JobOutcome("Failed", "MaxFailedIndexesExceeded", message)
        if counts.failed_indexes and len(counts.failed_indexes) + len(counts.completed_indexes) >= (
            spec.completions or 0
        ):
            return JobOutcome("Failed", "FailedIndexes", "Job has failed indexes")
        if message := match_success_policy(
            spec.success_policy, counts.completed_indexes, spec.completions or 0
        ):
            return JobOutcome("Complete", "SuccessPolicy", message)
        return None

    def _completion(self) -> JobOutcome | None:
        desired = self._job.spec.completions
        enough = self._counts.succeeded >= (1 if desired is None else desired)
        if not enough or self.active:
            return None
        return JobOutcome("Complete", "CompletionsReached", "Reached expected number of succeeded pods")

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
            self._requeue_at(due)
        return self._exact >= due

    async def _suspend(self) -> None:
        for pod in self.active:
            await self._delete_uncounted(pod)
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
            desired = len(active) if self._counts.succeeded else parallelism
        else:
            desired = max(min(spec.completions - self._counts.succeeded, parallelism), 0)
        if too_many := surplus(self._job, active, max(len(active) - desired, 0)):
            for pod in too_many:
                await self._delete_uncounted(pod)
            return
        missing = desired - len(active)
        if waits_for_termination(self._job):
            missing -= len(self._terminating)
        if missing <= 0:
            return
        due = None if self._counts.per_index else retry_at(self._job, self._pods)
        if due is not None and self._exact < due:
            self._requeue_at(due)
            return
        for index in self._free_indexes(missing) if self._counts.indexed else [None] * missing:
            await self._create(index)

    def _free_indexes(self, count: int) -> list[int]:
        """Return the indexes to start now, without those whose retry delay is not over."""
        taken = (
            self._counts.completed_indexes
            | self._counts.failed_indexes
            | {index_of(pod) for pod in self.active}
        )
        if waits_for_termination(self._job):
            taken |= {index_of(pod) for pod in self._terminating}
        free_indexes = [index for index in range(self._job.spec.completions or 0) if index not in taken][
            :count
        ]
        chosen: list[int] = []
        for index in free_indexes:
            failed = self._last_failed.get(index)
            due = None if failed is None else finished_at(failed) + retry_delay(all_failures_of(failed) + 1)
            if due is not None and self._exact < due:
                self._requeue_at(due)
            else:
                chosen.append(index)
        return chosen

    async def _create(self, index: int | None) -> None:
        replaced = None if index is None else self._last_failed.get(index)
        try:
            made = await self._ctx.create(pod_for(self._job, index, replaced))
        except ApiError as error:
            self._ctx.warn("FailedCreate", f"Error creating: {error.status.message}")
            raise
        self._pods.append(made)
        self._ctx.event("SuccessfulCreate", f"Created pod: {made.metadata.name}")

    async def _delete_uncounted(self, pod: core_v1.Pod) -> None:
        """Delete a Pod without counting it."""
        await remove_tracking_finalizer(pod, self._ctx)
        pod.metadata.finalizers = [text for text in pod.metadata.finalizers if text != TRACKING]
        await self._delete(pod)

    async def _delete(self, pod: core_v1.Pod) -> None:
        await self._ctx.delete(pod)
        pod.metadata.deletion_timestamp = self._now
        self._ctx.event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

    async def _count_finished(self, outcome: JobOutcome | None) -> None:
        """Record finished Pods in the status, remove their finalizers, and only then add them to the totals.

        If the Job ends, this applies to all Pods: those that still run count as failed, unless the Job succeeded.
        """
        noted = self.status.uncounted_terminated_pods or batch_v1.UncountedTerminatedPods()
        known = {*noted.succeeded, *noted.failed}
        ended = [pod for pod in self._pods if is_tracked(pod) and self._has_ended(pod, outcome)]
        for pod in ended:
            if pod.metadata.uid in known or not self._counts.has_valid_index(pod):
                continue
            if pod.status.phase != "Succeeded":
                if self._is_failure(pod, outcome):
                    noted.failed.append(pod.metadata.uid)
            elif not self._counts.indexed:
                noted.succeeded.append(pod.metadata.uid)
        if outcome is not None:
            target = "FailureTarget" if outcome.type == "Failed" else "SuccessCriteriaMet"
            self._set(target, "True", outcome.reason, outcome.message)
        if ended:
            self.status.uncounted_terminated_pods = noted
            self._fill_counts()
            await self.stored.write(self.status, self._ctx)
        for pod in ended:
            await remove_tracking_finalizer(pod, self._ctx)
        self.status.failed += len(noted.failed)
        self.status.succeeded = (
            len(self._counts.completed_indexes)
            if self._counts.indexed
            else self.status.succeeded + len(noted.succeeded)
        )
        self.status.uncounted_terminated_pods = batch_v1.UncountedTerminatedPods()

    def _has_ended(self, pod: core_v1.Pod, outcome: JobOutcome | None) -> bool:
        if outcome is not None or pod.status.phase == "Succeeded":
            return True
        uid = pod.metadata.uid
        return uid in self._counts.failed_uids and all(
            item.metadata.uid != uid for item in self._last_failed.values()
        )

    def _is_failure(self, pod: core_v1.Pod, outcome: JobOutcome | None) -> bool:
        failed = pod.metadata.uid in self._counts.failed_uids
        return (
            failed or (outcome is not None and outcome.type == "Failed")
        ) and self._counts.counts_as_failure(pod)

    def _end(self, outcome: JobOutcome) -> None:
        self._set(*outcome[:1], "True", *outcome[1:])
        if outcome.type == "Complete":
            self.status.completion_time = self._now
            self._ctx.event("Completed", "Job completed")
        else:
            self._ctx.warn(outcome.reason, outcome.message)

    def _set(self, type: str, status: str, reason: str, message: str) -> None:  # noqa: A002 (the field's name)
        before = condition_of(self.status.conditions, type)
        if before is not None and before.status == status:
            return
        made = JobCondition(
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
        self.status.terminating = len(self._terminating)

    def _requeue_at(self, moment: datetime) -> None:
        self.requeue_at = moment if self.requeue_at is None else min(self.requeue_at, moment)


def is_finished(job: batch_v1.Job) -> bool:
    """Return True if the Job is complete or failed."""
    return is_true(job.status.conditions, "Complete") or is_true(job.status.conditions, "Failed")


@ignore_terminating_namespace
async def reconcile(job: batch_v1.Job, ctx: Context) -> Result | None:
    """Create, delete and count the Pods of a Job."""
    if job.spec.managed_by not in (None, "kubernetes.io/job-controller"):
        return None
    if job.metadata.deletion_timestamp is not None:
        for pod in await ctx.list(pods_by_controller, job.metadata.uid):
            if is_tracked(pod):
                await remove_tracking_finalizer(pod, ctx)
        return None
    if is_finished(job):
        return None
    selector = label_selector(job.spec.selector)
    pods = await claim_children(job, selector, pods_by_controller, ctx, finalizer=TRACKING)
    now = clock.now()
    sync = JobSync(job, pods, ctx, now)
    await sync.run()
    await sync.stored.write(sync.status, ctx)
    if sync.requeue_at is None:
        return None
    return Result(after=max(sync.requeue_at - clock.now(), timedelta(milliseconds=1)))


async def release(pod: core_v1.Pod, ctx: Context) -> None:
    """Remove the tracking finalizer from a Pod whose Job is gone."""
    if not is_tracked(pod):
        return
    owner = next((item for item in pod.metadata.owner_references if item.kind == "Job"), None)
    job = await ctx.find(batch_v1.Job, owner.name) if owner is not None else None
    if job is None or owner is None or job.metadata.uid != owner.uid:
        await remove_tracking_finalizer(pod, ctx)


async def expire(job: batch_v1.Job, ctx: Context) -> Result | None:
    """Delete a finished Job after its ttlSecondsAfterFinished."""
    ttl = job.spec.ttl_seconds_after_finished
    if ttl is None or job.metadata.deletion_timestamp is not None or not is_finished(job):
        return None
    ends = [
        item.last_transition_time for item in job.status.conditions if item.type in ("Complete", "Failed")
    ]
    left = (ends[0] or clock.now()) + timedelta(seconds=ttl) - clock.now()
    if left > timedelta(0):
        return Result(after=left)
    await ctx.delete(job, propagation="Foreground")
    return None


def _is_to_count(change: Change[core_v1.Pod]) -> bool:
    after = change.after
    return after is not None and TRACKING in after.meta.finalizers


def _may_expire(change: Change[batch_v1.Job]) -> bool:
    return change.new is not None and change.new.spec.ttl_seconds_after_finished is not None


def _pods_of(job: batch_v1.Job) -> str:
    return job.metadata.uid


def controllers() -> "tuple[Controller[batch_v1.Job], Controller[core_v1.Pod], Controller[batch_v1.Job]]":
    """Declare the Job controller, the one that releases Pods of deleted Jobs, and the TTL controller."""
    counting = Controller(
        batch_v1.Job,
        reconcile,
        name=NAME,
        owns=[owned(core_v1.Pod)],
        watches=[
            watch(
                core_v1.Pod,
                via=jobs_by_namespace,
                key=lambda pod: pod.metadata.namespace,
                when=is_orphaned,
            )
        ],
        needs=[needs(core_v1.Pod, "delete")],
        concurrency=4,
        options=Options(reporter=NAME, field_manager=FIELD_MANAGER, reconcile_terminating=True),
    )
    freeing = Controller(
        core_v1.Pod,
        release,
        name="job-pod-release",
        when=_is_to_count,
        watches=[watch(batch_v1.Job, via=pods_by_controller, key=_pods_of, when=on("delete"))],
        needs=[needs(core_v1.Pod, "patch")],
        options=Options(reporter=NAME, field_manager=FIELD_MANAGER, reconcile_terminating=True),
    )
    expiring = Controller(
        batch_v1.Job,
        expire,
        name=TTL_NAME,
        when=_may_expire,
        needs=[needs(batch_v1.Job, "delete")],
        options=Options(reporter=TTL_NAME, field_manager=FIELD_MANAGER),
    )
    return counting, freeing, expiring
