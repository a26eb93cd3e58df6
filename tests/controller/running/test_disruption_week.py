"""Disruptive writes over a week of virtual time, with replicas that are killed."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.disruption import Budget, Window
from kubewright.testing import Replica, Simulation, World, Write, simulate
from kubewright.testing.simulation.determinism import EPOCH
from kubewright.testing.simulation.simulation import NAMESPACE

SLOTS = "racks-rack-disruption"
NIGHT = Window("Sat 02:00-08:00", zone="Europe/Berlin")
SOON = Window("Fri 10:00-12:00", zone="Europe/Berlin")
"""Simulations begin on Friday, 2027-01-15, at 09:00 in Berlin."""
NAMES = [f"rack-{number}" for number in range(6)]
LATENCY = 2.0
"""Seconds between taking a slot and the write that it was taken for, at most: two requests."""


class RackSpec(kw.Model):
    size: int = 1


class RackStatus(kw.Model):
    size: int = 0


class Rack(kw.Resource[RackSpec, RackStatus], group="disruption.example.com", version="v1"):
    """Has a ConfigMap that must not be changed for all racks at once."""


def operator_of(**limits: Any) -> Callable[[], kw.Operator]:
    def make() -> kw.Operator:
        @kw.controller(Rack, owns=[core_v1.ConfigMap], concurrency=3, options=kw.Options(**limits))
        async def racks(rack: Rack, ctx: kw.Context) -> None:
            with ctx.disruption():
                await ctx.apply(
                    core_v1.ConfigMap(kw.Meta(rack.metadata.name), data={"size": str(rack.spec.size)})
                )

        return kw.Operator(racks, name="racks")

    return make


def moment(time: float) -> datetime:
    return datetime.fromtimestamp(EPOCH + time, UTC)


class Disruptions:
    """Check after every write that a disruption was within the window and the budget."""

    def __init__(self, sim: Simulation, budget: Budget, window: Window | None) -> None:
        self.seen: list[tuple[float, str]] = []
        self._budget = budget
        self._window = window
        sim.invariant(self._check)

    def _check(self, world: World, write: Write) -> None:
        name = write.object["metadata"]["name"]
        is_disruption = write.resource == "configmaps" and write.verb == "changed" and name in NAMES
        if not is_disruption or write.writer not in world.operators:
            return
        self.seen.append((write.time, name))
        period = self._budget.every.total_seconds() - LATENCY
        recent = {other for at, other in self.seen if at > write.time - period}
        assert len(recent) <= self._budget.at_most, f"{sorted(recent)} within {self._budget.every}"
        if self._window is not None:
            assert self._window.is_open(moment(write.time)), f"{name} changed at {moment(write.time)}"


async def create_racks(sim: Simulation, names: list[str]) -> None:
    for name in names:
        await sim.cluster.create(Rack(kw.Meta(name), spec=RackSpec()))
    await sim.until(lambda: all(size_of(sim, name) == 1 for name in names), "all have a ConfigMap")


async def resize(sim: Simulation, size: int, names: list[str]) -> None:
    for name in names:
        await sim.client.patch(Rack, {"spec": {"size": size}}, name=name, namespace=NAMESPACE)


def size_of(sim: Simulation, name: str) -> int | None:
    found = sim.world.find(core_v1.ConfigMap, name, NAMESPACE)
    return None if found is None else int(found["data"]["size"])


async def disrupt(
    sim: Simulation, replicas: list[Replica], size: int, window: Window, length: timedelta
) -> None:
    """Change all racks, and kill replicas again and again while the next window is open."""
    await resize(sim, size, NAMES)
    opening = window.next_opening(moment(sim.loop.time()))
    assert opening is not None
    await sleep_until(sim, opening - timedelta(minutes=1))
    assert all(size_of(sim, name) == size - 1 for name in NAMES)
    for _ in range(12):
        await asyncio.sleep(sim.chance.uniform(60, 300))
        replica = sim.chance.choice(replicas)
        if sim.chance.random() < 0.5:
            replica.crash()
        else:
            replica.crash_at(sim.chance.randint(1, 6), sim.chance.choice(["before", "after"]))
    await sleep_until(sim, opening + length)
    assert [name for name in NAMES if size_of(sim, name) != size] == []


async def sleep_until(sim: Simulation, at: datetime) -> None:
    await asyncio.sleep((at - moment(sim.loop.time())).total_seconds())


async def started(sim: Simulation, window: Window) -> tuple[list[Replica], Disruptions]:
    """Run two replicas that both work, as shards do: they share nothing but the ConfigMap with the slots."""
    budget = Budget(at_most=2, every="10m")
    replicas = await sim.start(operator_of(budget=budget, windows=[window]), replicas=2, elect=False)
    await create_racks(sim, NAMES)
    return replicas, Disruptions(sim, budget, window)


@pytest.mark.seeds(0, 1, 2, 3)
def test_changes_keep_to_the_window_and_the_budget_although_replicas_are_killed(seed: int) -> None:
    async def scenario(sim: Simulation) -> None:
        replicas, disruptions = await started(sim, SOON)
        await disrupt(sim, replicas, 2, SOON, timedelta(hours=2))
        assert {name for _, name in disruptions.seen} == set(NAMES)

    simulate(scenario, seed, garbage_collector=False)


def test_changes_after_a_window_wait_for_the_window_of_the_next_week() -> None:
    """The first changes are made on Saturday, the second ones a week later."""

    async def scenario(sim: Simulation) -> None:
        replicas, disruptions = await started(sim, NIGHT)
        await disrupt(sim, replicas, 2, NIGHT, timedelta(hours=6))
        await asyncio.sleep(3600)
        await disrupt(sim, replicas, 3, NIGHT, timedelta(hours=6))
        assert {moment(at).day for at, _ in disruptions.seen} == {16, 23}

    simulate(scenario, garbage_collector=False)


def test_the_slot_of_a_killed_holder_ends_after_its_period() -> None:
    """The holder is killed when it has taken the slot, and its object is deleted: no one uses the slot."""

    async def scenario(sim: Simulation) -> None:
        budget = Budget(at_most=1, every="10m")
        first, second = await sim.start(operator_of(budget=budget), replicas=2, elect=False)
        await create_racks(sim, NAMES[:2])
        disruptions = Disruptions(sim, budget, None)
        second.pause()
        # The slot is read, created, and then the ConfigMap of the rack is applied: that is the third request.
        first.crash_at(3, "before")
        await resize(sim, 2, NAMES[:1])
        await sim.until(lambda: sim.world.find(core_v1.ConfigMap, SLOTS, NAMESPACE), "the slot is taken")
        taken = sim.loop.time()
        await sim.until(lambda: not first.running, "the holder is killed")
        await sim.client.delete(Rack, NAMES[0], NAMESPACE)
        assert disruptions.seen == []
        second.resume()
        await resize(sim, 2, NAMES[1:2])
        await sim.until(lambda: size_of(sim, NAMES[1]) == 2, "the other rack is changed", within=900)
        [(at, name)] = disruptions.seen
        assert name == NAMES[1]
        assert 600 - LATENCY <= at - taken <= 680
        slots = sim.world.find(core_v1.ConfigMap, SLOTS, NAMESPACE)
        assert slots is not None
        assert [json.loads(entry)["object"] for entry in slots["data"].values()] == [
            f"Rack {NAMESPACE}/{NAMES[1]}"
        ]

    simulate(scenario)


def test_a_restarted_process_goes_on_with_the_slot_of_its_object() -> None:
    async def scenario(sim: Simulation) -> None:
        budget = Budget(at_most=1, every="10m")
        [replica] = await sim.start(operator_of(budget=budget))
        await create_racks(sim, NAMES[:1])
        Disruptions(sim, budget, None)
        replica.crash_at(3, "before")
        before = sim.loop.time()
        await resize(sim, 2, NAMES[:1])
        await sim.until(lambda: size_of(sim, NAMES[0]) == 2, "the rack is changed", within=60)
        assert sim.loop.time() - before < 60, "it does not wait for its own slot to end"

    simulate(scenario)


def test_a_wall_clock_that_jumps_does_not_end_a_slot() -> None:
    async def scenario(sim: Simulation) -> None:
        budget = Budget(at_most=1, every="10m")
        [replica] = await sim.start(operator_of(budget=budget))
        await create_racks(sim, NAMES[:3])
        disruptions = Disruptions(sim, budget, None)
        await resize(sim, 2, NAMES[:3])
        await sim.until(lambda: disruptions.seen, "the first rack is changed")
        replica.jump_clock(3600)
        await sim.until(lambda: len(disruptions.seen) == 2, "the second rack is changed", within=900)
        replica.jump_clock(-7200)
        await sim.until(lambda: len(disruptions.seen) == 3, "the third rack is changed", within=900)

    simulate(scenario)


def slow_operator(pause: float, **limits: Any) -> Callable[[], kw.Operator]:
    """Return an operator that changes a rack in two writes of one block, with a pause between them."""

    def make() -> kw.Operator:
        @kw.controller(Rack, owns=[core_v1.ConfigMap], concurrency=3, options=kw.Options(**limits))
        async def racks(rack: Rack, ctx: kw.Context) -> None:
            child = core_v1.ConfigMap(kw.Meta(rack.metadata.name), data={"size": str(rack.spec.size)})
            with ctx.disruption():
                applied = await ctx.apply(child)
                if rack.spec.size > 1 and "done" not in applied.metadata.annotations:
                    await asyncio.sleep(pause)
                    await ctx.patch(applied, {"metadata": {"annotations": {"done": "yes"}}})

        return kw.Operator(racks, name="racks")

    return make


def test_a_late_write_of_a_block_keeps_its_slot_for_a_whole_period() -> None:
    async def scenario(sim: Simulation) -> None:
        budget = Budget(at_most=1, every="10m")
        await sim.start(slow_operator(9 * 60, budget=budget))
        await create_racks(sim, NAMES[:2])
        disruptions = Disruptions(sim, budget, None)
        await resize(sim, 2, NAMES[:2])
        await sim.until(lambda: len(disruptions.seen) == 4, "both racks are changed", within=3600)

    simulate(scenario)


@pytest.mark.parametrize("budget", [None, Budget(at_most=1, every="10h")])
def test_no_write_of_a_block_is_started_after_its_window_is_closed(budget: Budget | None) -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.start(slow_operator(3 * 3600, budget=budget, windows=[SOON]))
        await create_racks(sim, NAMES[:1])
        disruptions = Disruptions(sim, Budget(at_most=1, every="10h"), SOON)
        await resize(sim, 2, NAMES[:1])
        await sim.until(lambda: disruptions.seen, "the window is open", within=2 * 3600)
        await asyncio.sleep(4 * 3600)
        assert len(disruptions.seen) == 1

    simulate(scenario)
