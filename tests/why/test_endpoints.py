"""Which Pod of a deployed operator is asked for its journal."""

from typing import Any

import pytest

import kubewright as kw
from kubewright.api.builtin import coordination_v1, core_v1
from kubewright.testing import Cluster
from kubewright.why import JournalQuery, OperatorPod, cluster_endpoints, deployed_journals, serving_pods

LABELS = {
    "app.kubernetes.io/name": "storage",
    "app.kubernetes.io/managed-by": "kubewright",
    "control-plane": "controller-manager",
}


def pod(name: str, *, phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "storage-system", "name": name, "labels": LABELS, **metadata},
        "spec": {
            "serviceAccountName": "storage-controller-manager",
            "containers": [{"name": "manager", "ports": [{"name": "metrics", "containerPort": 8443}]}],
        },
        "status": {"phase": phase},
    }


def chosen(*pods: dict[str, Any], holder: str = "") -> tuple[list[str], list[str]]:
    problems: list[str] = []
    holders = {("storage-system", "storage"): holder}
    return [each.name for each in serving_pods(pods, holders, problems)], problems


def test_the_replica_that_holds_the_lease_is_asked() -> None:
    assert chosen(pod("a"), pod("b"), pod("c"), holder="b_1234") == (["b"], [])
    (found,) = serving_pods([pod("a")], {}, [])
    assert found == OperatorPod("storage", "storage-system", "a", "storage-controller-manager", 8443)


@pytest.mark.parametrize("holder", ["", "gone_1234", "laptop"])
def test_all_replicas_are_asked_if_the_holder_is_none_of_them(holder: str) -> None:
    assert chosen(pod("a"), pod("b"), holder=holder) == (["a", "b"], [])


def test_pods_that_do_not_run_or_are_being_deleted_are_not_asked() -> None:
    ending = pod("a", deletionTimestamp="2026-01-02T03:04:05Z")
    assert chosen(ending, pod("b", phase="Pending"), pod("c")) == (["c"], [])
    assert chosen(ending) == ([], ["operator storage in namespace storage-system has no running Pod"])


def test_a_pod_without_a_metrics_port_is_reported() -> None:
    bare = pod("a")
    bare["spec"]["containers"][0]["ports"] = []
    names, problems = chosen(bare)
    assert names == []
    assert problems == ["Pod storage-system/a has no port named metrics, on which the journal is served"]


async def replica(cluster: Cluster, name: str) -> None:
    """Create a Pod of the operator as if a kubelet had started it."""
    container = core_v1.Container(
        name="manager", image="example", ports=[core_v1.ContainerPort(container_port=8443, name="metrics")]
    )
    made = await cluster.create(
        core_v1.Pod(
            kw.Meta(name, labels=LABELS),
            spec=core_v1.PodSpec(containers=[container], service_account_name="storage"),
        )
    )
    await cluster.client.patch(made, {"status": {"phase": "Running"}}, subresource="status", type="merge")


async def test_the_lease_holder_is_found_in_a_cluster(cluster: Cluster) -> None:
    await cluster.create(core_v1.ServiceAccount(kw.Meta("storage")))
    for name in ("storage-0", "storage-1"):
        await replica(cluster, name)
    await cluster.create(
        coordination_v1.Lease(
            kw.Meta("storage"), spec=coordination_v1.LeaseSpec(holder_identity="storage-1_1234")
        )
    )
    async with cluster_endpoints(cluster.client, namespace=cluster.namespace) as search:
        assert search.problems == []
        assert [each.source for each in search.endpoints] == [
            f"the operator storage (Pod {cluster.namespace}/storage-1)"
        ]
        assert search.endpoints[0].config.token


async def test_a_pod_that_cannot_be_reached_is_reported(cluster: Cluster) -> None:
    await cluster.create(core_v1.ServiceAccount(kw.Meta("storage")))
    await replica(cluster, "storage-0")
    query = JournalQuery("storage.example.com", "Bucket", cluster.namespace, "photos")
    journals, problems = await deployed_journals(cluster.client, query, namespace=cluster.namespace)
    assert problems == []
    (journal,) = journals
    assert journal.problems[0].startswith("its journal cannot be read: get pods/portforward")
    journals, problems = await deployed_journals(
        cluster.client, query, namespace=cluster.namespace, service_account="absent"
    )
    assert journals == []
    assert "the journal of Pod" in problems[0]
    assert 'serviceaccounts "absent" not found' in problems[0]
