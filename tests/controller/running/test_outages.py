"""The API server goes and comes back: the operator loses no change and needs no restart."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest
from acceptance_ports import lasting_port

from kubewright.api import Meta
from kubewright.client import Client, ClusterConfig, config_from_kubeconfig, load_config
from kubewright.controller import Context, Controller
from kubewright.devserver import Server
from kubewright.testing.controlplane import ControlPlane

from .cluster import Cluster
from .kinds import Box, BoxStatus

Switch = Callable[[], Awaitable[None]]


@pytest.fixture(autouse=True)
def unblocked_event_loop() -> None:
    """Let the embedded server write its file: it commits on its own event loop by design."""


@asynccontextmanager
async def embedded(data: Path) -> AsyncIterator[tuple[ClusterConfig, Switch, Switch]]:
    async with AsyncExitStack() as stack:
        server = Server(data=data, port=lasting_port())
        running = AsyncExitStack()
        await running.enter_async_context(server)
        stack.push_async_callback(running.aclose)

        async def start() -> None:
            await running.enter_async_context(Server(data=data, port=server.port))

        yield config_from_kubeconfig(server.kubeconfig()), running.aclose, start


@asynccontextmanager
async def real() -> AsyncIterator[tuple[ClusterConfig, Switch, Switch]]:
    async with ControlPlane(controllers=False) as plane:
        config = await asyncio.to_thread(load_config, plane.kubeconfig)
        yield config, plane.stop_api_server, plane.start_api_server


class Backups(Protocol):
    """A server whose data can be copied and put back while operators run."""

    async def back_up(self) -> None: ...
    async def restore(self) -> None: ...


class EmbeddedBackups:
    def __init__(self, data: Path, stop: Switch, start: Switch) -> None:
        self._data, self._stop, self._start = data, stop, start

    async def back_up(self) -> None:
        await self._stop()
        shutil.copy(self._data, self._data.with_suffix(".backup"))
        await self._start()

    async def restore(self) -> None:
        await self._stop()
        for path in self._data.parent.glob(f"{self._data.name}*"):
            path.unlink()
        shutil.copy(self._data.with_suffix(".backup"), self._data)
        await self._start()


class RealBackups:
    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane, self._folder = plane, folder

    async def back_up(self) -> None:
        await self._plane.back_up(self._folder)

    async def restore(self) -> None:
        await self._plane.restore(self._folder)


@asynccontextmanager
async def backed_up(server_name: str, folder: Path) -> AsyncIterator[tuple[ClusterConfig, Backups]]:
    if server_name == "real":
        async with ControlPlane(controllers=False) as plane:
            yield (
                await asyncio.to_thread(load_config, plane.kubeconfig),
                RealBackups(plane, folder / "backup"),
            )
        return
    data = folder / "data.db"
    async with embedded(data) as (config, stop, start):
        yield config, EmbeddedBackups(data, stop, start)


async def test_a_server_that_is_restored_from_a_backup_is_followed(server_name: str, tmp_path: Path) -> None:
    known: list[set[tuple[str, int]]] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        known.append({(found.metadata.name, found.spec.size) for found in await ctx.list(Box)})
        await ctx.patch_status(box, BoxStatus(ready=box.spec.size))

    async with (
        backed_up(server_name, tmp_path) as (config, backups),
        Client(config, field_manager="test") as client,
    ):
        cluster = await Cluster.prepare(config, client)
        await cluster.install(Box)
        kept, dropped = await cluster.create(Box(Meta("kept"))), await cluster.create(Box(Meta("dropped")))
        await backups.back_up()
        async with cluster.running(Controller(Box, reconcile)):
            await cluster.merge(kept, {"spec": {"size": 2}})
            await cluster.client.delete(dropped)
            await cluster.create(Box(Meta("later")))
            # The restored server must not have passed this revision before it is noticed.
            for number in range(300):
                await cluster.merge(kept, {"metadata": {"annotations": {"number": str(number)}}})
            await cluster.until(Box, "kept", lambda found: found.status.ready == 2)
            await backups.restore()
            await cluster.until(Box, "dropped", lambda found: found.status.ready == 1)
            await cluster.until(Box, "kept", lambda found: found.status.ready == 1)
            await cluster.merge(kept, {"spec": {"size": 7}})
            await cluster.until(Box, "kept", lambda found: found.status.ready == 7)
    assert known[-1] == {("kept", 7), ("dropped", 1)}


async def test_what_changes_around_an_outage_is_reconciled_after_it(server_name: str, tmp_path: Path) -> None:
    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.patch_status(box, BoxStatus(ready=box.spec.size))

    async with (
        real() if server_name == "real" else embedded(tmp_path / "data.db") as (config, stop, start),
        Client(config, field_manager="test") as client,
    ):
        cluster = await Cluster.prepare(config, client)
        await cluster.install(Box)
        async with cluster.running(Controller(Box, reconcile)) as manager:
            box = await cluster.create(Box(Meta("a")))
            await cluster.until(Box, "a", lambda found: found.status.ready == 1)
            await stop()
            await start()
            await cluster.merge(box, {"spec": {"size": 2}})
            await cluster.create(Box(Meta("b")))
            await cluster.until(Box, "a", lambda found: found.status.ready == 2)
            await cluster.until(Box, "b", lambda found: found.status.ready == 1)
            assert manager.readiness.failures() == {}
