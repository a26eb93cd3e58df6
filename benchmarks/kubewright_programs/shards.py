"""One replica of an operator with fixed shards: fill its cache, or reconcile its objects once, and say what that took.

It is started with `KUBECONFIG MODE FIELD COUNT NUMBERS`: MODE is `cold` or `reconcile`, NUMBERS the shards that it holds, such
as `0,4`. A replica that reconciles prints `ready` when its caches are filled, and begins when it reads a line.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from kubewright.api import Model, Resource, kind_of
from kubewright.api.sharding import ShardField, Shards
from kubewright.cache import Cache, Selection, ShardFilter
from kubewright.client import Client, load_config
from kubewright.controller import Context, Controller, Operator
from kubewright.election import ElectionOptions, Leadership, ShardElection, ShardLease, ShardsTaken
from kubewright.manager import Manager, ManagerOptions
from kubewright.metrics import Registry

WORKERS = 8


class ParcelSpec(Model):
    """About a kilobyte of ordinary fields."""

    image: str = ""
    settings: dict[str, str] = {}


class ParcelStatus(Model):
    """What was done."""

    round: float = 0.0


class Parcel(Resource[ParcelSpec, ParcelStatus], group="bench.kubewright.dev", version="v1"):
    """An object that is only read."""


class Letter(Resource[ParcelSpec, ParcelStatus], group="bench.kubewright.dev", version="v1"):
    """An object whose status is written."""


class AssignedShards(ShardElection):
    """Hold some shards without leases: which replica has which is part of the measurement, and takes no time."""

    numbers: tuple[int, ...] = ()

    def start(self) -> None:
        """Take the shards as soon as everything runs."""
        leases = [ShardLease(number, time.monotonic) for number in self.numbers]
        for lease in leases:
            lease.leadership = Leadership.unlimited()
        asyncio.get_running_loop().call_later(0.05, self.events.put_nowait, ShardsTaken(tuple(leases)))


async def fill(kubeconfig: Path, shards: Shards, numbers: tuple[int, ...]) -> dict[str, Any]:
    """Fill a cache with the objects of some shards."""
    metrics, startup = Registry(), time.process_time()
    started = time.perf_counter()
    async with Client(load_config(kubeconfig)) as client, asyncio.TaskGroup() as tasks:
        cache = Cache(client, pause_gc=True, metrics=metrics)
        running = tasks.create_task(cache.run())
        await asyncio.sleep(0)
        streams = cache.shard_streams(numbers)
        informers = [
            cache.informer(Selection(kind_of(Parcel), shard=ShardFilter(shards, number, shards.by)), Parcel)
            for number in numbers
        ]
        cache.open_streams(streams)
        for informer in informers:
            await informer.wait_synced()
        seconds, at, cpu = time.perf_counter() - started, time.time(), time.process_time()
        selected = metrics.gauge("kubewright_shard_streams", "", ("resource", "selected_by"))
        result = {
            "at": at,
            "objects": sum(len(informer.keys()) for informer in informers),
            "seconds": seconds,
            "startup": startup,
            "cpu": cpu,
            "rss": _peak_memory(),
            "by_server": selected.labels(resource=kind_of(Parcel).resource, selected_by="server").value,
        }
        running.cancel()
    return result


def _peak_memory() -> int:
    """Return the most bytes that this process has held."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


async def reconcile(kubeconfig: Path, shards: Shards, numbers: tuple[int, ...]) -> dict[str, Any]:
    """Write the status of each object of some shards once."""
    begun, ended = asyncio.Event(), asyncio.Event()
    done: set[tuple[str, str]] = set()
    expected: set[tuple[str, str]] = set()
    this_round = time.time()

    async def work(letter: Letter, ctx: Context) -> None:
        await begun.wait()
        await ctx.patch_status(letter, ParcelStatus(round=this_round))
        done.add((letter.metadata.namespace, letter.metadata.name))
        if len(done) == len(expected):
            ended.set()

    config = load_config(kubeconfig)
    async with Client(config) as client:
        for one in await client.list(Letter):
            text = one.metadata.uid if shards.by == "uid" else one.metadata.namespace
            if shards.number_of(text) in numbers:
                expected.add((one.metadata.namespace, one.metadata.name))
    concurrency = max(1, WORKERS // len(numbers))
    controller = Controller(Letter, work, concurrency=concurrency)
    options = ManagerOptions(
        journal_limit=0,
        metrics_bind_address="0",
        health_probe_bind_address="0",
        election=ElectionOptions(identity="bench"),
    )
    AssignedShards.numbers = numbers
    manager = Manager(
        Operator(controller, name="bench", shards=shards), config, options, elect_shards=AssignedShards
    )
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(manager.run())
        await manager.ready.wait()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        cpu, started = time.process_time(), time.perf_counter()
        begun.set()
        if expected:
            await ended.wait()
        result = {
            "at": time.time(),
            "objects": len(expected),
            "seconds": time.perf_counter() - started,
            "cpu": time.process_time() - cpu,
        }
        running.cancel()
    return result


if __name__ == "__main__":
    path, mode, field, count, held = sys.argv[1:]
    by: ShardField = "namespace" if field == "namespace" else "uid"
    run = fill if mode == "cold" else reconcile
    found = run(Path(path), Shards(int(count), by), tuple(map(int, held.split(","))))
    print(json.dumps(asyncio.run(found)))
