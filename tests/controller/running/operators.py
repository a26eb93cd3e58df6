"""Run controllers on the test cluster, and see what they have done."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kubewright.api import Conflict, Invalid, Kind, Meta, NotFound, Object, kind_of, owner_reference
from kubewright.api.builtin import apiextensions_v1, core_v1, events_v1
from kubewright.client import Client
from kubewright.controller import Controller, Operator
from kubewright.devserver import Match
from kubewright.manager import Manager, ManagerOptions
from kubewright.testing import Cluster, embedded, eventually

from .kinds import Box, Paper

OPTIONS = ManagerOptions(
    metrics_bind_address="0", health_probe_bind_address="0", watchdog=False, cache_sync_timeout=60
)
IDLE_LOOKS = 10
LONG = 900.0
"""Seconds of virtual time that an operator needs at most after a fault: a backoff, a lease that runs out."""


@asynccontextmanager
async def running(
    cluster: Cluster, *controllers: Controller[Any], options: ManagerOptions = OPTIONS, **more: Any
) -> AsyncIterator[Manager]:
    """Run controllers in the namespace of a cluster; a test installs the CRDs that it needs."""
    operator = Operator(*controllers, **more)
    async with cluster.running(operator, options=options, as_admin=True, install=False) as manager:
        yield manager


@asynccontextmanager
async def with_boxes() -> AsyncIterator[Cluster]:
    """Run an API server with faults, which serves the kind Box."""
    async with embedded(controllers=False) as cluster:
        await cluster.install(Box)
        yield cluster


def ours(**more: Any) -> Match:
    """Match the operator's requests, not the test's own."""
    return Match(agent="kubewright/", **more)


async def events(cluster: Cluster, reason: str) -> list[events_v1.Event]:
    """Return the Events of a reason in the namespace of a cluster."""
    found = await cluster.client.list(events_v1.Event, namespace=cluster.namespace)
    return [event for event in found if event.reason == reason]


async def create_misfit(cluster: Cluster, kind: type[Object], wire: dict[str, Any]) -> Kind:
    """Create an object that does not fit its class, as an older release may have left it; return its kind."""
    described = kind_of(kind)
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {**loose, "properties": {"spec": loose}}
    loosened = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]
    name = f"{described.plural}.{described.group}"
    untyped = Kind(
        group=described.group,
        version=described.version,
        kind=described.kind,
        plural=described.plural,
        status=True,
    )
    wire["metadata"]["namespace"] = cluster.namespace

    async def accepted() -> bool:
        definition = kind_of(apiextensions_v1.CustomResourceDefinition)
        await cluster.client.patch(definition, loosened, name=name, type="json")
        await cluster.client.create(wire, kind=untyped)
        return True

    # The server is still establishing the kind, or has not read the new schema yet.
    await eventually(accepted, ignore=(Conflict, Invalid, NotFound))
    return untyped


async def settled(manager: Manager) -> None:
    """Wait until the caches hold what the server has, and no controller has anything to do."""
    cache = manager.cache
    assert cache is not None

    def idle() -> bool:
        queues = [found.queue for found in manager.statistics().controllers]
        return not any(queue.ready or queue.in_flight for queue in queues)

    async def caught_up(client: Client) -> bool:
        for feed in cache.feeds:
            chosen = feed.selection
            found = await client.list(
                chosen.kind, namespace=chosen.namespace, labels=chosen.labels, fields=chosen.fields
            )
            held = {raw.meta.resource_version for raw in feed.objects.values()}
            if held != {item["metadata"]["resourceVersion"] for item in found}:
                return False
        return True

    calm = 0

    async def at_rest() -> bool:
        nonlocal calm
        calm = calm + 1 if idle() else 0
        return calm >= IDLE_LOOKS and await caught_up(client) and idle()

    async with Client(manager.config) as client:
        await eventually(at_rest, timeout=300, interval=0.01)


def writes(manager: Manager) -> int:
    """Return how many requests that change something the manager has sent; repeated Events count, new ones do not."""
    total = 0.0
    for family in manager.metrics.families():
        if family.name == "rest_client_requests_total":
            total += sum(
                sample.value
                for sample in family.samples
                if sample.labels["method"] in ("PATCH", "PUT", "DELETE")
            )
    return int(total)


@asynccontextmanager
async def started(manager: Manager) -> AsyncIterator[asyncio.Task[None]]:
    """Run a manager that need not become ready."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        try:
            yield task
        finally:
            task.cancel()


def options(**changes: Any) -> ManagerOptions:
    return dataclasses.replace(OPTIONS, **changes)


async def wait_for_collector(cluster: Cluster) -> None:
    """Wait until the garbage collector follows the kind: a real one looks for new kinds each half minute."""
    owner = await cluster.create(Box(Meta("probe")))
    await cluster.create(core_v1.ConfigMap(Meta("probe", owner_references=[owner_reference(owner)])))
    await cluster.client.delete(owner)
    await cluster.eventually_gone(core_v1.ConfigMap, "probe", timeout=300)


async def wait_until_collector_saw_papers(cluster: Cluster) -> None:
    """Wait until the garbage collector has seen all papers that exist.

    It reads the events of a kind in their order, so it has seen the others when it deletes a later paper without an
    owner. A child that it does not know yet when its owner is orphaned keeps the owner reference, and is deleted.
    """
    owner = await cluster.create(core_v1.ConfigMap(Meta("gone")))
    await cluster.client.delete(owner)
    await cluster.create(Paper(Meta("probe", owner_references=[owner_reference(owner)])))
    await cluster.eventually_gone(Paper, "probe", timeout=300)
