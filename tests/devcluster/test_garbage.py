"""Deletion of dependents."""

from devcluster_workloads import deployment, is_rolled_out, pods_of, sets_of, until

from kubewright.api import Meta, owner_reference
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.testing.cluster import Cluster


def note(name: str) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(Meta(name))


async def owned_note(cluster: Cluster, name: str, *owners: core_v1.ConfigMap) -> core_v1.ConfigMap:
    made = note(name)
    made.metadata.owner_references = [owner_reference(owner, controller=False) for owner in owners]
    return await cluster.create(made)


async def test_background_deletion_deletes_all_dependents(cluster: Cluster) -> None:
    made = await cluster.create(deployment("web", 2))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await cluster.client.delete(made)
    await cluster.eventually_gone(apps_v1.Deployment, "web")

    async def empty() -> bool:
        return not await sets_of(cluster, "web") and not await pods_of(cluster, "web")

    await until(empty)


async def test_foreground_deletion_deletes_the_owner_last(cluster: Cluster) -> None:
    made = await cluster.create(deployment("web", 2))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await cluster.client.delete(made, propagation="Foreground")
    await cluster.eventually_gone(apps_v1.Deployment, "web")
    assert await pods_of(cluster, "web") == []
    assert await sets_of(cluster, "web") == []


async def test_orphaning_leaves_the_dependents_without_an_owner(cluster: Cluster) -> None:
    made = await cluster.create(deployment("web", 1))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await cluster.client.delete(made, propagation="Orphan")
    await cluster.eventually_gone(apps_v1.Deployment, "web")
    (left,) = await sets_of(cluster, "web")
    assert left.metadata.owner_references == []
    assert len(await pods_of(cluster, "web")) == 1


async def test_an_object_with_one_remaining_owner_is_kept(cluster: Cluster) -> None:
    first, second = await cluster.create(note("first")), await cluster.create(note("second"))
    await owned_note(cluster, "child", first, second)
    await cluster.client.delete(first)
    await cluster.eventually(
        core_v1.ConfigMap, "child", lambda found: len(found.metadata.owner_references) == 1
    )
    await cluster.client.delete(second)
    await cluster.eventually_gone(core_v1.ConfigMap, "child")


async def test_a_new_owner_of_the_same_name_does_not_count(cluster: Cluster) -> None:
    owner = await cluster.create(note("owner"))
    await owned_note(cluster, "child", owner)
    await cluster.client.delete(owner)
    await cluster.create(note("owner"))
    await cluster.eventually_gone(core_v1.ConfigMap, "child")


async def test_a_dependent_of_an_owner_that_never_existed_is_deleted(cluster: Cluster) -> None:
    owner = note("never")
    owner.metadata.uid = "0d9a5c4e-0000-4000-8000-000000000000"
    await owned_note(cluster, "child", owner)
    await cluster.eventually_gone(core_v1.ConfigMap, "child")
