"""Fill a cold cache with 10,000 custom resources of 2 KB from a real API server: ours and the peers'.

Each program runs in a process of its own. CPU and time are counted from the start of the process until the cache is
whole, imports included; the rows without a goal leave the start out. A program that reads the same WatchList and looks
at nothing says what of it is the server's sending.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from harness import OURS, Bench, alternate_async
from kubewright_programs.coldcache import EnvVar, Sample, SampleSpec
from support.programs import KUBEWRIGHT, Command, column, figures_of, go_program, rust_program
from support.server import NAMESPACE, each, install, real_server

from kubewright.api import Meta

GO = "controller-runtime"
RUST = "kube-rs"
PAGES = "by pages"
READING = "reading alone"

Figures = dict[str, float]


def sample(number: int) -> Sample:
    """Make one resource of about two kilobytes."""
    return Sample(
        Meta(f"sample-{number:06}", namespace=NAMESPACE, labels={"app": "bench", "shard": str(number % 10)}),
        spec=SampleSpec(
            replicas=number,
            image=f"registry.example/app:{number}",
            env=[EnvVar(name=f"VARIABLE_{k}", value=f"{number}-{k}-{'x' * 30}") for k in range(12)],
            settings={f"setting-{k}": f"{number}-{k}-{'y' * 30}" for k in range(10)},
        ),
    )


async def contenders(bench: Bench, kubeconfig: Path) -> dict[str, Command]:
    ours: Command = [sys.executable, KUBEWRIGHT / "coldcache.py", kubeconfig]
    found: dict[str, Command] = {OURS: ours}
    go = await go_program(bench, "coldcache") if bench.includes(GO) else None
    if go is not None:
        found[GO] = [go, kubeconfig]
    rust = await rust_program(bench, "coldcache") if bench.includes(RUST) else None
    if rust is not None:
        found[RUST] = [rust, kubeconfig]
    reading: Command = [sys.executable, KUBEWRIGHT / "reading.py", kubeconfig]
    return {**found, PAGES: [*ours, "--pages"], READING: reading}


def filling(bench: Bench, name: str, command: Command, expected: int) -> Callable[[], Awaitable[Figures]]:
    async def run() -> Figures:
        figures = await figures_of(command)
        bench.progress(f"{name}: {figures['seconds']:.2f} s")
        if figures["objects"] != expected:
            raise SystemExit(f"{command[0]} saw {figures['objects']:.0f} objects, not {expected}")
        if name == READING:
            return figures
        return {
            **figures,
            "filling": figures["cpu"] - figures["startup"],
            "rss": figures["rss"] / 1e6,
        }

    return run


def rows(bench: Bench, count: int, runs: dict[str, list[Figures]]) -> None:
    work = f"cold cache of {count:,} resources of 2 KB"
    streamed = {name: taken for name, taken in runs.items() if name not in (PAGES, READING)}

    def row(work: str, metric: str, unit: str, name: str, goal: str = "", against: str = GO) -> None:
        shown = streamed if against == GO else {peer: streamed[peer] for peer in (OURS, against)}
        figures = {peer: column(taken, name) for peer, taken in shown.items()}
        bench.row(work, metric, unit, figures, goal=goal, against=against)

    row(work, "CPU", "s", "cpu", "<= 0.3")
    row(work, "CPU after the start", "s", "filling")
    row(work, "time", "s", "since", "<= 0.48")
    row(work, "time after the start", "s", "seconds")
    bench.row(
        work,
        "time after the start, against reading alone",
        "s",
        {OURS: column(runs[OURS], "seconds"), READING: column(runs[READING], "seconds")},
        goal="<= 1.05",
        against=READING,
    )
    row(work, "RSS", "MB", "rss", "<= 1.0")
    row(f"{work}, against {RUST}", "CPU", "s", "cpu", "", RUST)
    row(f"{work}, against {RUST}", "time", "s", "since", "<= 1.1", RUST)
    row(f"{work}, against {RUST}", "RSS", "MB", "rss", "<= 1.0", RUST)
    streamed[OURS] = runs[PAGES]
    row(f"{work}, ours listing pages instead of WatchList", "CPU", "s", "cpu")
    row(f"{work}, ours listing pages instead of WatchList", "time", "s", "since")


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=10_000, help="resources (default 10000)")
    bench = Bench(
        "cold-cache", "a cache filled from nothing, on the real API server", parser=parser, peers=(GO, RUST)
    )
    count: int = bench.options.objects
    async with real_server(bench) as (plane, client):
        commands = await contenders(bench, plane.kubeconfig)
        await install(client, Sample)
        bench.progress(f"creating {count:,} resources")
        await each(map(sample, range(count)), client.create)
        bench.progress(f"{bench.rounds} runs of each")
        runs = await alternate_async(
            bench.rounds, {name: filling(bench, name, command, count) for name, command in commands.items()}
        )
    rows(bench, count, runs)
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
