"""The API server goes and comes back: the operator loses no change and needs no restart."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

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
