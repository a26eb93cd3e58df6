"""A child that vanishes after it was created: made again for an owner that lives, never for one that is gone."""

import asyncio
import dataclasses
from typing import Any

import pytest

from kubewright.api import Meta, NotFound
from kubewright.api.builtin import core_v1
from kubewright.controller import Context, Controller, needs
from kubewright.http.client import Body, ConnectionBroken, Origin, Pool, Route
from kubewright.testing import Cluster, eventually
from kubewright.testing.virtual_time import virtual_time

from .kinds import Box, Paper
from .operators import running, wait_for_collector, with_boxes


class CutBody:
    """A stream that breaks when its switch is turned."""

    def __init__(self, body: Body, cut: asyncio.Event) -> None:
        self._body, self._cut = body, cut
        self.read_all = body.read_all
        self.release = body.release

    async def read(self, idle: float) -> bytes:
        reading = asyncio.ensure_future(self._body.read(idle))
        cutting = asyncio.ensure_future(self._cut.wait())
        try:
            await asyncio.wait([reading, cutting], return_when=asyncio.FIRST_COMPLETED)
            # What has arrived is lost too: the first bytes of a watch may come after the cut.
            if self._cut.is_set():
                raise ConnectionBroken(begun=False)
            return reading.result()
        finally:
            for task in (reading, cutting):
                task.cancel()
            await asyncio.gather(reading, cutting, return_exceptions=True)


class CuttingPool(Pool):
    """Connections that let no watch or list of one resource through once they are cut."""

    def __init__(self, route: Route, resource: str, cut: asyncio.Event) -> None:
        super().__init__(route)
        self._resource, self._cut = f"/{resource}?".encode(), cut

    async def send(self, head: bytes, *rest: Any) -> Any:
        self._check(head)
        return await super().send(head, *rest)

    async def stream(self, head: bytes, *rest: Any) -> Any:
        self._check(head)
        answer, body = await super().stream(head, *rest)
        return answer, CutBody(body, self._cut) if self._is_meant(head) else body

    def _is_meant(self, head: bytes) -> bool:
        return head.startswith(b"GET ") and self._resource in head.partition(b"\r\n")[0]

    def _check(self, head: bytes) -> None:
        if self._cut.is_set() and self._is_meant(head):
            raise ConnectionBroken(begun=False)


@pytest.mark.parametrize("verb", ["apply", "create"])
async def test_a_child_is_not_created_again_for_a_deleted_owner(collected: Cluster, verb: str) -> None:
    cluster = collected
    await cluster.install(Box)
    await wait_for_collector(cluster)
    cut = asyncio.Event()
    route = Route(Origin.of(cluster.config.server))
    cluster.config = dataclasses.replace(cluster.config, exchange=lambda: CuttingPool(route, "boxes", cut))
    made: set[str] = set()
    refusals: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        children = await ctx.list(core_v1.ConfigMap, namespace=cluster.namespace)
        mine = [child for child in children if child.data.get("box") == box.metadata.name]
        if mine:
            return
        child = core_v1.ConfigMap(Meta("child"), data={"box": box.metadata.name})
        try:
            if verb == "apply":
                made.add((await ctx.apply(child)).metadata.uid)
            else:
                child.metadata.name, child.metadata.generate_name = "", "child-"
                made.add((await ctx.create(child)).metadata.uid)
        except Exception as error:
            refusals.append(str(error))
            raise

    async with running(cluster, Controller(Box, reconcile, owns=[core_v1.ConfigMap])) as manager:
        box = await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(made) == 1)
        cut.set()
        await cluster.client.delete(box)
        await eventually(lambda: len(refusals) >= 4)
        assert all(f"Box {box.key} (uid {box.metadata.uid}) was deleted" in text for text in refusals)

        async def none_left() -> bool:
            left = await cluster.client.list(core_v1.ConfigMap, namespace=cluster.namespace)
            return not [found for found in left if "box" in found.data]

        await eventually(none_left)
        assert len(made) <= 2
        cut.clear()

        async def learned() -> bool:
            queue = manager.statistics().controllers[0].queue
            return not (queue.retrying or queue.ready or queue.in_flight or queue.delayed)

        await eventually(learned)
    assert len(made) <= 2


@virtual_time
async def test_a_child_that_another_client_keeps_deleting_is_created_with_backoff() -> None:
    made: list[float] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta("child"), text=box.metadata.name))

    async with with_boxes() as cluster:
        await cluster.install(Paper)
        async with running(cluster, Controller(Box, reconcile, owns=[Paper])):
            await cluster.create(Box(Meta("a")))
            loop = asyncio.get_running_loop()
            began = loop.time()
            while loop.time() < began + 200:
                try:
                    await cluster.client.delete(await cluster.get(Paper, "child"))
                    made.append(loop.time())
                except NotFound:
                    await asyncio.sleep(0.5)
            assert 6 <= len(made) < 20

            async def is_back() -> bool:
                return (await cluster.get(Paper, "child")).text == "a"

            # The longest backoff is 60 s and its jitter.
            await eventually(is_back, timeout=120)
            # A child that lives for a while is created again at once when it is deleted.
            await asyncio.sleep(120)
            await cluster.client.delete(await cluster.get(Paper, "child"))
            deleted = loop.time()
            await eventually(is_back)
            assert loop.time() - deleted < 2


@virtual_time
async def test_a_child_that_the_controller_replaces_itself_is_not_delayed() -> None:
    sizes: list[int] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        there = await ctx.find(Paper, "child")
        if there is not None and there.number != box.spec.size:
            await ctx.delete(there)
        await ctx.apply(Paper(Meta("child"), number=box.spec.size))
        sizes.append(box.spec.size)

    async with with_boxes() as cluster:
        await cluster.install(Paper)
        deletes = needs(Paper, "delete")
        async with running(cluster, Controller(Box, reconcile, owns=[Paper], needs=[deletes])) as manager:
            box = await cluster.create(Box(Meta("a")))
            for size in range(2, 8):
                await cluster.client.patch(box, {"spec": {"size": size}})
                await cluster.eventually(Paper, "child", lambda found, size=size: found.number == size)
            assert manager.statistics().controllers[0].outcomes["error"] == 0
