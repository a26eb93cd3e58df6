"""1,000 resources, each to an owned ConfigMap and a status, 16 at once; then a restart with everything in place.

CPU and time are counted from the start of the process until the last status is seen from outside, imports included.
For the restart one more resource is created as the process starts: it is ready when that one has its ConfigMap.
Writes are those that the API server counted, less the two that this one resource needs; Events are counted apart.
"""

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from harness import OURS, Bench, alternate_async
from kubewright_programs.echo import Echo
from support.echoes import (
    APPLY,
    CONSISTENT,
    CREATE_OR_UPDATE,
    KOPF,
    PEERS,
    an_echo,
    create_echoes,
    echo_operators,
    observing,
    remove_echoes,
)
from support.image import RUN, add_python_option, interpreters
from support.programs import Command, Running, column, kubewright_command, running
from support.server import install, real_server, requests_served

from kubewright.api.builtin import core_v1
from kubewright.client import Client

WITHOUT_JOURNAL = "kubewright-without-journal"
RECORDING = "kubewright-recording"
PROBE = "the-probe"
WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
WRITTEN = ("echos", "configmaps")
EVENTS = ("events",)
PAUSE = 0.5
TICKING = 0.01
WARM_UP = 50
"""Resources in the runs that do not count: enough to compile, connect and fill the server's caches."""


class Figures(NamedTuple):
    """What one run came to."""

    seconds: float
    cpu: float
    peak: float
    restart: float
    restart_cpu: float
    restart_writes: float
    restart_events: float


class Restarted(NamedTuple):
    """What a start with everything in place came to."""

    seconds: float
    cpu: float
    writes: float
    events: float


def written(counted: Counter[tuple[str, str]], resources: Sequence[str]) -> int:
    """Count the writes to these resources."""
    return sum(times for (verb, of), times in counted.items() if verb in WRITES and of in resources)


async def quiet(program: Running) -> None:
    """Wait until the program has stopped working; what an idle process takes to tick is no work."""
    used = -1.0
    while (now := program.usage.cpu) - used > PAUSE * TICKING:
        used = now
        await asyncio.sleep(PAUSE)


async def restart(client: Client, command: Command, log: Path) -> Restarted:
    before = await requests_served(client)
    async with (
        observing(client, core_v1.ConfigMap, echoed=False) as children,
        running(command, log) as program,
    ):
        await client.create(an_echo(PROBE))
        await children.wait(name=PROBE, program=program)
        seconds, cpu = children.at[PROBE] - program.began, program.usage.cpu
        await quiet(program)
    after = await requests_served(client)
    # Besides the probe's ConfigMap and status, its creation was ours to write.
    writes = written(after, WRITTEN) - written(before, WRITTEN) - 3
    return Restarted(seconds, cpu, writes, written(after, EVENTS) - written(before, EVENTS))


def reconciling(
    bench: Bench, name: str, client: Client, count: int, command: Command, log: Path
) -> Callable[[], Awaitable[Figures]]:
    async def run() -> Figures:
        await remove_echoes(client)
        await create_echoes(client, range(count))
        async with observing(client, Echo, echoed=True) as echoed, running(command, log) as program:
            await echoed.wait(count=count, program=program)
            seconds, usage = time.perf_counter() - program.began, program.usage
            await quiet(program)
        figures = Figures(seconds, usage.cpu, usage.peak, *await restart(client, command, log))
        bench.progress(
            f"{name}: {count:,} in {seconds:.1f} s, CPU {usage.cpu:.2f} s, restarted in {figures.restart:.1f} s"
        )
        return figures

    return run


def rows(bench: Bench, count: int, runs: dict[str, list[Figures]]) -> None:
    def row(
        work: str,
        metric: str,
        unit: str,
        name: str,
        goal: str = "",
        against: str = "",
        *,
        alone: bool = False,
    ) -> None:
        """Add a row of all contenders; with `alone`, of ours and the one that it is compared with."""
        figures = {peer: column(taken, name) for peer, taken in runs.items()}
        if alone:
            figures = {peer: figures[peer] for peer in (OURS, against) if peer in figures}
        bench.row(work, metric, unit, figures, goal=goal, against=against)

    def median(peer: str, name: str) -> float:
        return sorted(column(runs[peer], name))[len(runs[peer]) // 2]

    work = f"{count:,} resources to a ConfigMap and a status"
    others = [peer for peer in runs if peer in PEERS]
    best = min(others, key=lambda peer: median(peer, "seconds"), default="")
    row(work, "time", "s", "seconds", "<= 1.1", best)
    row(work, "CPU", "s", "cpu", "<= 0.7", CREATE_OR_UPDATE)
    for peer, goal in ((CONSISTENT, ""), (APPLY, "<= 0.75"), (KOPF, "<= 0.22")):
        if peer in runs:
            row(f"{work}, against {peer}", "CPU", "s", "cpu", goal, peer, alone=True)
    row(work, "RSS", "MB", "peak", "<= 60 MB", best)
    if WITHOUT_JOURNAL in runs:
        row(f"{work}, the journal", "CPU", "s", "cpu", "<= 1.03", WITHOUT_JOURNAL, alone=True)
        row(f"{work}, the journal", "RSS", "MB", "peak", "", WITHOUT_JOURNAL, alone=True)
    again = "restart with everything in place"
    row(again, "time to ready", "s", "restart", "<= 0.5", KOPF)
    row(again, "CPU to ready", "s", "restart_cpu", "", CREATE_OR_UPDATE)
    row(again, "writes", "requests", "restart_writes", "<= 0 requests", KOPF)
    row(again, "events emitted", "requests", "restart_events", "<= 0 requests", KOPF)


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=1000, help="resources (default 1000)")
    add_python_option(parser)
    about = "an operator at work, on the real API server"
    bench = Bench("reconcile", about, parser=parser, rounds=3, peers=(*PEERS, WITHOUT_JOURNAL, RECORDING))
    count: int = bench.options.objects
    async with real_server(bench) as (plane, client):
        operators = await echo_operators(bench, plane.kubeconfig)
        record = str(plane.directory / "record.jsonl")
        variants = {WITHOUT_JOURNAL: ("--journal-limit", "0"), RECORDING: ("--record", record)}
        for name, options in variants.items():
            if bench.includes(name):
                operators[name] = kubewright_command("echo", plane.kubeconfig, *options)
        for name, python in (await interpreters(bench, bench.options.python)).items():
            operators[name] = [python, *RUN, *kubewright_command("echo", plane.kubeconfig)[1:]]
        await install(client, Echo)
        log = plane.directory / "operator.log"

        def running_of(count: int) -> dict[str, Callable[[], Awaitable[Figures]]]:
            return {
                name: reconciling(bench, name, client, count, command, log)
                for name, command in operators.items()
            }

        bench.progress(f"a short run of each, then {bench.rounds} of {', '.join(operators)}")
        runs = await alternate_async(bench.rounds, running_of(count), warming=running_of(WARM_UP))
    rows(bench, count, runs)
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
