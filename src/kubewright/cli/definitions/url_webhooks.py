"""Webhooks that `kubewright run` has registered by URL, and that remain if it is killed."""

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
    """Delete webhook configurations with URLs; with `conversions`, point CRDs to the operator's Service."""
    if operator.webhooks:
        clear, names = import_module(WEBHOOK_SERVER).clear_leftovers, WebhookNames(operator.name)
        for cleared in await clear(client, operator.webhooks, names, conversions=conversions):
            progress.done(f"{cleared} deleted: it was registered by `kubewright run`")


async def converted_by_url(client: Client, operator: Operator) -> set[str]:
    """Return the names of CRDs with a conversion webhook registered by URL."""
    if not operator.webhooks:
        return set()
    find, names = import_module(WEBHOOK_SERVER).find_leftovers, WebhookNames(operator.name)
    found = await find(client, operator.webhooks, names)
    return {live["metadata"]["name"] for kind, live in found if kind.kind == "CustomResourceDefinition"}
