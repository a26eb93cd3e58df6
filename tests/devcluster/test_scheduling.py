"""Scheduling over several nodes and preemption, on the embedded and on the real control plane."""

import secrets
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest_asyncio
from devcluster_workloads import pod, selector, wait_for_events

from kubewright.api import Meta, Quantity
from kubewright.api.builtin import apps_v1, core_v1, meta_v1, policy_v1, scheduling_v1
from kubewright.client import Client
from kubewright.devcluster import DevCluster
from kubewright.testing import Cluster, eventually

HOSTNAME = "kubernetes.io/hostname"


@dataclass
class Pool:
    """Nodes that only the Pods of one test run on; no kubelet reports their Pods."""

    cluster: Cluster
    name: str

    async def add_node(self, name: str, cpu: str = "4") -> core_v1.Node:
        full = f"{name}-{self.name}"
        taint = core_v1.Taint(key="pool", value=self.name, effect="NoSchedule")
        made = core_v1.Node(Meta(full, labels={"pool": self.name, HOSTNAME: full, "number": name}))
        made.spec.taints = [taint]
        node = await self.cluster.client.create(made)
        room = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        await self.cluster.client.patch(node, {"status": status}, subresource="status")

        def is_open(found: core_v1.Node) -> bool:
            return all(item.key == "pool" for item in found.spec.taints)

        return await self.cluster.eventually(core_v1.Node, full, is_open)

    def pod(self, name: str, *, priority_class_name: str = "") -> core_v1.Pod:
        made = pod(name, node_selector={"pool": self.name}, termination_grace_period_seconds=0)
        made.spec.priority_class_name = priority_class_name
        made.spec.tolerations = [core_v1.Toleration(key="pool", operator="Exists")]
        made.spec.containers[0].resources = core_v1.ResourceRequirements(requests={"cpu": Quantity("1")})
        return made

    async def scheduled(self, name: str) -> str:
        found = await self.cluster.eventually(core_v1.Pod, name, lambda item: item.spec.node_name)
        return found.spec.node_name.removesuffix(f"-{self.name}")


@pytest_asyncio.fixture
async def pool(cluster: Cluster) -> AsyncIterator[Pool]:
    made = Pool(cluster, secrets.token_hex(3))
    yield made
    for item in await cluster.client.list(core_v1.Pod, namespace=cluster.namespace):
        await cluster.client.delete(item, grace_period_seconds=0)
    for node in await cluster.client.list(core_v1.Node, labels=f"pool={made.name}"):
        await cluster.client.delete(node)


@pytest_asyncio.fixture
async def priorities(cluster: Cluster) -> AsyncIterator[dict[str, str]]:
    suffix = secrets.token_hex(3)
    made = [
        scheduling_v1.PriorityClass(Meta(f"{name}-{suffix}"), value=value)
        for name, value in (("low", 10), ("middle", 100), ("high", 1000))
    ]
    made.append(scheduling_v1.PriorityClass(Meta(f"polite-{suffix}"), value=1000, preemption_policy="Never"))
    for item in made:
        await cluster.client.create(item)
    yield {item.metadata.name.removesuffix(f"-{suffix}"): item.metadata.name for item in made}
    for item in made:
        await cluster.client.delete(item)


async def test_pods_are_spread_over_the_nodes(pool: Pool) -> None:
    for name in ("a", "b"):
        await pool.add_node(name)
    counts: Counter[str] = Counter()
    for number in range(4):
        await pool.cluster.create(pool.pod(f"pod-{number}"))
        counts[await pool.scheduled(f"pod-{number}")] += 1
    assert counts == {"a": 2, "b": 2}


async def test_a_node_selector_and_taints_choose_the_node(pool: Pool) -> None:
    await pool.add_node("a")
    node = await pool.add_node("b")
    selective = pool.pod("selective")
    selective.spec.node_selector = {"pool": pool.name, "number": "b"}
    await pool.cluster.create(selective)
    assert await pool.scheduled("selective") == "b"
    taints = [
        {"key": "pool", "value": pool.name, "effect": "NoSchedule"},
        {"key": "x", "effect": "NoSchedule"},
    ]
    await pool.cluster.client.patch(node, {"spec": {"taints": taints}})
    for number in range(3):
        await pool.cluster.create(pool.pod(f"pod-{number}"))
        assert await pool.scheduled(f"pod-{number}") == "a"


async def test_anti_affinity_also_keeps_other_pods_away(pool: Pool) -> None:
    await pool.add_node("a")
    lonely = pool.pod("lonely")
    term = core_v1.PodAffinityTerm(
        label_selector=meta_v1.LabelSelector(match_labels={"app": "crowd"}), topology_key=HOSTNAME
    )
    terms = core_v1.PodAntiAffinity(required_during_scheduling_ignored_during_execution=[term])
    lonely.spec.affinity = core_v1.Affinity(pod_anti_affinity=terms)
    await pool.cluster.create(lonely)
    await pool.scheduled("lonely")
    await pool.cluster.create(pool.pod("crowd"))
    reason = "1 node(s) didn't satisfy existing pods anti-affinity rules"
    await wait_for_events(pool.cluster, ("Pod", "FailedScheduling", reason))
    await pool.add_node("b")
    assert await pool.scheduled("crowd") == "b"


async def test_a_pod_of_higher_priority_takes_the_place_of_the_least_important_one(
    pool: Pool, priorities: dict[str, str]
) -> None:
    await pool.add_node("a", cpu="3")
    for name, priority in (("middle", "middle"), ("first", "low"), ("second", "low")):
        await pool.cluster.create(pool.pod(name, priority_class_name=priorities[priority]))
        await pool.scheduled(name)
    # Which of the two goes depends on when they started, which their statuses show.
    for number, name in enumerate(("first", "second")):
        started = {"startTime": f"2026-01-01T00:00:0{number}Z", "phase": "Running"}
        await pool.cluster.client.patch(
            core_v1.Pod,
            {"status": started},
            name=name,
            namespace=pool.cluster.namespace,
            subresource="status",
        )
    await pool.cluster.client.patch(
        core_v1.Pod,
        {"metadata": {"finalizers": ["example.com/hold"]}},
        name="second",
        namespace=pool.cluster.namespace,
    )
    vip = await pool.cluster.create(pool.pod("vip", priority_class_name=priorities["high"]))
    waiting = await pool.cluster.eventually(core_v1.Pod, "vip", lambda item: item.status.nominated_node_name)
    (scheduled,) = [item for item in waiting.status.conditions if item.type == "PodScheduled"]
    assert (scheduled.status, scheduled.reason) == ("False", "Unschedulable")
    victim = await pool.cluster.eventually(
        core_v1.Pod, "second", lambda item: item.metadata.deletion_timestamp
    )
    (target,) = [item for item in victim.status.conditions if item.type == "DisruptionTarget"]
    assert (target.status, target.reason) == ("True", "PreemptionByScheduler")
    assert target.message == "default-scheduler: preempting to accommodate a higher priority pod"
    message = f"Preempted by pod {vip.metadata.uid} on node {victim.spec.node_name}"
    await wait_for_events(
        pool.cluster,
        ("Pod", "Preempted", message),
        ("Pod", "FailedScheduling", "1 Insufficient cpu"),
    )
    await pool.cluster.client.patch(victim, {"metadata": {"finalizers": None}})
    assert await pool.scheduled("vip") == "a"
    bound = await pool.cluster.get(core_v1.Pod, "vip")
    assert bound.status.nominated_node_name == ""
    for name in ("middle", "first"):
        assert (await pool.cluster.get(core_v1.Pod, name)).metadata.deletion_timestamp is None


async def test_a_polite_pod_waits(pool: Pool, priorities: dict[str, str]) -> None:
    await pool.add_node("a", cpu="1")
    await pool.cluster.create(pool.pod("first", priority_class_name=priorities["low"]))
    await pool.scheduled("first")
    await pool.cluster.create(pool.pod("polite", priority_class_name=priorities["polite"]))
    why = "preemption: not eligible due to preemptionPolicy=Never."
    await wait_for_events(pool.cluster, ("Pod", "FailedScheduling", why))
    assert (await pool.cluster.get(core_v1.Pod, "first")).metadata.deletion_timestamp is None


async def test_pods_of_the_same_priority_are_not_preempted(pool: Pool, priorities: dict[str, str]) -> None:
    await pool.add_node("a", cpu="1")
    await pool.cluster.create(pool.pod("first", priority_class_name=priorities["high"]))
    await pool.scheduled("first")
    await pool.cluster.create(pool.pod("second", priority_class_name=priorities["high"]))
    why = "1 No preemption victims found for incoming pod"
    await wait_for_events(pool.cluster, ("Pod", "FailedScheduling", why))


async def test_the_node_whose_victims_no_budget_protects_is_chosen(
    pool: Pool, priorities: dict[str, str]
) -> None:
    for name in ("a", "b"):
        await pool.add_node(name, cpu="1")
    spec = policy_v1.PodDisruptionBudgetSpec(selector=selector("guarded"), min_available=1)
    await pool.cluster.create(policy_v1.PodDisruptionBudget(Meta("guarded"), spec=spec))
    await pool.cluster.create(pool.pod("guarded", priority_class_name=priorities["low"]))
    guarded = await pool.scheduled("guarded")
    await pool.cluster.create(pool.pod("free", priority_class_name=priorities["middle"]))
    free = await pool.scheduled("free")
    assert {guarded, free} == {"a", "b"}
    await pool.cluster.create(pool.pod("vip", priority_class_name=priorities["high"]))
    assert await pool.scheduled("vip") == free
    assert (await pool.cluster.get(core_v1.Pod, "guarded")).metadata.deletion_timestamp is None


async def test_a_cluster_has_as_many_nodes_as_it_is_given() -> None:
    async with DevCluster(nodes=3) as dev, Client(dev.config) as client:
        spec = apps_v1.DaemonSetSpec(
            selector=selector("agent"),
            template=core_v1.PodTemplateSpec(metadata=Meta(labels={"app": "agent"}), spec=pod("agent").spec),
        )
        await client.create(apps_v1.DaemonSet(Meta("agent", namespace="default"), spec=spec))

        async def all_ready() -> bool:
            found = await client.get(apps_v1.DaemonSet, "agent", "default")
            return found.status.number_ready == 3

        await eventually(all_ready)
        pods = await client.list(core_v1.Pod, namespace="default")
        nodes = ["kubewright", "kubewright-2", "kubewright-3"]
        assert sorted(item.spec.node_name for item in pods) == nodes
        assert sorted(item.status.host_ip for item in pods) == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
        assert len({item.status.pod_ip for item in pods}) == 3
        found = await client.list(core_v1.Node)
        assert [item.metadata.name for item in found] == nodes
        assert all(
            any(one.type == "Ready" and one.status == "True" for one in item.status.conditions)
            for item in found
        )
