"""RBAC authorization by the Roles, ClusterRoles and bindings in the store."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kubewright.devserver.auth.rules import RoleRule, allows
from kubewright.devserver.request.identity import MASTERS, AuthorizationAttributes, Decision, UserInfo
from kubewright.devserver.storage import Derived, ObjectStore
from kubewright.devserver.strategy.access import Access

GROUP = "rbac.authorization.k8s.io"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
AuthorizationMode = Literal["RBAC", "AlwaysAllow", "AlwaysDeny"]
AuthorizationObserver = Callable[[UserInfo, AuthorizationAttributes, bool], None]
"""Called with each permission that a request needs, and whether the user has it."""
_PLURALS = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")


@dataclass(frozen=True, slots=True)
class Grant:
    """One subject of one binding, with the rules of the role."""

    subject: Mapping[str, Any]
    namespace: str
    """Empty for a ClusterRoleBinding."""
    binding: str
    role_kind: str
    role_name: str
    rules: Sequence[RoleRule]
    found: bool

    def applies_to(self, user: UserInfo) -> bool:
        """Return True if the subject is this user or one of its groups."""
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
        """Return the binding as authorization reasons name it."""
        if self.namespace:
            return f'RoleBinding "{self.binding}/{self.namespace}" of {self.role_kind} "{self.role_name}" to {self._subject_text()}'
        return f'ClusterRoleBinding "{self.binding}" of {self.role_kind} "{self.role_name}" to {self._subject_text()}'

    def missing_role(self) -> str:
        """Return the error of a binding whose role does not exist."""
        return f'{self.role_kind.lower()}.{GROUP} "{self.role_name}" not found'

    def _subject_text(self) -> str:
        kind, name = self.subject.get("kind"), self.subject.get("name")
        if kind == "ServiceAccount":
            return f'{kind} "{name}/{self.subject.get("namespace") or self.namespace}"'
        return f'{kind} "{name}"'


class RoleAuthorizer:
    """Authorize requests by the given modes; members of system:masters may do everything.

    RBAC is the one that reads roles; without it roles allow nothing. Each mode may allow a request.
    """

    def __init__(
        self,
        store: ObjectStore,
        api: Access,
        modes: Collection[AuthorizationMode] = ("RBAC",),
        observer: AuthorizationObserver | None = None,
        *,
        names_authorizer: bool = True,
    ) -> None:
        self._modes = modes
        self._observer = observer
        # Before 1.37 errors of an authorizer came without its name.
        self._prefix = "rbac: " if names_authorizer else ""
        names = [f"{plural}.{GROUP}" for plural in _PLURALS]
        self._grants = Derived(store, names, lambda: list(_read_grants(api)))

    def authorize(self, user: UserInfo, attributes: AuthorizationAttributes) -> Decision:
        """Return the decision for a permission that a request needs, and notify the observer."""
        decision = self.decide(user, attributes)
        if self._observer is not None:
            self._observer(user, attributes, decision.allowed)
        return decision

    def may(self, user: UserInfo, attributes: AuthorizationAttributes) -> bool:
        """Return True for a permission that a request has, of several that suffice; only then it counts as used."""
        allowed = self.decide(user, attributes).allowed
        if allowed and self._observer is not None:
            self._observer(user, attributes, allowed)
        return allowed

    def decide(self, user: UserInfo, attributes: AuthorizationAttributes) -> Decision:
        """Return the decision for a question, which uses no permission: a review, or a CEL expression."""
        if MASTERS in user.groups or "AlwaysAllow" in self._modes:
            return Decision(True)
        if "RBAC" not in self._modes:
            return Decision(False, "Everything is forbidden.")
        missing: list[str] = []
        for grant in self.grants(user, attributes.namespace):
            if not grant.found:
                missing.append(grant.missing_role())
            elif any(allows(rule, attributes) for rule in grant.rules):
                return Decision(True, f"RBAC: allowed by {grant.describe()}")
        return Decision(False, f"{self._prefix}RBAC: {_joined(missing)}" if missing else "")

    def grants(self, user: UserInfo, namespace: str) -> Iterator[Grant]:
        """Yield the grants of a user in a namespace, cluster-wide grants first, one of each binding."""
        last: tuple[str, str] | None = None
        for grant in self._grants.get():
            binding = grant.namespace, grant.binding
            if binding == last or (grant.namespace and grant.namespace != namespace):
                continue
            if grant.applies_to(user):
                yield grant
                last = binding

    def evaluation_error(self, user: UserInfo, namespace: str) -> str:
        """Return the error of finding a user's rules: roles that bindings refer to and that do not exist."""
        if MASTERS in user.groups or "AlwaysAllow" in self._modes:
            return ""
        return _joined([grant.missing_role() for grant in self.grants(user, namespace) if not grant.found])

    def rules(self, user: UserInfo, namespace: str) -> list[RoleRule]:
        """Return all rules of a user in a namespace."""
        if MASTERS in user.groups or "AlwaysAllow" in self._modes:
            return [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                {"verbs": ["*"], "nonResourceURLs": ["*"]},
            ]
        return [rule for grant in self.grants(user, namespace) for rule in grant.rules]


def _joined(errors: list[str]) -> str:
    """Join errors as Go does, each message once."""
    found = list(dict.fromkeys(errors))
    return f"[{', '.join(found)}]" if len(found) > 1 else "".join(found)


def _read_grants(api: Access) -> Iterator[Grant]:
    cluster_roles = {
        role["metadata"]["name"]: role.get("rules") or () for role in api.list(GROUP, "clusterroles")
    }
    roles = {
        (role["metadata"]["namespace"], role["metadata"]["name"]): role.get("rules") or ()
        for role in api.list(GROUP, "roles")
    }
    bindings = [*api.list(GROUP, "clusterrolebindings"), *api.list(GROUP, "rolebindings")]
    for binding in bindings:
        name, namespace = binding["metadata"]["name"], binding["metadata"].get("namespace", "")
        role = binding["roleRef"]
        if role["kind"] == "ClusterRole":
            rules = cluster_roles.get(role["name"])
        else:
            rules = roles.get((namespace, role["name"]))
        for subject in binding.get("subjects") or ():
            yield Grant(subject, namespace, name, role["kind"], role["name"], rules or (), rules is not None)
