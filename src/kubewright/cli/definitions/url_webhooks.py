"""Webhooks that a run by URL has registered: dead once it was killed, and in the way of a deployment."""

from importlib import import_module

from kubewright.cli.progress import Progress
from kubewright.client import Client
from kubewright.controller import Operator
from kubewright.webhook import WebhookNames

# Loaded only for operators with webhooks: it makes certificates.
WEBHOOK_SERVER = "kubewright.webhook.server"


async def clear_url_webhooks(
    client: Client, operator: Operator, progress: Progress, *, conversions: bool = True
) -> None:
    """Take them away, each with a line; conversions, if asked for, are led to the operator's Service."""
    if operator.webhooks:
        clear, names = import_module(WEBHOOK_SERVER).clear_leftovers, WebhookNames(operator.name)
        for cleared in await clear(client, operator.webhooks, names, conversions=conversions):
            progress.done(f"{cleared} removed: a run by URL had registered it")


async def converted_by_url(client: Client, operator: Operator) -> set[str]:
    """Name the CRDs whose versions are converted by such a run."""
    if not operator.webhooks:
        return set()
    find, names = import_module(WEBHOOK_SERVER).find_leftovers, WebhookNames(operator.name)
    found = await find(client, operator.webhooks, names)
    return {live["metadata"]["name"] for kind, live in found if kind.kind == "CustomResourceDefinition"}
