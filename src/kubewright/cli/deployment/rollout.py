"""Bring all of an operator to a cluster, and take it away."""

import asyncio
from collections.abc import Mapping, Sequence

from kubewright.api import GroupVersionKind, JsonObject, Kind, KubewrightError, NotFound
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.cli.definitions import FIELD_MANAGER, check_compatible, install_one
from kubewright.cli.deployment.diagnosis import explain, hindrance, pods_of
from kubewright.cli.deployment.leftovers import leftovers
from kubewright.cli.documents import called
from kubewright.cli.progress import Progress
from kubewright.client import Client

AVAILABLE_WITHIN = 120.0
GONE_WITHIN = 120.0
_POLL = 0.2


class DeployError(KubewrightError):
    """The operator was sent to the cluster but does not run there, or does not leave it."""


async def deploy(
    client: Client,
    documents: Sequence[JsonObject],
    labels: Mapping[str, str],
    progress: Progress,
    *,
    force: bool = False,
    timeout: float = AVAILABLE_WITHIN,
) -> None:
    """Apply everything in order; wait until CRDs are served and the Deployment is available.

    Everything is stated anew each time, so a deployment that was interrupted is completed by the next; what
    carries the labels and is no longer asked for is deleted.
    """
    definitions = [item for item in documents if item["kind"] == "CustomResourceDefinition"]
    await check_compatible(client, definitions, progress, force=force)
    for document in documents:
        if document["kind"] == "CustomResourceDefinition":
            await install_one(client, document, progress)
            continue
        if document["kind"] == "Namespace":
            await _wait_namespace_free(client, document["metadata"]["name"], progress)
        kind = await _kind_of(client, document)
        await client.apply(document, field_manager=FIELD_MANAGER, kind=kind)
        progress.done(f"{called(document)} applied")
    await _prune(client, documents, labels, progress)
    for document in documents:
        if document["kind"] == "Deployment":
            await _wait_available(client, document, progress, timeout)
            progress.done(f"{called(document)} is available")


async def undeploy(
    client: Client, documents: Sequence[JsonObject], labels: Mapping[str, str], progress: Progress
) -> bool:
    """Delete everything in reverse, and wait until its namespace is gone; say whether there was anything."""
    found = await _prune(client, documents, labels, progress)
    for document in reversed(documents):
        name, namespace = document["metadata"]["name"], document["metadata"].get("namespace", "")
        try:
            kind = await _kind_of(client, document)
            await client.delete(kind, name, namespace, propagation="Background")
        except NotFound:
            continue
        if document["kind"] == "Namespace":
            await _wait_namespace_gone(client, name, progress)
        progress.done(f"{called(document)} deleted")
        found = True
    return found


async def _prune(
    client: Client, documents: Sequence[JsonObject], labels: Mapping[str, str], progress: Progress
) -> bool:
    left = await leftovers(client, labels, documents)
    if left.note:
        progress.note(left.note)
    for kind, item in left.found:
        name, namespace = item["metadata"]["name"], item["metadata"].get("namespace", "")
        await client.delete(kind, name, namespace, uid=item["metadata"]["uid"], propagation="Background")
        progress.done(f"{called(item)} deleted: it is no longer asked for")
    return bool(left.found)


async def _kind_of(client: Client, document: JsonObject) -> Kind:
    return await client.resolve(GroupVersionKind.parse(document["apiVersion"], document["kind"]))


async def _wait_namespace_free(client: Client, name: str, progress: Progress) -> None:
    """A namespace that an earlier `undeploy` left behind takes nothing new until it is gone."""
    try:
        found = await client.get(core_v1.Namespace, name)
    except NotFound:
        return
    if found.metadata.deletion_timestamp is not None:
        await _wait_namespace_gone(client, name, progress)


async def _wait_namespace_gone(client: Client, name: str, progress: Progress) -> None:
    told = ""
    try:
        with progress.waiting(f"waiting until namespace {name} is gone") as update:
            async with asyncio.timeout(GONE_WITHIN):
                while True:
                    found = await client.get(core_v1.Namespace, name)
                    told = "; ".join(
                        item.message for item in found.status.conditions if item.status == "True"
                    )
                    update(f"waiting until namespace {name} is gone: {told}".rstrip(": "))
                    await asyncio.sleep(_POLL)
    except NotFound:
        return
    except TimeoutError:
        raise DeployError(
            f"namespace {name} is still being deleted after {GONE_WITHIN:.0f} s: {told}"
        ) from None


async def _wait_available(client: Client, document: JsonObject, progress: Progress, timeout: float) -> None:
    name, namespace = document["metadata"]["name"], document["metadata"]["namespace"]
    found = await client.get(apps_v1.Deployment, name, namespace)
    try:
        with progress.waiting(f"waiting until deployment {name} is available") as update:
            async with asyncio.timeout(timeout):
                while not _is_available(found) and not _has_given_up(found):
                    update(f"waiting for {name}: {hindrance(found, await pods_of(client, found))}")
                    await asyncio.sleep(_POLL)
                    found = await client.get(apps_v1.Deployment, name, namespace)
    except TimeoutError:
        pass
    if not _is_available(found):
        why = await explain(client, found)
        raise DeployError(
            f"deployment {namespace}/{name} was not available within {timeout:.0f} s"
            f"{':' if why else ', and nothing in the cluster tells why'}{why}"
        )


def _is_current(found: apps_v1.Deployment) -> bool:
    return found.status.observed_generation >= found.metadata.generation


def _is_available(found: apps_v1.Deployment) -> bool:
    """Tell whether all replicas run what was just applied: those of an older image do not count."""
    wanted = 1 if found.spec.replicas is None else found.spec.replicas
    available = any(item.type == "Available" and item.status == "True" for item in found.status.conditions)
    return _is_current(found) and available and found.status.updated_replicas >= wanted


def _has_given_up(found: apps_v1.Deployment) -> bool:
    return _is_current(found) and any(
        item.type == "Progressing" and item.reason == "ProgressDeadlineExceeded"
        for item in found.status.conditions
    )
