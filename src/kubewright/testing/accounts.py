"""Run an operator as a ServiceAccount with only the declared permissions."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from kubewright.api import Forbidden, Meta, PolicyRule, lease_rules, rights_of
from kubewright.api.builtin import authorization_v1, core_v1, rbac_v1
from kubewright.client import Client, ClusterConfig
from kubewright.controller import Operator, disruption_rules, rules_for
from kubewright.webhook import certificate_rules, registration_rules, webhook_rules

_POLL, _TIMEOUT = 0.02, 30.0
_LIFETIME = timedelta(days=3650)
"""Longer than any test, also in virtual time: the token is not renewed."""


async def grant(client: Client, config: ClusterConfig, operator: Operator, namespace: str) -> ClusterConfig:
    """Create account, role and binding for an operator, and return the configuration to run it with.

    Wait until the server enforces the role.
    """
    name = _account(operator)
    account = core_v1.ServiceAccount(Meta(name, namespace=namespace))
    await client.apply(account, field_manager="kubewright-testing")
    rules, own = _rules(operator), _own_rules(operator)
    await _bind(client, f"{namespace}-{name}", rules, account, cluster=True)
    await _bind(client, f"{name}-own-objects", own, account, cluster=False)
    for granted in (rules, own):
        await _wait(client, account, granted, allowed=True)
    token = await client.token_request(name, namespace, lifetime=_LIFETIME)
    # Only the account's own credentials: an administrator's certificate would take precedence over the token.
    return ClusterConfig(
        config.server, namespace, config.ca_data, config.insecure, config.tls_server_name, token=token.token
    )


async def revoke(client: Client, operator: Operator, namespace: str) -> None:
    """Delete the cluster-wide role; the rest is deleted with the namespace."""
    account = core_v1.ServiceAccount(Meta(_account(operator), namespace=namespace))
    name = f"{namespace}-{account.metadata.name}"
    await client.delete(rbac_v1.ClusterRoleBinding, name)
    await client.delete(rbac_v1.ClusterRole, name)
    # A new grant of the same rules must not use the account that is being removed.
    own = rights_of(_own_rules(operator))
    revoked = [rule for rule in _rules(operator) if rights_of([rule]).isdisjoint(own)]
    await _wait(client, account, revoked, allowed=False)


def user_of(operator: Operator, namespace: str) -> str:
    """Return the user that an operator runs as."""
    return f"system:serviceaccount:{namespace}:{_account(operator)}"


def _account(operator: Operator) -> str:
    return f"{operator.name}-manager"


def _rules(operator: Operator) -> list[PolicyRule]:
    # Tests run on the machine of their API server, so the operator registers its webhooks itself.
    return [
        *rules_for(operator),
        *webhook_rules(operator.name, operator.webhooks),
        *registration_rules(operator.name, operator.webhooks),
    ]


def _own_rules(operator: Operator) -> list[PolicyRule]:
    """Return the rules for objects of the operator itself, in its namespace."""
    return [
        *lease_rules(operator.name, sharded=operator.shards is not None),
        *disruption_rules(operator),
        *certificate_rules(operator.name, operator.webhooks),
    ]


async def _wait(
    client: Client, account: core_v1.ServiceAccount, rules: Sequence[PolicyRule], *, allowed: bool
) -> None:
    """Wait until the server enforces a role and its binding, or their deletion."""
    for rule in rules[:1]:
        resource, _, subresource = rule.resources[0].partition("/")
        attributes = authorization_v1.ResourceAttributes(
            namespace=account.metadata.namespace,
            group=rule.api_groups[0],
            resource=resource,
            subresource=subresource,
            verb=rule.verbs[0],
            name=next(iter(rule.resource_names), ""),
        )
        user = f"system:serviceaccount:{account.metadata.namespace}:{account.metadata.name}"
        review = authorization_v1.SubjectAccessReview(
            spec=authorization_v1.SubjectAccessReviewSpec(user=user, resource_attributes=attributes)
        )
        try:
            async with asyncio.timeout(_TIMEOUT):
                while (await client.create(review)).status.allowed != allowed:  # noqa: ASYNC110 (it lies in the cluster)
                    await asyncio.sleep(_POLL)
        except (TimeoutError, Forbidden):
            # Another role grants the same, or reviews are not allowed: the operator's requests will show it.
            return


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
