"""Simulations: the same seed gives the same run, crashes are real, and what never ends fails."""

import asyncio
import gc
import logging
import random
import secrets
import socket
import sys
import threading
import time
import uuid
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import timedelta

import pytest

import kubewright as kw
import kubewright.testing
from kubewright.api import ApiError, NotFound, to_wire
from kubewright.api.builtin import core_v1
from kubewright.testing import (
    BACKUPS,
    COMMON,
    WEBHOOKS,
    Deadlock,
    Livelock,
    Match,
    Simulation,
    SimulationError,
    Trace,
    draw_plan,
    nothing_left,
    outcome_of,
    simulate,
)
from kubewright.testing.proving import ProofError, Prover
from kubewright.testing.simulation.loop import SimulationLoop


class BucketSpec(kw.Model):
    region: str = "eu"


class BucketStatus(kw.Model):
    address: str = ""
    tried: int = 0


class Bucket(kw.Resource[BucketSpec, BucketStatus], group="simulation.example.com", version="v1"):
    """A place to keep files in."""


def bucket_named(name: str) -> Bucket:
    return Bucket(kw.Meta(name), spec=BucketSpec())


async def write_down(bucket: Bucket, ctx: kw.Context) -> None:
    await ctx.apply(core_v1.ConfigMap(kw.Meta(bucket.metadata.name), data={"region": bucket.spec.region}))
    await ctx.patch_status(bucket, BucketStatus(address=f"{bucket.metadata.name}.example.com"))


def operator_of(reconcile: Callable[..., object]) -> Callable[[], kw.Operator]:
    def make() -> kw.Operator:
        return kw.Operator(kw.controller(Bucket, owns=[core_v1.ConfigMap])(reconcile), name="buckets")  # pyright: ignore[reportArgumentType]

    return make


buckets = operator_of(write_down)


def regions(sim: Simulation) -> dict[str, str]:
    """Return the region that each ConfigMap of the operator holds."""
    return {
        item["metadata"]["name"]: item["data"]["region"]
        for item in sim.world.objects(core_v1.ConfigMap, "test")
        if "region" in item["data"]
    }


async def faulty_hour(sim: Simulation) -> Trace:
    """Do something of everything: changes, faults, a crash, a pause."""
    [replica] = await sim.start(buckets)
    for number in range(4):
        await sim.cluster.create(bucket_named(f"b{number}"))
        replica.crash_at(sim.chance.randint(1, 12), sim.chance.choice(["before", "after"]))
        with sim.faults.add(match=sim.operators(verbs=("patch",)), fail=503, times=sim.chance.randint(0, 3)):
            await asyncio.sleep(sim.chance.uniform(0, 30))
        sim.faults.cut_watches(sim.operators(), how=sim.chance.choice(["end", "reset", "expire"]))
        replica.pause()
        await asyncio.sleep(sim.chance.uniform(0, 5))
        replica.resume()
    await sim.settled()
    assert regions(sim) == {f"b{number}": "eu" for number in range(4)}
    return sim.trace


@pytest.mark.parametrize("seed", range(4))
def test_two_runs_of_one_seed_have_the_same_trace(seed: int) -> None:
    first, second = simulate(faulty_hour, seed), simulate(faulty_hour, seed)
    assert len(first) > 100
    for one, other in zip(first.entries, second.entries, strict=True):
        assert one == other
    assert first.digest() == second.digest()


def test_two_seeds_have_different_traces() -> None:
    assert simulate(faulty_hour, 1).digest() != simulate(faulty_hour, 2).digest()


def test_random_numbers_uuids_and_clocks_of_an_operator_come_from_the_seed() -> None:
    async def draw(sim: Simulation) -> tuple[object, ...]:
        await asyncio.sleep(5)
        return random.random(), secrets.token_hex(4), uuid.uuid4(), time.time(), time.monotonic()

    assert simulate(draw, 3) == simulate(draw, 3)
    assert simulate(draw, 3)[:3] != simulate(draw, 4)[:3]


def test_random_numbers_after_a_simulation_are_those_without_it() -> None:
    async def draw(sim: Simulation) -> float:
        return random.random()

    random.seed(7)
    expected = random.random()
    random.seed(7)
    simulate(draw)
    assert random.random() == expected
    assert time.time() > 1_700_000_000
    assert uuid.uuid4() != uuid.uuid4()


def test_a_crash_runs_no_finally_and_forgets_everything() -> None:
    cleaned_up: list[str] = []
    made: list[set[str]] = []

    def make() -> kw.Operator:
        memory: set[str] = set()
        made.append(memory)

        @kw.controller(Bucket)
        async def hold(bucket: Bucket, ctx: kw.Context) -> None:
            memory.add(bucket.metadata.name)
            try:
                await asyncio.sleep(3600)
            finally:
                cleaned_up.append(bucket.metadata.name)

        return kw.Operator(hold, name="buckets")

    async def scenario(sim: Simulation) -> list[str]:
        [replica] = await sim.start(make)
        await sim.cluster.create(bucket_named("photos"))
        await sim.until(lambda: "photos" in made[-1], "the reconcile begins")
        replica.crash()
        assert not replica.running
        await sim.until(lambda: len(made) > 2 and "photos" in made[-1], "it begins again after the restart")
        return list(cleaned_up)

    assert simulate(scenario) == []


@pytest.mark.parametrize(("when", "written"), [("before", False), ("after", True)])
def test_a_crash_at_a_request_leaves_the_write_undone_or_done(when: str, written: bool) -> None:
    async def scenario(sim: Simulation) -> bool:
        [replica] = await sim.start(buckets)
        await replica.wait_ready()
        replica.crash_at(1, "before" if when == "before" else "after")
        await sim.cluster.create(bucket_named("photos"))
        await sim.until(lambda: not replica.running, "it crashes")
        there = regions(sim) == {"photos": "eu"}
        await sim.settled()
        assert regions(sim) == {"photos": "eu"}
        return there

    assert simulate(scenario) is written


def test_every_single_crash_point_ends_in_the_same_state() -> None:
    async def scenario(sim: Simulation, crash: int, when: str) -> tuple[int, object]:
        [replica] = await sim.start(buckets)
        if crash:
            replica.crash_at(crash, "before" if when == "before" else "after")
        await sim.cluster.create(bucket_named("photos"))
        await sim.settled()
        bucket = await sim.cluster.get(Bucket, "photos")
        return replica.endpoint.requests, (regions(sim), to_wire(bucket.status))

    requests, expected = simulate(lambda sim: scenario(sim, 0, ""))
    for crash in range(1, min(requests, 12) + 1):
        for when in ("before", "after"):
            assert simulate(lambda sim: scenario(sim, crash, when))[1] == expected  # noqa: B023 (called at once)


def test_a_simulation_leaves_nothing_in_memory(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(sim: Simulation) -> weakref.ref[Simulation]:
        [replica] = await sim.start(operator_of(write_down))
        await replica.wait_ready()
        sim.faults.cut_watches(sim.operators(), how="reset")
        replica.crash_at(2, "after")
        await sim.cluster.create(bucket_named("photos"))
        await sim.settled()
        return weakref.ref(sim)

    # A record that pytest keeps would hold the error of a broken watch, with all frames.
    caplog.set_level(logging.CRITICAL, "kubewright")
    left = [simulate(scenario, seed) for seed in range(3)]
    gc.collect()
    assert [ref() for ref in left] == [None] * 3


def test_a_generator_that_outlives_its_simulation_is_removed_without_an_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "kubewright")
    errors: list[object] = []

    async def history(held: asyncio.Event) -> AsyncGenerator[None]:
        await held.wait()
        yield

    async def check(held: asyncio.Event) -> None:
        async with aclosing(history(held)) as pages:
            async for _ in pages:
                pass

    async def watch(held: asyncio.Event) -> AsyncGenerator[None]:
        await check(held)
        yield

    async def follow(watching: AsyncGenerator[None]) -> None:
        async for _ in watching:
            pass

    async def scenario(sim: Simulation) -> AsyncGenerator[None]:
        watching = watch(asyncio.Event())
        following = asyncio.create_task(follow(watching))
        await asyncio.sleep(1)
        assert not following.done()
        return watching

    outliving = simulate(scenario)
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    del outliving
    gc.collect()
    assert errors == []


def test_a_paused_replica_does_nothing_until_it_is_resumed() -> None:
    async def scenario(sim: Simulation) -> None:
        [replica] = await sim.start(buckets)
        await replica.wait_ready()
        replica.pause()
        await sim.cluster.create(bucket_named("photos"))
        await asyncio.sleep(120)
        assert regions(sim) == {}
        replica.resume()
        await sim.until(lambda: regions(sim) == {"photos": "eu"}, "the region is written")

    simulate(scenario)


def test_a_reconciler_that_never_waits_fails_with_the_last_writes() -> None:
    async def spin(bucket: Bucket, ctx: kw.Context) -> None:
        await write_down(bucket, ctx)
        while True:
            await asyncio.sleep(0)

    async def scenario(sim: Simulation) -> None:
        await sim.start(operator_of(spin))
        await sim.cluster.create(bucket_named("photos"))
        await sim.settled()

    with pytest.raises(Livelock, match="the clock did not move") as failure:
        simulate(scenario)
    assert "created configmaps test/photos" in str(failure.value)


def test_an_operator_that_writes_for_ever_does_not_settle() -> None:
    async def restless(bucket: Bucket, ctx: kw.Context) -> kw.Result:
        if (now := time.time()) - bucket.status.tried > 59:
            await ctx.patch_status(bucket, BucketStatus(tried=int(now)))
        return kw.Result(after=timedelta(seconds=60))

    async def scenario(sim: Simulation) -> None:
        await sim.start(operator_of(restless))
        await sim.cluster.create(bucket_named("photos"))
        await sim.settled(within=3000)

    with pytest.raises(AssertionError, match=r"still write after 3000 s:\n.* changed buckets"):
        simulate(scenario)


def test_an_operator_that_reconciles_after_each_own_write_is_a_livelock() -> None:
    async def restless(bucket: Bucket, ctx: kw.Context) -> None:
        await ctx.patch_status(bucket, BucketStatus(tried=bucket.status.tried + 1))

    async def scenario(sim: Simulation) -> None:
        await sim.start(operator_of(restless))
        await sim.cluster.create(bucket_named("photos"))
        await sim.settled()

    with pytest.raises(
        AssertionError, match=r"made 1001 writes within a minute: a hot loop\n.* changed buckets"
    ):
        simulate(scenario)


def test_a_wait_that_nothing_can_end_is_a_deadlock() -> None:
    async def bare() -> None:
        await asyncio.Event().wait()

    loop = SimulationLoop()
    with pytest.raises(Deadlock):
        loop.run_until_complete(bare())
    loop.dispose()


def test_functions_for_threads_run_in_the_one_thread_and_their_sleep_is_virtual() -> None:
    threads: set[int] = set()

    def blocking() -> str:
        threads.add(threading.get_ident())
        time.sleep(7200)
        return "west"

    async def ask(bucket: Bucket, ctx: kw.Context) -> None:
        region = await ctx.run_sync(blocking)
        await ctx.apply(core_v1.ConfigMap(kw.Meta(bucket.metadata.name), data={"region": region}))

    async def scenario(sim: Simulation) -> float:
        await sim.start(operator_of(ask))
        began = sim.loop.time()
        await sim.cluster.create(bucket_named("photos"))
        await sim.until(lambda: regions(sim) == {"photos": "west"}, "the region is known", within=10_000)
        return sim.loop.time() - began

    assert simulate(scenario) > 7200
    assert threads == {threading.get_ident()}


def test_sleeping_on_the_event_loop_is_refused() -> None:
    async def scenario(sim: Simulation) -> None:
        time.sleep(1)  # noqa: ASYNC251 (that is the mistake)

    with pytest.raises(SimulationError, match=r"use asyncio\.sleep, or ctx\.run_sync"):
        simulate(scenario)


def test_tokens_of_an_operator_are_renewed_in_simulated_hours() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.start(buckets)
        await asyncio.sleep(3 * 3600)
        await sim.cluster.create(bucket_named("photos"))
        await sim.until(lambda: regions(sim) == {"photos": "eu"}, "the region is written")

    simulate(scenario)


def test_a_fault_for_operators_does_not_hit_other_clients() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.start(buckets)
        with sim.faults.add(match=sim.operators(), fail=500) as fault:
            await sim.cluster.create(bucket_named("photos"))
            await sim.cluster.get(Bucket, "photos")
            await asyncio.sleep(60)
            assert fault.hits
            assert regions(sim) == {}
        await sim.settled()
        assert regions(sim) == {"photos": "eu"}

    simulate(scenario)


def test_events_that_are_held_back_arrive_together_and_in_order() -> None:
    async def scenario(sim: Simulation) -> None:
        [replica] = await sim.start(buckets)
        await replica.wait_ready()
        replica.endpoint.holds_events = True
        await sim.cluster.create(bucket_named("photos"))
        bucket = await sim.cluster.get(Bucket, "photos")
        await sim.client.patch(bucket, {"spec": {"region": "us"}})
        await asyncio.sleep(100)
        assert regions(sim) == {}
        replica.endpoint.release_events()
        await sim.settled()
        assert regions(sim) == {"photos": "us"}

    simulate(scenario)


def test_an_invariant_is_checked_after_every_write() -> None:
    async def scenario(sim: Simulation) -> None:
        @sim.invariant
        def no_wrong_region(world: object, write: object) -> None:
            assert "nowhere" not in regions(sim).values(), "a bucket is nowhere"

        await sim.start(buckets)
        await sim.cluster.create(Bucket(kw.Meta("photos"), spec=BucketSpec(region="nowhere")))
        bucket = await sim.cluster.get(Bucket, "photos")
        await asyncio.sleep(1)
        await sim.client.patch(bucket, {"spec": {"region": "us"}})
        await sim.settled()

    with pytest.raises(AssertionError, match="a bucket is nowhere") as failure:
        simulate(scenario)
    assert "created configmaps test/photos by buckets-0" in failure.value.__notes__[0]


def test_a_backup_brings_back_older_objects_and_an_older_revision() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.cluster.install(buckets())
        backup = sim.backup()
        await sim.cluster.create(bucket_named("photos"))
        sim.restore(backup)
        with pytest.raises(NotFound):
            await sim.cluster.get(Bucket, "photos")
        assert sim.world.objects(Bucket) == []
        assert sim.server.store.revision == backup.revision

    simulate(scenario)


def test_watches_can_be_cut_twice_in_a_row() -> None:
    async def scenario(sim: Simulation) -> None:
        [replica] = await sim.start(buckets)
        await replica.wait_ready()
        assert sim.faults.cut_watches(replica.match()) > 0
        assert sim.faults.cut_watches(replica.match(), how="reset") == 0
        sim.faults.cut_watches(Match())
        await sim.cluster.create(bucket_named("photos"))
        await sim.settled()
        assert regions(sim) == {"photos": "eu"}

    simulate(scenario)


def test_a_second_api_server_is_behind_until_it_catches_up() -> None:
    async def scenario(sim: Simulation) -> None:
        [replica] = await sim.start(buckets)
        await replica.wait_ready()
        with sim.faults.lag(replica.match()) as lag:
            await sim.cluster.create(bucket_named("photos"))
            await asyncio.sleep(100)
            assert regions(sim) == {}
            lag.catch_up()
            await asyncio.sleep(10)
            assert regions(sim) == {"photos": "eu"}

    simulate(scenario)


def test_a_watch_of_the_newest_state_waits_for_a_server_that_is_behind() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.cluster.install(buckets())
        with sim.faults.lag(Match()) as lag:
            await sim.cluster.create(bucket_named("photos"))
            with pytest.raises(ApiError, match="Too large resource version"):
                await anext(sim.client.watch(Bucket, initial_events=True))
            lag.catch_up()
            first = await anext(sim.client.watch(Bucket, initial_events=True))
            assert first.object.meta.name == "photos"

    simulate(scenario)


def test_the_second_replica_takes_over_from_one_that_is_paused() -> None:
    async def scenario(sim: Simulation) -> None:
        first, second = await sim.start(buckets, replicas=2)

        def leading() -> list[str]:
            return [one.name for one in (first, second) if one.manager and one.manager.ready.is_set()]

        await sim.until(lambda: len(leading()) == 1, "one replica leads")
        leader, other = (first, second) if leading() == [first.name] else (second, first)
        leader.pause()
        await sim.until(other.manager.ready.is_set if other.manager else bool, "the other leads")
        await sim.cluster.create(bucket_named("photos"))
        await asyncio.sleep(5)
        writers = {write.writer for write in sim.world.work()}
        assert writers == {other.name}
        leader.resume()
        await sim.settled()
        assert {write.writer for write in sim.world.work()} == {other.name}
        assert [type(error).__name__ for error in leader.exits] == ["LeaseLost"]

    simulate(scenario)


def test_a_plan_is_repeated_by_its_repr() -> None:
    plan = draw_plan(random.Random(5), 12, [*COMMON, *WEBHOOKS, *BACKUPS])
    assert eval(repr(plan), dict(vars(kubewright.testing))) == plan  # noqa: S307 (our own text)


def test_a_request_without_a_declared_rule_fails_the_simulation() -> None:
    async def curious(bucket: Bucket, ctx: kw.Context) -> None:
        await ctx.client.list(core_v1.Secret, namespace="test")

    async def scenario(sim: Simulation) -> None:
        await sim.start(operator_of(curious))
        await sim.cluster.create(bucket_named("photos"))
        await sim.settled()

    with pytest.raises(AssertionError, match=r"sent a request that its declarations do not allow: .*secrets"):
        simulate(scenario)


def test_leftovers_of_an_operator_are_named() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.start(buckets)
        before = outcome_of(sim.world)
        await sim.cluster.create(bucket_named("photos"))
        await sim.settled()
        with pytest.raises(AssertionError, match=r"1 buckets\S+, 1 configmaps were left behind"):
            nothing_left(sim.world, before)
        await sim.client.delete(Bucket, "photos", "test")
        await sim.settled()
        nothing_left(sim.world, before)

    simulate(scenario)


async def count_for_ever(bucket: Bucket, ctx: kw.Context) -> None:
    number = 0
    while True:
        number += 1


def test_code_that_never_awaits_ends_the_simulation_with_its_line() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.start(operator_of(count_for_ever))
        await sim.cluster.create(bucket_named("photos"))
        await sim.settled()

    with pytest.raises(
        SimulationError, match=r"test_simulation\.py:\d+: count_for_ever blocks the event loop"
    ):
        simulate(scenario)


async def call_a_server(bucket: Bucket, ctx: kw.Context) -> None:
    await asyncio.open_connection("accounts.example.com", 443)


def call_a_server_blocking() -> None:
    socket.create_connection(("127.0.0.1", 9))


async def call_a_server_in_a_thread(bucket: Bucket, ctx: kw.Context) -> None:
    await ctx.run_sync(call_a_server_blocking)


@pytest.mark.parametrize("reconcile", [call_a_server, call_a_server_in_a_thread])
def test_a_connection_to_a_real_server_is_refused(reconcile: Callable[..., object]) -> None:
    with pytest.raises(
        ProofError, match=r"(?s)the operator tried to connect to .*kubewright.testing.External"
    ):
        Prover(operator_of(reconcile), [to_wire(bucket_named("photos"))]).undisturbed()
