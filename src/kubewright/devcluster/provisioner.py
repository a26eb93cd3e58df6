"""The volume provisioner: creates a PersistentVolume for each claim of the default class, and deletes released ones."""

from kubewright.api import AlreadyExists, Meta
from kubewright.api.builtin import core_v1, storage_v1
from kubewright.controller import Change, Context, Controller, Options, needs, watch

NAME = "kubewright.dev/local"
CONTROLLER = "local-provisioner"
CLASS = "standard"
DEFAULT = "storageclass.kubernetes.io/is-default-class"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def storage_class() -> storage_v1.StorageClass:
    """Build the default StorageClass."""
    return storage_v1.StorageClass(
        Meta(CLASS, annotations={DEFAULT: "true"}),
        provisioner=NAME,
        reclaim_policy="Delete",
        volume_binding_mode="WaitForFirstConsumer",
        allow_volume_expansion=True,
    )


def volume_for(
    claim: core_v1.PersistentVolumeClaim, storage: storage_v1.StorageClass
) -> core_v1.PersistentVolume:
    """Build the volume for a claim."""
    meta = claim.metadata
    name = f"pvc-{meta.uid}"
    return core_v1.PersistentVolume(
        Meta(name, annotations={PROVISIONED_BY: NAME}),
        spec=core_v1.PersistentVolumeSpec(
            access_modes=claim.spec.access_modes,
            capacity={"storage": claim.spec.resources.requests["storage"]},
            claim_ref=core_v1.ObjectReference(
                api_version="v1",
                kind="PersistentVolumeClaim",
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
                resource_version=meta.resource_version,
            ),
            host_path=core_v1.HostPathVolumeSource(
                path=f"/var/lib/kubewright/volumes/{name}", type="DirectoryOrCreate"
            ),
            persistent_volume_reclaim_policy=storage.reclaim_policy or "Delete",
            storage_class_name=storage.metadata.name,
            volume_mode=claim.spec.volume_mode,
        ),
    )


async def provision(claim: core_v1.PersistentVolumeClaim, ctx: Context) -> None:
    """Create the volume of a claim that is assigned to this provisioner."""
    if claim.status.phase == "Bound" or claim.spec.volume_name or claim.metadata.deletion_timestamp:
        return
    if claim.metadata.annotations.get(PROVISIONER) != NAME or claim.spec.storage_class_name is None:
        return
    storage = await ctx.find(storage_v1.StorageClass, claim.spec.storage_class_name)
    if storage is None:
        return
    waits = storage.volume_binding_mode == "WaitForFirstConsumer"
    if waits and SELECTED_NODE not in claim.metadata.annotations:
        return
    try:
        made = await ctx.create(volume_for(claim, storage), owned=False)
    except AlreadyExists:
        return
    ctx.event("ProvisioningSucceeded", f"Successfully provisioned volume {made.metadata.name}")


async def reclaim(volume: core_v1.PersistentVolume, ctx: Context) -> None:
    """Delete a volume of this provisioner after its claim is deleted."""
    ours = volume.metadata.annotations.get(PROVISIONED_BY) == NAME
    deletes = volume.spec.persistent_volume_reclaim_policy == "Delete"
    if ours and deletes and volume.status.phase == "Released":
        await ctx.delete(volume)


def _is_pending(change: Change[core_v1.PersistentVolumeClaim]) -> bool:
    return change.new is not None and change.new.status.phase != "Bound"


def controllers() -> tuple[Controller[core_v1.PersistentVolumeClaim], Controller[core_v1.PersistentVolume]]:
    """Declare the controllers that provision and delete volumes."""
    making = Controller(
        core_v1.PersistentVolumeClaim,
        provision,
        name=CONTROLLER,
        when=_is_pending,
        watches=[watch(storage_v1.StorageClass, map=lambda _: [])],
        needs=[needs(core_v1.PersistentVolume, "create")],
        options=Options(reporter=NAME),
    )
    reclaiming = Controller(
        core_v1.PersistentVolume,
        reclaim,
        name="local-reclaimer",
        needs=[needs(core_v1.PersistentVolume, "delete")],
        options=Options(reporter=NAME),
    )
    return making, reclaiming
