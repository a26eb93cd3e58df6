"""Install an operator's CRDs in a cluster."""

import asyncio
from collections.abc import Sequence

from kubewright.api import CUSTOM_RESOURCE_DEFINITION, JsonObject
from kubewright.cli.definitions.compatibility import check_compatible, conversion_in, live_definition
from kubewright.cli.definitions.removal import ESTABLISHED_WITHIN, InstallError, wait_gone
from kubewright.cli.documents import apply_document, called
from kubewright.cli.progress import Progress
from kubewright.client import Client

FIELD_MANAGER = "kubewright"
_POLL = 0.05


async def install(
    client: Client, definitions: Sequence[JsonObject], progress: Progress, *, force: bool = False
) -> list[str]:
    """Apply CRDs and wait until they are served; raise IncompatibleError first if stored objects would break.

    Registered conversion webhooks are kept. Returns notes on CRDs without a conversion webhook: it is not available
    until the operator runs.
    """
    planned = await with_live_conversions(client, definitions)
    await check_compatible(client, planned, progress, force=force)
    waiting: list[str] = []
    for definition in definitions:
        await _wait_not_terminating(client, definition["metadata"]["name"], progress)
        (kept,) = await with_live_conversions(client, [definition])
        await _apply(client, kept, progress)
        if kept is definition and "conversion" in definition["spec"]:
            waiting.append(unconverted(definition))
    return waiting


async def install_one(client: Client, definition: JsonObject, progress: Progress) -> None:
    """Apply one CRD and wait until it is served; keep its live conversion unless it declares one."""
    name = definition["metadata"]["name"]
    await _wait_not_terminating(client, name, progress)
    if "conversion" not in definition["spec"]:
        (definition,) = await with_live_conversions(client, [definition])
    await _apply(client, definition, progress)


async def _apply(client: Client, definition: JsonObject, progress: Progress) -> None:
    name = definition["metadata"]["name"]
    changed = await apply_document(client, definition, CUSTOM_RESOURCE_DEFINITION, FIELD_MANAGER)
    await wait_established(client, name, progress)
    progress.done(f"{called(definition)} {changed}")


async def with_live_conversions(client: Client, definitions: Sequence[JsonObject]) -> list[JsonObject]:
    """Return CRDs with the conversion webhooks that are registered in the cluster."""
    kept: list[JsonObject] = []
    for definition in definitions:
        spec: JsonObject = definition["spec"]
        several = len(spec["versions"]) > 1
        live = await live_definition(client, definition["metadata"]["name"]) if several else None
        conversion = conversion_in(live)
        webhook = conversion.get("strategy") == "Webhook"
        kept.append(definition | {"spec": spec | {"conversion": conversion}} if webhook else definition)
    return kept


def unconverted(definition: JsonObject) -> str:
    """Return a note that no conversion webhook is available for a CRD."""
    stored = next(version["name"] for version in definition["spec"]["versions"] if version["storage"])
    return (
        f"note: no conversion webhook available for {definition['metadata']['name']}: requests for versions other than "
        f"{stored} fail until the operator runs (`kubewright run` or `kubewright deploy`)"
    )


async def wait_established(client: Client, name: str, progress: Progress) -> None:
    """Wait until a CRD is established; raise InstallError with its conditions on timeout."""
    conditions: dict[str, JsonObject] = {}
    try:
        with progress.waiting(f"waiting until {name} is served") as update:
            async with asyncio.timeout(ESTABLISHED_WITHIN):
                while True:
                    found = await client.get(CUSTOM_RESOURCE_DEFINITION, name)
                    status: JsonObject = found.get("status") or {}
                    conditions = {item["type"]: item for item in status.get("conditions") or ()}
                    if conditions.get("Established", {}).get("status") == "True":
                        return
                    update(f"waiting until {name} is served: {_format_conditions(conditions)}")
                    await asyncio.sleep(_POLL)
    except TimeoutError:
        raise InstallError(
            f"CRD {name} was not Established within {ESTABLISHED_WITHIN:.0f} s: {_format_conditions(conditions)}"
        ) from None


def _format_conditions(conditions: dict[str, JsonObject]) -> str:
    return (
        "; ".join(
            f"{item['type']}={item['status']}: {item.get('message', '')}" for item in conditions.values()
        )
        or "no conditions yet"
    )


async def _wait_not_terminating(client: Client, name: str, progress: Progress) -> None:
    """Wait until a CRD that is being deleted is gone: objects applied to it now would be deleted too."""
    live = await live_definition(client, name)
    if live is not None and "deletionTimestamp" in live["metadata"]:
        await wait_gone(client, live, progress)
