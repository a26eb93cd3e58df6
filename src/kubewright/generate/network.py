"""How an operator's Pods are reached: webhooks, metrics and their Services, and the NetworkPolicy."""

from kubewright.api import JsonObject, PolicyRule, review_rules
from kubewright.controller import Operator
from kubewright.generate.names import Names
from kubewright.generate.rbac import RBAC, granted, named
from kubewright.webhook import WebhookNames
from kubewright.webhook.configurations import SERVICE_PORT, ByService, configurations

WEBHOOK_PORT = 9443
METRICS_PORT = 8443
METRICS_PORT_NAME = "https"
JOURNAL_PATH = "/journal"
METRICS_LABEL = {"metrics": "enabled"}
"""Namespaces with this label may read the metrics; kubebuilder's choice."""


def webhooks(operator: Operator, names: Names) -> list[JsonObject]:
    """Render the webhook configurations, their Service, and the Secret for certificates; none without webhooks.

    The operator fills the Secret and sets the CA bundles: its role allows changes of these objects, not their creation.
    """
    if not operator.webhooks:
        return []
    own = WebhookNames(operator.name)
    service: JsonObject = {
        **named("v1", "Service", own.service, names, names.namespace),
        "spec": {
            "ports": [
                {"name": "webhooks", "port": SERVICE_PORT, "protocol": "TCP", "targetPort": WEBHOOK_PORT}
            ],
            "selector": names.selector,
        },
    }
    secret = named("v1", "Secret", own.secret, names, names.namespace)
    documents = [service, {**secret, "type": "Opaque"}]
    for document in configurations(operator.webhooks, own, ByService(names.namespace, own.service)):
        metadata = {**document["metadata"], "labels": names.labels}
        documents.append({**document, "metadata": metadata})
    return documents


def serving_rules() -> list[JsonObject]:
    """Return the rules of the operator's account to authorize requests for metrics and journal.

    It may read the journal itself: `kubewright why` uses its token.
    """
    reading = {"nonResourceURLs": [JOURNAL_PATH], "verbs": ["get"]}
    return [*(rule.to_wire() for rule in review_rules()), reading]


def metrics(names: Names) -> list[JsonObject]:
    """Render the metrics Service, the role for authorizing requests, and the role for reading metrics and journal."""
    ports = [{"name": METRICS_PORT_NAME, "port": METRICS_PORT, "protocol": "TCP", "targetPort": "metrics"}]
    return [
        {
            **named("v1", "Service", names.metrics_service, names, names.namespace),
            "spec": {"ports": ports, "selector": names.selector},
        },
        *granted("ClusterRole", names.review_role, serving_rules(), names),
        {
            **named(RBAC, "ClusterRole", names.metrics_reader, names),
            "rules": [{"nonResourceURLs": ["/metrics", JOURNAL_PATH], "verbs": ["get"]}],
        },
    ]


def metrics_certificate(names: Names) -> list[JsonObject]:
    """Render the Secret for the certificate of the metrics, which the operator fills, and the role for that."""
    rule = PolicyRule(("",), ("secrets",), ("get", "patch"), (names.metrics_secret,))
    role = granted("Role", names.metrics_certificate_role, [rule.to_wire()], names, names.namespace)
    secret = named("v1", "Secret", names.metrics_secret, names, names.namespace)
    return [{**secret, "type": "Opaque"}, *role]


def network(operator: Operator, names: Names) -> list[JsonObject]:
    """Render the NetworkPolicy: metrics from labelled namespaces, webhooks from anywhere, nothing else.

    A policy applies to the port of the Pod, not of the Service. The API server is in no namespace, so webhooks
    cannot be limited to one. Probes come from the Pod's node, which no policy restricts.
    """
    ingress: list[JsonObject] = [
        {
            "from": [{"namespaceSelector": {"matchLabels": METRICS_LABEL}}],
            "ports": [{"port": METRICS_PORT, "protocol": "TCP"}],
        }
    ]
    if operator.webhooks:
        ingress.append({"ports": [{"port": WEBHOOK_PORT, "protocol": "TCP"}]})
    spec = {
        "podSelector": {"matchLabels": names.selector},
        "policyTypes": ["Ingress"],
        "ingress": ingress,
    }
    document = named("networking.k8s.io/v1", "NetworkPolicy", names.manager, names, names.namespace)
    return [{**document, "spec": spec}]
