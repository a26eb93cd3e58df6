"""How long the claims of a StatefulSet last: for ever, as long as the set, or as long as their Pods are wanted."""

from collections.abc import Sequence
from typing import Any

from kubewright.api import Object, OwnerReference, owner_reference, to_wire
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Context


def claim_names(owner: apps_v1.StatefulSet, pod: str) -> list[str]:
    """Name the claims that a StatefulSet makes for a Pod."""
    return [f"{item.metadata.name}-{pod}" for item in owner.spec.volume_claim_templates]


def owners_wanted(owner: apps_v1.StatefulSet, *, surplus: bool) -> tuple[bool, bool]:
    """Tell whether a claim shall go with its StatefulSet, and whether with its Pod, which may be surplus."""
    policy = owner.spec.persistent_volume_claim_retention_policy
    if policy is None:
        return False, False
    with_pod = policy.when_scaled == "Delete" and surplus
    return policy.when_deleted == "Delete" and not with_pod, with_pod


async def bind_to_owners(
    owner: apps_v1.StatefulSet, pod: core_v1.Pod, ctx: Context, *, surplus: bool
) -> None:
    """Have a Pod's claims go with those whom the policy names: the garbage collector does the rest."""
    with_set, with_pod = owners_wanted(owner, surplus=surplus)
    for name in claim_names(owner, pod.metadata.name):
        claim = await ctx.find(core_v1.PersistentVolumeClaim, name)
        if claim is None:
            continue
        known = claim.metadata.owner_references
        changes = [*_change(known, owner, with_set), *_change(known, pod, with_pod)]
        if changes:
            patch = {"metadata": {"uid": claim.metadata.uid, "ownerReferences": changes}}
            await ctx.patch(claim, patch, type="strategic")


async def are_leaving(owner: apps_v1.StatefulSet, pod: str, ctx: Context) -> bool:
    """Tell whether a Pod that is to be made anew must wait: its claims go with the last one of its name."""
    for name in claim_names(owner, pod):
        claim = await ctx.find(core_v1.PersistentVolumeClaim, name)
        if claim is not None and any(
            (item.kind, item.name) == ("Pod", pod) for item in claim.metadata.owner_references
        ):
            return True
    return False


def _change(known: Sequence[OwnerReference], owner: Object, wanted: bool) -> list[dict[str, Any]]:
    uid = owner.metadata.uid
    there = any(item.uid == uid for item in known)
    if wanted and not there:
        return [to_wire(owner_reference(owner))]
    return [{"$patch": "delete", "uid": uid}] if there and not wanted else []
