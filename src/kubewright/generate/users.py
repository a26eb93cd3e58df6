"""Roles for the people who use an operator's kinds; the operator itself needs none of them."""

from kubewright.api import JsonObject, Kind, kind_of
from kubewright.controller import Operator
from kubewright.generate.names import Names
from kubewright.generate.rbac import RBAC, named

_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
# What each role may do, and the built-in role that it becomes part of.
_ROLES = {
    "admin": (["*"], "admin"),
    "editor": (sorted([*_READ, *_WRITE]), "edit"),
    "viewer": (_READ, "view"),
}


def user_roles(operator: Operator, names: Names) -> list[JsonObject]:
    """Render an admin, an editor and a viewer role for each kind that the operator brings."""
    # Versions of one kind share their roles.
    kinds = {(kind.group, kind.kind): kind for kind in map(kind_of, operator.kinds)}
    return [_role(which, kind, names) for kind in kinds.values() for which in _ROLES]


def _role(which: str, kind: Kind, names: Names) -> JsonObject:
    verbs, into = _ROLES[which]
    rules: list[JsonObject] = [{"apiGroups": [kind.group], "resources": [kind.plural], "verbs": list(verbs)}]
    if kind.status:
        rules.append({"apiGroups": [kind.group], "resources": [f"{kind.plural}/status"], "verbs": ["get"]})
    document = named(RBAC, "ClusterRole", names.user_role(kind.kind, which), names)
    if kind.namespaced:
        # The built-in roles are for namespaces: what belongs to the whole cluster is granted by hand.
        document["metadata"]["labels"] |= {f"rbac.authorization.k8s.io/aggregate-to-{into}": "true"}
    return {**document, "rules": rules}
