"""Leases of shards: no two replicas act on one object at the same time, and no shard stays without a replica."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubewright.api import Conflict, ConnectionFailed, Forbidden, NotFound, Status
from kubewright.api.sharding import HASHES, Shards
from kubewright.election import (
    ElectionOptions,
    Elector,
    HandOver,
    Leadership,
    LeaseRecord,
    ShardElector,
    ShardEvent,
    ShardLease,
    ShardNames,
    ShardsTaken,
    moves,
    preferred_shards,
)
from kubewright.testing.virtual_time import virtual_time

Fault = Literal["kill", "stop", "pause", "long pause", "cut before", "cut after"]
LEASE = "photos"


def now() -> float:
    return asyncio.get_running_loop().time()


class SharedLeases:
    """Leases in memory with the server's rule: a write of an old version is refused."""

    def __init__(self) -> None:
        self.records: dict[str, LeaseRecord] = {}
        self.on_write: Callable[[str, str], None] = lambda name, holder: None
        self._version = 0

    def write(self, name: str, record: LeaseRecord) -> LeaseRecord:
        known = self.records.get(name)
        if record.version != (known.version if known else ""):
            raise Conflict(Status(reason="Conflict", code=409))
        self.on_write(name, record.holder)
        self._version += 1
        stored = self.records[name] = replace(record, version=str(self._version))
        return stored

    def delete(self, name: str, record: LeaseRecord) -> None:
        known = self.records.get(name)
        if known is None:
            raise NotFound(Status(reason="NotFound", code=404))
        if known.version != record.version:
            raise Conflict(Status(reason="Conflict", code=409))
        del self.records[name]


class Replica:
    """A replica that does no work: it holds shards, and hands them over when it is asked to."""

    def __init__(self, world: "World", name: str, shards: Shards) -> None:
        self.name = name
        self.shards = shards
        self.leases: list[ShardLease] = []
        """All shards that it ever held."""
        self.operations = 0
        self.fault: tuple[int, Fault] | None = None
        self.reachable = True
        self.may_delete = True
        self.ended = False
        self._world = world
        self.elector = ShardElector(
            self,
            ElectionOptions(name=LEASE, namespace="ns", identity=name),
            shards,
            self._notified,
            clock=now,
        )
        self.task = asyncio.get_running_loop().create_task(self.elector.run())

    @property
    def valid(self) -> list[ShardLease]:
        return [lease for lease in self.leases if lease.leadership.valid]

    async def read(self) -> Mapping[str, LeaseRecord]:
        number = await self._before()
        found = dict(self._world.leases.records)
        await self._after(number)
        return found

    async def write(self, name: str, record: LeaseRecord) -> LeaseRecord:
        number = await self._before()
        written = self._world.leases.write(name, record)
        await self._after(number)
        return written

    async def delete(self, name: str, record: LeaseRecord) -> None:
        number = await self._before()
        if not self.may_delete:
            raise Forbidden(Status(reason="Forbidden", code=403))
        self._world.leases.delete(name, record)
        await self._after(number)

    def stop(self) -> None:
        """End as after SIGTERM: hand over everything."""
        self.elector.leave()
        for lease in self.elector.held:
            self._release(lease)

    async def _before(self) -> int:
        self.operations += 1
        number = self.operations
        await asyncio.sleep(0.01)
        if not self.reachable:
            raise ConnectionFailed("the network is cut")
        if self.fault == (number, "cut before"):
            self._cut()
        return number

    async def _after(self, number: int) -> None:
        await asyncio.sleep(0.01)
        if not self.reachable:
            raise ConnectionFailed("the network is cut")
        if self.fault is None or self.fault[0] != number:
            return
        what, self.fault = self.fault[1], None
        if what == "cut after":
            self._cut()
        elif what in ("pause", "long pause"):
            # The response arrives late; meanwhile the clock goes on, as for a process that is stopped.
            await asyncio.sleep(8 if what == "pause" else 40)
        elif what == "kill":
            self.ended = True
            self.task.cancel()
            await asyncio.get_running_loop().create_future()
        else:
            self.ended = True
            self.stop()

    def _cut(self) -> None:
        self.fault, self.reachable = None, False
        asyncio.get_running_loop().call_later(30, self._heal)
        raise ConnectionFailed("the network is cut")

    def _heal(self) -> None:
        self.reachable = True

    def _notified(self, event: ShardEvent) -> None:
        if isinstance(event, ShardsTaken):
            self.leases.extend(event.leases)
            if self.ended:
                for lease in event.leases:
                    self._release(lease)
        elif isinstance(event, HandOver):
            self._release(event.lease)

    def _release(self, lease: ShardLease) -> None:
        asyncio.get_running_loop().call_later(
            0.5, lambda: lease.leadership.close(lambda: self.elector.released(lease))
        )


class World:
    """Replicas of one operator; no two may act on the same hash at one instant."""

    def __init__(self) -> None:
        self.leases = SharedLeases()
        self.leases.on_write = self.written
        self.replicas: list[Replica] = []
        self.leaders: list[Leadership] = []
        """Replicas that run without shards."""

    def start(self, name: str, shards: Shards) -> Replica:
        replica = Replica(self, name, shards)
        self.replicas.append(replica)
        return replica

    def written(self, name: str, holder: str) -> None:
        """Check a write of a lease: a replica that acts now must be its holder."""
        for replica in self.replicas:
            names = ShardNames(LEASE, replica.shards)
            for lease in replica.valid:
                if name == names.shard(lease.number):
                    assert holder == replica.name, f"{name} goes to {holder} while {replica.name} acts"
                if name == LEASE:
                    assert holder == names.group, f"{holder} begins while {replica.name} acts"
        if name == LEASE and any(leader.valid for leader in self.leaders):
            assert not holder.startswith("shards/")

    def check(self) -> None:
        acting = [
            (replica.name, replica.shards, lease.number)
            for replica in self.replicas
            for lease in replica.valid
        ]
        leaders = sum(leader.valid for leader in self.leaders)
        assert leaders + bool(acting) <= 1, f"{leaders} leaders act beside {acting}"
        assert len({shards for _, shards, _ in acting}) <= 1, f"different shards at one time: {acting}"
        numbers = [number for _, _, number in acting]
        assert len(set(numbers)) == len(numbers), f"two replicas act on one shard: {acting}"

    async def watch(self, seconds: float) -> None:
        ticks = max(1, round(seconds / 0.5))
        for _ in range(ticks):
            self.check()
            await asyncio.sleep(seconds / ticks)

    def held(self) -> dict[str, set[int]]:
        return {
            replica.name: {lease.number for lease in replica.valid}
            for replica in self.replicas
            if not replica.ended
        }

    def whole(self, count: int) -> bool:
        numbers = sorted(number for found in self.held().values() for number in found)
        return numbers == list(range(count))

    async def end(self) -> None:
        for replica in self.replicas:
            replica.task.cancel()
        await asyncio.gather(*(replica.task for replica in self.replicas), return_exceptions=True)


@virtual_time
async def test_replicas_share_the_shards_evenly_and_move_no_more_than_needed() -> None:
    world = World()
    shards = Shards(8)
    world.start("a", shards)
    await world.watch(10)
    assert world.held() == {"a": set(range(8))}
    world.start("b", shards)
    await world.watch(60)
    before = world.held()
    assert [len(found) for found in before.values()] == [4, 4]
    world.start("c", shards)
    await world.watch(60)
    after = world.held()
    assert sorted(len(found) for found in after.values()) == [2, 3, 3]
    assert after["a"] < before["a"]
    assert after["b"] < before["b"]
    await world.watch(300)
    assert world.held() == after
    await world.end()


@virtual_time
async def test_replicas_that_start_together_share_from_the_start() -> None:
    world = World()
    for name in "abcd":
        world.start(name, Shards(8))
    await world.watch(10)
    assert {name: len(found) for name, found in world.held().items()} == dict.fromkeys("abcd", 2)
    assert sum(len(replica.leases) for replica in world.replicas) == 8
    await world.end()


@virtual_time
async def test_more_replicas_than_shards_stand_by() -> None:
    world = World()
    for name in "abc":
        world.start(name, Shards(2))
    await world.watch(10)
    assert sorted(len(found) for found in world.held().values()) == [0, 1, 1]
    await world.end()


@virtual_time
async def test_a_replica_that_stops_hands_its_shards_on_at_once() -> None:
    world = World()
    first, _ = world.start("a", Shards(4)), world.start("b", Shards(4))
    await world.watch(10)
    first.ended = True
    first.stop()
    stopped = now()
    while not world.whole(4):
        await world.watch(0.1)
    assert now() - stopped < 6
    assert first.task.done()
    assert [name for name in world.leases.records if "member" in name] == [
        name for name, record in world.leases.records.items() if record.holder == "b" and "member" in name
    ]
    await world.end()


STRIDE = 6
"""Each kind of fault begins at another request, so that all of them together meet each one."""
FAULTS: list[Fault] = ["kill", "stop", "pause", "long pause", "cut before", "cut after"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("victim", ["a", "b", "late"])
def test_every_shard_is_held_again_after_a_fault_at_any_step(fault: Fault, victim: str) -> None:
    """Each request of a replica in turn: while it starts, takes shards, renews them, gives some away, gets some."""

    @virtual_time
    async def run(step: int) -> None:
        world = World()
        world.start("a", Shards(4))
        world.start("b", Shards(4))
        if victim != "late":
            world.replicas["ab".index(victim)].fault = (step, fault)
        await world.watch(12)
        late = world.start("late", Shards(4))
        if victim == "late":
            late.fault = (step, fault)
        await world.watch(30)
        happened.append(all(replica.fault is None for replica in world.replicas))
        began = now()
        while not world.whole(4):
            await world.watch(1)
            assert now() < began + 60, f"{fault} at request {step} of {victim}: {world.held()}"
        await world.end()

    happened: list[bool] = []
    last = 45 if victim == "late" else 85
    for step in range(1 + FAULTS.index(fault) % STRIDE, last, STRIDE):
        run(step)
    assert happened.count(True) >= 6


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=3),
    st.lists(
        st.tuples(
            st.floats(0.05, 30),
            st.sampled_from(["cut", "heal", "start", "kill", "stop", "pause"]),
            st.integers(0, 5),
        ),
        min_size=3,
        max_size=12,
    ),
)
def test_no_two_replicas_act_on_one_object_whatever_their_shards_are(
    counts: list[int], story: list[tuple[float, str, int]]
) -> None:
    @virtual_time
    async def run() -> None:
        world = World()
        layouts = [Shards(count, "uid" if number % 2 else "namespace") for number, count in enumerate(counts)]
        for number, shards in enumerate(layouts):
            world.start(f"first-{number}", shards)
        for number, (seconds, what, chosen) in enumerate(story):
            await world.watch(seconds)
            alive = [replica for replica in world.replicas if not replica.ended]
            if what == "start" or not alive:
                world.start(f"later-{number}", layouts[chosen % len(layouts)])
                continue
            replica = alive[chosen % len(alive)]
            if what == "cut":
                replica.reachable = False
            elif what == "heal":
                for other in alive:
                    other.reachable = True
            elif what == "pause":
                replica.fault = (replica.operations + 1, "long pause")
            elif what == "stop":
                replica.ended = True
                replica.stop()
            else:
                replica.ended = True
                replica.task.cancel()
        for replica in world.replicas:
            replica.reachable = True
        await world.watch(120)
        alive = [replica for replica in world.replicas if not replica.ended]
        if alive:
            acting = {replica.shards for replica in alive if replica.valid}
            assert len(acting) == 1
            assert world.whole(acting.pop().count)
        await world.end()

    run()


@virtual_time
async def test_replicas_with_another_number_of_shards_take_over_when_they_are_the_majority() -> None:
    world = World()
    old = [world.start(name, Shards(4)) for name in "abc"]
    await world.watch(20)
    new = [world.start("x", Shards(6))]
    await world.watch(60)
    assert not new[0].valid
    assert "configured with the shards uid-6 and most others with uid-4" in new[0].elector.waiting
    for replica, name in zip(old, "yz", strict=False):
        replica.ended = True
        replica.stop()
        new.append(world.start(name, Shards(6)))
        await world.watch(20)
    await world.watch(40)
    assert {name: len(found) for name, found in world.held().items()} == {"c": 0, "x": 2, "y": 2, "z": 2}
    assert "most others with uid-6" in old[2].elector.waiting
    await world.end()


@virtual_time
async def test_a_leader_without_shards_and_replicas_with_shards_never_act_together() -> None:
    world = World()
    leadership = Leadership(now)
    world.leaders.append(leadership)
    options = ElectionOptions(name=LEASE, namespace="ns", identity="old")

    class OneLease:
        async def read(self) -> LeaseRecord | None:
            return world.leases.records.get(LEASE)

        async def write(self, record: LeaseRecord) -> LeaseRecord:
            return world.leases.write(LEASE, record)

    leader = Elector(OneLease(), options, leadership)
    await leader.acquire()
    renewing = asyncio.get_running_loop().create_task(leader.renew())
    world.start("a", Shards(4))
    await world.watch(60)
    assert leadership.valid
    assert "held by old" in world.replicas[0].elector.waiting
    renewing.cancel()
    with suppress(asyncio.CancelledError):
        await renewing
    await world.watch(60)
    assert world.whole(4)
    again = Leadership(now)
    world.leaders.append(again)
    successor = Elector(OneLease(), replace(options, identity="new"), again)
    acquiring = asyncio.get_running_loop().create_task(successor.acquire())
    await world.watch(60)
    assert not acquiring.done()
    world.replicas[0].ended = True
    world.replicas[0].stop()
    await world.watch(30)
    assert acquiring.done()
    await world.end()


@virtual_time
async def test_a_shard_whose_lease_is_taken_by_hand_is_dropped_and_the_others_are_kept() -> None:
    world = World()
    replica = world.start("a", Shards(3))
    await world.watch(10)
    name = "photos-uid-3-1"
    world.leases.records[name] = replace(world.leases.records[name], holder="someone", version="9999")
    await world.watch(4)
    assert {lease.number for lease in replica.valid} == {0, 2}
    await world.watch(30)
    assert world.whole(3)
    await world.end()


@virtual_time
async def test_the_lease_of_a_replica_that_is_gone_is_deleted() -> None:
    world = World()
    gone = world.start("gone", Shards(2))
    world.start("a", Shards(2))
    await world.watch(10)
    gone.ended = True
    gone.task.cancel()
    await world.watch(120)
    assert [record.holder for name, record in world.leases.records.items() if "member" in name] == ["a"]
    await world.end()


@virtual_time
async def test_a_replica_that_may_not_delete_leases_keeps_its_shards() -> None:
    world = World()
    gone, stays = world.start("gone", Shards(2)), world.start("a", Shards(2))
    stays.may_delete = False
    await world.watch(10)
    gone.ended = True
    gone.task.cancel()
    await world.watch(120)
    assert world.held() == {"a": {0, 1}}
    stays.ended = True
    stays.stop()
    await world.watch(10)
    assert stays.task.done()
    await world.end()


@given(st.integers(1, 40), st.integers(1, 12), st.randoms(use_true_random=False))
def test_the_assignment_moves_as_few_shards_as_possible_and_then_rests(
    count: int, replicas: int, random: object
) -> None:
    members = [f"replica-{number}" for number in range(replicas)]
    holders = {number: random.choice(["", *members]) for number in range(count)}  # type: ignore[attr-defined]
    ideal = -(-count // replicas)
    surplus = 0
    for _ in range(count + 2):
        chosen = {
            me: moves(holders, members, me, [number for number, holder in holders.items() if holder == me])
            for me in members
        }
        taken = [number for one in chosen.values() for number in one.take]
        given_away = [number for one in chosen.values() for number in one.give]
        assert len(set(taken)) == len(taken)
        assert all(not holders[number] for number in taken)
        assert all(holders[number] == me for me, one in chosen.items() for number in one.give)
        surplus += len(given_away)
        for me, one in chosen.items():
            holders |= dict.fromkeys(one.take, me)
        holders |= dict.fromkeys(given_away, "")
        if not taken and not given_away:
            break
    numbers = [list(holders.values()).count(member) for member in members]
    assert max(numbers) <= ideal
    assert max(numbers) - min(numbers) <= 1
    assert surplus <= count


@given(st.integers(1, 256), st.integers(0, HASHES - 1))
def test_every_hash_is_in_exactly_one_shard(count: int, value: int) -> None:
    shards = Shards(count)
    found = [number for number in range(count) if value in shards.range_of(number)]
    assert found == [value * count >> 64]
    assert shards.range_of(0).start == 0
    assert shards.range_of(count - 1).end == HASHES


def test_the_majority_chooses_the_shards_and_a_tie_changes_nothing() -> None:
    assert preferred_shards({"uid-4": 2, "uid-8": 1}, "uid-8") == "uid-4"
    assert preferred_shards({"uid-4": 2, "uid-8": 2}, "uid-8") == "uid-8"
    assert preferred_shards({"uid-4": 2, "uid-8": 2}, "") == "uid-4"
