"""An operator's objects divided over 1, 2 and 4 replicas: cold caches, memory and reconciles on the real API server.

Each replica is a process, and all of them start at the same time. Objects are divided by uid and by namespace, selected by the API
server (shardSelector) or, with its feature gate off, by each replica as they arrive. The CPU time of the API server is
measured beside that of the replicas. The objects are written into etcd directly; there are eight shards, and each replica holds
those that it would hold by their leases.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harness import OURS, Bench
from kubewright_programs.shards import Letter, Parcel
from support.etcd import store
from support.programs import KUBEWRIGHT, ProgramFailed, cpu_seconds, environment
from support.server import install, real_server

from kubewright.api import Meta, Object
from kubewright.api.builtin import core_v1
from kubewright.testing.controlplane import SHARDED_LIST_AND_WATCH, ControlPlane

SHARDS = 8
SPACES = 64
PLANNED = 1_000_000

Figures = dict[str, float]


class Layout(NamedTuple):
    """How the objects are divided."""

    replicas: int
    by: str = "uid"
    by_server: bool = True

    def __str__(self) -> str:
        if self.replicas == 1:
            return "1 replica"
        selects = "the server" if self.by_server else "the replicas"
        return f"{self.replicas} replicas by {self.by}, selected by {selects}"

    @property
    def held(self) -> list[str]:
        """Return the shards of each replica."""
        return [",".join(map(str, range(number, SHARDS, self.replicas))) for number in range(self.replicas)]


ALONE = Layout(1)
SELECTED = [ALONE, *(Layout(replicas, by) for replicas in (2, 4) for by in ("uid", "namespace"))]
FILTERED = [Layout(replicas, by, by_server=False) for replicas in (2, 4) for by in ("uid", "namespace")]


def objects(count: int) -> Iterator[dict[str, Any]]:
    """Make objects of about a kilobyte in several namespaces, whose names differ at their beginning."""
    for number in range(count):
        yield {
            "metadata": {"name": f"sample-{number:06}", "namespace": f"{number % SPACES}-bench"},
            "spec": {
                "image": f"registry.example/app:{number}",
                "settings": {f"setting-{k}": f"{number}-{k}-{'y' * 40}" for k in range(12)},
            },
        }


class Replica:
    """One process of the program under test."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, kubeconfig: Path, mode: str, layout: Layout, held: str) -> "Replica":
        command = [sys.executable, KUBEWRIGHT / "shards.py", kubeconfig, mode, layout.by, SHARDS, held]
        return cls(
            await asyncio.create_subprocess_exec(
                *map(str, command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=environment(),
            )
        )

    async def line(self) -> str:
        assert self._process.stdout is not None
        found = (await self._process.stdout.readline()).decode()
        if not found:
            raise ProgramFailed(f"a replica ended with {await self._process.wait()}")
        return found

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")

    async def result(self) -> Figures:
        found: Figures = json.loads(await self.line())
        await self._process.wait()
        return found


class Measurement:
    """Runs of all layouts on one API server."""

    def __init__(self, bench: Bench, plane: ControlPlane, letters: int, parcels: int) -> None:
        self._bench = bench
        self._plane = plane
        self._letters = letters
        self._parcels = parcels

    def server_cpu(self) -> float:
        process = self._plane.process_id("kube-apiserver")
        assert process is not None
        return cpu_seconds(process)

    async def cold(self, layout: Layout) -> Figures:
        """Fill the caches of all replicas from nothing."""
        used, began = self.server_cpu(), time.time()
        replicas = await asyncio.gather(
            *(Replica.start(self._plane.kubeconfig, "cold", layout, held) for held in layout.held)
        )
        found = await asyncio.gather(*(replica.result() for replica in replicas))
        server = self.server_cpu() - used
        seen = sum(one["objects"] for one in found)
        if seen != self._parcels:
            raise SystemExit(f"{layout}: the replicas hold {seen:.0f} objects, not {self._parcels}")
        selected = sum(one["by_server"] for one in found)
        if layout.replicas > 1 and selected != layout.replicas * layout.by_server:
            raise SystemExit(f"{layout}: the server selects for {selected:.0f} replicas")
        cpu = sum(one["cpu"] - one["startup"] for one in found)
        figures = {
            "time": max(one["at"] for one in found) - began,
            "cpu": cpu,
            "rss": max(one["rss"] for one in found) / 1e6,
            "largest": max(one["objects"] for one in found),
            "server": server,
            "share": 100 * server / (server + cpu),
        }
        self._bench.progress(f"{layout}: caches filled in {figures['time']:.1f} s")
        return figures

    async def reconcile(self, layout: Layout) -> Figures:
        """Let all replicas write the status of each of their objects."""
        replicas = await asyncio.gather(
            *(Replica.start(self._plane.kubeconfig, "reconcile", layout, held) for held in layout.held)
        )
        for replica in replicas:
            await replica.line()
        used, began = self.server_cpu(), time.time()
        for replica in replicas:
            replica.begin()
        found = await asyncio.gather(*(replica.result() for replica in replicas))
        server, cpu = self.server_cpu() - used, sum(one["cpu"] for one in found)
        seen = sum(one["objects"] for one in found)
        if seen != self._letters:
            raise SystemExit(f"{layout}: {seen:.0f} objects were reconciled, not {self._letters}")
        rate = self._letters / (max(one["at"] for one in found) - began)
        self._bench.progress(f"{layout}: {rate:.0f} reconciles/s")
        return {"rate": rate, "reconciling": cpu, "share of reconciles": 100 * server / (server + cpu)}

    async def run(self, layouts: list[Layout], runs: dict[Layout, list[Figures]]) -> None:
        """Measure layouts in turn, each `rounds` times."""
        for _ in range(self._bench.rounds):
            for layout in layouts:
                figures = {**await self.cold(layout), **await self.reconcile(layout)}
                runs.setdefault(layout, []).append(figures)


def rows(bench: Bench, count: int, letters: int, runs: dict[Layout, list[Figures]]) -> None:
    filled = f"caches of {count:,} objects of 1 KB"
    written = f"status of {letters:,} objects"
    for work, metric, unit, name in (
        (filled, "time until all are filled", "s", "time"),
        (filled, "CPU of all replicas after their start", "s", "cpu"),
        (filled, "CPU of the API server", "s", "server"),
        (filled, "share of the API server", "%", "share"),
        (filled, "RSS of the largest replica", "MB", "rss"),
        (written, "reconciles", "/s", "rate"),
        (written, "CPU of all replicas", "s", "reconciling"),
        (written, "share of the API server", "%", "share of reconciles"),
    ):
        alone = [run[name] for run in runs[ALONE]]
        for layout, taken in runs.items():
            figures = {OURS: [run[name] for run in taken]}
            if layout is not ALONE:
                figures[str(ALONE)] = alone
            bench.row(f"{work}, {layout}", metric, unit, figures)


def plan(bench: Bench, count: int, runs: dict[Layout, list[Figures]]) -> None:
    """Compute what eight replicas with a million objects take, from what one and four take with fewer."""

    def middle(layout: Layout, name: str) -> float:
        return sorted(run[name] for run in runs[layout])[len(runs[layout]) // 2]

    selected, filtered = Layout(4), Layout(4, by_server=False)
    share = PLANNED / SHARDS
    per_object = (middle(ALONE, "rss") - middle(selected, "rss")) / (count - middle(selected, "largest"))
    memory = middle(ALONE, "rss") + per_object * (share - count)
    cpu, server = middle(selected, "cpu") / count, middle(selected, "server") / count
    bench.note(
        f"computed for {PLANNED:,} objects over {SHARDS} shards on {SHARDS} replicas: {memory:.0f} MB "
        f"({per_object * 1e3:.2f} KB an object) and {cpu * share:.0f} s of CPU to fill each cache, "
        f"{server * PLANNED:.0f} s of CPU of the API server"
    )
    extra = (middle(filtered, "cpu") - middle(selected, "cpu")) / (3 * count)
    wasted = (middle(filtered, "server") - middle(selected, "server")) / (3 * count)
    bench.note(
        f"computed for the same without shardSelector: {cpu * share + extra * (PLANNED - share):.0f} s of CPU for each replica, "
        f"{server * PLANNED + wasted * PLANNED * (SHARDS - 1):.0f} s of the API server: each object is sent to "
        f"{SHARDS} replicas, and {SHARDS - 1} drop it"
    )


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=100_000, help="objects to cache (default 100000)")
    parser.add_argument("--reconciles", type=int, default=500, help="objects to reconcile (default 500)")
    bench = Bench("shards", "objects divided over replicas, on the real API server", parser=parser, rounds=3)
    count: int = bench.options.objects
    letters: int = bench.options.reconciles
    runs: dict[Layout, list[Figures]] = {}
    async with real_server(bench) as (plane, client):
        for number in range(SPACES):
            await client.create(core_v1.Namespace(Meta(f"{number}-bench")))
        amounts: dict[type[Object], int] = {Parcel: count, Letter: letters}
        for kind, amount in amounts.items():
            await install(client, kind)
            bench.progress(f"storing {amount:,} objects")
            await asyncio.to_thread(store, plane.directory, kind, objects(amount), amount)
        measurement = Measurement(bench, plane, letters, count)
        await measurement.run(SELECTED, runs)
        bench.progress("restarting the API server without the feature gate")
        await plane.stop_api_server()
        await plane.start_api_server(feature_gates={SHARDED_LIST_AND_WATCH: False})
        await client.list(Parcel)
        await measurement.run(FILTERED, runs)
    rows(bench, count, letters, runs)
    plan(bench, count, runs)
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
