"""Fill a kubewright cache with one kind and say what that took."""

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from kubewright.api import Model, Resource, kind_of
from kubewright.cache import Cache, Selection
from kubewright.client import Client, load_config


class EnvVar(Model):
    """One name and value."""

    name: str
    value: str


class SampleSpec(Model):
    """About two kilobytes of ordinary fields."""

    replicas: int
    image: str
    env: list[EnvVar] = []
    settings: dict[str, str] = {}


class SampleStatus(Model):
    """What a controller would report."""

    ready: int = 0


class Sample(Resource[SampleSpec, SampleStatus], group="bench.kubewright.dev", version="v1"):
    """The benchmarked kind as its author would type it."""


async def fill(kubeconfig: Path, *, streaming: bool) -> dict[str, Any]:
    started, startup = time.perf_counter(), time.process_time()
    async with Client(load_config(kubeconfig)) as client, asyncio.TaskGroup() as tasks:
        cache = Cache(client, streaming=streaming, pause_gc=True)
        running = tasks.create_task(cache.run())
        informer = cache.informer(Selection(kind_of(Sample)), Sample)
        await informer.wait_synced()
        seconds, at = time.perf_counter() - started, time.time()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        objects = len(informer.keys())
        running.cancel()
    return {
        "at": at,
        "objects": objects,
        "seconds": seconds,
        "startup": startup,
        "cpu": usage.ru_utime + usage.ru_stime,
        "rss": peak_memory(),
    }


def peak_memory() -> int:
    """Return the most bytes that this process has held; what getrusage says includes its parent's (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(fill(Path(sys.argv[1]), streaming="--pages" not in sys.argv))))
