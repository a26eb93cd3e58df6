"""Jobs: Pods until enough have ended well, or too many badly. Each end is counted once, whatever fails meanwhile."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from kubewright.api import ApiError
from kubewright.api.builtin import batch_v1, core_v1
from kubewright.controller import Change, Context, Controller, Result, Tuning, needs, on, owned, watch
from kubewright.devcluster import clock
from kubewright.devcluster.conditions import condition_of, is_true
from kubewright.devcluster.job_indexes import format_indexes, parse_indexes
from kubewright.devcluster.job_policies import judge, success_told
from kubewright.devcluster.leaving import unless_leaving
from kubewright.devcluster.pods import deletion_rank, is_active, is_ready, pod_from, pods_by_family

NAME = "job-controller"
TTL_NAME = "ttl-after-finished-controller"
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAME = "batch.kubernetes.io/job-name"
BACKOFF_LIMIT = 6
FIRST_BACKOFF = timedelta(seconds=10)
LONGEST_BACKOFF = timedelta(minutes=10)

Condition = batch_v1.JobCondition


def is_finished(job: batch_v1.Job) -> bool:
    """Tell whether a Job is over."""
    return is_true(job.status.conditions, "Complete") or is_true(job.status.conditions, "Failed")


def index_of(pod: core_v1.Pod) -> int:
    """Read the completion index of a Pod; -1 where it has none."""
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdigit() else -1


def pod_for(job: batch_v1.Job, index: int | None) -> core_v1.Pod:
    """Make a Pod of a Job, for a completion index where the Job has those."""
    name = job.metadata.name
    prefix = f"{name}-" if index is None else f"{name}-{index}-"
    pod = pod_from(job.spec.template, generate_name=prefix, namespace=job.metadata.namespace)
    pod.metadata.finalizers = [*pod.metadata.finalizers, TRACKING]
    if index is not None:
        pod.metadata.annotations[INDEX] = pod.metadata.labels[INDEX] = str(index)
        pod.spec.hostname = f"{name}-{index}"
        field = core_v1.ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']")
        told = core_v1.EnvVar(name="JOB_COMPLETION_INDEX", value_from=core_v1.EnvVarSource(field_ref=field))
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            if all(item.name != told.name for item in container.env):
                container.env = [*container.env, told]
    return pod


def retry_delay(failures: int) -> timedelta:
    """Tell how long a Job waits after its last failure before it makes another Pod."""
    if failures == 0:
        return timedelta(0)
    return min(FIRST_BACKOFF * 2 ** min(failures - 1, 10), LONGEST_BACKOFF)


class Pass:
    """One pass over one Job and its Pods."""

    def __init__(self, job: batch_v1.Job, pods: Sequence[core_v1.Pod], ctx: Context, now: datetime) -> None:
        self._job = job
        self._ctx = ctx
        self._now = now.replace(microsecond=0)
        self._exact = now
        self._pods = list(pods)
        self._indexed = job.spec.completion_mode == "Indexed"
        self.status: batch_v1.JobStatus = batch_v1.JobStatus(
            start_time=job.status.start_time,
            completion_time=job.status.completion_time,
            succeeded=job.status.succeeded,
            failed=job.status.failed,
            completed_indexes=job.status.completed_indexes,
            conditions=list(job.status.conditions),
            uncounted_terminated_pods=job.status.uncounted_terminated_pods
            or batch_v1.UncountedTerminatedPods(),
        )
        self._again: datetime | None = None

    @property
    def active(self) -> list[core_v1.Pod]:
        """The Pods that still work."""
        return [pod for pod in self._pods if is_active(pod)]

    @property
    def again(self) -> datetime | None:
        """When to look again."""
        return self._again

    async def run(self) -> None:
        """Count what ended, then end, pause or go on."""
        await self._count()
        verdict = self._verdict()
        if verdict is not None:
            await self._end(*verdict)
        elif self._job.spec.suspend:
            await self._suspend()
        else:
            self._resume()
            await self._scale()
        self._fill_counts()

    async def _count(self) -> None:
        """Note the Pods that ended, free them of our finalizer, and only then add them to the totals."""
        noted = self.status.uncounted_terminated_pods or batch_v1.UncountedTerminatedPods()
        known = {*noted.succeeded, *noted.failed}
        indexes = parse_indexes(self.status.completed_indexes)
        ended = [pod for pod in self._pods if TRACKING in pod.metadata.finalizers and _is_over(pod)]
        fresh = [pod for pod in ended if pod.metadata.uid not in known]
        for pod in fresh:
            good = pod.status.phase == "Succeeded"
            if good and self._indexed:
                indexes.add(index_of(pod))
            action, told = ("", "") if good else judge(self._job.spec.pod_failure_policy, pod)
            if action == "FailJob":
                self._set("FailureTarget", "True", "PodFailurePolicy", told)
            if action != "Ignore":
                (noted.succeeded if good else noted.failed).append(pod.metadata.uid)
        self.status.completed_indexes = format_indexes(index for index in indexes if index >= 0)
        if fresh:
            self.status.uncounted_terminated_pods = noted
            self._fill_counts()
            await self._ctx.patch_status(self._job, self.status)
        for pod in ended:
            await free(pod, self._ctx)
        self.status.failed += len(noted.failed)
        if self._indexed:
            self.status.succeeded = len(parse_indexes(self.status.completed_indexes))
        else:
            self.status.succeeded += len(noted.succeeded)
        self.status.uncounted_terminated_pods = batch_v1.UncountedTerminatedPods()

    def _verdict(self) -> tuple[str, str, str] | None:
        """Say how the Job ends, if it does: type, reason and message of the condition."""
        spec, status = self._job.spec, self.status
        for name in ("FailureTarget", "SuccessCriteriaMet"):
            found = condition_of(status.conditions, name)
            if found is not None and found.status == "True":
                return ("Failed" if name == "FailureTarget" else "Complete", found.reason, found.message)
        if told := success_told(spec.success_policy, parse_indexes(status.completed_indexes)):
            return "Complete", "SuccessPolicy", told
        limit = BACKOFF_LIMIT if spec.backoff_limit is None else spec.backoff_limit
        if status.failed > limit or self._restarts_exceed(limit):
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if self._is_late():
            return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
        wanted = spec.completions
        done = status.succeeded > 0 and not self.active if wanted is None else status.succeeded >= wanted
        if done:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    def _restarts_exceed(self, limit: int) -> bool:
        if self._job.spec.template.spec.restart_policy != "OnFailure":
            return False
        restarts = sum(
            item.restart_count
            for pod in self._pods
            if pod.status.phase in ("Running", "Pending")
            for item in pod.status.container_statuses
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

    async def _end(self, type: str, reason: str, message: str) -> None:  # noqa: A002 (the field's name)
        """End for good once the last Pod has stopped; until then say what is coming."""
        for pod in self.active:
            await self._delete(pod)
        target = "FailureTarget" if type == "Failed" else "SuccessCriteriaMet"
        self._set(target, "True", reason, message)
        if any(TRACKING in pod.metadata.finalizers and not _is_over(pod) for pod in self._pods):
            return
        self._set(type, "True", reason, message)
        if type == "Complete":
            self.status.completion_time = self._now
            self._ctx.event("Completed", "Job completed")
        else:
            self._ctx.warn(reason, message)

    async def _suspend(self) -> None:
        for pod in self.active:
            await self._delete(pod)
        if not is_true(self.status.conditions, "Suspended"):
            self._set("Suspended", "True", "JobSuspended", "Job suspended")
            self._ctx.event("Suspended", "Job suspended")
        self.status.start_time = None

    def _resume(self) -> None:
        if is_true(self.status.conditions, "Suspended"):
            self._set("Suspended", "False", "JobResumed", "Job resumed")
            self._ctx.event("Resumed", "Job resumed")
        if self.status.start_time is None:
            self.status.start_time = self._now
            if self._job.spec.active_deadline_seconds is not None:
                self._is_late()

    async def _scale(self) -> None:
        spec, active = self._job.spec, self.active
        parallelism = 1 if spec.parallelism is None else spec.parallelism
        if spec.completions is None:
            wanted = len(active) if self.status.succeeded else parallelism
            wanted = min(wanted, parallelism)
        else:
            wanted = min(spec.completions - self.status.succeeded, parallelism)
        for pod in sorted(active, key=deletion_rank)[: max(len(active) - wanted, 0)]:
            await self._delete(pod)
        missing = wanted - len(active)
        # What is on its way out still holds its place.
        missing -= sum(
            pod.metadata.deletion_timestamp is not None and not _is_over(pod) for pod in self._pods
        )
        if missing <= 0:
            return
        due = self._last_failure() + retry_delay(self.status.failed)
        if self._exact < due:
            self._look_at(due)
            return
        for index in self._free_indexes(missing) if self._indexed else [None] * missing:
            await self._create(index)

    def _free_indexes(self, count: int) -> Sequence[int | None]:
        taken = parse_indexes(self.status.completed_indexes) | {index_of(pod) for pod in self.active}
        total = self._job.spec.completions or 0
        return [index for index in range(total) if index not in taken][:count]

    def _last_failure(self) -> datetime:
        ends = [
            item.state.terminated.finished_at
            for pod in self._pods
            if pod.status.phase == "Failed"
            for item in pod.status.container_statuses
            if item.state.terminated is not None and item.state.terminated.finished_at is not None
        ]
        return max(ends, default=self._now - LONGEST_BACKOFF)

    async def _create(self, index: int | None) -> None:
        try:
            made = await self._ctx.create(pod_for(self._job, index))
        except ApiError as error:
            self._ctx.warn("FailedCreate", f"Error creating: {error.status.message}")
            raise
        self._pods.append(made)
        self._ctx.event("SuccessfulCreate", f"Created pod: {made.metadata.name}")

    async def _delete(self, pod: core_v1.Pod) -> None:
        await self._ctx.delete(pod)
        pod.metadata.deletion_timestamp = self._now
        self._ctx.event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

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
        staying = [pod for pod in self._pods if not _is_over(pod)]
        self.status.active = len(self.active)
        self.status.ready = sum(is_ready(pod) for pod in self.active)
        self.status.terminating = len(staying) - len(self.active)

    def _look_at(self, moment: datetime) -> None:
        self._again = moment if self._again is None else min(self._again, moment)


def _is_over(pod: core_v1.Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


async def free(pod: core_v1.Pod, ctx: Context) -> None:
    """Take our finalizer off a Pod."""
    kept = [text for text in pod.metadata.finalizers if text != TRACKING]
    patch = {"metadata": {"uid": pod.metadata.uid, "finalizers": kept or None}}
    try:
        await ctx.patch(pod, patch)
    except ApiError as error:
        if error.status.code not in (404, 409):
            raise


@unless_leaving
async def reconcile(job: batch_v1.Job, ctx: Context) -> Result | None:
    """Move a Job on."""
    if job.spec.managed_by not in (None, "kubernetes.io/job-controller"):
        return None
    pods = await ctx.list(pods_by_family, job.metadata.uid)
    if job.metadata.deletion_timestamp is not None:
        for pod in pods:
            if TRACKING in pod.metadata.finalizers:
                await free(pod, ctx)
        return None
    if is_finished(job):
        return None
    now = clock.now()
    work = Pass(job, pods, ctx, now)
    await work.run()
    await ctx.patch_status(job, work.status)
    if work.again is None:
        return None
    return Result(after=max(work.again - clock.now(), timedelta(milliseconds=1)))


async def release(pod: core_v1.Pod, ctx: Context) -> None:
    """Free the Pod of a Job that is gone, which nobody will count any more."""
    if TRACKING not in pod.metadata.finalizers:
        return
    owner = next((item for item in pod.metadata.owner_references if item.kind == "Job"), None)
    job = await ctx.get(batch_v1.Job, owner.name) if owner is not None else None
    if job is None or owner is None or job.metadata.uid != owner.uid:
        await free(pod, ctx)


async def expire(job: batch_v1.Job, ctx: Context) -> Result | None:
    """Delete a finished Job when its time is over."""
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


def _is_tracked(change: Change[core_v1.Pod]) -> bool:
    after = change.after
    return after is not None and TRACKING in after.meta.finalizers


def _may_expire(change: Change[batch_v1.Job]) -> bool:
    return change.new is not None and change.new.spec.ttl_seconds_after_finished is not None


def _pods_of(job: batch_v1.Job) -> str:
    return job.metadata.uid


def controllers() -> "tuple[Controller[batch_v1.Job], Controller[core_v1.Pod], Controller[batch_v1.Job]]":
    """Declare the controller, the one that frees the Pods of Jobs that are gone, and the one that lets Jobs expire."""
    counting = Controller(
        batch_v1.Job,
        reconcile,
        name=NAME,
        owns=[owned(core_v1.Pod)],
        needs=[needs(core_v1.Pod, "delete")],
        concurrency=4,
        tuning=Tuning(reporter=NAME, terminating=True),
    )
    freeing = Controller(
        core_v1.Pod,
        release,
        name="job-pod-release",
        when=_is_tracked,
        watches=[watch(batch_v1.Job, via=pods_by_family, key=_pods_of, when=on("delete"))],
        needs=[needs(core_v1.Pod, "patch")],
        tuning=Tuning(reporter=NAME, terminating=True),
    )
    expiring = Controller(
        batch_v1.Job,
        expire,
        name=TTL_NAME,
        when=_may_expire,
        needs=[needs(batch_v1.Job, "delete")],
        tuning=Tuning(reporter=TTL_NAME),
    )
    return counting, freeing, expiring
