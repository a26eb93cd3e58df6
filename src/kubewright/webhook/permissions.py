"""RBAC rules that webhooks need in addition to those of the controllers."""

from kubewright.api import PolicyRule
from kubewright.webhook.endpoints import Endpoints
from kubewright.webhook.naming import WebhookNames

_ADMISSION = ("admissionregistration.k8s.io",)


def webhook_rules(operator: str, webhooks: Endpoints) -> list[PolicyRule]:
    """Return the rules for updating address and CA bundle of the webhooks, for a ClusterRole: the kinds are cluster-scoped."""
    names, verbs = WebhookNames(operator), ("get", "patch")
    rules: list[PolicyRule] = []
    if webhooks.mutating:
        rules.append(PolicyRule(_ADMISSION, ("mutatingwebhookconfigurations",), verbs, (names.mutating,)))
    if webhooks.validating:
        rules.append(PolicyRule(_ADMISSION, ("validatingwebhookconfigurations",), verbs, (names.validating,)))
    if webhooks.conversions:
        resources = ("customresourcedefinitions",)
        rules.append(PolicyRule(("apiextensions.k8s.io",), resources, verbs, webhooks.converted))
    return rules


def certificate_rules(operator: str, webhooks: Endpoints) -> list[PolicyRule]:
    """Return the rules for the webhooks' certificates, for a Role in the operator's namespace."""
    if not webhooks:
        return []
    return [PolicyRule(("",), ("secrets",), ("get", "patch"), (WebhookNames(operator).secret,))]


def registration_rules(operator: str, webhooks: Endpoints) -> list[PolicyRule]:
    """Return the additional rules of a run outside the cluster, to create and delete its webhook configurations."""
    return [
        PolicyRule(rule.api_groups, rule.resources, ("create", "delete"), rule.resource_names)
        for rule in webhook_rules(operator, webhooks)
        if rule.api_groups == _ADMISSION
    ]
