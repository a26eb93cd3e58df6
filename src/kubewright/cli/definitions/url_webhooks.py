"""Webhooks that a run by URL has registered: dead once it was killed, and in the way of a deployment."""

from importlib import import_module

from kubewright.cli.progress import Progress
from kubewright.client import Client
from kubewright.controller import Operator
from kubewright.webhook import WebhookNames

# Loaded only for operators with webhooks: it makes certificates.
WEBHOOK_SERVER = "kubewright.webhook.server"


async def clear_url_webhooks(client: Client, operator: Operator, progress: Progress) -> None:
    """Take them away, each with a line."""
    if operator.webhooks:
        server = import_module(WEBHOOK_SERVER)
        for cleared in await server.clear_leftovers(client, operator.webhooks, WebhookNames(operator.name)):
            progress.done(f"{cleared} removed: a run by URL had registered it")


async def converted_by_url(client: Client, operator: Operator) -> set[str]:
    """Name the CRDs whose versions are converted by such a run."""
    if not operator.webhooks:
        return set()
    server = import_module(WEBHOOK_SERVER)
    found = await server.find_leftovers(client, operator.webhooks, WebhookNames(operator.name))
    return {name for kind, name in found if kind.kind == "CustomResourceDefinition"}
