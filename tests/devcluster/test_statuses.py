"""Statuses are replaced if they changed, and conditions of other writers are kept."""

from typing import cast

from devcluster_workloads import deployment, is_rolled_out, pod, sets_of

from kubewright.api import Conflict, Status, encode, raw_object
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Change, Context
from kubewright.devcluster.statuses import StatusWriter, is_true
from kubewright.testing import Cluster

GATE = "example.com/gate"
ADDED = [{"op": "add", "path": "/status/conditions/-", "value": {"type": GATE, "status": "True"}}]


async def test_conditions_of_other_writers_are_kept(cluster: Cluster) -> None:
    made = await cluster.create(deployment("reported", 1))
    await cluster.eventually(apps_v1.Deployment, "reported", is_rolled_out)
    (owned,) = await sets_of(cluster, "reported")
    await cluster.client.patch(made, ADDED, type="json", subresource="status")
    # A healthy ReplicaSet has no conditions.
    noted = {"status": {"conditions": [{"type": GATE, "status": "True"}]}}
    await cluster.client.patch(owned, noted, type="strategic", subresource="status")

    def grow(found: apps_v1.Deployment) -> None:
        found.spec.replicas = 2

    await cluster.client.update(made, grow)
    grown = await cluster.eventually(apps_v1.Deployment, "reported", is_rolled_out)
    assert is_true(grown.status.conditions, GATE)
    (owned,) = await sets_of(cluster, "reported")
    assert owned.status.available_replicas == 2
    assert is_true(owned.status.conditions, GATE)


async def test_a_pod_is_ready_when_its_readiness_gate_is_true(cluster: Cluster) -> None:
    made = await cluster.create(pod("gate", readiness_gates=[core_v1.PodReadinessGate(condition_type=GATE)]))
    await cluster.eventually(
        core_v1.Pod, "gate", lambda found: is_true(found.status.conditions, "ContainersReady")
    )
    await cluster.client.patch(made, ADDED, type="json", subresource="status")
    ready = await cluster.eventually(
        core_v1.Pod, "gate", lambda found: is_true(found.status.conditions, "Ready")
    )
    assert is_true(ready.status.conditions, GATE)
    assert ready.status.conditions[-1].type == "PodScheduled"


class Desk:
    """Passes the event of a write to the status writer before the write returns, as the cache may do."""

    def __init__(self, reporter: StatusWriter) -> None:
        self._status_writer = reporter
        self.news: list[bool] = []

    async def patch(self, found: core_v1.Pod, patch: dict[str, dict[str, str]], **_: object) -> None:
        if patch["metadata"]["resourceVersion"] != "7":
            raise Conflict(Status(reason="Conflict", code=409))
        for image in ("i", "other"):
            after = _pod(image, phase=patch["status"]["phase"])
            before, now = (raw_object(encode(state)) for state in (found, after))
            self.news.append(
                self._status_writer.is_external_change(Change(core_v1.Pod, found.key, before, now))
            )


def _pod(image: str = "i", *, version: str = "7", phase: str = "Pending") -> core_v1.Pod:
    made = pod("p")
    made.metadata.uid, made.metadata.resource_version = "u", version
    made.spec.containers[0].image, made.status.phase = image, phase
    return made


async def test_only_the_event_of_the_own_status_update_is_skipped() -> None:
    reporter = StatusWriter()
    desk = Desk(reporter)
    assert await reporter.write(_pod(), core_v1.PodStatus(phase="Running"), cast(Context, desk))
    assert desk.news == [False, True]


async def test_an_object_that_changed_meanwhile_is_not_written() -> None:
    reporter = StatusWriter()
    stale = _pod(version="6")
    assert not await reporter.write(stale, core_v1.PodStatus(phase="Running"), cast(Context, Desk(reporter)))
