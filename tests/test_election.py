import asyncio
import itertools
import threading

import msgspec
import pytest
from msgspec.structs import replace

from kubewright.api import Conflict, ConnectionFailed, CredentialError, Status, UnexpectedAnswer
from kubewright.client import ClusterConfig
from kubewright.election import (
    ElectionOptions,
    ElectionThread,
    Elector,
    Leadership,
    LeaseLost,
    LeaseRecord,
    LeaseTimes,
    NotLeading,
)
from kubewright.testing.virtual_time import virtual_time


class SharedRecord:
    """A lease in memory with the server's rule: a write of an old version is refused."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.writes: list[tuple[float, str]] = []
        self.unreachable: set[str] = set()
        self.failure: Exception = ConnectionFailed("the network is cut")

    def seen_by(self, identity: str) -> "View":
        return View(self, identity)


class View:
    def __init__(self, shared: SharedRecord, identity: str) -> None:
        self._shared = shared
        self._identity = identity

    async def read(self) -> LeaseRecord | None:
        self._connect()
        return self._shared.record

    async def write(self, record: LeaseRecord) -> LeaseRecord:
        self._connect()
        known = self._shared.record
        if record.version != (known.version if known else ""):
            raise Conflict(Status(reason="Conflict", code=409))
        kept = self._shared.record = replace(record, version=str(int(record.version or "0") + 1))
        self._shared.writes.append((asyncio.get_running_loop().time(), record.holder))
        return kept

    def _connect(self) -> None:
        if self._identity in self._shared.unreachable:
            raise self._shared.failure


def elector(shared: SharedRecord, identity: str) -> tuple[Elector, Leadership]:
    leadership = Leadership()
    options = ElectionOptions(name="lease", namespace="ns", identity=identity)
    return Elector(shared.seen_by(identity), options, leadership), leadership


def now() -> float:
    return asyncio.get_running_loop().time()


@virtual_time
async def test_the_first_takes_the_lease_and_the_second_waits() -> None:
    shared = SharedRecord()
    first, leads = elector(shared, "a")
    second, _ = elector(shared, "b")
    await first.acquire()
    leads.check()
    async with asyncio.TaskGroup() as group:
        renewing = group.create_task(first.renew())
        waiting = group.create_task(second.acquire())
        await asyncio.sleep(120)
        assert not waiting.done()
        assert leads.valid
        assert {holder for _, holder in shared.writes} == {"a"}
        renewing.cancel()
        waiting.cancel()


@virtual_time
async def test_a_silent_holder_is_followed_only_after_its_lease_ran_out() -> None:
    shared = SharedRecord()
    first, leads = elector(shared, "a")
    second, follows = elector(shared, "b")
    await first.acquire()
    async with asyncio.TaskGroup() as group:
        renewing = group.create_task(first.renew())
        waiting = group.create_task(second.acquire())
        await asyncio.sleep(60)
        shared.unreachable.add("a")
        cut = now()
        await renewing
        assert now() - cut <= 10
        assert not leads.valid
        assert not follows.valid
        await waiting
        assert 12 <= now() - cut <= 25
        assert follows.valid


@virtual_time
async def test_two_replicas_never_may_write_at_the_same_time() -> None:
    shared = SharedRecord()
    replicas = {name: elector(shared, name) for name in "abc"}

    async def seek(name: str) -> None:
        seeker, _ = replicas[name]
        while True:
            await seeker.acquire()
            await seeker.renew()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(seek(name)) for name in replicas]
        for step in range(600):
            await asyncio.sleep(1)
            valid = [name for name, (_, leadership) in replicas.items() if leadership.valid]
            assert len(valid) <= 1
            if step % 40 == 20:
                shared.unreachable = set(valid)
            if step % 40 == 39:
                shared.unreachable.clear()
        assert {holder for _, holder in shared.writes} == set("abc")
        for task in tasks:
            task.cancel()


@virtual_time
async def test_the_times_in_the_record_do_not_matter() -> None:
    shared = SharedRecord()
    shared.record = LeaseRecord("gone", 15, "1999-01-01T00:00:00Z", "2099-01-01T00:00:00Z", 7, "3")
    seeker, leads = elector(shared, "a")
    await seeker.acquire()
    assert 15 <= now() <= 20
    assert leads.valid
    assert shared.record.transitions == 8


@virtual_time
async def test_clocks_that_jump_neither_lose_the_lease_nor_give_it_to_a_second() -> None:
    shared = SharedRecord()
    jumps = itertools.cycle(["1970-01-01T00:00:00Z", "2199-01-01T00:00:00Z", "2026-01-01T12:00:00Z"])
    first, leads = elector(shared, "a")
    second, follows = elector(shared, "b")

    async def confuse() -> None:
        while True:
            await asyncio.sleep(0.7)
            if shared.record is not None:
                # What a holder writes whose wall clock is set to and fro; the version tells that it renewed.
                shared.record = replace(shared.record, renewed=next(jumps), acquired=next(jumps))

    await first.acquire()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in (first.renew(), second.acquire(), confuse())]
        for _ in range(600):
            await asyncio.sleep(0.5)
            assert leads.valid
            assert not follows.valid
        for task in tasks:
            task.cancel()


@virtual_time
async def test_a_released_lease_is_taken_at_once() -> None:
    shared = SharedRecord()
    first, leads = elector(shared, "a")
    second, _ = elector(shared, "b")
    await first.acquire()
    assert not await asyncio.wait_for(_tried(second), 1)
    await first.release()
    assert not leads.valid
    released = now()
    await second.acquire()
    assert now() - released <= 5


async def _tried(seeker: Elector) -> bool:
    try:
        async with asyncio.timeout(0.5):
            await seeker.acquire()
    except TimeoutError:
        return False
    return True


@virtual_time
async def test_a_lease_that_may_not_be_renewed_runs_out() -> None:
    shared = SharedRecord()
    first, leads = elector(shared, "a")
    await first.acquire()
    await first.renew(lambda: now() < 30)
    assert 38 <= now() <= 40.1
    with pytest.raises(NotLeading, match="nothing was written"):
        leads.check()


@virtual_time
async def test_a_lease_taken_by_another_is_given_up_at_once() -> None:
    shared = SharedRecord()
    first, leads = elector(shared, "a")
    await first.acquire()
    assert shared.record is not None
    shared.record = replace(shared.record, holder="thief", version="99")
    await first.renew()
    assert now() <= 2.1
    assert not leads.valid


def test_times_that_could_let_two_lead_are_refused() -> None:
    with pytest.raises(ValueError, match="must last longer"):
        LeaseTimes(duration=10, renew_deadline=10)
    with pytest.raises(ValueError, match="retry periods"):
        LeaseTimes(renew_deadline=2, retry_period=2)


async def test_a_thread_that_never_leads_ends_when_told() -> None:
    unreachable = ClusterConfig(server="http://127.0.0.1:9", namespace="ns")
    election = ElectionThread(unreachable, ElectionOptions(name="lease", namespace="ns"))
    election.start()
    await election.stop(release=False)
    assert not election.lost
    assert not any(thread.name == "kubewright-election" for thread in threading.enumerate())
    assert issubclass(LeaseLost, Exception)


async def test_an_election_that_never_began_ends_without_a_word() -> None:
    unreachable = ClusterConfig("https://127.0.0.1:1")
    election = ElectionThread(unreachable, ElectionOptions(name="lease", namespace="ns"))
    await election.stop(release=True)
    assert not election.lost


@virtual_time
@pytest.mark.parametrize(
    "failure",
    [CredentialError("the plugin failed"), UnexpectedAnswer("HTML"), msgspec.DecodeError("half of it")],
)
async def test_a_failure_of_any_kind_is_outlived_by_the_lease(failure: Exception) -> None:
    shared = SharedRecord()
    shared.failure = failure
    shared.unreachable.add("a")
    only, leads = elector(shared, "a")
    async with asyncio.TaskGroup() as group:
        acquiring = group.create_task(only.acquire())
        await asyncio.sleep(60)
        shared.unreachable.clear()
        await acquiring
        renewing = group.create_task(only.renew())
        await asyncio.sleep(10)
        shared.unreachable.add("a")
        await asyncio.sleep(5)
        shared.unreachable.clear()
        await asyncio.sleep(60)
        assert leads.valid
        renewing.cancel()


@virtual_time
async def test_a_lease_that_somebody_deletes_is_not_taken_while_its_holder_may_still_write() -> None:
    shared = SharedRecord()
    first, leads = elector(shared, "a")
    second, follows = elector(shared, "b")
    await first.acquire()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(second.acquire())
        await asyncio.sleep(5)
        shared.record = None
        while not waiting.done():
            assert not (leads.valid and follows.valid)
            await asyncio.sleep(0.1)
        assert not leads.valid


@virtual_time
async def test_a_server_that_stays_away_is_complained_about_once(caplog: pytest.LogCaptureFixture) -> None:
    shared = SharedRecord()
    only, _ = elector(shared, "a")
    for outage in (1, 2):
        shared.unreachable.add("a")
        async with asyncio.TaskGroup() as group:
            acquiring = group.create_task(only.acquire())
            await asyncio.sleep(600)
            shared.unreachable.clear()
            await acquiring
        assert caplog.text.count("could not be read or renewed") == outage
