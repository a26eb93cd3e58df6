"""Bring an operator's CRDs to a cluster, and take them away."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from kubewright.api import Kind, KubewrightError, NotFound
from kubewright.client import Client

FIELD_MANAGER = "kubewright"
ESTABLISHED_WITHIN = 30.0
CRDS = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
    builtin=True,
)
Wire = dict[str, Any]
Tell = Callable[[str], None]


class InstallError(KubewrightError):
    """A CRD could not be installed or removed."""


async def install(client: Client, definitions: Sequence[Wire], tell: Tell) -> None:
    """Apply CRDs and wait until the server serves them."""
    for definition in definitions:
        name = definition["metadata"]["name"]
        definition = await _with_live_conversion(client, definition)
        await client.apply(definition, field_manager=FIELD_MANAGER, kind=CRDS)
        await wait_established(client, name)
        tell(f"customresourcedefinition.apiextensions.k8s.io/{name} installed")


async def uninstall(client: Client, definitions: Sequence[Wire], tell: Tell, *, with_resources: bool) -> None:
    """Delete CRDs; refuse, before anything is deleted, while objects of theirs exist unless told to take them too."""
    if not with_resources:
        for definition in definitions:
            await _refuse_in_use(client, definition)
    for definition in definitions:
        name = definition["metadata"]["name"]
        try:
            await client.delete(CRDS, name)
        except NotFound:
            tell(f"customresourcedefinition.apiextensions.k8s.io/{name} is not there")
            continue
        await _wait_gone(client, name)
        tell(f"customresourcedefinition.apiextensions.k8s.io/{name} removed")


async def _with_live_conversion(client: Client, definition: Wire) -> Wire:
    """Keep the way versions are converted where the operator was deployed before: it still serves there."""
    if "conversion" in definition["spec"] or len(definition["spec"]["versions"]) == 1:
        return definition
    try:
        live: Wire = (await client.get(CRDS, definition["metadata"]["name"]))["spec"]
    except NotFound:
        return definition
    if live.get("conversion", {}).get("strategy") != "Webhook":
        return definition
    return definition | {"spec": {"conversion": live["conversion"], **definition["spec"]}}


async def _refuse_in_use(client: Client, definition: Wire) -> None:
    spec = definition["spec"]
    kind = Kind(
        group=spec["group"],
        version=spec["versions"][0]["name"],
        kind=spec["names"]["kind"],
        plural=spec["names"]["plural"],
        namespaced=spec["scope"] == "Namespaced",
    )
    try:
        found = await client.list(kind)
    except NotFound:
        return
    if found:
        raise InstallError(
            f"{len(found)} {kind.resource} exist and would be deleted with their CRD: "
            "delete them first, or run again with --with-resources"
        )


async def wait_established(client: Client, name: str) -> None:
    """Wait until a CRD is served; say why it is not."""
    conditions: dict[str, Wire] = {}
    try:
        async with asyncio.timeout(ESTABLISHED_WITHIN):
            while True:
                found = await client.get(CRDS, name)
                status: Wire = found.get("status") or {}
                conditions = {item["type"]: item for item in status.get("conditions") or ()}
                if conditions.get("Established", {}).get("status") == "True":
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        told = "; ".join(
            f"{item['type']}={item['status']}: {item.get('message', '')}" for item in conditions.values()
        )
        raise InstallError(
            f"CRD {name} was not Established within {ESTABLISHED_WITHIN:.0f} s: {told}"
        ) from None


async def _wait_gone(client: Client, name: str) -> None:
    try:
        async with asyncio.timeout(ESTABLISHED_WITHIN):
            while True:
                await client.get(CRDS, name)
                await asyncio.sleep(0.05)
    except NotFound:
        return
    except TimeoutError:
        raise InstallError(
            f"CRD {name} is still being deleted after {ESTABLISHED_WITHIN:.0f} s: "
            "objects with finalizers hold it; is their operator running?"
        ) from None
