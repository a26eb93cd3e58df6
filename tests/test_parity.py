"""What controller-runtime's users have dashboards, alerts and habits for: names, labels and defaults are its own."""

from datetime import timedelta

import pytest

from kubewright.api import Meta
from kubewright.backoff import RETRY_BACKOFF
from kubewright.cache.watcher import RETRY
from kubewright.controller import Context, Controller
from kubewright.controller.running.telemetry import RECONCILE_SECONDS
from kubewright.election import LeaseTimes
from kubewright.manager import ManagerOptions
from kubewright.metrics import Family
from kubewright.testing import Cluster
from kubewright.workqueue import LOW_PRIORITY

from .controller.running.conftest import cluster  # noqa: F401 (a fixture)
from .controller.running.kinds import Box
from .controller.running.operators import running, settled

CONTROLLER = ("controller",)
QUEUE = ("name", "controller")
FAMILIES = {
    "controller_runtime_reconcile_total": ("counter", ("controller", "result")),
    "controller_runtime_reconcile_errors_total": ("counter", CONTROLLER),
    "controller_runtime_terminal_reconcile_errors_total": ("counter", CONTROLLER),
    "controller_runtime_reconcile_panics_total": ("counter", CONTROLLER),
    "controller_runtime_reconcile_timeouts_total": ("counter", CONTROLLER),
    "controller_runtime_reconcile_time_seconds": ("histogram", CONTROLLER),
    "controller_runtime_max_concurrent_reconciles": ("gauge", CONTROLLER),
    "controller_runtime_active_workers": ("gauge", CONTROLLER),
    "workqueue_depth": ("gauge", (*QUEUE, "priority")),
    "workqueue_adds_total": ("counter", QUEUE),
    "workqueue_retries_total": ("counter", QUEUE),
    "workqueue_queue_duration_seconds": ("histogram", QUEUE),
    "workqueue_work_duration_seconds": ("histogram", QUEUE),
    "workqueue_unfinished_work_seconds": ("gauge", QUEUE),
    "workqueue_longest_running_processor_seconds": ("gauge", QUEUE),
    "rest_client_requests_total": ("counter", ("code", "method", "host")),
    "leader_election_master_status": ("gauge", ("name",)),
}


async def fine(box: Box, ctx: Context) -> None: ...


async def test_metrics_have_controller_runtimes_names_kinds_and_labels(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    async with running(cluster, Controller(Box, fine)) as manager:
        await cluster.create(Box(Meta("a")))
        await settled(manager)
        families = {family.name: family for family in manager.metrics.families()}
    found = {name: (families[name].kind, families[name].label_names) for name in FAMILIES if name in families}
    assert found == FAMILIES
    results = families["controller_runtime_reconcile_total"].samples
    assert {(one.labels["controller"], one.labels["result"]) for one in results} == {
        ("box", result) for result in ("success", "error", "requeue", "requeue_after")
    }
    assert bounds(families["workqueue_queue_duration_seconds"]) == pytest.approx(
        [10.0**power for power in range(-8, 4)]
    )
    assert bounds(families["controller_runtime_reconcile_time_seconds"]) == list(RECONCILE_SECONDS)
    assert (len(RECONCILE_SECONDS), RECONCILE_SECONDS[0], RECONCILE_SECONDS[-1]) == (40, 0.005, 60.0)


def bounds(family: Family) -> list[float]:
    found = [float(one.labels["le"]) for one in family.samples if one.name.endswith("_bucket")]
    return [bound for bound in found if bound != float("inf")]


def test_defaults_are_controller_runtimes() -> None:
    options, lease = ManagerOptions(), LeaseTimes()
    assert (lease.duration, lease.renew_deadline, lease.retry_period) == (15, 10, 2)
    assert (options.graceful_timeout, options.cache_sync_timeout) == (30, 120)
    assert (options.metrics_bind_address, options.health_probe_bind_address) == (":8080", ":8081")
    assert (options.webhooks.bind_address, options.election) == (":9443", None)
    assert (RETRY_BACKOFF.base, RETRY_BACKOFF.maximum, RETRY_BACKOFF.factor) == (0.005, 1000, 2)
    # The first delay is client-go's; longer ones are shorter than its 30 s, so that a watch is open soon after an outage.
    assert (RETRY.base, RETRY.maximum, RETRY.jitter) == (0.8, 5.0, 0.5)
    assert LOW_PRIORITY == -100
    controller = Controller(Box, fine)
    assert (controller.concurrency, controller.resync, controller.name) == (1, timedelta(hours=10), "box")
    assert (controller.options.timeout, controller.options.needs_leader_election) == (None, True)
