"""Endless changes: the memory of an operator whose journal is full, minute by minute.

The journal keeps the latest reconciles within a limit of bytes. One operator reconciles changes at a steady rate; once
its journal has dropped its first reconcile, its memory must stay where it is.
"""

import argparse
import asyncio
import itertools
import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
from harness import OURS, Bench
from kubewright_programs.echo import Echo
from support.echoes import create_echoes
from support.programs import Running, column, kubewright_command, running
from support.server import NAMESPACE, install, real_server

from kubewright.client import ApiRequest, Client
from kubewright.journal import DEFAULT_LIMIT
from kubewright.why import JournalEndpoint, local_endpoints

LENGTH = 2000
"""Characters of each changed message: large enough to fill the journal in a minute or two."""
MEGABYTE = 1024 * 1024


class JournalState(msgspec.Struct):
    """What the operator says of its journal."""

    size: int
    dropped: int


class Sample(NamedTuple):
    """The operator at one moment."""

    rss: float
    journal: float
    dropped: int


async def churn(client: Client, objects: int, rate: float) -> None:
    """Change one object after the other, so many in a second."""
    began = time.perf_counter()
    for number in itertools.count():
        message = f"change {number} ".ljust(LENGTH, ".")
        name = f"echo-{number % objects:06}"
        await client.patch(Echo, {"spec": {"message": message}}, name=name, namespace=NAMESPACE)
        await asyncio.sleep(max(0.0, began + (number + 1) / rate - time.perf_counter()))


async def state_of(endpoint: JournalEndpoint) -> JournalState:
    """Ask for the journal's size; no reconcile is of this kind, so none is sent."""
    async with Client(endpoint.config) as client:
        request = ApiRequest(method="GET", path="/journal", query="kind=None", verb="get", retry_safe=True)
        return msgspec.json.decode((await client.raw(request)).body, type=JournalState)


async def endpoint_of(program: Running) -> JournalEndpoint:
    """Wait until the operator serves its journal."""
    async with asyncio.timeout(60):
        while not (found := await local_endpoints()):
            program.check()
            await asyncio.sleep(0.1)
    return found[0]


async def samples(bench: Bench, client: Client, kubeconfig: Path, log: Path) -> list[Sample]:
    """Return a sample for each part of the time after the journal is full."""
    options = bench.options
    taken: list[Sample] = []
    async with running(kubewright_command("echo", kubeconfig), log) as program:
        endpoint = await endpoint_of(program)
        async with asyncio.TaskGroup() as group:
            changes = group.create_task(churn(client, options.objects, options.rate))
            while (state := await state_of(endpoint)).dropped == 0:
                bench.progress(f"the journal holds {state.size / MEGABYTE:.1f} MiB")
                await asyncio.sleep(10.0)
            for _ in range(options.samples):
                await asyncio.sleep(options.minutes * 60 / options.samples)
                state = await state_of(endpoint)
                taken.append(Sample(program.usage.rss, state.size / MEGABYTE, state.dropped))
                bench.progress(str(taken[-1]))
            changes.cancel()
    return taken


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60.0, help="how long, once it is full (default 60)")
    parser.add_argument("--samples", type=int, default=12, help="samples in that time (default 12)")
    parser.add_argument("--rate", type=float, default=50.0, help="changes a second (default 50)")
    parser.add_argument("--objects", type=int, default=200, help="objects that change in turn (default 200)")
    bench = Bench("journal", "the memory of an operator with a full journal", parser=parser)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder  # ask no operator that the user runs
        async with real_server(bench) as (plane, client):
            await install(client, Echo)
            await create_echoes(client, range(bench.options.objects))
            taken = await samples(bench, client, plane.kubeconfig, plane.directory / "operator.log")
    half = len(taken) // 2
    work = f"{bench.options.minutes:g} minutes, {bench.options.rate:g} changes a second"
    limit = DEFAULT_LIMIT / MEGABYTE
    bench.row(work, "journal", "MiB", {OURS: column(taken, "journal")}, goal=f"<= {limit:g} MiB")
    halves = {OURS: column(taken[half:], "rss"), "first half": column(taken[:half], "rss")}
    bench.row(work, "RSS, second half", "MB", halves, goal="<= 1.02", against="first half")
    bench.note(f"{taken[-1].dropped:,} reconciles were dropped from the journal for newer ones")
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
