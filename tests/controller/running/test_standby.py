"""A replica that stands by holds what it will have to do, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubewright.api import Meta, ObjectKey
from kubewright.cache import Cache
from kubewright.controller import Context, Controller
from kubewright.controller.running import Runner, RuntimeDependencies
from kubewright.election import Leadership, LeaseTimes, NotLeading
from kubewright.events import EventRecorder
from kubewright.metrics import Registry
from kubewright.testing import Cluster, eventually

from .kinds import Box


@asynccontextmanager
async def standing_by(
    cluster: Cluster, controller: Controller[Box], leadership: Leadership | None = None
) -> AsyncIterator[tuple[Runner[Box], Cache]]:
    metrics = Registry()
    cache = Cache(cluster.client, metrics=metrics)
    recorder = EventRecorder(cluster.client, controller="boxes", host="here", metrics=metrics)
    dependencies = RuntimeDependencies(
        client=cluster.client,
        cache=cache,
        recorder=recorder,
        metrics=metrics,
        leadership=leadership or Leadership.unlimited(),
        namespaces=(cluster.namespace,),
    )
    runner = Runner(controller, dependencies)
    runner.subscribe()
    async with asyncio.TaskGroup() as group:
        following = group.create_task(cache.run())
        await runner.wait_synced()
        yield runner, cache
        following.cancel()


async def test_objects_created_and_deleted_before_this_replica_led_are_not_reconciled(
    cluster: Cluster,
) -> None:
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

        await eventually(seen_here)
        async with asyncio.TaskGroup() as group:
            working = group.create_task(runner.run())
            await cluster.create(Box(Meta("last")))
            await last.wait()
            runner.stop()
            await working
        assert sorted(seen) == ["last", "stays"]
        assert runner.statistics().outcomes["success"] == 2


async def test_no_reconcile_begins_without_the_lease_and_its_key_is_kept(cluster: Cluster) -> None:
    await cluster.install(Box)
    leadership = Leadership()
    held: list[bool] = []
    done = asyncio.Event()

    async def reconcile(box: Box, ctx: Context) -> None:
        held.append(ctx.leading)
        done.set()

    async with standing_by(cluster, Controller(Box, reconcile), leadership) as (runner, _):
        await cluster.create(Box(Meta("a")))
        async with asyncio.TaskGroup() as group:
            working = group.create_task(runner.run())
            await eventually(lambda: runner.queue.retries(ObjectKey(cluster.namespace, "a")) > 1)
            assert not held
            leadership.renewed(leadership.clock(), LeaseTimes(duration=7200, renew_deadline=3600))
            await done.wait()
            runner.stop()
            await working
        assert held == [True]
        assert runner.statistics().outcomes["error"] == 0


async def test_no_function_begins_in_a_thread_without_the_lease(cluster: Cluster) -> None:
    await cluster.install(Box)
    leadership = Leadership()
    leadership.renewed(leadership.clock(), LeaseTimes(duration=7200, renew_deadline=3600))
    refused = asyncio.Event()
    called: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        leadership.end()
        try:
            await ctx.run_sync(lambda: called.append(box.metadata.name))
        except NotLeading:
            refused.set()

    async with standing_by(cluster, Controller(Box, reconcile), leadership) as (runner, _):
        async with asyncio.TaskGroup() as group:
            working = group.create_task(runner.run())
            await cluster.create(Box(Meta("a")))
            await refused.wait()
            runner.stop()
            await working
        assert not called
        assert leadership.active == 0
