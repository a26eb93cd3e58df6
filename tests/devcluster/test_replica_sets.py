"""ReplicationControllers, which keep Pods like ReplicaSets do."""

from typing import Any

from devcluster_workloads import pods_of, template, wait_for_events

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.testing import Cluster, eventually


def replication_controller(name: str, replicas: int) -> core_v1.ReplicationController:
    return core_v1.ReplicationController(
        Meta(name),
        spec=core_v1.ReplicationControllerSpec(
            replicas=replicas, selector={"app": name}, template=template(name)
        ),
    )


async def test_a_replication_controller_keeps_its_pods(cluster: Cluster, kubectl: Any) -> None:
    made = await cluster.create(replication_controller("old", 2))
    found = await cluster.eventually(
        core_v1.ReplicationController, "old", lambda item: item.status.available_replicas == 2
    )
    assert found.status == core_v1.ReplicationControllerStatus(
        replicas=2, fully_labeled_replicas=2, ready_replicas=2, available_replicas=2, observed_generation=1
    )
    pods = await pods_of(cluster, "old")
    (owner,) = pods[0].metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == (
        "v1",
        "ReplicationController",
        "old",
        made.metadata.uid,
    )
    assert pods[0].metadata.generate_name == "old-"
    assert await kubectl("scale", "rc/old", "--replicas=1") == "replicationcontroller/old scaled\n"
    await cluster.eventually(core_v1.ReplicationController, "old", lambda item: item.status.replicas == 1)
    await wait_for_events(
        cluster,
        ("ReplicationController", "SuccessfulCreate", "Created pod: old-"),
        ("ReplicationController", "SuccessfulDelete", "Deleted pod: old-"),
    )
    await cluster.client.delete(made, propagation="Background")

    async def empty() -> bool:
        return not await pods_of(cluster, "old")

    await eventually(empty)


async def test_a_replication_controller_adopts_matching_pods(cluster: Cluster) -> None:
    orphan = core_v1.Pod(Meta("orphan", labels={"app": "old"}), spec=template("old").spec)
    await cluster.create(orphan)
    made = await cluster.create(replication_controller("old", 1))
    adopted = await cluster.eventually(core_v1.Pod, "orphan", lambda found: found.metadata.owner_references)
    assert adopted.metadata.owner_references[0].uid == made.metadata.uid
    await cluster.eventually(core_v1.ReplicationController, "old", lambda item: item.status.replicas == 1)
    assert len(await pods_of(cluster, "old")) == 1
