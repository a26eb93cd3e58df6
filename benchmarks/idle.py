"""Two minutes with 10,000 resources in place and nothing to do: requests, CPU and memory.

Each contender is started, creates everything, and is left alone; the two minutes are taken as windows, whose
median is shown. Requests are those for resources that the API server counted, its own included.
"""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness import Bench
from kubewright_programs.echo import Echo
from support.echoes import CREATE_OR_UPDATE, FRAMEWORKS, create_echoes, echo_operators, observing
from support.programs import Command, Running, column, running
from support.server import install, real_server, requests_served

from kubewright.api.builtin import core_v1
from kubewright.client import Client

SETTLING = 10.0
STILL = 0.02
WINDOWS = 4


class Figures(NamedTuple):
    """What one window came to."""

    lists: float
    requests: float
    cpu: float
    rss: float
    growth: float


async def idling(client: Client, count: int, seconds: float, command: Command, log: Path) -> list[Figures]:
    async with (
        observing(client, core_v1.ConfigMap, echoed=False) as children,
        running(command, log) as program,
    ):
        await children.wait(count=count, program=program)
        used = program.usage.cpu
        while True:
            await asyncio.sleep(SETTLING)
            if program.usage.cpu - used < STILL * SETTLING:
                break
            used = program.usage.cpu
        windows: list[Figures] = []
        first = program.usage.rss
        for _ in range(WINDOWS):
            windows.append(await window(client, seconds / WINDOWS, program, first))
        return windows


async def window(client: Client, seconds: float, program: Running, first: float) -> Figures:
    before, counted = program.usage, await requests_served(client)
    await asyncio.sleep(seconds)
    after, seen = program.usage, (await requests_served(client)) - counted
    lists = sum(
        times for (verb, of), times in seen.items() if verb == "LIST" and of in ("echos", "configmaps")
    )
    return Figures(
        lists=lists,
        # What is no resource is our own question for these figures.
        requests=sum(times for (_, of), times in seen.items() if of),
        cpu=(after.cpu - before.cpu) / seconds * 100,
        rss=after.rss,
        growth=after.rss / first,
    )


def rows(bench: Bench, work: str, runs: dict[str, Sequence[Figures]]) -> None:
    def row(metric: str, unit: str, name: str, goal: str = "") -> None:
        figures = {peer: column(taken, name) for peer, taken in runs.items()}
        bench.row(work, metric, unit, figures, goal=goal, against=CREATE_OR_UPDATE)

    row("list requests", "requests", "lists", "<= 0 requests")
    row("requests of any kind, the server's own included", "requests", "requests")
    row("CPU", "% of a core", "cpu", "<= 0.3 %")
    row("RSS", "MB", "rss")
    row("RSS to RSS at first", "times", "growth", "<= 1.02 times")


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=10_000, help="resources (default 10000)")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to be idle (default 120)")
    bench = Bench("idle", "nothing to do, on the real API server", parser=parser, peers=FRAMEWORKS)
    options = bench.options
    runs: dict[str, Sequence[Figures]] = {}
    async with real_server(bench) as (plane, client):
        operators = await echo_operators(bench, plane.kubeconfig)
        await install(client, Echo)
        bench.progress(f"creating {options.objects:,} resources")
        await create_echoes(client, range(options.objects))
        for name, command in operators.items():
            bench.progress(f"{name}: everything in place, then {options.seconds:g} s of nothing")
            log = plane.directory / "operator.log"
            runs[name] = await idling(client, options.objects, options.seconds, command, log)
            bench.progress(f"{name}: {runs[name][-1]}")
    rows(bench, f"idle with {options.objects:,} resources and their ConfigMaps", runs)
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
