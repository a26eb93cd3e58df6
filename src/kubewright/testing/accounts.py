"""Run an operator as a ServiceAccount that may do what its declarations say and nothing else."""

from typing import Any

from kubewright.api import Meta
from kubewright.api.builtin import core_v1, rbac_v1
from kubewright.client import Client, ClusterConfig
from kubewright.controller import (
    Operator,
    PolicyRule,
    certificate_rules,
    lease_rules,
    registration_rules,
    rules_for,
    webhook_rules,
)


async def grant(client: Client, config: ClusterConfig, operator: Operator, namespace: str) -> ClusterConfig:
    """Make account, role and binding for an operator; gives the configuration to run it with."""
    name = f"{operator.name}-manager"
    account = core_v1.ServiceAccount(Meta(name, namespace=namespace))
    await client.apply(account, field_manager="kubewright-testing")
    # Tests run beside their API server, so webhooks are registered by the operator itself.
    rules = [*rules_for(operator), *webhook_rules(operator), *registration_rules(operator)]
    await _bind(client, f"{namespace}-{name}", rules, account, cluster=True)
    own = [*lease_rules(operator.name), *certificate_rules(operator)]
    await _bind(client, f"{name}-own-objects", own, account, cluster=False)
    token = await client.token_request(name, namespace)
    # Only the account's own credentials: an administrator's certificate would win over the token.
    return ClusterConfig(
        config.server, namespace, config.ca_data, config.insecure, config.tls_server_name, token=token.token
    )


async def revoke(client: Client, operator: Operator, namespace: str) -> None:
    """Take the cluster-wide role away; the rest goes with the namespace."""
    name = f"{namespace}-{operator.name}-manager"
    await client.delete(rbac_v1.ClusterRoleBinding, name)
    await client.delete(rbac_v1.ClusterRole, name)


async def _bind(
    client: Client, name: str, rules: list[PolicyRule], account: core_v1.ServiceAccount, *, cluster: bool
) -> None:
    namespace = account.metadata.namespace
    kind, binding_kind = ("ClusterRole", "ClusterRoleBinding") if cluster else ("Role", "RoleBinding")
    metadata: dict[str, Any] = {"name": name, **({} if cluster else {"namespace": namespace})}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": [rule.to_wire() for rule in rules],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": binding_kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account.metadata.name, "namespace": namespace}],
    }
    for document in (role, binding):
        await client.apply(document, field_manager="kubewright-testing")
