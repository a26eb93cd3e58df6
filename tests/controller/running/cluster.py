"""What the tests of this folder do to a cluster."""

import asyncio
import dataclasses
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

from kubewright.api import Conflict, Invalid, Kind, Meta, NotFound, Object, kind_of, owner_reference
from kubewright.api.builtin import apiextensions_v1, core_v1, events_v1
from kubewright.client import Client, ClusterConfig
from kubewright.controller import Controller, Operator
from kubewright.manager import Manager, ManagerOptions
from kubewright.schema import crd

from .kinds import Box

T = TypeVar("T", bound=Object)
R = TypeVar("R")

OPTIONS = ManagerOptions(
    metrics_bind_address="0", health_probe_bind_address="0", watchdog=False, cache_sync_timeout=60
)
DEFAULT_TIMEOUT = 300.0


class Cluster:
    """One namespace of one cluster."""

    def __init__(self, config: ClusterConfig, client: Client, namespace: str) -> None:
        self.config = dataclasses.replace(config, namespace=namespace)
        self.client = client
        self.namespace = namespace

    @classmethod
    async def prepare(cls, config: ClusterConfig, client: Client) -> Self:
        namespace = f"test-{uuid.uuid4().hex[:8]}"
        await client.create(core_v1.Namespace(Meta(namespace)))
        return cls(config, client, namespace)

    async def install(self, *kinds: type[Object]) -> None:
        definition = kind_of(apiextensions_v1.CustomResourceDefinition)
        for kind in kinds:
            await self.client.apply(crd(kind), kind=definition, field_manager="install")
        for kind in kinds:

            async def served(kind: type[Object] = kind) -> bool:
                await self.client.list(kind, namespace=self.namespace if kind_of(kind).namespaced else "")
                return True

            await self.eventually(served)

    async def create_misfit(self, kind: type[Object], wire: dict[str, Any]) -> Kind:
        """Create an object that does not fit its class, as an older release may have left it; returns its kind."""
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
        wire["metadata"]["namespace"] = self.namespace

        async def accepted() -> bool:
            definition = kind_of(apiextensions_v1.CustomResourceDefinition)
            try:
                await self.client.patch(definition, loosened, name=name, type="json")
                await self.client.create(wire, kind=untyped)
            except (Conflict, Invalid):
                return False  # the server is still establishing the kind, or has not read the new schema yet
            return True

        await self.eventually(accepted)
        return untyped

    async def create(self, obj: T) -> T:
        if kind_of(obj).namespaced and not obj.metadata.namespace:
            obj.metadata.namespace = self.namespace
        return await self.client.create(obj)

    async def get(self, kind: type[T], name: str) -> T:
        return await self.client.get(kind, name, self.namespace if kind_of(kind).namespaced else "")

    async def find(self, kind: type[T], name: str) -> T | None:
        try:
            return await self.get(kind, name)
        except NotFound:
            return None

    async def merge(self, obj: T, patch: dict[str, Any]) -> T:
        return await self.client.patch(obj, patch, type="merge")

    async def events(self, reason: str) -> list[events_v1.Event]:
        found = await self.client.list(events_v1.Event, namespace=self.namespace)
        return [event for event in found if event.reason == reason]

    async def eventually(self, probe: Callable[[], Awaitable[R]]) -> R:
        """Wait until the probe returns something true; NotFound counts as not yet."""
        try:
            async with asyncio.timeout(DEFAULT_TIMEOUT):
                while True:
                    try:
                        found = await probe()
                    except NotFound:
                        found = None
                    if found:
                        return found
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError("it never came") from None

    async def until(self, kind: type[T], name: str, holds: Callable[[T], object]) -> T:
        async def probe() -> T | None:
            found = await self.get(kind, name)
            return found if holds(found) else None

        return await self.eventually(probe)

    async def gone(self, kind: type[Object], name: str) -> None:
        async def probe() -> bool:
            return await self.find(kind, name) is None

        await self.eventually(probe)

    @asynccontextmanager
    async def running(
        self, *controllers: Controller[Any], options: ManagerOptions = OPTIONS, **more: Any
    ) -> AsyncIterator[Manager]:
        """Run controllers in this namespace until the end of the block."""
        options = dataclasses.replace(options, namespaces=options.namespaces or (self.namespace,))
        manager = Manager(Operator(*controllers, **more), self.config, options)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(manager.run())
            waiting = group.create_task(manager.ready.wait())
            await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if not task.done():
                try:
                    yield manager
                finally:
                    task.cancel()


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

    async with Client(manager.config) as client:
        calm = 0
        while calm < 10 or not (await caught_up(client) and idle()):
            calm = calm + 1 if idle() else 0
            await asyncio.sleep(0.01)


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
    child = core_v1.ConfigMap(Meta("probe", owner_references=[owner_reference(owner)]))
    await cluster.create(child)
    await cluster.client.delete(owner)
    async with asyncio.timeout(300):
        while await cluster.find(core_v1.ConfigMap, "probe") is not None:
            await asyncio.sleep(0.1)
