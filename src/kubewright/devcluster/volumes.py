"""The controllers of volumes, claims and VolumeAttributesClasses: binding, phases, and protection while in use."""

from collections.abc import Iterable

from kubewright.api import ApiError, Object, ObjectKey, Quantity, label_selector
from kubewright.api.builtin import core_v1, storage_v1
from kubewright.controller import Change, Context, Controller, Index, Options, needs, on, watch
from kubewright.devcluster.provisioner import DEFAULT, PROVISIONED_BY, PROVISIONER, SELECTED_NODE
from kubewright.devcluster.statuses import FIELD_MANAGER
from kubewright.devcluster.workloads import is_pod_finished

BINDER = "persistentvolume-controller"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BETA_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
CLASS_PROTECTION = "kubernetes.io/vac-protection"
CLASS_PROTECTOR = "vac-protection-controller"
_ZERO = Quantity("0")

pending_claims: Index[core_v1.PersistentVolumeClaim] = Index(
    core_v1.PersistentVolumeClaim,
    lambda claim: ["pending"] if claim.status.phase != "Bound" else [],
)
pods_by_claim: Index[core_v1.Pod] = Index(
    core_v1.Pod, lambda pod: [f"{pod.metadata.namespace}/{name}" for name in claims_of(pod)]
)


def claims_of(pod: core_v1.Pod) -> list[str]:
    """Return the names of the claims that a Pod mounts."""
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]


def is_claimed_by(volume: core_v1.PersistentVolume, claim: core_v1.PersistentVolumeClaim) -> bool:
    """Return True if the volume is reserved for the claim."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
        and reference.uid in ("", claim.metadata.uid)
    )


def satisfies(volume: core_v1.PersistentVolume, claim: core_v1.PersistentVolumeClaim) -> bool:
    """Return True if the volume meets the claim's requirements."""
    desired = claim.spec.resources.requests.get("storage", _ZERO)
    labels = label_selector(claim.spec.selector) if claim.spec.selector is not None else None
    return (
        volume.spec.storage_class_name == (claim.spec.storage_class_name or "")
        and volume.spec.capacity.get("storage", _ZERO) >= desired
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and (volume.spec.volume_mode or "Filesystem") == (claim.spec.volume_mode or "Filesystem")
        and (labels is None or labels.matches(volume.metadata.labels))
        and volume.metadata.deletion_timestamp is None
    )


def find_volume(
    volumes: Iterable[core_v1.PersistentVolume], claim: core_v1.PersistentVolumeClaim
) -> core_v1.PersistentVolume | None:
    """Return the volume reserved for the claim, else the smallest matching free one, or None."""
    found = [volume for volume in volumes if satisfies(volume, claim)]
    reserved = [volume for volume in found if is_claimed_by(volume, claim)]
    free = [volume for volume in found if volume.spec.claim_ref is None]
    best = sorted(reserved or free, key=lambda item: (item.spec.capacity["storage"], item.metadata.name))
    return best[0] if best else None


async def bind(claim: core_v1.PersistentVolumeClaim, ctx: Context) -> None:
    """Bind a claim to a volume, or request one from its provisioner."""
    if claim.metadata.deletion_timestamp is not None:
        await _unprotect_claim(claim, ctx)
        return
    if claim.spec.volume_name:
        volume = await ctx.find(core_v1.PersistentVolume, claim.spec.volume_name, "")
        if volume is None:
            if claim.status.phase == "Bound":
                await ctx.patch_status(claim, core_v1.PersistentVolumeClaimStatus(phase="Lost"))
                ctx.warn(
                    "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
                )
            return
        if volume.spec.claim_ref is None or is_claimed_by(volume, claim):
            await _bind_both_sides(claim, volume, ctx)
        return
    if claim.spec.storage_class_name is None and (chosen := await _default_class(ctx)):
        await ctx.patch(claim, {"spec": {"storageClassName": chosen}})
        return
    storage = await _class_of(claim, ctx)
    volume = find_volume(await ctx.list(core_v1.PersistentVolume), claim)
    reserved = volume is not None and is_claimed_by(volume, claim)
    waits = storage is not None and storage.volume_binding_mode == "WaitForFirstConsumer"
    if waits and not reserved and SELECTED_NODE not in claim.metadata.annotations:
        if not await ctx.list(pods_by_claim, str(claim.key)):
            text = "waiting for first consumer to be created before binding"
            ctx.event("WaitForFirstConsumer", text)
        return
    if volume is not None:
        await _bind_both_sides(claim, volume, ctx)
    elif storage is None and claim.spec.storage_class_name:
        missing = f'storageclass.storage.k8s.io "{claim.spec.storage_class_name}" not found'
        ctx.warn("ProvisioningFailed", missing)
    elif storage is None:
        text = "no persistent volumes available for this claim and no storage class is set"
        ctx.event("FailedBinding", text)
    else:
        await _request_volume(claim, storage.provisioner, ctx)


async def _default_class(ctx: Context) -> str:
    """Return the name of the newest default StorageClass, or an empty string."""
    marked = [
        item
        for item in await ctx.list(storage_v1.StorageClass)
        if item.metadata.annotations.get(DEFAULT) == "true"
    ]
    marked.sort(key=lambda item: str(item.metadata.creation_timestamp), reverse=True)
    return marked[0].metadata.name if marked else ""


async def _class_of(claim: core_v1.PersistentVolumeClaim, ctx: Context) -> storage_v1.StorageClass | None:
    name = claim.spec.storage_class_name
    return await ctx.find(storage_v1.StorageClass, name, "") if name else None


async def _request_volume(claim: core_v1.PersistentVolumeClaim, provisioner: str, ctx: Context) -> None:
    desired = {PROVISIONER: provisioner, BETA_PROVISIONER: provisioner}
    if desired.items() <= claim.metadata.annotations.items():
        return
    await ctx.patch(claim, {"metadata": {"annotations": desired}})
    ctx.event(
        "ExternalProvisioning",
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually "
        "by the system administrator. If volume creation is delayed, please verify that the provisioner is "
        "running and correctly registered.",
    )


async def reserve(
    claim: core_v1.PersistentVolumeClaim, volume: core_v1.PersistentVolume, ctx: Context
) -> core_v1.PersistentVolume:
    """Set the volume's claimRef to the claim unless it is set."""
    reference = volume.spec.claim_ref
    if reference is not None and reference.uid == claim.metadata.uid:
        return volume
    claim_ref = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "uid": claim.metadata.uid,
        "resourceVersion": claim.metadata.resource_version,
    }
    # Patch only this version of the volume: it may have been reserved for another claim.
    metadata: dict[str, object] = {"resourceVersion": volume.metadata.resource_version}
    if reference is None:
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    return await ctx.patch(volume, {"metadata": metadata, "spec": {"claimRef": claim_ref}})


async def _bind_both_sides(
    claim: core_v1.PersistentVolumeClaim, volume: core_v1.PersistentVolume, ctx: Context
) -> None:
    """Write both sides of the binding, each only if it is missing."""
    volume = await reserve(claim, volume, ctx)
    if volume.status.phase != "Bound":
        await ctx.patch(volume, {"status": {"phase": "Bound"}}, subresource="status")
    if not claim.spec.volume_name or BIND_COMPLETED not in claim.metadata.annotations:
        annotations = {BIND_COMPLETED: "yes"}
        if not claim.spec.volume_name:
            annotations[BOUND_BY_CONTROLLER] = "yes"
        change = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume.metadata.name}}
        claim = await ctx.patch(claim, change)
    await ctx.patch_status(
        claim,
        core_v1.PersistentVolumeClaimStatus(
            phase="Bound", access_modes=volume.spec.access_modes, capacity=volume.spec.capacity
        ),
    )


async def _unprotect_claim(claim: core_v1.PersistentVolumeClaim, ctx: Context) -> None:
    """Remove the finalizer of a terminating claim that no Pod uses, neither in the cache nor on the server."""
    if any(_uses(pod, claim) for pod in await ctx.list(pods_by_claim, str(claim.key))):
        return
    # A Pod that uses the claim may be too new for the cache; its next event triggers another reconcile.
    if any(_uses(pod, claim) for pod in await ctx.live.list(core_v1.Pod, namespace=claim.metadata.namespace)):
        return
    await _drop_finalizer(claim, CLAIM_PROTECTION, ctx)


def _uses(pod: core_v1.Pod, claim: core_v1.PersistentVolumeClaim) -> bool:
    return claim.metadata.name in claims_of(pod) and not is_pod_finished(pod)


async def _drop_finalizer(obj: Object, finalizer: str, ctx: Context) -> None:
    if finalizer not in obj.metadata.finalizers:
        return
    kept = [text for text in obj.metadata.finalizers if text != finalizer]
    patch = {"metadata": {"uid": obj.metadata.uid, "finalizers": kept or None}}
    try:
        await ctx.patch(obj, patch)
    except ApiError as error:
        if error.status.code not in (404, 409):
            raise


async def sync_volume(volume: core_v1.PersistentVolume, ctx: Context) -> None:
    """Set the phase of a volume: Available, Bound, or Released once its claim is gone."""
    phase = await _phase(volume, ctx)
    if volume.metadata.deletion_timestamp is not None:
        if phase != "Bound":
            await _drop_finalizer(volume, VOLUME_PROTECTION, ctx)
        return
    if volume.status.phase != phase:
        volume = await ctx.patch(volume, {"status": {"phase": phase}}, subresource="status")
    if phase == "Released" and volume.spec.persistent_volume_reclaim_policy == "Delete":
        await _reclaim(volume, ctx)


async def _reclaim(volume: core_v1.PersistentVolume, ctx: Context) -> None:
    """Delete a released volume that was created manually, but not the data behind it."""
    source = volume.spec.host_path
    if PROVISIONED_BY not in volume.metadata.annotations and source and source.path.startswith("/tmp/"):
        await ctx.delete(volume)


async def _phase(volume: core_v1.PersistentVolume, ctx: Context) -> str:
    reference = volume.spec.claim_ref
    if reference is None:
        return "Available"
    claim = await ctx.find(core_v1.PersistentVolumeClaim, reference.name, reference.namespace)
    if reference.uid and (claim is None or claim.metadata.uid != reference.uid):
        # The claim may be too new for the cache, and a Released volume may be deleted with its data.
        claim = await ctx.live.find(core_v1.PersistentVolumeClaim, reference.name, reference.namespace)
    if claim is not None and reference.uid in ("", claim.metadata.uid):
        return (
            "Bound" if claim.spec.volume_name == volume.metadata.name else volume.status.phase or "Available"
        )
    return "Released" if reference.uid else "Available"


def attributes_classes_of(obj: core_v1.PersistentVolumeClaim | core_v1.PersistentVolume) -> list[ObjectKey]:
    """Return the keys of the VolumeAttributesClasses that a claim or a volume uses, or is about to use."""
    names = [obj.spec.volume_attributes_class_name]
    if isinstance(obj, core_v1.PersistentVolumeClaim):
        names.append(obj.status.current_volume_attributes_class_name)
        if obj.status.modify_volume_status is not None:
            names.append(obj.status.modify_volume_status.target_volume_attributes_class_name)
    return [ObjectKey("", name) for name in dict.fromkeys(names) if name]


async def protect_class(item: storage_v1.VolumeAttributesClass, ctx: Context) -> None:
    """Add the protection finalizer, and remove it from a terminating class that nothing uses."""
    if item.metadata.deletion_timestamp is None:
        if CLASS_PROTECTION not in item.metadata.finalizers:
            finalizers = [*item.metadata.finalizers, CLASS_PROTECTION]
            version = item.metadata.resource_version
            await ctx.patch(item, {"metadata": {"finalizers": finalizers, "resourceVersion": version}})
        return
    for kind in (core_v1.PersistentVolume, core_v1.PersistentVolumeClaim):
        # Ask the server: what uses the class may be too new for the cache.
        for obj in await ctx.live.list(kind, all_namespaces=True):
            if item.key in attributes_classes_of(obj):
                return
    await _drop_finalizer(item, CLASS_PROTECTION, ctx)


def _claim_of(volume: core_v1.PersistentVolume) -> list[ObjectKey]:
    reference = volume.spec.claim_ref
    return [ObjectKey(reference.namespace, reference.name)] if reference is not None else []


def _volume_of(claim: core_v1.PersistentVolumeClaim) -> list[ObjectKey]:
    return [ObjectKey("", claim.spec.volume_name)] if claim.spec.volume_name else []


def _claims_used(pod: core_v1.Pod) -> list[ObjectKey]:
    return [ObjectKey(pod.metadata.namespace, name) for name in claims_of(pod)]


def _is_free(change: Change[core_v1.PersistentVolume]) -> bool:
    return change.new is not None and change.new.spec.claim_ref is None


def _pending(_: object) -> str:
    return "pending"


def controllers() -> tuple[
    Controller[core_v1.PersistentVolumeClaim],
    Controller[core_v1.PersistentVolume],
    Controller[storage_v1.VolumeAttributesClass],
]:
    """Declare the controllers of claims, of volumes and of VolumeAttributesClasses."""
    claims = Controller(
        core_v1.PersistentVolumeClaim,
        bind,
        name=BINDER,
        watches=[
            watch(core_v1.PersistentVolume, map=_claim_of),
            watch(core_v1.PersistentVolume, via=pending_claims, key=_pending, when=_is_free),
            watch(storage_v1.StorageClass, via=pending_claims, key=_pending),
            watch(core_v1.Pod, map=_claims_used),
        ],
        needs=[
            needs(core_v1.PersistentVolumeClaim, "patch"),
            needs(core_v1.PersistentVolume, "patch"),
            needs(core_v1.PersistentVolume, "patch", subresource="status"),
        ],
        options=Options(reporter=BINDER, field_manager=FIELD_MANAGER, reconcile_terminating=True),
    )
    volumes = Controller(
        core_v1.PersistentVolume,
        sync_volume,
        name="persistentvolume-follower",
        watches=[watch(core_v1.PersistentVolumeClaim, map=_volume_of)],
        needs=[needs(core_v1.PersistentVolume, "patch", "delete")],
        options=Options(reporter=BINDER, field_manager=FIELD_MANAGER, reconcile_terminating=True),
    )
    classes = Controller(
        storage_v1.VolumeAttributesClass,
        protect_class,
        name=CLASS_PROTECTOR,
        watches=[
            watch(core_v1.PersistentVolumeClaim, map=attributes_classes_of, when=on("update", "delete")),
            watch(core_v1.PersistentVolume, map=attributes_classes_of, when=on("update", "delete")),
        ],
        needs=[needs(storage_v1.VolumeAttributesClass, "patch")],
        options=Options(reporter=CLASS_PROTECTOR, field_manager=FIELD_MANAGER, reconcile_terminating=True),
    )
    return claims, volumes, classes
