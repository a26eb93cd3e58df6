"""Jobs: Pods until enough have ended well, or too many badly; what is over goes when its time is up."""

from datetime import timedelta

from kubewright.api.builtin import batch_v1, core_v1
from kubewright.controller import Change, Context, Controller, Options, Result, needs, on, owned, watch
from kubewright.devcluster import clock
from kubewright.devcluster.conditions import is_true
from kubewright.devcluster.job_passes import Pass
from kubewright.devcluster.job_pods import TRACKING, free, is_tracked
from kubewright.devcluster.leaving import unless_leaving
from kubewright.devcluster.pods import pods_by_family

NAME = "job-controller"
TTL_NAME = "ttl-after-finished-controller"


def is_finished(job: batch_v1.Job) -> bool:
    """Tell whether a Job is over."""
    return is_true(job.status.conditions, "Complete") or is_true(job.status.conditions, "Failed")


@unless_leaving
async def reconcile(job: batch_v1.Job, ctx: Context) -> Result | None:
    """Move a Job on."""
    if job.spec.managed_by not in (None, "kubernetes.io/job-controller"):
        return None
    pods = await ctx.list(pods_by_family, job.metadata.uid)
    if job.metadata.deletion_timestamp is not None:
        for pod in pods:
            if is_tracked(pod):
                await free(pod, ctx)
        return None
    if is_finished(job):
        return None
    now = clock.now()
    work = Pass(job, pods, ctx, now)
    await work.run()
    await work.stored.write(work.status, ctx)
    if work.again is None:
        return None
    return Result(after=max(work.again - clock.now(), timedelta(milliseconds=1)))


async def release(pod: core_v1.Pod, ctx: Context) -> None:
    """Free the Pod of a Job that is gone, which nobody will count any more."""
    if not is_tracked(pod):
        return
    owner = next((item for item in pod.metadata.owner_references if item.kind == "Job"), None)
    job = await ctx.find(batch_v1.Job, owner.name) if owner is not None else None
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


def _is_to_count(change: Change[core_v1.Pod]) -> bool:
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
        options=Options(reporter=NAME, reconcile_terminating=True),
    )
    freeing = Controller(
        core_v1.Pod,
        release,
        name="job-pod-release",
        when=_is_to_count,
        watches=[watch(batch_v1.Job, via=pods_by_family, key=_pods_of, when=on("delete"))],
        needs=[needs(core_v1.Pod, "patch")],
        options=Options(reporter=NAME, reconcile_terminating=True),
    )
    expiring = Controller(
        batch_v1.Job,
        expire,
        name=TTL_NAME,
        when=_may_expire,
        needs=[needs(batch_v1.Job, "delete")],
        options=Options(reporter=TTL_NAME),
    )
    return counting, freeing, expiring
