"""RBAC rules as values, and those that every operator needs beside what its controllers declare."""

from typing import Any

import msgspec


class PolicyRule(msgspec.Struct, frozen=True):
    """One rule of a Role or ClusterRole."""

    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    resource_names: tuple[str, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        """Return the rule as a Role or ClusterRole holds it."""
        rule: dict[str, Any] = {"apiGroups": list(self.api_groups), "resources": list(self.resources)}
        if self.resource_names:
            rule["resourceNames"] = list(self.resource_names)
        return rule | {"verbs": list(self.verbs)}


def lease_rules(name: str) -> list[PolicyRule]:
    """Return the rules for leader election, for a Role in the lease's namespace."""
    # A create cannot be limited by name: the server does not know the name when it authorizes it.
    return [
        PolicyRule(("coordination.k8s.io",), ("leases",), ("create",)),
        PolicyRule(("coordination.k8s.io",), ("leases",), ("get", "update"), (name,)),
    ]


def review_rules() -> list[PolicyRule]:
    """Return the rules to authenticate and authorize the clients of the metrics endpoint."""
    return [
        PolicyRule(("authentication.k8s.io",), ("tokenreviews",), ("create",)),
        PolicyRule(("authorization.k8s.io",), ("subjectaccessreviews",), ("create",)),
    ]
