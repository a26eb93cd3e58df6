"""Authorize by the RBAC objects in the store."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kubewright.devserver.auth.rules import Rule, allows
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.request.identity import MASTERS, Attributes, Decision, User

GROUP = "rbac.authorization.k8s.io"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"


class Policies(Protocol):
    """The RBAC objects, and a mark that changes whenever one of them does."""

    def mark(self) -> object:
        """Give a value that is equal as long as no RBAC object has changed."""
        ...

    def list(self, group: str, resource: str, namespace: str = "", labels: str = "") -> list[JsonObject]:
        """Read all objects of a resource."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """One subject of one binding, with the rules it is given."""

    subject: Mapping[str, Any]
    namespace: str
    """Empty for a ClusterRoleBinding."""
    binding: str
    role_kind: str
    role_name: str
    rules: Sequence[Rule]
    found: bool

    def reaches(self, user: User) -> bool:
        """Tell whether the grant is for this user."""
        kind, name = self.subject.get("kind"), self.subject.get("name", "")
        if kind == "User":
            return user.name == name
        if kind == "Group":
            return name in user.groups
        if kind == "ServiceAccount":
            namespace = self.subject.get("namespace") or self.namespace
            return bool(namespace) and user.name == f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"
        return False

    def describe(self) -> str:
        """Say by which binding the rules are had."""
        if self.namespace:
            return f'RoleBinding "{self.binding}/{self.namespace}" of {self.role_kind} "{self.role_name}" to {self._who()}'
        return f'ClusterRoleBinding "{self.binding}" of {self.role_kind} "{self.role_name}" to {self._who()}'

    def _who(self) -> str:
        kind, name = self.subject.get("kind"), self.subject.get("name")
        if kind == "ServiceAccount":
            return f'{kind} "{name}/{self.subject.get("namespace") or self.namespace}"'
        return f'{kind} "{name}"'


class RoleAuthorizer:
    """Decide by Roles, ClusterRoles and their bindings; system:masters may do everything."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._mark: object = None
        self._grants: list[Grant] = []

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Decide about one request."""
        if MASTERS in user.groups:
            return Decision(True)
        missing: list[str] = []
        for grant in self.grants(user, attributes.namespace):
            if not grant.found:
                missing.append(f'{grant.role_kind.lower()}.{GROUP} "{grant.role_name}" not found')
            elif any(allows(rule, attributes) for rule in grant.rules):
                return Decision(True, f"RBAC: allowed by {grant.describe()}")
        if len(missing) > 1:
            return Decision(False, f"RBAC: [{', '.join(missing)}]")
        return Decision(False, f"RBAC: {missing[0]}" if missing else "")

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Give what a user is granted in a namespace: cluster-wide grants first."""
        mark = self._policies.mark()
        if mark != self._mark:
            self._grants = list(_read_grants(self._policies))
            self._mark = mark
        for grant in self._grants:
            if (not grant.namespace or grant.namespace == namespace) and grant.reaches(user):
                yield grant

    def rules(self, user: User, namespace: str) -> list[Rule]:
        """Give all rules a user has in a namespace."""
        if MASTERS in user.groups:
            return [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                {"verbs": ["*"], "nonResourceURLs": ["*"]},
            ]
        return [rule for grant in self.grants(user, namespace) for rule in grant.rules]


def role_rules(policies: Policies, reference: Mapping[str, Any], namespace: str) -> Sequence[Rule] | None:
    """Find the rules of the role that a binding names, None when there is no such role."""
    if reference.get("kind") == "ClusterRole":
        roles = policies.list(GROUP, "clusterroles")
    else:
        roles = policies.list(GROUP, "roles", namespace)
    for role in roles:
        if role["metadata"]["name"] == reference.get("name"):
            return role.get("rules") or ()
    return None


def _read_grants(policies: Policies) -> Iterator[Grant]:
    cluster_roles = {
        role["metadata"]["name"]: role.get("rules") or () for role in policies.list(GROUP, "clusterroles")
    }
    roles = {
        (role["metadata"]["namespace"], role["metadata"]["name"]): role.get("rules") or ()
        for role in policies.list(GROUP, "roles")
    }
    bindings = [*policies.list(GROUP, "clusterrolebindings"), *policies.list(GROUP, "rolebindings")]
    for binding in bindings:
        name, namespace = binding["metadata"]["name"], binding["metadata"].get("namespace", "")
        role = binding["roleRef"]
        if role["kind"] == "ClusterRole":
            rules = cluster_roles.get(role["name"])
        else:
            rules = roles.get((namespace, role["name"]))
        for subject in binding.get("subjects") or ():
            yield Grant(subject, namespace, name, role["kind"], role["name"], rules or (), rules is not None)
