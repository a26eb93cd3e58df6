"""What a control plane does for nodes, on either one."""

import pytest
from devcluster_workloads import until_told

from kubewright.api.builtin import core_v1
from kubewright.devcluster.addresses import NODE
from kubewright.devcluster.node_lifecycle import TTL, ttl_seconds
from kubewright.testing.cluster import Cluster


async def test_a_node_is_told_how_long_it_may_keep_what_it_reads(cluster: Cluster) -> None:
    node = await cluster.eventually(core_v1.Node, NODE, lambda item: TTL in item.metadata.annotations)
    assert node.metadata.annotations[TTL] == "0"
    await cluster.client.patch(node, {"metadata": {"annotations": {TTL: None}}})
    await cluster.eventually(core_v1.Node, NODE, lambda item: item.metadata.annotations.get(TTL) == "0")
    registered = f"Node {NODE} event: Registered Node {NODE} in Controller"
    await until_told(cluster, ("Node", "RegisteredNode", registered), namespace="default")


@pytest.mark.parametrize(("nodes", "seconds"), [(1, 0), (100, 0), (101, 15), (1000, 30), (5000, 300)])
def test_the_more_nodes_the_longer(nodes: int, seconds: int) -> None:
    assert ttl_seconds(nodes) == seconds
