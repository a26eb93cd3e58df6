"""Claims and volumes, on the embedded and on the real control plane; the provisioner is ours on both."""

import secrets

from devcluster_workloads import pod, wait_for_events

from kubewright.api import Meta, Quantity
from kubewright.api.builtin import core_v1, storage_v1
from kubewright.testing import Cluster, eventually


def claim(name: str, storage_class: str | None = None) -> core_v1.PersistentVolumeClaim:
    return core_v1.PersistentVolumeClaim(
        Meta(name),
        spec=core_v1.PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            storage_class_name=storage_class,
            resources=core_v1.VolumeResourceRequirements(requests={"storage": Quantity("1Gi")}),
        ),
    )


def user(name: str, claimed: str) -> core_v1.Pod:
    made = pod(name)
    source = core_v1.PersistentVolumeClaimVolumeSource(claim_name=claimed)
    made.spec.volumes = [core_v1.Volume(name="data", persistent_volume_claim=source)]
    return made


def is_bound(found: core_v1.PersistentVolumeClaim) -> bool:
    return found.status.phase == "Bound"


async def test_a_claim_waits_for_its_first_consumer_and_then_gets_a_volume(cluster: Cluster) -> None:
    await cluster.create(claim("data"))
    await cluster.eventually(
        core_v1.PersistentVolumeClaim, "data", lambda item: item.spec.storage_class_name == "standard"
    )
    await cluster.settled(core_v1.PersistentVolumeClaim, quiet=0.5)
    assert (await cluster.get(core_v1.PersistentVolumeClaim, "data")).status.phase == "Pending"
    await cluster.create(user("app", "data"))
    found = await cluster.eventually(core_v1.PersistentVolumeClaim, "data", is_bound)
    assert found.spec.volume_name == f"pvc-{found.metadata.uid}"
    assert found.status.capacity == {"storage": Quantity("1Gi")}
    assert found.metadata.annotations["pv.kubernetes.io/bind-completed"] == "yes"
    volume = await cluster.eventually(
        core_v1.PersistentVolume, found.spec.volume_name, lambda item: item.status.phase == "Bound"
    )
    assert volume.spec.claim_ref is not None
    assert volume.spec.claim_ref.uid == found.metadata.uid
    await cluster.eventually(core_v1.Pod, "app", lambda item: item.status.phase == "Running")


async def test_a_claim_in_use_is_protected_and_its_volume_is_deleted_with_it(
    cluster: Cluster,
) -> None:
    made = await cluster.create(claim("data"))
    app = await cluster.create(user("app", "data"))
    found = await cluster.eventually(core_v1.PersistentVolumeClaim, "data", is_bound)
    await cluster.eventually(core_v1.Pod, "app", lambda item: item.status.phase == "Running")
    await cluster.client.delete(made)
    held = await cluster.eventually(
        core_v1.PersistentVolumeClaim, "data", lambda item: item.metadata.deletion_timestamp
    )
    assert held.metadata.finalizers == ["kubernetes.io/pvc-protection"]
    await cluster.client.delete(app)
    await cluster.eventually_gone(core_v1.PersistentVolumeClaim, "data")
    await cluster.eventually_gone(core_v1.PersistentVolume, found.spec.volume_name)


async def test_a_manually_created_volume_is_bound_by_its_class(cluster: Cluster) -> None:
    name = f"disk-{secrets.token_hex(4)}"
    volume = core_v1.PersistentVolume(
        Meta(name),
        spec=core_v1.PersistentVolumeSpec(
            access_modes=["ReadWriteOnce"],
            capacity={"storage": Quantity("2Gi")},
            host_path=core_v1.HostPathVolumeSource(path="/tmp"),
            storage_class_name=name,
            persistent_volume_reclaim_policy="Retain",
        ),
    )
    await cluster.client.create(volume)
    await cluster.eventually(core_v1.PersistentVolume, name, lambda item: item.status.phase == "Available")
    made = await cluster.create(claim("data", name))
    found = await cluster.eventually(core_v1.PersistentVolumeClaim, "data", is_bound)
    assert found.spec.volume_name == name
    assert found.status.capacity == {"storage": Quantity("2Gi")}
    await cluster.client.delete(made)
    await cluster.eventually_gone(core_v1.PersistentVolumeClaim, "data")
    await cluster.eventually(core_v1.PersistentVolume, name, lambda item: item.status.phase == "Released")
    await cluster.client.delete(core_v1.PersistentVolume, name)
    await cluster.eventually_gone(core_v1.PersistentVolume, name)


async def test_reports_a_missing_class_or_volume_of_a_claim(cluster: Cluster) -> None:
    await cluster.create(claim("classless", ""))
    await cluster.create(claim("lost", "no-such-class"))
    await wait_for_events(
        cluster,
        ("PersistentVolumeClaim", "FailedBinding", "no storage class is set"),
        (
            "PersistentVolumeClaim",
            "ProvisioningFailed",
            'storageclass.storage.k8s.io "no-such-class" not found',
        ),
    )


async def test_a_pod_whose_claim_is_missing_waits_for_it(cluster: Cluster) -> None:
    await cluster.create(user("app", "later"))

    def refused(item: core_v1.Pod) -> bool:
        return any('persistentvolumeclaim "later" not found' in one.message for one in item.status.conditions)

    await cluster.eventually(core_v1.Pod, "app", refused)
    await cluster.create(claim("later"))
    await cluster.eventually(core_v1.Pod, "app", lambda item: item.status.phase == "Running")

    async def settled() -> bool:
        return is_bound(await cluster.get(core_v1.PersistentVolumeClaim, "later"))

    await eventually(settled)


async def test_a_volume_attributes_class_in_use_is_protected(cluster: Cluster) -> None:
    name = f"gold-{secrets.token_hex(3)}"
    made = await cluster.client.create(
        storage_v1.VolumeAttributesClass(
            Meta(name), driver_name="disk.example.com", parameters={"iops": "1000"}
        )
    )
    await cluster.eventually(
        storage_v1.VolumeAttributesClass,
        name,
        lambda found: found.metadata.finalizers == ["kubernetes.io/vac-protection"],
    )
    using = claim("using", "none")
    using.spec.volume_attributes_class_name = name
    used = await cluster.create(using)
    await cluster.client.delete(made)
    found = await cluster.eventually(
        storage_v1.VolumeAttributesClass, name, lambda found: found.metadata.deletion_timestamp is not None
    )
    assert found.metadata.finalizers == ["kubernetes.io/vac-protection"]
    await cluster.client.delete(used)
    await cluster.eventually_gone(storage_v1.VolumeAttributesClass, name)
