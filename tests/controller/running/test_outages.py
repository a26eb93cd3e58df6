"""The API server goes and comes back: the operator loses no change and needs no restart."""

import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest
from acceptance_ports import lasting_port

from kubewright.api import Meta
from kubewright.controller import Context, Controller
from kubewright.devserver import Server
from kubewright.testing import isolated
from kubewright.testing.controlplane import ControlPlane
from kubewright.testing.environments import ServerName

from .kinds import Box, BoxStatus
from .operators import running

Switch = Callable[[], Awaitable[None]]


@pytest.fixture(autouse=True)
def unblocked_event_loop() -> None:
    """Let the embedded server write its file: it commits on its own event loop by design."""


@asynccontextmanager
async def embedded(data: Path) -> AsyncIterator[tuple[Path, Switch, Switch]]:
    """Run the embedded server; yield its kubeconfig and what stops and starts it."""
    async with AsyncExitStack() as stack:
        server = Server(data=data, port=lasting_port())
        serving = AsyncExitStack()
        await serving.enter_async_context(server)
        stack.push_async_callback(serving.aclose)

        async def start() -> None:
            await serving.enter_async_context(Server(data=data, port=server.port))

        kubeconfig = data.with_name("kubeconfig")
        kubeconfig.write_text(json.dumps(server.kubeconfig()))
        yield kubeconfig, serving.aclose, start


@asynccontextmanager
async def real() -> AsyncIterator[tuple[Path, Switch, Switch]]:
    async with ControlPlane(controllers=False) as plane:
        yield plane.kubeconfig, plane.stop_api_server, plane.start_api_server


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
async def backed_up(server_name: ServerName, folder: Path) -> AsyncIterator[tuple[Path, Backups]]:
    if server_name == "real":
        async with ControlPlane(controllers=False) as plane:
            yield plane.kubeconfig, RealBackups(plane, folder / "backup")
        return
    data = folder / "data.db"
    async with embedded(data) as (kubeconfig, stop, start):
        yield kubeconfig, EmbeddedBackups(data, stop, start)


async def test_a_server_that_is_restored_from_a_backup_is_followed(
    server_name: ServerName, tmp_path: Path
) -> None:
    known: list[set[tuple[str, int]]] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        known.append({(found.metadata.name, found.spec.size) for found in await ctx.list(Box)})
        await ctx.patch_status(box, BoxStatus(ready=box.spec.size))

    async with (
        backed_up(server_name, tmp_path) as (kubeconfig, backups),
        isolated(server_name, kubeconfig, controllers=False) as cluster,
    ):
        await cluster.install(Box)
        kept, dropped = await cluster.create(Box(Meta("kept"))), await cluster.create(Box(Meta("dropped")))
        await backups.back_up()
        async with running(cluster, Controller(Box, reconcile)):
            await cluster.client.patch(kept, {"spec": {"size": 2}})
            await cluster.client.delete(dropped)
            await cluster.create(Box(Meta("later")))
            # The restored server must not have passed this revision before it is noticed.
            for number in range(300):
                await cluster.client.patch(kept, {"metadata": {"annotations": {"number": str(number)}}})
            await cluster.eventually(Box, "kept", lambda found: found.status.ready == 2)
            await backups.restore()
            await cluster.eventually(Box, "dropped", lambda found: found.status.ready == 1)
            await cluster.eventually(Box, "kept", lambda found: found.status.ready == 1)
            await cluster.client.patch(kept, {"spec": {"size": 7}})
            await cluster.eventually(Box, "kept", lambda found: found.status.ready == 7)
    assert known[-1] == {("kept", 7), ("dropped", 1)}


async def test_changes_around_an_outage_are_reconciled_after_it(
    server_name: ServerName, tmp_path: Path
) -> None:
    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.patch_status(box, BoxStatus(ready=box.spec.size))

    async with (
        real() if server_name == "real" else embedded(tmp_path / "data.db") as (kubeconfig, stop, start),
        isolated(server_name, kubeconfig, controllers=False) as cluster,
    ):
        await cluster.install(Box)
        async with running(cluster, Controller(Box, reconcile)) as manager:
            box = await cluster.create(Box(Meta("a")))
            await cluster.eventually(Box, "a", lambda found: found.status.ready == 1)
            await stop()
            await start()
            await cluster.client.patch(box, {"spec": {"size": 2}})
            await cluster.create(Box(Meta("b")))
            await cluster.eventually(Box, "a", lambda found: found.status.ready == 2)
            await cluster.eventually(Box, "b", lambda found: found.status.ready == 1)
            assert manager.readiness.failures() == {}
