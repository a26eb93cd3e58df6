"""Deploy an operator to a cluster, and delete it."""

import asyncio
from collections.abc import Mapping, Sequence

from kubewright.api import GroupVersionKind, JsonObject, Kind, KubewrightError, NotFound
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.cli.definitions import FIELD_MANAGER, check_compatible, install_one
from kubewright.cli.deployment.diagnosis import explain, hindrance, pods_of
from kubewright.cli.deployment.leftovers import leftovers
from kubewright.cli.documents import apply_document, called
from kubewright.cli.progress import Progress
from kubewright.client import Client

AVAILABLE_WITHIN = 120.0
GONE_WITHIN = 120.0
_POLL = 0.2


class DeployError(KubewrightError):
    """The operator's Deployment is not available, or its namespace is not deleted in time."""


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

    All objects are applied each time, so the next call completes an interrupted deployment. Objects with the labels
    that are no longer desired are deleted.
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
        changed = await apply_document(client, document, kind, FIELD_MANAGER)
        progress.done(f"{called(document)} {changed}")
    await _prune(client, documents, labels, progress)
    for document in documents:
        if document["kind"] == "Deployment":
            await _wait_available(client, document, progress, timeout)
            progress.done(f"{called(document)} is available")


async def undeploy(
    client: Client, documents: Sequence[JsonObject], labels: Mapping[str, str], progress: Progress
) -> bool:
    """Delete all objects in reverse order and wait until the namespace is deleted; return True if any existed."""
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
        progress.done(f"{called(item)} deleted: it is no longer part of the operator")
    return bool(left.found)


async def _kind_of(client: Client, document: JsonObject) -> Kind:
    return await client.resolve(GroupVersionKind.parse(document["apiVersion"], document["kind"]))


async def _wait_namespace_free(client: Client, name: str, progress: Progress) -> None:
    """Wait until a namespace that is being deleted is gone: it accepts no new objects."""
    try:
        found = await client.get(core_v1.Namespace, name)
    except NotFound:
        return
    if found.metadata.deletion_timestamp is not None:
        await _wait_namespace_gone(client, name, progress)


async def _wait_namespace_gone(client: Client, name: str, progress: Progress) -> None:
    reason = ""
    try:
        with progress.waiting(f"waiting until namespace {name} is deleted") as update:
            async with asyncio.timeout(GONE_WITHIN):
                while True:
                    found = await client.get(core_v1.Namespace, name)
                    reason = "; ".join(
                        item.message for item in found.status.conditions if item.status == "True"
                    )
                    update(f"waiting until namespace {name} is deleted: {reason}".rstrip(": "))
                    await asyncio.sleep(_POLL)
    except NotFound:
        return
    except TimeoutError:
        raise DeployError(
            f"namespace {name} is still being deleted after {GONE_WITHIN:.0f} s: {reason}"
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
            f"{':' if why else ': no conditions, Pods or events report a reason'}{why}"
        )


def _is_current(found: apps_v1.Deployment) -> bool:
    return found.status.observed_generation >= found.metadata.generation


def _is_available(found: apps_v1.Deployment) -> bool:
    """Return True if all replicas of the current generation are available."""
    desired = 1 if found.spec.replicas is None else found.spec.replicas
    available = any(item.type == "Available" and item.status == "True" for item in found.status.conditions)
    return _is_current(found) and available and found.status.updated_replicas >= desired


def _has_given_up(found: apps_v1.Deployment) -> bool:
    return _is_current(found) and any(
        item.type == "Progressing" and item.reason == "ProgressDeadlineExceeded"
        for item in found.status.conditions
    )
