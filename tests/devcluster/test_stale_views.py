"""The controllers delete nothing wrong while their cache is out of date."""

import asyncio

from devcluster_workloads import pod

from kubewright.api import Meta, Quantity, owner_reference
from kubewright.api.builtin import core_v1
from kubewright.devcluster.cluster import ADMIN
from kubewright.devserver import Match
from kubewright.testing import embedded, virtual_time

ENOUGH = 120.0
"""Seconds of virtual time after which every controller has finished, including backoff."""


def view_of(resource: str) -> Match:
    """Match the watches of a resource by the dev cluster's controllers."""
    return Match(verbs=("watch",), resource=resource, user=ADMIN)


@virtual_time
async def test_a_namespace_of_the_same_name_keeps_its_objects() -> None:
    """The controller still sees the deleted namespace, and is notified of a change in the new one."""
    async with embedded() as cluster:
        client, name = cluster.client, "again"
        await client.create(core_v1.Namespace(Meta(name)))
        held = core_v1.ConfigMap(Meta("held", namespace=name, finalizers=["example.com/hold"]))
        held = await client.create(held)
        await client.delete(core_v1.Namespace, name)
        await asyncio.sleep(ENOUGH)
        with cluster.faults.freeze(view_of("namespaces")):
            await client.patch(held, {"metadata": {"finalizers": None}})
            await cluster.eventually_gone(core_v1.Namespace, name)
            made = await client.create(core_v1.Namespace(Meta(name)))
            kept = [
                await client.create(core_v1.ConfigMap(Meta("kept", namespace=name))),
                await client.create(core_v1.ServiceAccount(Meta("default", namespace=name))),
            ]
            await asyncio.sleep(ENOUGH)
        await asyncio.sleep(ENOUGH)
        found = await client.get(core_v1.Namespace, name)
        assert found.spec.finalizers == made.spec.finalizers == ["kubernetes"]
        for obj in kept:
            live = await client.get(type(obj), obj.metadata.name, name)
            assert live.metadata.uid == obj.metadata.uid
            assert live.metadata.deletion_timestamp is None


@virtual_time
async def test_an_object_that_no_longer_has_an_owner_outlives_it() -> None:
    """The garbage collector still sees the owner reference that was removed."""
    async with embedded() as cluster:
        owner = await cluster.create(core_v1.Secret(Meta("owner")))
        child = core_v1.ConfigMap(Meta("child", owner_references=[owner_reference(owner, controller=False)]))
        child = await cluster.create(child)
        await asyncio.sleep(ENOUGH)
        with cluster.faults.freeze(view_of("configmaps")):
            await cluster.client.patch(child, {"metadata": {"ownerReferences": None}})
            await cluster.client.delete(owner)
            await asyncio.sleep(ENOUGH)
        await asyncio.sleep(ENOUGH)
        live = await cluster.get(core_v1.ConfigMap, "child")
        assert live.metadata.uid == child.metadata.uid
        assert live.metadata.deletion_timestamp is None


@virtual_time
async def test_a_volume_whose_claim_is_too_new_for_the_cache_is_not_released() -> None:
    async with embedded() as cluster:
        spec = core_v1.PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            resources=core_v1.VolumeResourceRequirements(requests={"storage": Quantity("1Gi")}),
            storage_class_name="",
            volume_name="by-hand",
        )
        with cluster.faults.freeze(view_of("persistentvolumeclaims")):
            claim = await cluster.create(core_v1.PersistentVolumeClaim(Meta("data"), spec=spec))
            reference = core_v1.ObjectReference(
                api_version="v1",
                kind="PersistentVolumeClaim",
                namespace=claim.metadata.namespace,
                name="data",
                uid=claim.metadata.uid,
            )
            volume = await cluster.client.create(
                core_v1.PersistentVolume(
                    Meta("by-hand"),
                    spec=core_v1.PersistentVolumeSpec(
                        access_modes=["ReadWriteOnce"],
                        capacity={"storage": Quantity("1Gi")},
                        claim_ref=reference,
                        host_path=core_v1.HostPathVolumeSource(path="/tmp/by-hand"),
                        persistent_volume_reclaim_policy="Delete",
                    ),
                )
            )
            await asyncio.sleep(ENOUGH)
        await asyncio.sleep(ENOUGH)
        live = await cluster.client.get(core_v1.PersistentVolume, "by-hand")
        assert (live.metadata.uid, live.status.phase) == (volume.metadata.uid, "Bound")


@virtual_time
async def test_a_claim_stays_while_a_pod_that_is_too_new_for_the_cache_uses_it() -> None:
    async with embedded() as cluster:
        spec = core_v1.PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            resources=core_v1.VolumeResourceRequirements(requests={"storage": Quantity("1Gi")}),
            storage_class_name="",
        )
        claim = await cluster.create(core_v1.PersistentVolumeClaim(Meta("data"), spec=spec))
        with cluster.faults.freeze(view_of("pods")):
            user = pod("user")
            source = core_v1.PersistentVolumeClaimVolumeSource(claim_name="data")
            user.spec.volumes = [core_v1.Volume(name="data", persistent_volume_claim=source)]
            user = await cluster.create(user)
            await cluster.client.delete(claim)
            await asyncio.sleep(ENOUGH)
            live = await cluster.get(core_v1.PersistentVolumeClaim, "data")
            assert live.metadata.finalizers == ["kubernetes.io/pvc-protection"]
        await cluster.client.delete(user)
        await cluster.eventually_gone(core_v1.PersistentVolumeClaim, "data")


@virtual_time
async def test_pods_stay_on_a_node_that_was_registered_again() -> None:
    """The controller saw the node's deletion, but not that it was registered again before the quarantine ends."""
    async with embedded() as cluster:
        await cluster.client.create(core_v1.Node(Meta("late")))
        placed = pod("placed")
        placed.spec.node_name = "late"
        placed = await cluster.create(placed)
        await cluster.client.delete(core_v1.Node, "late")
        await asyncio.sleep(1)
        with cluster.faults.freeze(view_of("nodes")):
            await cluster.client.create(core_v1.Node(Meta("late")))
            await asyncio.sleep(ENOUGH)
        live = await cluster.get(core_v1.Pod, "placed")
        assert live.metadata.uid == placed.metadata.uid
        assert live.metadata.deletion_timestamp is None
