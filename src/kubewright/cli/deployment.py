"""Bring all of an operator to a cluster, take it away, and show beforehand what would change."""

import asyncio
import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import yaml

from kubewright.api import ApiError, GroupVersionKind, Kind, KubewrightError, NotFound
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.cli.installation import FIELD_MANAGER, wait_established
from kubewright.cli.resources import called
from kubewright.client import Client

AVAILABLE_WITHIN = 120.0
Wire = dict[str, Any]
Tell = Callable[[str], None]
_SERVER_SIDE = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


class DeployError(KubewrightError):
    """The operator was sent to the cluster but does not run there."""


async def deploy(client: Client, documents: Sequence[Wire], tell: Tell) -> None:
    """Apply everything in order; wait until CRDs are served and the Deployment is available."""
    for document in documents:
        kind = await _kind_of(client, document)
        await client.apply(document, field_manager=FIELD_MANAGER, kind=kind)
        if document["kind"] == "CustomResourceDefinition":
            await wait_established(client, document["metadata"]["name"])
        tell(f"{called(document)} applied")
    for document in documents:
        if document["kind"] == "Deployment":
            await _wait_available(client, document["metadata"]["name"], document["metadata"]["namespace"])
            tell(f"{called(document)} is available")


async def undeploy(client: Client, documents: Sequence[Wire], tell: Tell) -> None:
    """Delete everything in reverse; what is not there is no error."""
    for document in reversed(documents):
        kind = await _kind_of(client, document)
        try:
            await client.delete(
                kind,
                document["metadata"]["name"],
                document["metadata"].get("namespace", ""),
                propagation="Background",
            )
        except NotFound:
            continue
        tell(f"{called(document)} deleted")


async def differences(client: Client, documents: Sequence[Wire]) -> list[str]:
    """Give the lines of a diff between what is there and what would be, by the server's own dry run."""
    lines: list[str] = []
    for document in documents:
        kind = await _kind_of(client, document)
        name, namespace = document["metadata"]["name"], document["metadata"].get("namespace", "")
        try:
            live = _plain(await client.get(kind, name, namespace))
        except NotFound:
            live = None
        lines += _diff(called(document), live, await _planned(client, document, kind))
    return lines


async def _planned(client: Client, document: Wire, kind: Kind) -> Wire:
    try:
        return _plain(await client.apply(document, field_manager=FIELD_MANAGER, kind=kind, dry_run=True))
    except NotFound:
        # Its namespace would be made by the same deployment: the server cannot rehearse what comes after.
        return document


async def _kind_of(client: Client, document: Wire) -> Kind:
    return await client.resolve(GroupVersionKind.parse(document["apiVersion"], document["kind"]))


def _plain(obj: Wire) -> Wire:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _SERVER_SIDE}
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": metadata}


def _diff(name: str, live: Wire | None, planned: Wire) -> Iterator[str]:
    before = [] if live is None else yaml.safe_dump(live, sort_keys=True).splitlines()
    after = yaml.safe_dump(planned, sort_keys=True).splitlines()
    return difflib.unified_diff(before, after, f"live/{name}", f"planned/{name}", lineterm="")


async def _wait_available(client: Client, name: str, namespace: str) -> None:
    try:
        async with asyncio.timeout(AVAILABLE_WITHIN):
            while True:
                found = await client.get(apps_v1.Deployment, name, namespace)
                seen = found.status.observed_generation >= found.metadata.generation
                if seen and any(
                    item.type == "Available" and item.status == "True" for item in found.status.conditions
                ):
                    return
                await asyncio.sleep(0.2)
    except TimeoutError:
        why = await _why_not(client, namespace)
        raise DeployError(
            f"deployment {namespace}/{name} was not available within {AVAILABLE_WITHIN:.0f} s{why}"
        ) from None


async def _why_not(client: Client, namespace: str) -> str:
    """Say what its Pods wait for, and what was told about them."""
    try:
        pods = await client.list(core_v1.Pod, namespace=namespace)
        events = await client.list(core_v1.Event, namespace=namespace, fields="type=Warning")
    except ApiError as error:
        return f" ({error})"
    waiting = [
        f"container {item.name} of {pod.metadata.name}: {item.state.waiting.reason} {item.state.waiting.message}".rstrip()
        for pod in pods
        for item in pod.status.container_statuses
        if item.state.waiting is not None
    ]
    told = [f"{event.reason}: {event.message}" for event in events[-3:]]
    return "".join(f"; {text}" for text in [*waiting, *told])
