"""Node registration, the TTL annotation, taint-based eviction, and Pods of deleted nodes."""

import asyncio
import secrets
from datetime import timedelta

import pytest
from devcluster_workloads import pod, wait_for_events

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.devcluster.addresses import NODE
from kubewright.devcluster.node_lifecycle import TTL, min_toleration_time, ttl_seconds
from kubewright.testing import Cluster, embedded, virtual_time
from kubewright.testing.hosting import RunningEnvironment
from kubewright.testing.isolation import isolated

TAINT = core_v1.Taint(key="broken", effect="NoExecute")


def tolerant(*tolerations: core_v1.Toleration) -> core_v1.Pod:
    return core_v1.Pod(spec=core_v1.PodSpec(containers=[], tolerations=list(tolerations)))


def test_a_pod_without_a_toleration_is_evicted_at_once() -> None:
    assert min_toleration_time(tolerant(), [TAINT]) == timedelta(0)


def test_a_pod_that_tolerates_a_taint_stays() -> None:
    assert min_toleration_time(tolerant(core_v1.Toleration(key="broken", operator="Exists")), [TAINT]) is None


def test_the_shortest_toleration_counts() -> None:
    long = core_v1.Toleration(key="broken", operator="Exists", toleration_seconds=300)
    short = core_v1.Toleration(operator="Exists", toleration_seconds=5)
    assert min_toleration_time(tolerant(long, short), [TAINT]) == timedelta(seconds=5)


def test_a_node_without_no_execute_taints_keeps_its_pods() -> None:
    assert min_toleration_time(tolerant(), []) is None


@virtual_time
async def test_pods_are_evicted_by_a_taint_and_deleted_after_their_node() -> None:
    async with embedded() as cluster:
        node = await cluster.client.create(core_v1.Node(Meta("other")))
        await cluster.create(pod("app", node_name="other"))
        taint = {"key": "broken", "effect": "NoExecute"}
        await cluster.client.patch(node, {"spec": {"taints": [taint]}})
        found = await cluster.eventually(core_v1.Pod, "app", lambda item: item.metadata.deletion_timestamp)
        reported = next(item for item in found.status.conditions if item.type == "DisruptionTarget")
        assert (reported.status, reported.reason) == ("True", "DeletionByTaintManager")
        # No kubelet of that node completes the deletion: the Pod stays until the node is gone too.
        await cluster.client.delete(node)
        await cluster.eventually_gone(core_v1.Pod, "app", timeout=300)


async def test_a_node_has_the_ttl_annotation(cluster: Cluster) -> None:
    node = await cluster.eventually(core_v1.Node, NODE, lambda item: TTL in item.metadata.annotations)
    assert node.metadata.annotations[TTL] == "0"
    await cluster.client.patch(node, {"metadata": {"annotations": {TTL: None}}})
    await cluster.eventually(core_v1.Node, NODE, lambda item: item.metadata.annotations.get(TTL) == "0")
    registered = f"Node {NODE} event: Registered Node {NODE} in Controller"
    await wait_for_events(cluster, ("Node", "RegisteredNode", registered), namespace="default")


@pytest.mark.parametrize(("nodes", "seconds"), [(1, 0), (100, 0), (101, 15), (1000, 30), (5000, 300)])
def test_the_ttl_grows_with_the_number_of_nodes(nodes: int, seconds: int) -> None:
    assert ttl_seconds(nodes) == seconds


async def check_a_node_that_never_reports_becomes_unknown(cluster: Cluster) -> None:
    name = f"silent-{secrets.token_hex(3)}"
    made = await cluster.client.create(core_v1.Node(Meta(name)))
    found = await cluster.eventually(
        core_v1.Node,
        name,
        lambda item: (
            {taint.effect for taint in item.spec.taints if taint.key == "node.kubernetes.io/unreachable"}
            == {"NoSchedule", "NoExecute"}
        ),
        timeout=180,
    )
    states = {item.type: (item.status, item.reason, item.message) for item in found.status.conditions}
    never = ("Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status.")
    assert states == dict.fromkeys(("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"), never)
    (ready,) = [item for item in found.status.conditions if item.type == "Ready"]
    assert ready.last_heartbeat_time == made.metadata.creation_timestamp
    await cluster.client.delete(made)


def test_a_node_that_never_reports_becomes_unknown(environment: RunningEnvironment) -> None:
    async def check_embedded() -> None:
        async with embedded() as cluster:
            await check_a_node_that_never_reports_becomes_unknown(cluster)

    async def check() -> None:
        async with isolated(environment.name, environment.kubeconfig) as cluster:
            await check_a_node_that_never_reports_becomes_unknown(cluster)

    # It takes a minute, which only the embedded cluster can skip.
    if environment.name == "embedded":
        virtual_time(check_embedded)()
    else:
        asyncio.run(check())


@virtual_time
async def test_a_node_that_stops_reporting_becomes_unknown_until_it_reports_again() -> None:
    async with embedded() as cluster:
        made = await cluster.client.create(core_v1.Node(Meta("flaky")))
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "fine"}
        await cluster.client.patch(made, {"status": {"conditions": [ready]}}, subresource="status")
        found = await cluster.eventually(
            core_v1.Node,
            "flaky",
            lambda item: any(taint.key.endswith("/unreachable") for taint in item.spec.taints),
            timeout=300,
        )
        (lost,) = [item for item in found.status.conditions if item.type == "Ready"]
        assert (lost.status, lost.reason) == ("Unknown", "NodeStatusUnknown")
        assert lost.message == "Kubelet stopped posting node status."
        await wait_for_events(
            cluster, ("Node", "NodeNotReady", "Node flaky status is now: NodeNotReady"), namespace="default"
        )
        again = {**ready, "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
        await cluster.client.patch(made, {"status": {"conditions": [again]}}, subresource="status")
        await cluster.eventually(core_v1.Node, "flaky", lambda item: not item.spec.taints)


@virtual_time
async def test_the_clusters_own_node_stays_ready() -> None:
    async with embedded() as cluster:
        await asyncio.sleep(1000)
        node = await cluster.client.get(core_v1.Node, NODE)
        assert [item.status for item in node.status.conditions if item.type == "Ready"] == ["True"]
        assert node.spec.taints == []
