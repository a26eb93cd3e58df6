"""The kubelet, which is ours on the embedded and on the real control plane."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from devcluster_workloads import pod, wait_for_events

from kubewright.api.builtin import coordination_v1, core_v1
from kubewright.controller import Context
from kubewright.devcluster import NODE, SCENARIO_ANNOTATION, PodScenario
from kubewright.devcluster.kubelet import STOP_SECONDS, Kubelet
from kubewright.testing import Cluster, embedded, eventually, virtual_time


def state_of(found: core_v1.Pod) -> core_v1.ContainerState:
    return (
        found.status.container_statuses[0].state
        if found.status.container_statuses
        else core_v1.ContainerState()
    )


def waits_for(reason: str) -> Any:
    def holds(found: core_v1.Pod) -> bool:
        waiting = state_of(found).waiting
        return waiting is not None and waiting.reason == reason

    return holds


async def test_a_pod_runs_with_an_address_of_its_own(cluster: Cluster) -> None:
    for name in ("one", "two"):
        await cluster.create(pod(name))
    found = [
        await cluster.eventually(core_v1.Pod, name, lambda item: item.status.phase == "Running")
        for name in ("one", "two")
    ]
    assert len({item.status.pod_ip for item in found}) == 2
    conditions = {item.type: item.status for item in found[0].status.conditions}
    assert conditions == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    assert found[0].status.qos_class == "BestEffort"
    assert found[0].status.host_ip
    status = found[0].status.container_statuses[0]
    assert status.ready
    assert status.image_id.startswith("nginx:1.25@sha256:")


async def test_a_deleted_pod_is_not_ready_before_it_is_gone(cluster: Cluster) -> None:
    made = await cluster.create(pod("short"))
    await cluster.eventually(core_v1.Pod, "short", lambda item: item.status.phase == "Running")
    version = (await cluster.get(core_v1.Pod, "short")).metadata.resource_version
    await cluster.client.delete(made)
    seen: list[str] = []
    events = cluster.client.watch(
        core_v1.Pod, namespace=cluster.namespace, fields="metadata.name=short", resource_version=version
    )
    async for event in events:
        seen.append(event.type)
        if event.type == "DELETED":
            break
    assert seen[-1] == "DELETED"
    assert seen.count("MODIFIED") >= 2
    await wait_for_events(cluster, ("Pod", "Killing", "Stopping container main"))


async def test_a_pod_with_a_finalizer_waits_for_it(cluster: Cluster) -> None:
    kept = pod("kept")
    kept.metadata.finalizers = ["example.com/wait"]
    made = await cluster.create(kept)
    await cluster.eventually(core_v1.Pod, "kept", lambda item: item.status.phase == "Running")
    await cluster.client.delete(made)
    await cluster.eventually(
        core_v1.Pod,
        "kept",
        lambda item: item.status.phase == "Succeeded" and not item.metadata.deletion_grace_period_seconds,
    )
    await cluster.settled(core_v1.Pod, quiet=0.5)
    await cluster.client.patch(made, {"metadata": {"finalizers": None}})
    await cluster.eventually_gone(core_v1.Pod, "kept")


async def test_a_crash_loop_backs_off(cluster: Cluster) -> None:
    await cluster.create(pod("broken", scenario=PodScenario.CRASH_LOOP))
    found = await cluster.eventually(core_v1.Pod, "broken", waits_for("CrashLoopBackOff"))
    status = found.status.container_statuses[0]
    assert status.restart_count == 1
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.exit_code == 1
    await wait_for_events(
        cluster, ("Pod", "BackOff", "Back-off restarting failed container main in pod broken_")
    )


async def test_scenarios_show_in_the_status(cluster: Cluster) -> None:
    await cluster.create(pod("missing", scenario=PodScenario.IMAGE_MISSING))
    await cluster.create(pod("unready", scenario=PodScenario.NEVER_READY))
    await cluster.create(pod("greedy", scenario=PodScenario.OUT_OF_MEMORY, restart_policy="Never"))
    await cluster.create(pod("done", scenario=PodScenario.SUCCEED, restart_policy="Never"))
    await cluster.eventually(core_v1.Pod, "missing", waits_for("ImagePullBackOff"))
    await cluster.eventually(core_v1.Pod, "unready", lambda item: item.status.phase == "Running")
    failed = await cluster.eventually(core_v1.Pod, "greedy", lambda item: item.status.phase == "Failed")
    end = state_of(failed).terminated
    assert end is not None
    assert (end.reason, end.exit_code) == ("OOMKilled", 137)
    await cluster.eventually(core_v1.Pod, "done", lambda item: item.status.phase == "Succeeded")


async def test_a_scenario_can_be_removed_from_a_pod(cluster: Cluster) -> None:
    made = await cluster.create(pod("missing", scenario=PodScenario.IMAGE_MISSING))
    await cluster.eventually(core_v1.Pod, "missing", waits_for("ImagePullBackOff"))
    await cluster.client.patch(made, {"metadata": {"annotations": {SCENARIO_ANNOTATION: None}}})
    await cluster.eventually(core_v1.Pod, "missing", lambda item: item.status.phase == "Running")


async def test_a_pod_is_ready_after_its_probes_initial_delay(cluster: Cluster) -> None:
    slow = pod("slow")
    slow.spec.containers[0].readiness_probe = core_v1.Probe(
        initial_delay_seconds=1, tcp_socket=core_v1.TCPSocketAction(port=80)
    )
    await cluster.create(slow)
    grown = await cluster.eventually(
        core_v1.Pod,
        "slow",
        lambda item: bool(item.status.container_statuses) and item.status.container_statuses[0].ready,
    )
    running = state_of(grown).running
    ready = next(item for item in grown.status.conditions if item.type == "Ready")
    assert running is not None
    assert running.started_at is not None
    assert ready.last_transition_time is not None
    assert ready.last_transition_time - running.started_at >= timedelta(seconds=1)


async def test_the_node_is_ready_and_its_lease_is_renewed(cluster: Cluster) -> None:
    found = await cluster.eventually(
        core_v1.Node, NODE, lambda item: any(one.type == "Ready" for one in item.status.conditions)
    )
    assert found.status.allocatable["pods"]

    async def renewed() -> bool:
        lease = await cluster.client.get(coordination_v1.Lease, NODE, "kube-node-lease")
        return lease.spec.renew_time is not None and datetime.now(UTC) - lease.spec.renew_time < timedelta(
            seconds=40
        )

    await eventually(renewed)


async def test_an_unschedulable_pod_reports_why_and_runs_once_it_fits(cluster: Cluster) -> None:
    picky = pod("picky", node_selector={f"example.com/{cluster.namespace}": "yes"})
    await cluster.create(picky)

    def refused(item: core_v1.Pod) -> bool:
        return any(one.type == "PodScheduled" and one.status == "False" for one in item.status.conditions)

    found = await cluster.eventually(core_v1.Pod, "picky", refused)
    conditions = next(item for item in found.status.conditions if item.type == "PodScheduled")
    assert conditions.reason == "Unschedulable"
    message = (
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    assert conditions.message.replace("no new claims to deallocate, ", "") == message
    await wait_for_events(cluster, ("Pod", "FailedScheduling", "0/1 nodes are available"))
    label = {f"example.com/{cluster.namespace}": "yes"}
    await cluster.client.patch(core_v1.Node, {"metadata": {"labels": label}}, name=NODE)
    await cluster.eventually(core_v1.Pod, "picky", lambda item: item.status.phase == "Running")


async def test_a_gated_pod_is_not_scheduled(cluster: Cluster) -> None:
    made = await cluster.create(
        pod("gated", scheduling_gates=[core_v1.PodSchedulingGate(name="example.com/gate")])
    )
    await cluster.create(pod("free"))
    await cluster.eventually(core_v1.Pod, "free", lambda item: item.status.phase == "Running")
    assert not (await cluster.get(core_v1.Pod, "gated")).spec.node_name

    def open_gate(found: core_v1.Pod) -> None:
        found.spec.scheduling_gates = []

    await cluster.client.update(made, open_gate)
    await cluster.eventually(core_v1.Pod, "gated", lambda item: item.status.phase == "Running")


@virtual_time
async def test_a_running_pod_takes_a_moment_to_stop() -> None:
    async with embedded() as cluster:
        made = await cluster.create(pod("brief"))
        await cluster.eventually(core_v1.Pod, "brief", lambda found: found.status.phase == "Running")
        began = asyncio.get_running_loop().time()
        await cluster.client.delete(made)
        await cluster.eventually_gone(core_v1.Pod, "brief")
        assert asyncio.get_running_loop().time() - began >= STOP_SECONDS


class RecordingContext:
    """A context that records what the kubelet deletes."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def delete(self, found: core_v1.Pod, **_: object) -> None:
        self.deleted.append(found.metadata.name)

    async def patch(self, *_: object, **__: object) -> None:
        pass

    def event(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("early", [0.0, 1e-12, 1e-9, 4e-7])
async def test_stops_when_less_than_a_millisecond_is_left(
    monkeypatch: pytest.MonkeyPatch, early: float
) -> None:
    running = core_v1.ContainerState(running=core_v1.ContainerStateRunning(started_at=datetime.now(UTC)))
    terminating = pod("terminating")
    terminating.spec.node_name, terminating.status.pod_ip = NODE, "10.244.0.9"
    container = core_v1.ContainerStatus(
        name="main", image="i", image_id="i", ready=True, restart_count=0, state=running
    )
    terminating.status.container_statuses = [container]
    terminating.metadata.uid = "u"
    terminating.metadata.deletion_timestamp = datetime.now(UTC)
    terminating.metadata.deletion_grace_period_seconds = 30
    kubelet, context, now = Kubelet((NODE,)), RecordingContext(), 1000.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    assert await kubelet.reconcile(terminating, cast(Context, context)) is not None
    now += STOP_SECONDS - early
    assert await kubelet.reconcile(terminating, cast(Context, context)) is None
    assert context.deleted == ["terminating"]
