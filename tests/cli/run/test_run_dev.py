"""`kubewright run --dev` as a user sees it: where it serves, and what a stop says."""

import asyncio
import re
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kubewright.api import Kind
from kubewright.client import Client, load_config

OPERATOR = '''
import asyncio
import kubewright as kw

class Spec(kw.Model):
    size: int = 0

class Status(kw.Model):
    ready: int = 0

class Tray(kw.Resource[Spec, Status], group="dev.example.com", version="v1"):
    """A tray."""

@kw.controller(Tray)
async def trays(tray: Tray, ctx: kw.Context) -> None:
    ctx.log.info("begun")
    await asyncio.sleep(1)
    ctx.log.info("ended")
'''
TRAY = Kind(group="dev.example.com", version="v1", kind="Tray", plural="trays")


@asynccontextmanager
async def running(target: Path) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from kubewright.cli import main; main()",
        "run",
        "--dev",
        str(target),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def read_until(process: Process, pattern: str) -> re.Match[str]:
    """Read the log until a line matches."""
    assert process.stderr is not None
    lines: list[str] = []
    async with asyncio.timeout(60):
        while line := await process.stderr.readline():
            lines.append(line.decode())
            if found := re.search(pattern, lines[-1]):
                return found
    raise AssertionError(f"no line matched {pattern}:\n{''.join(lines)}")


async def test_two_runs_share_a_machine_and_a_stop_names_what_it_waits_for(tmp_path: Path) -> None:
    target = tmp_path / "trays.py"
    await asyncio.to_thread(target.write_text, OPERATOR)
    async with running(target) as first, running(target) as second:
        kubeconfig = (await read_until(first, r"export KUBECONFIG=(\S+)"))[1]
        ports = [(await read_until(each, r'"metrics":(\d+)'))[1] for each in (first, second)]
        assert ports[0] != ports[1]
        for each in (first, second):
            await read_until(each, "Starting workers")
        async with Client(await asyncio.to_thread(load_config, Path(kubeconfig))) as client:
            await client.create({"metadata": {"name": "a", "namespace": "default"}}, kind=TRAY)
        await read_until(first, "begun")
        first.send_signal(signal.SIGINT)
        await read_until(first, r"waiting for 1 reconcile \(Ctrl-C again to stop now\)")
        await read_until(first, "ended")
        await read_until(first, r"Stopped .*reconciles=1 errors=0")
        assert await asyncio.wait_for(first.wait(), 60) == 0
        second.send_signal(signal.SIGINT)
        await read_until(second, r"Stopped .*reconciles=0 errors=0")
        assert await asyncio.wait_for(second.wait(), 60) == 0
