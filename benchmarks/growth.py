"""From 1,000 to 100,000 resources: what each costs to hold, and what one change costs among so many.

CPU and memory are those of `kubewright run` with one controller that does nothing, less what it takes with no
objects, divided by the objects. A change is an update of one object, sent many times; its cost is CPU of our process.
"""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness import OURS, Bench
from kubewright_programs.echo import Echo
from stage.echoes import create_echoes
from stage.programs import Command, Running, column, kubewright_command, running
from stage.server import NAMESPACE, install, real_server

from kubewright.client import Client

STILL = 0.03
PAUSE = 1.5
SUBJECT = "echo-000000"


class Figures(NamedTuple):
    """What one run came to."""

    cpu: float
    rss: float
    update: float


async def still(program: Running) -> None:
    """Wait until the program has been at rest for a while."""
    resting, used = 0, 0.0
    while resting < 2:
        await asyncio.sleep(PAUSE)
        now = program.usage.cpu
        resting = resting + 1 if 0 < now - used < STILL or now == used > 0 else 0
        used = now


async def holding(client: Client, command: Command, log: Path, updates: int) -> Figures:
    async with running(command, log) as program:
        await still(program)
        usage = program.usage
        for number in range(updates):
            patch = {"spec": {"message": f"change {number} of {usage.cpu}"}}
            await client.patch(Echo, patch, name=SUBJECT, namespace=NAMESPACE)
        await still(program)
        return Figures(usage.cpu, usage.rss, (program.usage.cpu - usage.cpu) / max(updates, 1) * 1000)


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
        command = kubewright_command("listener", plane.kubeconfig)
        there = 0
        for count in (0, *bench.options.objects):
            bench.progress(f"{count:,} resources")
            await create_echoes(client, range(there, count))
            there = count
            log = plane.directory / "operator.log"
            updates = bench.options.updates if count else 0
            runs[count] = [await holding(client, command, log, updates) for _ in range(bench.rounds)]
    bench.note("each update is a change of one object, seen by the cache and reconciled")
    rows(bench, runs)
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
