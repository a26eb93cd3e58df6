"""Objects of an operator that its declarations no longer ask for, found by their labels."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kubewright.api import Forbidden, JsonObject, Kind, kind_of
from kubewright.api.builtin import admissionregistration_v1, core_v1, networking_v1, policy_v1, rbac_v1
from kubewright.client import Client

# What may come and go with the declarations; never what holds data or is shared.
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
    """What is there and not wanted, and the kinds that could not be looked at."""

    found: list[tuple[Kind, JsonObject]]
    unseen: list[Kind]

    @property
    def note(self) -> str:
        """Say what may have stayed; nothing where everything was seen."""
        names = ", ".join(kind.plural for kind in self.unseen)
        return f"note: you may not list {names}: what an earlier version left of them stays" if names else ""


async def leftovers(client: Client, labels: Mapping[str, str], wanted: Collection[JsonObject]) -> Leftovers:
    """Find what carries the operator's labels and is not wanted."""
    left = Leftovers([], [])
    kept = {_key(document) for document in wanted}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    for kind in _KINDS:
        try:
            listed = await client.list(kind, labels=selector)
        except Forbidden:
            left.unseen.append(kind)
            continue
        for item in listed:
            # Items of a list need not say what they are.
            item = {"apiVersion": kind.api_version, "kind": kind.kind, **item}
            if _key(item) not in kept and "deletionTimestamp" not in item["metadata"]:
                left.found.append((kind, item))
    return left


def _key(document: JsonObject) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]
