"""The NetworkPolicy of an operator's Pods."""

from kubewright.api import JsonObject
from kubewright.controller import Operator
from kubewright.generate.metrics import METRICS_PORT
from kubewright.generate.names import Names
from kubewright.generate.rbac import named
from kubewright.generate.webhooks import WEBHOOK_PORT

METRICS_LABEL = {"metrics": "enabled"}
"""Namespaces with this label may read the metrics; kubebuilder's choice."""


def network(operator: Operator, names: Names) -> list[JsonObject]:
    """Render the NetworkPolicy: metrics from labelled namespaces, webhooks from anywhere, nothing else.

    A policy sees the port of the Pod, not of the Service; the API server is in no namespace, so webhooks
    cannot be limited by one. Probes come from the Pod's own node, which no policy holds back.
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
