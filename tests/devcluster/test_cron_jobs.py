"""CronJobs: what can be observed within a minute, and the computation of missed times."""

from datetime import UTC, datetime, timedelta
from typing import Any

from devcluster_workloads import pod_spec, wait_for_events

from kubewright.api import Meta
from kubewright.api.builtin import batch_v1, core_v1
from kubewright.devcluster.cron import Schedule
from kubewright.devcluster.cron_jobs import MAX_MISSED_TIMES, job_for, missed_times
from kubewright.testing import Cluster

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def cron_job(name: str, schedule: str) -> batch_v1.CronJob:
    spec = pod_spec()
    spec.restart_policy = "Never"
    template = batch_v1.JobTemplateSpec(spec=batch_v1.JobSpec(template=core_v1.PodTemplateSpec(spec=spec)))
    return batch_v1.CronJob(Meta(name), spec=batch_v1.CronJobSpec(schedule=schedule, job_template=template))


def test_only_the_last_missed_run_is_due() -> None:
    last, following, missed = missed_times(
        Schedule.parse("*/10 * * * *"), NOON, NOON + timedelta(minutes=25), None
    )
    assert (last, following, missed) == (NOON + timedelta(minutes=20), NOON + timedelta(minutes=30), 2)


def test_cron_jobs_are_not_due_early() -> None:
    last, following, missed = missed_times(Schedule.parse("@daily"), NOON, NOON, None)
    assert (last, following, missed) == (None, NOON + timedelta(hours=12), 0)


def test_too_many_missed_runs_are_not_all_counted() -> None:
    _, following, missed = missed_times(Schedule.parse("* * * * *"), NOON, NOON + timedelta(days=400), None)
    assert missed == MAX_MISSED_TIMES + 1
    assert following == NOON + timedelta(days=400, minutes=1)


def test_a_run_is_named_by_its_minute() -> None:
    made = job_for(cron_job("tick", "* * * * *"), NOON)
    assert made.metadata.name == f"tick-{int(NOON.timestamp()) // 60}"
    assert (
        made.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2026-01-01T12:00:00Z"
    )


async def test_kubectl_creates_a_job_manually_while_the_schedule_is_suspended(
    cluster: Cluster, kubectl: Any
) -> None:
    await cluster.create(cron_job("tick", "0 0 1 1 *"))
    await kubectl("create", "job", "--from=cronjob/tick", "now")
    await kubectl("wait", "--for=condition=complete", "job/now", "--timeout=120s")
    await cluster.settled(batch_v1.CronJob, quiet=0.5)
    found = await cluster.get(batch_v1.CronJob, "tick")
    assert found.status.last_schedule_time is None
    assert found.status.active == []
    message = "Saw a job that the controller did not create or forgot: now"
    await wait_for_events(cluster, ("CronJob", "UnexpectedJob", message))


async def test_a_schedule_that_never_comes_is_reported(cluster: Cluster) -> None:
    await cluster.create(cron_job("never", "59 23 31 2 *"))
    why = "time difference between two schedules is less than 1 second"
    message = f"invalid schedule: 59 23 31 2 * : {why}"
    await wait_for_events(cluster, ("CronJob", "InvalidSchedule", message))
    assert (await cluster.get(batch_v1.CronJob, "never")).status.last_schedule_time is None
