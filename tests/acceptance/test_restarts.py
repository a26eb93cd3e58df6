"""The API server is killed and started again under the operators; what was stored stays, and work goes on."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from acceptance_ports import lasting_port
from acceptance_stories import STORIES, stages

from kubewright.testing import RealEnvironment, isolated

Restart = Callable[[], Awaitable[None]]


class DevServer:
    """`kubewright dev` with its data in a file, always on the same port."""

    def __init__(self, folder: Path) -> None:
        self._port = lasting_port()
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "kubeconfig"

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from kubewright.cli import main; main()", "dev", f"--port={self._port}"),
            *(f"--kubeconfig={self.kubeconfig}", f"--data={self._folder / 'cluster.db'}"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._process.stdout is not None
        while b"is ready" not in (line := await self._process.stdout.readline()):
            assert line, "kubewright dev did not start"

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def restart(self) -> None:
        await self.kill()
        await self.start()


@asynccontextmanager
async def restartable(server: str, folder: Path) -> AsyncGenerator[tuple[Path, Restart], None]:
    """Run a cluster whose API server can be killed and started again."""
    if server == "embedded":
        dev = DevServer(folder)
        await dev.start()
        try:
            yield dev.kubeconfig, dev.restart
        finally:
            await dev.kill()
        return
    async with AsyncExitStack() as stack:
        environment = RealEnvironment()
        kubeconfig = await environment.start(stack)

        async def restart() -> None:
            await environment.plane.stop_api_server(grace=0)
            await environment.plane.start_api_server()

        yield kubeconfig, restart


async def test_operators_continue_after_the_server_was_killed(
    server_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if server_name == "existing":
        pytest.skip("an existing cluster is not killed")
    outside = tmp_path / "vcenter.json"
    monkeypatch.setenv("VMGROUP_SIMULATOR", str(outside))
    async with (
        restartable(server_name, tmp_path) as (kubeconfig, restart),
        isolated("embedded" if server_name == "embedded" else "real", kubeconfig) as cluster,
        AsyncExitStack() as stack,
    ):
        found = stages(cluster, outside)
        for stage in found:
            await stack.enter_async_context(cluster.running(stage.sample.operator()))
        for number in range(max(map(len, STORIES.values()))):
            if number == 1:
                await restart()
            async with asyncio.TaskGroup() as group:
                for stage in found:
                    for step in STORIES[stage.sample.name][number : number + 1]:
                        group.create_task(step.play(stage))
