"""From 1,000 to 100,000 resources: what each costs to hold, and what one change costs among so many.

CPU and memory are those of `kubewright run` with one controller that does nothing, when its own metrics say that each
object was reconciled; less what it takes with no objects, divided by the objects. A change is an update of one object,
sent many times and reconciled; its cost is CPU of our process.
"""

import argparse
import asyncio
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness import OURS, Bench
from kubewright_programs.echo import Echo
from support.echoes import create_echoes
from support.programs import ProgramFailed, Running, column, kubewright_command, running
from support.server import NAMESPACE, install, real_server

from kubewright.client import Client
from kubewright.testing import free_port

DEFAULT_TIMEOUT = 600.0
PAUSE = 1.0
SPACING = 0.005
STEP = 10_000
FEW = 10_000
FEW_ROUNDS = 3
SUBJECT = "echo-000000"
_RECONCILED = re.compile(
    r'^controller_runtime_reconcile_total\{[^}]*result="success"[^}]*\} (\S+)$', re.MULTILINE
)


class Figures(NamedTuple):
    """What one run came to."""

    cpu: float
    rss: float
    update: float


def reconciled(port: int) -> float:
    """Return how many reconciles the operator counts; -1 while it does not respond."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
            found = _RECONCILED.search(response.read().decode())
    except (urllib.error.URLError, OSError):
        return -1.0
    return float(found.group(1)) if found else 0.0


async def wait_reconciled(program: Running, port: int, count: float) -> None:
    """Wait until so many were reconciled, and until nothing follows."""
    async with asyncio.timeout(DEFAULT_TIMEOUT):
        while (now := await asyncio.to_thread(reconciled, port)) < count:
            program.check()
            await asyncio.sleep(PAUSE)
        await asyncio.sleep(PAUSE)
    if await asyncio.to_thread(reconciled, port) != now:
        raise ProgramFailed(f"reconciles go on after {now:.0f}, where {count:.0f} were due")


async def holding(client: Client, kubeconfig: Path, log: Path, count: int, updates: int) -> Figures:
    port = free_port()
    command = kubewright_command("listener", kubeconfig, f"--metrics-bind-address=127.0.0.1:{port}")
    async with running(command, log) as program:
        await wait_reconciled(program, port, count)
        usage, before = program.usage, await asyncio.to_thread(reconciled, port)
        if not updates:
            return Figures(usage.cpu, usage.rss, 0.0)
        began = program.usage.cpu
        for number in range(updates):
            patch = {"spec": {"message": f"change {number} of {usage.cpu}"}}
            await client.patch(Echo, patch, name=SUBJECT, namespace=NAMESPACE)
            await asyncio.sleep(SPACING)
        await asyncio.sleep(PAUSE)
        spent = program.usage.cpu - began
        # Changes that met in the queue were reconciled as one: divide by what was done.
        return Figures(
            usage.cpu, usage.rss, spent / (await asyncio.to_thread(reconciled, port) - before) * 1000
        )


async def grow(bench: Bench, client: Client, there: int, count: int) -> None:
    """Create the missing objects and report progress: the last ten thousand take minutes."""
    for begin in range(there, count, STEP):
        end, began = min(begin + STEP, count), time.perf_counter()
        await create_echoes(client, range(begin, end))
        bench.progress(
            f"{end:,} resources, {(end - begin) / (time.perf_counter() - began):.0f} created a second"
        )


def per_object(taken: Sequence[Figures], empty: Sequence[Figures], name: str, count: int) -> list[float]:
    """Divide what the objects cost by their number; in microseconds or bytes."""
    nothing = sorted(column(empty, name))[len(empty) // 2]
    return [(figure - nothing) / count * 1e6 for figure in column(taken, name)]


def rows(bench: Bench, runs: Mapping[int, Sequence[Figures]]) -> None:
    empty, (least, *more) = runs[0], [count for count in runs if count]
    few = f"at {least:,}"
    for many in more:
        work = f"growth {least:,} -> {many:,} resources"
        for metric, unit, name in (("CPU per object", "us", "cpu"), ("RSS per object", "bytes", "rss")):
            figures = {
                OURS: per_object(runs[many], empty, name, many),
                few: per_object(runs[least], empty, name, least),
            }
            bench.row(work, metric, unit, figures, goal="<= 1.2", against=few)
        figures = {OURS: column(runs[many], "update"), few: column(runs[least], "update")}
        bench.row(work, "CPU of one update", "ms", figures, goal="<= 1.2", against=few)


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--objects",
        type=int,
        nargs="+",
        default=[1000, 10_000, 100_000],
        help="how many resources, growing (default 1000 10000 100000)",
    )
    parser.add_argument("--updates", type=int, default=300, help="changes in each run (default 300)")
    bench = Bench("growth", "ever more resources, on the real API server", parser=parser, rounds=3)
    runs: dict[int, list[Figures]] = {}
    async with real_server(bench) as (plane, client):
        await install(client, Echo)
        there = 0
        for count in (0, *bench.options.objects):
            await grow(bench, client, there, count)
            there = count
            log = plane.directory / "operator.log"
            updates = bench.options.updates if count else 0
            runs[count] = []
            # A start varies by as much as the first thousand objects cost: those are measured more often.
            for number in range(bench.rounds * (FEW_ROUNDS if count < FEW else 1) + 1):
                taken = await holding(client, plane.kubeconfig, log, count, updates)
                bench.progress(
                    f"{count:,}: CPU {taken.cpu:.2f} s, {taken.rss:.0f} MB, {taken.update:.2f} ms an update"
                )
                # The first warms the server and compiles our modules.
                if number:
                    runs[count].append(taken)
    bench.note("each update is a change of one object, seen by the cache and reconciled")
    rows(bench, runs)
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
