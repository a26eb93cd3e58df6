"""The ServiceAccount of an operator and the roles that its declarations need; roles for the users of its kinds."""

from collections.abc import Sequence
from typing import Literal

from msgspec import structs

from kubewright.api import JsonObject, Kind, PolicyRule, kind_of, lease_rules
from kubewright.api.scoping import lease_name
from kubewright.controller import Operator, disruption_rules, rules_for
from kubewright.generate.names import Names
from kubewright.webhook import certificate_rules, registration_rules, webhook_rules

GROUP = "rbac.authorization.k8s.io"
RBAC = f"{GROUP}/v1"
_EVENTS = "events.k8s.io"

WebhookReach = Literal["service", "url"]

_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
# Verbs of each role for users, and the built-in role to which it is aggregated.
_USER_ROLES = {
    "admin": (["*"], "admin"),
    "editor": (sorted([*_READ, *_WRITE]), "edit"),
    "viewer": (_READ, "view"),
}


def rbac(
    operator: Operator,
    names: Names,
    namespaces: Sequence[str] = (),
    webhook_reach: WebhookReach = "service",
    selector: str = "",
) -> list[JsonObject]:
    """Render namespace, account, roles and bindings; limited to namespaces where they are given.

    `selector` is the label selector of the objects that the account's replicas reconcile: its Lease has a name of its own.

    With `webhook_reach="url"` the account may also create and delete its webhook configurations, as a run outside the
    cluster does; its certificates are in a file then, not in a Secret.
    """
    outside_cluster = webhook_reach == "url"
    rules, webhooks = rules_for(operator), webhook_rules(operator.name, operator.webhooks)
    cluster_wide = _wire(
        [*webhooks, *registration_rules(operator.name, operator.webhooks)] if outside_cluster else webhooks
    )
    documents: list[JsonObject] = [
        _namespace(names),
        named("v1", "ServiceAccount", names.account, names, names.namespace),
    ]
    if namespaces:
        inside, outside = by_scope(rules, operator)
        for namespace in dict.fromkeys(namespaces):
            documents += granted("Role", names.role, _wire(inside), names, namespace)
        if outside:
            documents += granted("ClusterRole", names.role, _wire(outside), names)
        if cluster_wide:
            documents += granted("ClusterRole", names.webhook_role, cluster_wide, names)
    else:
        documents += granted("ClusterRole", names.role, [*_wire(rules), *cluster_wide], names)
    own_objects = _wire(
        [
            *lease_rules(lease_name(operator.name, selector), sharded=operator.shards is not None),
            *disruption_rules(operator),
        ]
    )
    documents += granted("Role", names.lease_role, own_objects, names, names.namespace)
    if not outside_cluster and (certificates := _wire(certificate_rules(operator.name, operator.webhooks))):
        documents += granted("Role", names.webhook_role, certificates, names, names.namespace)
    return documents


def by_scope(rules: Sequence[PolicyRule], operator: Operator) -> tuple[list[PolicyRule], list[PolicyRule]]:
    """Split rules into those for a Role and those for cluster-scoped kinds, which need a ClusterRole."""
    clustered = _cluster_kinds(operator)
    own = {(kind.group, kind.plural) for kind in (kind_of(each.kind) for each in operator.controllers)}
    inside: list[PolicyRule] = []
    outside: list[PolicyRule] = []
    for rule in rules:
        (group,) = rule.api_groups
        there = tuple(name for name in rule.resources if (group, name.partition("/")[0]) in clustered)
        here = tuple(name for name in rule.resources if name not in there)
        if here:
            inside.append(structs.replace(rule, resources=here))
        if there:
            outside.append(structs.replace(rule, resources=there))
        elif group == _EVENTS and (own & clustered or operator.namespaces is not None):
            # Events of cluster-scoped objects, as of a namespace that cannot be read, are in "default", which may not
            # be one of the given namespaces.
            outside.append(rule)
    return inside, outside


def _cluster_kinds(operator: Operator) -> set[tuple[str, str]]:
    kinds: list[Kind] = []
    for controller in operator.controllers:
        kinds.append(kind_of(controller.kind))
        kinds += [kind_of(each.kind) for each in (*controller.owns, *controller.watches)]
        kinds += [need.kind for need in controller.needs]
    followed = {("", "namespaces")} if operator.namespaces is not None else set[tuple[str, str]]()
    return {(kind.group, kind.plural) for kind in kinds if not kind.namespaced} | followed


def _namespace(names: Names) -> JsonObject:
    """Render the Namespace, which enforces the restricted Pod security standard."""
    document = named("v1", "Namespace", names.namespace, names)
    document["metadata"]["labels"] |= {"pod-security.kubernetes.io/enforce": "restricted"}
    return document


def _wire(rules: Sequence[PolicyRule]) -> list[JsonObject]:
    return [rule.to_wire() for rule in rules]


def granted(
    kind: str, name: str, rules: list[JsonObject], names: Names, namespace: str = ""
) -> list[JsonObject]:
    """Render a role and its binding to the operator's account."""
    role = {**named(RBAC, kind, name, names, namespace), "rules": rules}
    binding: JsonObject = {
        **named(RBAC, f"{kind}Binding", f"{name}binding", names, namespace),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": names.account, "namespace": names.namespace}],
    }
    return [role, binding]


def named(api_version: str, kind: str, name: str, names: Names, namespace: str = "") -> JsonObject:
    """Return a new document with its kind, name and the labels of the operator."""
    metadata: JsonObject = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "labels": names.labels,
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def user_roles(operator: Operator, names: Names) -> list[JsonObject]:
    """Render an admin, an editor and a viewer role for each kind that the operator installs."""
    # Versions of one kind share their roles.
    kinds = {(kind.group, kind.kind): kind for kind in map(kind_of, operator.kinds)}
    return [_user_role(which, kind, names) for kind in kinds.values() for which in _USER_ROLES]


def _user_role(which: str, kind: Kind, names: Names) -> JsonObject:
    verbs, into = _USER_ROLES[which]
    rules: list[JsonObject] = [{"apiGroups": [kind.group], "resources": [kind.plural], "verbs": list(verbs)}]
    if kind.status:
        rules.append({"apiGroups": [kind.group], "resources": [f"{kind.plural}/status"], "verbs": ["get"]})
    document = named(RBAC, "ClusterRole", names.user_role(kind.kind, which), names)
    if kind.namespaced:
        # The built-in roles are for namespaces: access to cluster-scoped kinds is granted by hand.
        document["metadata"]["labels"] |= {f"rbac.authorization.k8s.io/aggregate-to-{into}": "true"}
    return {**document, "rules": rules}
