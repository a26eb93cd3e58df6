"""RBAC rules, and those that every operator needs in addition to what its controllers declare."""

from collections.abc import Iterable
from typing import Any, NamedTuple

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


class Right(NamedTuple):
    """One right, as all commands count them: a verb on a resource, whatever the namespaces and names."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        plain, slash, subresource = self.resource.partition("/")
        return f"{self.verb} {plain}{f'.{self.group}' if self.group else ''}{slash}{subresource}"


def rights_of(rules: Iterable[PolicyRule]) -> set[Right]:
    """Return each right that rules grant."""
    return {
        Right(group, resource, verb)
        for rule in rules
        for group in rule.api_groups
        for resource in rule.resources
        for verb in rule.verbs
    }


def lease_rules(name: str, *, sharded: bool = False) -> list[PolicyRule]:
    """Return the rules for leader election, or for the leases of shards, for a Role in the lease's namespace."""
    if sharded:
        # They are listed, and those of replicas have names that are not known before.
        verbs = ("create", "delete", "get", "list", "update")
        return [PolicyRule(("coordination.k8s.io",), ("leases",), verbs)]
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
