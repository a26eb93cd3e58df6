"""What a run by URL leaves in a cluster when it is killed: webhooks at an address where nobody answers."""

from typing import Any

from kubewright.api import Kind, NotFound
from kubewright.client import Client
from kubewright.webhook import Endpoints, WebhookNames
from kubewright.webhook.server.registration import CONFIGURATIONS, DEFINITIONS, client_config

Wire = dict[str, Any]


async def find_leftovers(client: Client, endpoints: Endpoints, names: WebhookNames) -> list[tuple[Kind, str]]:
    """Find what runs by URL have registered: configurations, and CRDs that are converted there."""
    found: list[tuple[Kind, str]] = []
    for kind, name in (
        (CONFIGURATIONS["MutatingWebhookConfiguration"], names.mutating),
        (CONFIGURATIONS["ValidatingWebhookConfiguration"], names.validating),
    ):
        live = await _found(client, kind, name)
        entries: list[Wire] = (live or {}).get("webhooks") or []
        if entries and all("url" in entry["clientConfig"] for entry in entries):
            found.append((kind, name))
    for name in endpoints.converted:
        live = await _found(client, DEFINITIONS, name)
        if live is not None and "url" in client_config(live["spec"].get("conversion") or {}):
            found.append((DEFINITIONS, name))
    return found


async def clear_leftovers(client: Client, endpoints: Endpoints, names: WebhookNames) -> list[str]:
    """Take away what runs by URL have registered, and say what; what was deployed stays."""
    cleared: list[str] = []
    for kind, name in await find_leftovers(client, endpoints, names):
        if kind == DEFINITIONS:
            patch = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
            await client.patch(DEFINITIONS, patch, name=name, field_manager=f"{names.operator}-webhooks")
            cleared.append(f"customresourcedefinition.apiextensions.k8s.io/{name} (conversion)")
        else:
            await client.delete(kind, name)
            cleared.append(f"{kind.kind.lower()}.{kind.group}/{name}")
    return cleared


async def _found(client: Client, kind: Any, name: str) -> Wire | None:
    try:
        return await client.get(kind, name)
    except NotFound:
        return None
