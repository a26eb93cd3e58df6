"""One resource created, until its ConfigMap is seen: counted from the response to the create, one after another."""

import argparse
import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from harness import Bench, alternate_async
from kubewright_programs.echo import Echo
from support.echoes import CREATE_OR_UPDATE, PEERS, an_echo, echo_operators, observing, remove_echoes
from support.programs import Command, column, running
from support.server import install, real_server

from kubewright.api.builtin import core_v1
from kubewright.client import Client

WARM_UP = 10


class Figures(NamedTuple):
    """What one run came to, in milliseconds."""

    p50: float
    p95: float


def reacting(
    bench: Bench, name: str, client: Client, command: Command, log: Path, names: "itertools.count[int]"
) -> Callable[[], Awaitable[Figures]]:
    async def run() -> Figures:
        await remove_echoes(client)
        taken: list[float] = []
        async with (
            observing(client, core_v1.ConfigMap, echoed=False) as children,
            running(command, log) as program,
        ):
            for _ in range(bench.options.objects + WARM_UP):
                made = f"reaction-{next(names):06}"
                await client.create(an_echo(made))
                responded = time.perf_counter()
                await children.wait(name=made, program=program)
                taken.append((children.at[made] - responded) * 1000)
        # The first ones wait for the process to start.
        taken = sorted(taken[WARM_UP:])
        figures = Figures(taken[len(taken) // 2], taken[len(taken) * 95 // 100])
        bench.progress(f"{name}: p50 {figures.p50:.1f} ms, p95 {figures.p95:.1f} ms")
        return figures

    return run


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=200, help="resources in each run (default 200)")
    about = "from a resource to its child, on the real API server"
    bench = Bench("reaction", about, parser=parser, rounds=3, peers=PEERS)
    names = itertools.count(1)
    async with real_server(bench) as (plane, client):
        operators = await echo_operators(bench, plane.kubeconfig)
        await install(client, Echo)
        bench.progress(f"{bench.rounds} runs of {', '.join(operators)}")
        log = plane.directory / "operator.log"
        runs = await alternate_async(
            bench.rounds,
            {name: reacting(bench, name, client, command, log, names) for name, command in operators.items()},
        )
    work = "a resource created until its child is seen"
    for metric, goal in (("p50", "<= 1.3"), ("p95", "<= 1.0")):
        figures = {name: column(taken, metric) for name, taken in runs.items()}
        bench.row(work, metric, "ms", figures, goal=goal, against=CREATE_OR_UPDATE)
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
