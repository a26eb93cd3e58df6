"""A replica that stands by holds what it will have to do, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubewright.api import Meta, ObjectKey
from kubewright.cache import Cache
from kubewright.controller import Context, Controller
from kubewright.controller.running import Runner, Surroundings
from kubewright.events import EventRecorder
from kubewright.metrics import Registry

from .cluster import Cluster
from .kinds import Box


@asynccontextmanager
async def standing_by(
    cluster: Cluster, controller: Controller[Box]
) -> AsyncIterator[tuple[Runner[Box], Cache]]:
    metrics = Registry()
    cache = Cache(cluster.client, metrics=metrics)
    recorder = EventRecorder(cluster.client, controller="boxes", host="here", metrics=metrics)
    around = Surroundings(
        client=cluster.client,
        cache=cache,
        recorder=recorder,
        metrics=metrics,
        namespaces=(cluster.namespace,),
    )
    runner = Runner(controller, around)
    runner.subscribe()
    async with asyncio.TaskGroup() as group:
        following = group.create_task(cache.run())
        await runner.wait_synced()
        yield runner, cache
        following.cancel()


async def test_what_came_and_went_before_this_replica_led_is_not_reconciled(cluster: Cluster) -> None:
    await cluster.install(Box)
    seen: list[str] = []
    last = asyncio.Event()

    async def reconcile(box: Box, ctx: Context) -> None:
        seen.append(box.metadata.name)
        if box.metadata.name == "last":
            last.set()

    async with standing_by(cluster, Controller(Box, reconcile)) as (runner, cache):
        for number in range(20):
            await cluster.client.delete(await cluster.create(Box(Meta(f"gone-{number}"))))
        await cluster.create(Box(Meta("stays")))

        async def seen_here() -> bool:
            [feed] = cache.feeds
            return ObjectKey(cluster.namespace, "stays") in feed.objects

        await cluster.eventually(seen_here)
        async with asyncio.TaskGroup() as group:
            working = group.create_task(runner.run())
            await cluster.create(Box(Meta("last")))
            await last.wait()
            runner.stop()
            await working
        assert sorted(seen) == ["last", "stays"]
        assert runner.statistics().outcomes["success"] == 2
