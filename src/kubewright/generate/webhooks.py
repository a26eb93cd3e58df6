"""What makes API servers ask a deployed operator: its configurations, its Service, a Secret for its certificates."""

from kubewright.api import JsonObject
from kubewright.controller import Operator
from kubewright.generate.names import Names
from kubewright.generate.rbac import named
from kubewright.webhook import WebhookNames
from kubewright.webhook.configurations import SERVICE_PORT, ByService, configurations

WEBHOOK_PORT = 9443


def webhooks(operator: Operator, names: Names) -> list[JsonObject]:
    """Render the webhook documents of an operator; none where it declares no webhooks.

    The operator fills the Secret and sets the authorities: its role lets it change these objects, not make any.
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
