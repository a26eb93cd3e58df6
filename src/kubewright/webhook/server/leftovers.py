"""Registrations that a killed run by URL leaves in a cluster: webhooks at an address where no process responds."""

from kubewright.api import CUSTOM_RESOURCE_DEFINITION, Conflict, JsonObject, Kind, NotFound
from kubewright.client import Client
from kubewright.webhook import Endpoints, WebhookNames
from kubewright.webhook.server.by_url import addresses_of, restore_deployed
from kubewright.webhook.server.registration import CONFIGURATIONS


async def find_leftovers(
    client: Client, endpoints: Endpoints, names: WebhookNames
) -> list[tuple[Kind, JsonObject]]:
    """Find the registrations of runs by URL: webhook configurations, and CRDs with a conversion webhook."""
    registered = [
        (CONFIGURATIONS["MutatingWebhookConfiguration"], names.mutating),
        (CONFIGURATIONS["ValidatingWebhookConfiguration"], names.validating),
        *((CUSTOM_RESOURCE_DEFINITION, name) for name in endpoints.converted),
    ]
    found: list[tuple[Kind, JsonObject]] = []
    for kind, name in registered:
        try:
            live = await client.get(kind, name)
        except NotFound:
            continue
        places = addresses_of(live)
        if places and all("url" in address for address in places):
            found.append((kind, live))
    return found


async def clear_leftovers(
    client: Client, endpoints: Endpoints, names: WebhookNames, *, conversions: bool = True
) -> list[str]:
    """Remove the registrations of runs by URL and return their names; deployed ones are kept or restored.

    Conversions are pointed to the Service: without a conversion webhook the API server would drop fields.
    """
    cleared: list[str] = []
    for kind, live in await find_leftovers(client, endpoints, names):
        if kind == CUSTOM_RESOURCE_DEFINITION and not conversions:
            continue
        try:
            await restore_deployed(client, kind, live, names)
        except (Conflict, NotFound):
            # Another process registers or removes it right now.
            continue
        part = " (conversion)" if kind == CUSTOM_RESOURCE_DEFINITION else ""
        cleared.append(f"{kind.kind.lower()}.{kind.group}/{live['metadata']['name']}{part}")
    return cleared
