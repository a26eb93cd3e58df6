"""The ServiceAccount an operator runs as, and the roles it needs: no more than its declarations say."""

from collections.abc import Sequence
from typing import Any

from kubewright.controller import Operator, PolicyRule, lease_rules, rules_for
from kubewright.generate.names import Names

RBAC = "rbac.authorization.k8s.io/v1"
_GROUP = "rbac.authorization.k8s.io"
Wire = dict[str, Any]


def rbac(operator: Operator, names: Names, namespaces: Sequence[str] = ()) -> list[Wire]:
    """Render namespace, account, roles and bindings; limited to namespaces where they are given."""
    rules = [rule.to_wire() for rule in rules_for(operator)]
    documents: list[Wire] = [
        _meta("v1", "Namespace", names.namespace, names),
        _meta("v1", "ServiceAccount", names.account, names, names.namespace),
    ]
    if namespaces:
        for namespace in namespaces:
            documents += _granted("Role", names.role, rules, names, namespace)
    else:
        documents += _granted("ClusterRole", names.role, rules, names)
    documents += _granted("Role", names.lease_role, _lease_rules(operator), names, names.namespace)
    return documents


def _lease_rules(operator: Operator) -> list[Wire]:
    rules: Sequence[PolicyRule] = lease_rules(operator.name)
    return [rule.to_wire() for rule in rules]


def _granted(kind: str, name: str, rules: list[Wire], names: Names, namespace: str = "") -> list[Wire]:
    role = {**_meta(RBAC, kind, name, names, namespace), "rules": rules}
    binding: Wire = {
        **_meta(RBAC, f"{kind}Binding", f"{name}binding", names, namespace),
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": names.account, "namespace": names.namespace}],
    }
    return [role, binding]


def _meta(api_version: str, kind: str, name: str, names: Names, namespace: str = "") -> Wire:
    metadata: Wire = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": names.labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
