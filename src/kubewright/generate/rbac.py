"""The ServiceAccount an operator runs as, and the roles it needs: no more than its declarations say."""

from collections.abc import Sequence
from typing import Any

from kubewright.controller import (
    Operator,
    PolicyRule,
    certificate_rules,
    lease_rules,
    rules_for,
    webhook_rules,
)
from kubewright.generate.names import Names

RBAC = "rbac.authorization.k8s.io/v1"
_GROUP = "rbac.authorization.k8s.io"
Wire = dict[str, Any]


def rbac(operator: Operator, names: Names, namespaces: Sequence[str] = ()) -> list[Wire]:
    """Render namespace, account, roles and bindings; limited to namespaces where they are given."""
    rules, cluster_wide = _wire(rules_for(operator)), _wire(webhook_rules(operator))
    documents: list[Wire] = [
        named("v1", "Namespace", names.namespace, names),
        named("v1", "ServiceAccount", names.account, names, names.namespace),
    ]
    if namespaces:
        for namespace in namespaces:
            documents += granted("Role", names.role, rules, names, namespace)
        if cluster_wide:
            documents += granted("ClusterRole", names.webhook_role, cluster_wide, names)
    else:
        documents += granted("ClusterRole", names.role, [*rules, *cluster_wide], names)
    documents += granted("Role", names.lease_role, _wire(lease_rules(operator.name)), names, names.namespace)
    if certificates := _wire(certificate_rules(operator)):
        documents += granted("Role", names.webhook_role, certificates, names, names.namespace)
    return documents


def _wire(rules: Sequence[PolicyRule]) -> list[Wire]:
    return [rule.to_wire() for rule in rules]


def granted(kind: str, name: str, rules: list[Wire], names: Names, namespace: str = "") -> list[Wire]:
    """Render a role and its binding to the operator's account."""
    role = {**named(RBAC, kind, name, names, namespace), "rules": rules}
    binding: Wire = {
        **named(RBAC, f"{kind}Binding", f"{name}binding", names, namespace),
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": names.account, "namespace": names.namespace}],
    }
    return [role, binding]


def named(api_version: str, kind: str, name: str, names: Names, namespace: str = "") -> Wire:
    """Begin a document: its kind, its name, the labels all of an operator's objects carry."""
    metadata: Wire = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": names.labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
