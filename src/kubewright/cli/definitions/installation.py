"""Bring an operator's CRDs to a cluster."""

import asyncio
from collections.abc import Sequence

from kubewright.api import CUSTOM_RESOURCE_DEFINITION, JsonObject
from kubewright.cli.definitions.compatibility import check_compatible, conversion_in, live_definition
from kubewright.cli.definitions.removal import ESTABLISHED_WITHIN, InstallError, wait_gone
from kubewright.cli.progress import Progress
from kubewright.client import Client

FIELD_MANAGER = "kubewright"
_POLL = 0.05


async def install(
    client: Client, definitions: Sequence[JsonObject], progress: Progress, *, force: bool = False
) -> list[str]:
    """Apply CRDs and wait until the server serves them; refuse, before the first, what breaks stored objects.

    Who converts versions now goes on doing so. Gives what the user should know of the others: until their
    operator runs, nobody does.
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
    """Apply one CRD and wait until the server serves it; its versions are converted as it says, if it does."""
    name = definition["metadata"]["name"]
    await _wait_not_terminating(client, name, progress)
    if "conversion" not in definition["spec"]:
        (definition,) = await with_live_conversions(client, [definition])
    await _apply(client, definition, progress)


async def _apply(client: Client, definition: JsonObject, progress: Progress) -> None:
    name = definition["metadata"]["name"]
    await client.apply(definition, field_manager=FIELD_MANAGER, kind=CUSTOM_RESOURCE_DEFINITION)
    await wait_established(client, name, progress)
    progress.done(f"customresourcedefinition.apiextensions.k8s.io/{name} installed")


async def with_live_conversions(client: Client, definitions: Sequence[JsonObject]) -> list[JsonObject]:
    """Give CRDs with the conversion that they have in the cluster: somebody serves it there, or will again."""
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
    """Say what nobody converts means to those who use a kind."""
    stored = next(version["name"] for version in definition["spec"]["versions"] if version["storage"])
    return (
        f"note: nobody converts {definition['metadata']['name']}: requests in another version than {stored} "
        "fail until the operator runs (`kubewright run` or `kubewright deploy`)"
    )


async def wait_established(client: Client, name: str, progress: Progress) -> None:
    """Wait until a CRD is served; say why it is not."""
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
                    update(f"waiting until {name} is served: {_told(conditions)}")
                    await asyncio.sleep(_POLL)
    except TimeoutError:
        raise InstallError(
            f"CRD {name} was not Established within {ESTABLISHED_WITHIN:.0f} s: {_told(conditions)}"
        ) from None


def _told(conditions: dict[str, JsonObject]) -> str:
    return (
        "; ".join(
            f"{item['type']}={item['status']}: {item.get('message', '')}" for item in conditions.values()
        )
        or "it has no conditions yet"
    )


async def _wait_not_terminating(client: Client, name: str, progress: Progress) -> None:
    """A CRD on its way out would take what is applied to it now along."""
    live = await live_definition(client, name)
    if live is not None and "deletionTimestamp" in live["metadata"]:
        await wait_gone(client, live, progress)
