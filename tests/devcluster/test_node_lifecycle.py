"""How long a Pod stays with taints that drive Pods away, and what becomes of it when its node is no more."""

from datetime import timedelta

from devcluster_workloads import pod

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.devcluster.node_lifecycle import min_toleration_time
from kubewright.testing import embedded, virtual_time

TAINT = core_v1.Taint(key="broken", effect="NoExecute")


def tolerant(*tolerations: core_v1.Toleration) -> core_v1.Pod:
    return core_v1.Pod(spec=core_v1.PodSpec(containers=[], tolerations=list(tolerations)))


def test_a_pod_without_a_toleration_goes_at_once() -> None:
    assert min_toleration_time(tolerant(), [TAINT]) == timedelta(0)


def test_a_pod_that_tolerates_a_taint_stays() -> None:
    assert min_toleration_time(tolerant(core_v1.Toleration(key="broken", operator="Exists")), [TAINT]) is None


def test_the_shortest_of_its_tolerations_counts() -> None:
    long = core_v1.Toleration(key="broken", operator="Exists", toleration_seconds=300)
    short = core_v1.Toleration(operator="Exists", toleration_seconds=5)
    assert min_toleration_time(tolerant(long, short), [TAINT]) == timedelta(seconds=5)


def test_a_node_without_such_taints_keeps_everybody() -> None:
    assert min_toleration_time(tolerant(), []) is None


@virtual_time
async def test_pods_are_driven_away_by_a_taint_and_given_up_with_their_node() -> None:
    async with embedded() as cluster:
        node = await cluster.client.create(core_v1.Node(Meta("other")))
        await cluster.create(pod("app", node_name="other"))
        taint = {"key": "broken", "effect": "NoExecute"}
        await cluster.client.patch(node, {"spec": {"taints": [taint]}})
        found = await cluster.eventually(core_v1.Pod, "app", lambda item: item.metadata.deletion_timestamp)
        told = next(item for item in found.status.conditions if item.type == "DisruptionTarget")
        assert (told.status, told.reason) == ("True", "DeletionByTaintManager")
        # Nobody on that node tells that the Pod has ended: it stays until the node is gone as well.
        await cluster.client.delete(node)
        await cluster.eventually_gone(core_v1.Pod, "app", timeout=300)
