"""Bring an operator's CRDs to a cluster, and take them away."""

import asyncio
from collections.abc import Sequence
from typing import Any

from kubewright.api import KubewrightError, NotFound
from kubewright.cli.definitions.compatibility import CRDS, check_compatible, kind_in, live_definition
from kubewright.cli.progress import Progress
from kubewright.client import Client

FIELD_MANAGER = "kubewright"
ESTABLISHED_WITHIN = 30.0
_SHOWN = 5
_POLL = 0.05
Wire = dict[str, Any]


class InstallError(KubewrightError):
    """A CRD could not be installed or removed."""


async def install(
    client: Client, definitions: Sequence[Wire], progress: Progress, *, force: bool = False
) -> None:
    """Apply CRDs and wait until the server serves them; refuse, before the first, what breaks stored objects."""
    planned = [await _with_live_conversion(client, definition) for definition in definitions]
    await check_compatible(client, planned, progress, force=force)
    for definition in planned:
        await install_one(client, definition, progress)


async def install_one(client: Client, definition: Wire, progress: Progress) -> None:
    """Apply one CRD and wait until the server serves it."""
    name = definition["metadata"]["name"]
    await _wait_not_terminating(client, name, progress)
    definition = await _with_live_conversion(client, definition)
    await client.apply(definition, field_manager=FIELD_MANAGER, kind=CRDS)
    await wait_established(client, name, progress)
    progress.done(f"customresourcedefinition.apiextensions.k8s.io/{name} installed")


async def uninstall(
    client: Client, definitions: Sequence[Wire], progress: Progress, *, with_resources: bool
) -> None:
    """Delete CRDs; refuse, before anything is deleted, while objects of theirs exist unless told to take them too."""
    if not with_resources:
        for definition in definitions:
            await _refuse_in_use(client, definition)
    for definition in definitions:
        name = definition["metadata"]["name"]
        try:
            await client.delete(CRDS, name)
        except NotFound:
            progress.done(f"customresourcedefinition.apiextensions.k8s.io/{name} is not there")
            continue
        await _wait_gone(client, definition, progress)
        progress.done(f"customresourcedefinition.apiextensions.k8s.io/{name} removed")


async def _with_live_conversion(client: Client, definition: Wire) -> Wire:
    """Keep the way versions are converted where the operator was deployed before: it still serves there."""
    if "conversion" in definition["spec"] or len(definition["spec"]["versions"]) == 1:
        return definition
    live = await live_definition(client, definition["metadata"]["name"])
    conversion: Wire = (live or {"spec": {}})["spec"].get("conversion") or {}
    if conversion.get("strategy") != "Webhook":
        return definition
    return definition | {"spec": {"conversion": conversion, **definition["spec"]}}


async def _refuse_in_use(client: Client, definition: Wire) -> None:
    kind = kind_in(definition)
    try:
        found = await client.list(kind)
    except NotFound:
        return
    if found:
        raise InstallError(
            f"{len(found)} {kind.resource} exist and would be deleted with their CRD ({_named(found)}): "
            "delete them first, or run again with --with-resources"
        )


def _named(found: Sequence[Wire]) -> str:
    keys = [
        f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}".lstrip("/")
        for item in found[:_SHOWN]
    ]
    return ", ".join(keys) + (", …" if len(found) > _SHOWN else "")


async def wait_established(client: Client, name: str, progress: Progress) -> None:
    """Wait until a CRD is served; say why it is not."""
    conditions: dict[str, Wire] = {}
    try:
        with progress.waiting(f"waiting until {name} is served") as update:
            async with asyncio.timeout(ESTABLISHED_WITHIN):
                while True:
                    found = await client.get(CRDS, name)
                    status: Wire = found.get("status") or {}
                    conditions = {item["type"]: item for item in status.get("conditions") or ()}
                    if conditions.get("Established", {}).get("status") == "True":
                        return
                    update(f"waiting until {name} is served: {_told(conditions)}")
                    await asyncio.sleep(_POLL)
    except TimeoutError:
        raise InstallError(
            f"CRD {name} was not Established within {ESTABLISHED_WITHIN:.0f} s: {_told(conditions)}"
        ) from None


def _told(conditions: dict[str, Wire]) -> str:
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
        await _wait_gone(client, live, progress)


async def _wait_gone(client: Client, definition: Wire, progress: Progress) -> None:
    name = definition["metadata"]["name"]
    try:
        with progress.waiting(f"waiting until {name} is gone") as update:
            async with asyncio.timeout(ESTABLISHED_WITHIN):
                while await live_definition(client, name) is not None:
                    update(f"waiting until {name} is gone: its objects go first")
                    await asyncio.sleep(_POLL)
    except TimeoutError:
        held = await _holders(client, definition)
        raise InstallError(
            f"CRD {name} is still being deleted after {ESTABLISHED_WITHIN:.0f} s: "
            f"objects with finalizers hold it{held}; is their operator running?"
        ) from None


async def _holders(client: Client, definition: Wire) -> str:
    try:
        found = await client.list(kind_in(definition))
    except KubewrightError:
        return ""
    held = [item for item in found if item["metadata"].get("finalizers")]
    return f" ({_named(held)})" if held else ""
