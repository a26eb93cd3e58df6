"""Delete an operator's CRDs from a cluster, protecting their objects, and webhooks that a killed `kubewright run` left."""

import asyncio
from collections.abc import Sequence
from importlib import import_module

from msgspec.structs import replace

from kubewright.api import CUSTOM_RESOURCE_DEFINITION, InternalError, JsonObject, KubewrightError, NotFound
from kubewright.cli.definitions.compatibility import conversion_in, kind_in, live_definition
from kubewright.cli.progress import Progress
from kubewright.client import Client
from kubewright.controller import Operator
from kubewright.webhook import WebhookNames

ESTABLISHED_WITHIN = 30.0
# Loaded only for operators with webhooks: it creates certificates.
_WEBHOOK_SERVER = "kubewright.webhook.server"
_SHOWN = 5
_POLL = 0.05
_READ_WITHIN = 10.0
"""Seconds after which a server that responds with Retry-After is assumed to have no conversion webhook available."""


class InstallError(KubewrightError):
    """A CRD could not be installed or removed."""


async def refuse_in_use(client: Client, definitions: Sequence[JsonObject]) -> None:
    """Raise InstallError if objects of the CRDs exist."""
    for definition in definitions:
        live = await live_definition(client, definition["metadata"]["name"])
        found = await _objects(client, live) if live is not None else []
        resource = kind_in(definition).resource
        if found is None:
            raise InstallError(
                f"{resource} exist in stored versions for which no conversion webhook is available: run the operator, "
                "or pass --with-resources to delete them without reading them"
            )
        if found:
            raise InstallError(
                f"{len(found)} {resource} exist and would be deleted with their CRD ({_named(found)}): "
                "delete them first, or pass --with-resources"
            )


async def uninstall(client: Client, definitions: Sequence[JsonObject], progress: Progress) -> None:
    """Delete CRDs, and with them all their objects."""
    for definition in definitions:
        name = definition["metadata"]["name"]
        live = await live_definition(client, name)
        if live is None:
            progress.done(f"customresourcedefinition.apiextensions.k8s.io/{name} not found")
            continue
        if await _objects(client, live) is None:
            # The server must read objects to delete them, which fails without a conversion webhook.
            patch = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
            await client.patch(CUSTOM_RESOURCE_DEFINITION, patch, name=name)
        await client.delete(CUSTOM_RESOURCE_DEFINITION, name)
        await wait_gone(client, definition, progress)
        progress.done(f"customresourcedefinition.apiextensions.k8s.io/{name} deleted")


async def wait_gone(client: Client, definition: JsonObject, progress: Progress) -> None:
    """Wait until a CRD is deleted; raise InstallError with the objects that remain on timeout."""
    name = definition["metadata"]["name"]
    try:
        with progress.waiting(f"waiting until {name} is deleted") as update:
            async with asyncio.timeout(ESTABLISHED_WITHIN):
                while await live_definition(client, name) is not None:
                    update(f"waiting until {name} is deleted: its objects are deleted first")
                    await asyncio.sleep(_POLL)
    except TimeoutError:
        held = await _holders(client, definition)
        raise InstallError(
            f"CRD {name} is still being deleted after {ESTABLISHED_WITHIN:.0f} s: "
            f"objects with finalizers remain{held}; check that their operator is running"
        ) from None


async def _holders(client: Client, definition: JsonObject) -> str:
    try:
        found = await _objects(client, definition)
    except KubewrightError:
        return ""
    held = [item for item in found or () if item["metadata"].get("finalizers")]
    return f" ({_named(held)})" if held else ""


async def _objects(client: Client, definition: JsonObject) -> list[JsonObject] | None:
    """List the objects of a CRD in the storage version; return None if no conversion webhook is available."""
    spec = definition["spec"]
    stored = [version["name"] for version in spec["versions"] if version["storage"] and version["served"]]
    kind = kind_in(definition)
    kind = replace(kind, version=stored[0]) if stored else kind
    try:
        async with asyncio.timeout(_READ_WITHIN):
            return await client.list(kind)
    except NotFound:
        return []
    except (InternalError, TimeoutError):
        if conversion_in(definition).get("strategy") != "Webhook":
            raise
        return None


def _named(found: Sequence[JsonObject]) -> str:
    keys = [
        f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}".lstrip("/")
        for item in found[:_SHOWN]
    ]
    return ", ".join(keys) + (", …" if len(found) > _SHOWN else "")


async def clear_url_webhooks(
    client: Client, operator: Operator, progress: Progress, *, conversions: bool = True
) -> None:
    """Delete webhook configurations with URLs; with `conversions`, point CRDs to the operator's Service."""
    if operator.webhooks:
        clear, names = import_module(_WEBHOOK_SERVER).clear_leftovers, WebhookNames(operator.name)
        for cleared in await clear(client, operator.webhooks, names, conversions=conversions):
            progress.done(f"{cleared} deleted: it was registered by `kubewright run`")


async def converted_by_url(client: Client, operator: Operator) -> set[str]:
    """Return the names of CRDs with a conversion webhook registered by URL."""
    if not operator.webhooks:
        return set()
    find, names = import_module(_WEBHOOK_SERVER).find_leftovers, WebhookNames(operator.name)
    found = await find(client, operator.webhooks, names)
    return {live["metadata"]["name"] for kind, live in found if kind.kind == "CustomResourceDefinition"}
