"""StatefulSets, on the embedded and on the real control plane."""

from typing import Any

from devcluster_workloads import pods_of, selector, template, wait_for_events

from kubewright.api import Meta, Quantity
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.devcluster import SCENARIO_ANNOTATION, PodScenario
from kubewright.testing import Cluster, eventually


def stateful_set(name: str, replicas: int) -> apps_v1.StatefulSet:
    return apps_v1.StatefulSet(
        Meta(name),
        spec=apps_v1.StatefulSetSpec(
            replicas=replicas, service_name=name, selector=selector(name), template=template(name)
        ),
    )


def is_whole(found: apps_v1.StatefulSet) -> bool:
    status = found.status
    return (
        status.observed_generation == found.metadata.generation
        and status.replicas == status.ready_replicas == status.updated_replicas == found.spec.replicas
        and status.current_revision == status.update_revision
    )


async def test_pods_are_created_in_order_with_stable_names(cluster: Cluster) -> None:
    await cluster.create(stateful_set("db", 3))
    done = await cluster.eventually(apps_v1.StatefulSet, "db", is_whole)
    pods = await pods_of(cluster, "db")
    assert [pod.metadata.name for pod in pods] == ["db-0", "db-1", "db-2"]
    made = [int(pod.metadata.resource_version) for pod in pods]
    assert made == sorted(made)
    labels = pods[1].metadata.labels
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-1"
    assert labels["apps.kubernetes.io/pod-index"] == "1"
    assert labels["controller-revision-hash"] == done.status.current_revision
    assert (pods[1].spec.hostname, pods[1].spec.subdomain) == ("db-1", "db")
    assert done.status.collision_count == 0
    revisions = await cluster.client.list(apps_v1.ControllerRevision, namespace=cluster.namespace)
    assert [(item.metadata.name, item.revision) for item in revisions] == [(done.status.current_revision, 1)]
    await wait_for_events(
        cluster, ("StatefulSet", "SuccessfulCreate", "Create Pod db-0 in StatefulSet db successful")
    )


async def test_a_pod_that_is_not_ready_blocks_the_next(cluster: Cluster) -> None:
    held = stateful_set("db", 2)
    held.spec.template.metadata.annotations[SCENARIO_ANNOTATION] = PodScenario.NEVER_READY
    await cluster.create(held)
    await cluster.eventually(core_v1.Pod, "db-0", lambda pod: pod.status.phase == "Running")
    await cluster.settled(core_v1.Pod, apps_v1.StatefulSet, quiet=0.5)
    assert [pod.metadata.name for pod in await pods_of(cluster, "db")] == ["db-0"]


async def test_parallel_pods_do_not_wait_for_each_other(cluster: Cluster) -> None:
    eager = stateful_set("db", 3)
    eager.spec.pod_management_policy = "Parallel"
    eager.spec.template.metadata.annotations[SCENARIO_ANNOTATION] = PodScenario.NEVER_READY
    await cluster.create(eager)

    async def all_there() -> bool:
        return len(await pods_of(cluster, "db")) == 3

    await eventually(all_there)


async def test_an_update_goes_from_the_last_to_the_first_and_can_be_undone(
    cluster: Cluster, kubectl: Any
) -> None:
    made = await cluster.create(stateful_set("db", 2))
    before = await cluster.eventually(apps_v1.StatefulSet, "db", is_whole)

    def newer(found: apps_v1.StatefulSet) -> None:
        found.spec.template.spec.containers[0].image = "nginx:1.26"

    await cluster.client.update(made, newer)
    after = await cluster.eventually(apps_v1.StatefulSet, "db", is_whole)
    assert after.status.update_revision != before.status.update_revision
    first, second = await pods_of(cluster, "db")
    assert {pod.spec.containers[0].image for pod in (first, second)} == {"nginx:1.26"}
    assert first.metadata.creation_timestamp is not None
    assert second.metadata.creation_timestamp is not None
    assert second.metadata.creation_timestamp <= first.metadata.creation_timestamp
    history = await kubectl("rollout", "history", "statefulset/db")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
    assert "rolled back" in await kubectl("rollout", "undo", "statefulset/db")
    await kubectl("rollout", "status", "statefulset/db", "--timeout=120s")
    again = await cluster.eventually(apps_v1.StatefulSet, "db", is_whole)
    assert again.status.update_revision == before.status.update_revision


async def test_a_partition_keeps_lower_ordinals_on_the_old_revision(cluster: Cluster) -> None:
    made = await cluster.create(stateful_set("db", 2))
    before = await cluster.eventually(apps_v1.StatefulSet, "db", is_whole)

    def newer(found: apps_v1.StatefulSet) -> None:
        found.spec.template.spec.containers[0].image = "nginx:1.26"
        found.spec.update_strategy.rolling_update = apps_v1.RollingUpdateStatefulSetStrategy(partition=1)

    await cluster.client.update(made, newer)

    def halfway(found: apps_v1.StatefulSet) -> bool:
        status = found.status
        return status.updated_replicas == 1 and status.ready_replicas == 2 and status.current_replicas == 1

    found = await cluster.eventually(apps_v1.StatefulSet, "db", halfway)
    assert found.status.current_revision == before.status.current_revision
    first, second = await pods_of(cluster, "db")
    assert (first.spec.containers[0].image, second.spec.containers[0].image) == ("nginx:1.25", "nginx:1.26")
    await cluster.client.delete(first)
    await cluster.eventually(
        core_v1.Pod, "db-0", lambda pod: pod.metadata.uid != first.metadata.uid and pod.spec.node_name
    )
    assert (await cluster.get(core_v1.Pod, "db-0")).spec.containers[0].image == "nginx:1.25"


async def test_scaling_down_deletes_the_highest_ordinal_first(cluster: Cluster) -> None:
    made = await cluster.create(stateful_set("db", 3))
    await cluster.eventually(apps_v1.StatefulSet, "db", is_whole)
    await cluster.client.patch(made, {"spec": {"replicas": 1}})
    await cluster.eventually(apps_v1.StatefulSet, "db", is_whole)
    await cluster.eventually_gone(core_v1.Pod, "db-2")
    await cluster.eventually_gone(core_v1.Pod, "db-1")
    assert [pod.metadata.name for pod in await pods_of(cluster, "db")] == ["db-0"]
    await cluster.settled(core_v1.Pod, apps_v1.StatefulSet)


async def test_each_pod_has_its_own_claims(cluster: Cluster) -> None:
    desired = stateful_set("db", 1)
    desired.spec.volume_claim_templates = [
        core_v1.PersistentVolumeClaim(
            Meta("data"),
            spec=core_v1.PersistentVolumeClaimSpec(
                access_modes=["ReadWriteOnce"],
                resources=core_v1.VolumeResourceRequirements(requests={"storage": Quantity("1Gi")}),
            ),
        )
    ]
    await cluster.create(desired)
    claim = await cluster.eventually(core_v1.PersistentVolumeClaim, "data-db-0")
    assert claim.metadata.labels == {"app": "db"}
    pod = await cluster.eventually(core_v1.Pod, "db-0")
    volume = next(item for item in pod.spec.volumes if item.name == "data")
    assert volume.persistent_volume_claim is not None
    assert volume.persistent_volume_claim.claim_name == "data-db-0"


async def test_claims_are_deleted_according_to_the_retention_policy(cluster: Cluster) -> None:
    storage = core_v1.VolumeResourceRequirements(requests={"storage": Quantity("1Mi")})
    made = stateful_set("db", 2)
    made.spec.pod_management_policy = "Parallel"
    made.spec.volume_claim_templates = [
        core_v1.PersistentVolumeClaim(
            Meta("data"),
            spec=core_v1.PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], resources=storage),
        )
    ]
    made.spec.persistent_volume_claim_retention_policy = (
        apps_v1.StatefulSetPersistentVolumeClaimRetentionPolicy(when_deleted="Delete", when_scaled="Delete")
    )
    owner = await cluster.create(made)
    await cluster.eventually(apps_v1.StatefulSet, "db", is_whole)
    kind = core_v1.PersistentVolumeClaim
    kept = await cluster.eventually(kind, "data-db-0", lambda item: item.metadata.owner_references)
    assert [item.kind for item in kept.metadata.owner_references] == ["StatefulSet"]
    await cluster.client.patch(owner, {"spec": {"replicas": 1}})
    await cluster.eventually_gone(kind, "data-db-1")
    await cluster.client.patch(owner, {"spec": {"replicas": 2}})
    await cluster.eventually(apps_v1.StatefulSet, "db", is_whole)
    await cluster.eventually(
        kind,
        "data-db-1",
        lambda item: [one.kind for one in item.metadata.owner_references] == ["StatefulSet"],
    )
    await cluster.client.delete(owner)
    await cluster.eventually_gone(kind, "data-db-0")
    await cluster.eventually_gone(kind, "data-db-1")
