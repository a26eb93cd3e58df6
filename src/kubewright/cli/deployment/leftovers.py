"""Objects with an operator's labels that are no longer part of it."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kubewright.api import Forbidden, JsonObject, Kind, kind_of
from kubewright.api.builtin import admissionregistration_v1, core_v1, networking_v1, policy_v1, rbac_v1
from kubewright.client import Client

# Kinds that are pruned; never those that contain data or are shared.
_KINDS = tuple(
    kind_of(declared)
    for declared in (
        admissionregistration_v1.MutatingWebhookConfiguration,
        admissionregistration_v1.ValidatingWebhookConfiguration,
        policy_v1.PodDisruptionBudget,
        networking_v1.NetworkPolicy,
        core_v1.Service,
        rbac_v1.RoleBinding,
        rbac_v1.Role,
        rbac_v1.ClusterRoleBinding,
        rbac_v1.ClusterRole,
    )
)


class Leftovers(NamedTuple):
    """Objects to delete, and the kinds that could not be listed."""

    found: list[tuple[Kind, JsonObject]]
    unseen: list[Kind]

    @property
    def note(self) -> str:
        """Return a note on kinds that could not be listed, or an empty string."""
        names = ", ".join(kind.plural for kind in self.unseen)
        return (
            f"note: not allowed to list {names}: objects left by an earlier version are not deleted"
            if names
            else ""
        )


async def leftovers(client: Client, labels: Mapping[str, str], desired: Collection[JsonObject]) -> Leftovers:
    """Find objects with the operator's labels that are not desired."""
    left = Leftovers([], [])
    kept = {_key(document) for document in desired}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    for kind in _KINDS:
        try:
            listed = await client.list(kind, labels=selector)
        except Forbidden:
            left.unseen.append(kind)
            continue
        for item in listed:
            # Items of a list may omit apiVersion and kind.
            item = {"apiVersion": kind.api_version, "kind": kind.kind, **item}
            if _key(item) not in kept and "deletionTimestamp" not in item["metadata"]:
                left.found.append((kind, item))
    return left


def _key(document: JsonObject) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]
