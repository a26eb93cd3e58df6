"""The CronJob controller: creates a Job at each time of the schedule."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec

from kubewright.api import AlreadyExists, Meta, problems
from kubewright.api.builtin import batch_v1, core_v1
from kubewright.controller import Context, Controller, Index, Options, Result, needs, owned
from kubewright.devcluster import clock
from kubewright.devcluster.cron import Schedule, ScheduleError
from kubewright.devcluster.jobs import is_finished
from kubewright.devcluster.namespaces import ignore_terminating_namespace
from kubewright.devcluster.statuses import FIELD_MANAGER, is_true
from kubewright.devcluster.workloads import controller_keys

NAME = "cronjob-controller"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MAX_MISSED_TIMES = 100

jobs_by_owner: Index[batch_v1.Job] = Index(batch_v1.Job, controller_keys)


def job_for(owner: batch_v1.CronJob, moment: datetime) -> batch_v1.Job:
    """Build the Job of one scheduled time."""
    template = owner.spec.job_template
    annotations = {**template.metadata.annotations, SCHEDULED_AT: moment.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return batch_v1.Job(
        Meta(
            f"{owner.metadata.name}-{int(moment.timestamp()) // 60}",
            namespace=owner.metadata.namespace,
            labels=dict(template.metadata.labels),
            annotations=annotations,
        ),
        spec=template.spec,
    )


def missed_times(
    schedule: Schedule, since: datetime, now: datetime, zone: ZoneInfo | None
) -> tuple[datetime | None, datetime | None, int]:
    """Return the last scheduled time that is due, the next one after it, and the number of those due."""
    last: datetime | None = None
    count = 0
    moment = schedule.next_after(since.astimezone(zone or UTC))
    while moment is not None and moment <= now and count <= MAX_MISSED_TIMES:
        last, count = moment, count + 1
        moment = schedule.next_after(moment)
    if count > MAX_MISSED_TIMES:
        moment = schedule.next_after(now.astimezone(zone or UTC))
    return last, moment, count


class CronJobSync:
    """One reconcile of a CronJob and its Jobs."""

    def __init__(
        self, owner: batch_v1.CronJob, jobs: Sequence[batch_v1.Job], ctx: Context, now: datetime
    ) -> None:
        self._owner = owner
        self._ctx = ctx
        self._now = now
        self._jobs = list(jobs)
        self._started = {item.uid: item for item in owner.status.active}
        """The active Jobs that this controller started; other Jobs of the CronJob were created manually."""
        self.status: batch_v1.CronJobStatus = msgspec.structs.replace(owner.status)

    @property
    def _running(self) -> list[batch_v1.Job]:
        return [job for job in self._jobs if job.metadata.uid in self._started and not is_finished(job)]

    async def run(self) -> Result | None:
        """Record finished Jobs, then create the Job that is due."""
        await self._record_finished()
        again = None
        if not self._owner.spec.suspend:
            again = await self._follow_schedule()
        running = {job.metadata.uid for job in self._running}
        self.status.active = [item for uid, item in self._started.items() if uid in running]
        return again

    async def _record_finished(self) -> None:
        spec, present = self._owner.spec, {job.metadata.uid for job in self._jobs}
        for uid, item in self._started.items():
            if uid not in present:
                self._ctx.event("MissingJob", f"Active job went missing: {item.name}")
        for job in self._jobs:
            known, name = job.metadata.uid in self._started, job.metadata.name
            if is_finished(job) and known:
                how = "Complete" if is_true(job.status.conditions, "Complete") else "Failed"
                self._ctx.event("SawCompletedJob", f"Saw completed job: {name}, condition: {how}")
            elif not is_finished(job) and not known:
                message = f"Saw a job that the controller did not create or forgot: {name}"
                self._ctx.warn("UnexpectedJob", message)
            ended = job.status.completion_time
            if ended is not None and ended > (self.status.last_successful_time or ended - timedelta(1)):
                self.status.last_successful_time = ended
        await self._prune_history("Complete", spec.successful_jobs_history_limit, 3)
        await self._prune_history("Failed", spec.failed_jobs_history_limit, 1)

    async def _prune_history(self, condition: str, limit: int | None, default: int) -> None:
        ended = sorted(
            (job for job in self._jobs if is_true(job.status.conditions, condition)),
            key=lambda job: (str(job.status.start_time), job.metadata.name),
        )
        for job in ended[: max(len(ended) - (default if limit is None else limit), 0)]:
            await self._delete(job)

    async def _follow_schedule(self) -> Result | None:
        spec = self._owner.spec
        try:
            schedule = Schedule.parse(spec.schedule)
        except ScheduleError as error:
            self._ctx.warn(
                "UnparseableSchedule", f"unparseable schedule: {problems.quoted(spec.schedule)} : {error}"
            )
            return None
        zone = ZoneInfo(spec.time_zone) if spec.time_zone else None
        made = self._owner.metadata.creation_timestamp or self._now
        since = self.status.last_schedule_time or made
        if spec.starting_deadline_seconds is not None:
            since = max(since, self._now - timedelta(seconds=spec.starting_deadline_seconds))
        if schedule.next_after(since.astimezone(zone or UTC)) is None:
            # The wording is kube-controller-manager's: it computes the same zero time twice.
            why = "time difference between two schedules is less than 1 second"
            self._ctx.warn("InvalidSchedule", f"invalid schedule: {spec.schedule} : {why}")
            return None
        last, following, missed = missed_times(schedule, since, self._now, zone)
        if missed > MAX_MISSED_TIMES:
            self._ctx.warn(
                "TooManyMissedTimes",
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
            )
        if last is not None and await self._may_start():
            await self._start(last)
        return None if following is None else Result(after=max(following - self._now, timedelta(seconds=0.1)))

    async def _may_start(self) -> bool:
        policy, running = self._owner.spec.concurrency_policy, self._running
        if policy == "Forbid" and running:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._ctx.event("JobAlreadyActive", message)
            return False
        if policy == "Replace":
            for job in running:
                await self._delete(job)
        return True

    async def _start(self, moment: datetime) -> None:
        moment = moment.astimezone(UTC)
        self.status.last_schedule_time = moment
        made = job_for(self._owner, moment)
        try:
            job = await self._ctx.create(made)
        except AlreadyExists:
            job = await self._ctx.live.find(batch_v1.Job, made.metadata.name, made.metadata.namespace)
            if job is None or self._owner.metadata.uid not in controller_keys(job) or is_finished(job):
                return
            # The Job was created before, but the status was not written: the controller stopped in
            # between.
        else:
            self._ctx.event("SuccessfulCreate", f"Created job {job.metadata.name}")
        self._started[job.metadata.uid] = _reference(job)
        self._jobs = [*(item for item in self._jobs if item.metadata.uid != job.metadata.uid), job]

    async def _delete(self, job: batch_v1.Job) -> None:
        await self._ctx.delete(job, propagation="Background")
        self._jobs.remove(job)
        self._ctx.event("SuccessfulDelete", f"Deleted job {job.metadata.name}")


def _reference(job: batch_v1.Job) -> core_v1.ObjectReference:
    meta = job.metadata
    return core_v1.ObjectReference(
        api_version="batch/v1",
        kind="Job",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


@ignore_terminating_namespace
async def reconcile(owner: batch_v1.CronJob, ctx: Context) -> Result | None:
    """Create the Job that is due, and requeue for the next scheduled time."""
    jobs = await ctx.list(jobs_by_owner, owner.metadata.uid)
    sync = CronJobSync(owner, jobs, ctx, clock.now())
    again = await sync.run()
    await ctx.patch_status(owner, sync.status)
    return again


def controller() -> Controller[batch_v1.CronJob]:
    """Declare the CronJob controller."""
    return Controller(
        batch_v1.CronJob,
        reconcile,
        name=NAME,
        owns=[owned(batch_v1.Job)],
        needs=[needs(batch_v1.Job, "delete")],
        concurrency=2,
        options=Options(reporter=NAME, field_manager=FIELD_MANAGER),
    )
