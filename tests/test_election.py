import asyncio
import itertools
import math
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubewright.api import Conflict, ConnectionFailed, CredentialError, Status, UnexpectedResponse
from kubewright.client import ClusterConfig
from kubewright.election import (
    ElectionOptions,
    ElectionThread,
    Elector,
    Leadership,
    LeaseRecord,
    LeaseTimes,
    NotLeading,
    elapsed,
)
from kubewright.testing import eventually
from kubewright.testing.virtual_time import virtual_time


class SharedRecord:
    """A lease in memory with the server's rule: a write of an old version is refused."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.writes: list[tuple[float, str]] = []
        self.unreachable: set[str] = set()
        self.delay: Callable[[], float] = lambda: 0.0
        self.on_write: Callable[[LeaseRecord], None] = lambda record: None
        self.failure: Exception = ConnectionFailed("the network is cut")

    def seen_by(self, identity: str) -> "View":
        return View(self, identity)


class View:
    def __init__(self, shared: SharedRecord, identity: str) -> None:
        self._shared = shared
        self._identity = identity

    async def read(self) -> LeaseRecord | None:
        await self._connect()
        found = self._shared.record
        await self._travel()
        return found

    async def write(self, record: LeaseRecord) -> LeaseRecord:
        await self._connect()
        known = self._shared.record
        if record.version != (known.version if known else ""):
            raise Conflict(Status(reason="Conflict", code=409))
        kept = self._shared.record = replace(record, version=str(int(record.version or "0") + 1))
        self._shared.writes.append((asyncio.get_running_loop().time(), record.holder))
        self._shared.on_write(kept)
        await self._travel()
        return kept

    async def _travel(self) -> None:
        if seconds := self._shared.delay():
            await asyncio.sleep(seconds)

    async def _connect(self) -> None:
        await self._travel()
        if self._identity in self._shared.unreachable:
            raise self._shared.failure


def elector(
    shared: SharedRecord, identity: str, times: LeaseTimes | None = None
) -> tuple[Elector, Leadership]:
    leadership = Leadership(asyncio.get_running_loop().time)
    options = ElectionOptions(name="lease", namespace="ns", identity=identity, times=times or LeaseTimes())
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
async def test_a_lease_is_taken_over_only_after_it_expired() -> None:
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


@st.composite
def lease_times(draw: st.DrawFn) -> LeaseTimes:
    """Draw times that are accepted; most are fractions, and many leave little between deadline and duration."""
    retry = draw(st.sampled_from([0.05, 0.2, 2.0]))
    deadline = retry * 1.2 + draw(st.floats(0.01, 12))
    duration = deadline + draw(st.one_of(st.floats(0.001, 0.1), st.floats(0.001, 20)))
    return LeaseTimes(duration=duration, renew_deadline=deadline, retry_period=retry)


class Replicas:
    """Replicas that seek one lease again and again, as processes that are started again when they lose it.

    No two may act at one instant. As each may act only after its own write of the lease, it is enough to look at
    the others whenever a write changes the holder.
    """

    def __init__(self, times: dict[str, LeaseTimes]) -> None:
        self.shared = SharedRecord()
        self.shared.on_write = self._check
        self._times = times
        self._leaderships: dict[str, list[Leadership]] = {name: [] for name in times}
        self.led: set[str] = set()

    async def run(self, name: str) -> None:
        while True:
            seeker, leadership = elector(self.shared, name, self._times[name])
            self._leaderships[name].append(leadership)
            await seeker.acquire()
            self.led.add(name)
            await seeker.renew()

    def valid(self) -> list[str]:
        return [name for name, terms in self._leaderships.items() if any(term.valid for term in terms)]

    def _check(self, record: LeaseRecord) -> None:
        assert set(self.valid()) <= {record.holder}


@settings(max_examples=100)
@given(
    st.lists(lease_times(), min_size=2, max_size=3),
    st.lists(
        st.tuples(st.floats(0.01, 40), st.sampled_from(["cut", "heal", "steady"])), min_size=4, max_size=15
    ),
    st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.01, 0.3, 3.0]), min_size=1, max_size=8),
)
def test_no_two_replicas_lead_at_the_same_time(
    times: list[LeaseTimes], story: list[tuple[float, str]], delays: list[float]
) -> None:
    @virtual_time
    async def run() -> None:
        replicas = Replicas(dict(zip("abc", times, strict=False)))
        waits = itertools.cycle(delays)
        replicas.shared.delay = lambda: next(waits)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(replicas.run(name)) for name, _ in zip("abc", times, strict=False)]
            for seconds, event in story:
                await asyncio.sleep(seconds)
                assert len(replicas.valid()) <= 1
                if event == "cut":
                    replicas.shared.unreachable = set(replicas.valid())
                elif event == "heal":
                    replicas.shared.unreachable.clear()
            for task in tasks:
                task.cancel()

    run()


@virtual_time
async def test_each_replica_leads_in_turn_when_the_leader_is_cut_off() -> None:
    replicas = Replicas({name: LeaseTimes() for name in "abc"})
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(replicas.run(name)) for name in "abc"]
        for _ in range(100):
            await asyncio.sleep(20)
            replicas.shared.unreachable = set(replicas.valid())
            await asyncio.sleep(20)
            replicas.shared.unreachable.clear()
        for task in tasks:
            task.cancel()
    assert replicas.led == set("abc")


@pytest.mark.parametrize(("duration", "seconds"), [(15, 15), (10.4, 11), (2.5, 3), (0.2, 1), (4.000001, 5)])
def test_a_fraction_of_a_second_is_written_as_a_whole_one(duration: float, seconds: int) -> None:
    times = LeaseTimes(duration=duration, renew_deadline=duration * 0.9, retry_period=duration / 10)

    @virtual_time
    async def run() -> None:
        shared = SharedRecord()
        only, _ = elector(shared, "a", times)
        await only.acquire()
        assert shared.record is not None
        assert shared.record.duration == seconds

    run()


@virtual_time
async def test_a_lease_without_a_duration_is_waited_for_like_our_own() -> None:
    shared = SharedRecord()
    shared.record = LeaseRecord("other", 0, "", "", 0, "3")
    seeker, _ = elector(shared, "a")
    await seeker.acquire()
    assert now() >= 15


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
async def test_wall_clock_jumps_do_not_change_the_leader() -> None:
    shared = SharedRecord()
    jumps = itertools.cycle(["1970-01-01T00:00:00Z", "2199-01-01T00:00:00Z", "2026-01-01T12:00:00Z"])
    first, leads = elector(shared, "a")
    second, follows = elector(shared, "b")

    async def confuse() -> None:
        while True:
            await asyncio.sleep(0.7)
            if shared.record is not None:
                # A holder whose wall clock is set back and forth; the version shows that it renewed.
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
async def test_a_lease_that_cannot_be_renewed_expires() -> None:
    shared = SharedRecord()
    first, leads = elector(shared, "a")
    await first.acquire()
    await first.renew(lambda: now() < 30)
    assert 38 <= now() <= 40.1
    with pytest.raises(NotLeading, match="nothing was written"):
        leads.check()


@virtual_time
async def test_a_lease_taken_by_another_replica_is_lost_at_once() -> None:
    shared = SharedRecord()
    first, leads = elector(shared, "a")
    await first.acquire()
    assert shared.record is not None
    shared.record = replace(shared.record, holder="thief", version="99")
    await first.renew()
    assert now() <= 2.1
    assert not leads.valid


def test_times_that_could_let_two_lead_are_refused() -> None:
    with pytest.raises(ValueError, match="must be longer than the renew deadline"):
        LeaseTimes(duration=10, renew_deadline=10)
    with pytest.raises(ValueError, match="retry periods"):
        LeaseTimes(renew_deadline=2, retry_period=2)
    with pytest.raises(ValueError, match="retry_period=0"):
        LeaseTimes(retry_period=0)
    with pytest.raises(ValueError, match="expected at most"):
        LeaseTimes(duration=math.inf)


class Suspendable:
    """The clock of a machine that can be suspended: it goes on meanwhile, and the event loop's does not."""

    def __init__(self) -> None:
        self._suspended = 0.0
        self._loop = asyncio.get_running_loop()

    def __call__(self) -> float:
        return self._loop.time() + self._suspended

    def suspend(self, seconds: float) -> None:
        self._suspended += seconds


@virtual_time
async def test_a_machine_that_wakes_after_its_lease_expired_does_not_act() -> None:
    clock = Suspendable()
    leads = Leadership(clock)
    options = ElectionOptions(name="lease", namespace="ns", identity="a")
    asleep = Elector(SharedRecord().seen_by("a"), options, leads)
    await asleep.acquire()
    async with asyncio.TaskGroup() as group:
        renewing = group.create_task(asleep.renew())
        await asyncio.sleep(5)
        leads.check()
        clock.suspend(11)
        with pytest.raises(NotLeading), leads.activity():
            raise AssertionError("it began")
        await renewing
        assert now() <= 7
        assert not leads.valid


@pytest.mark.skipif(sys.platform != "linux", reason="other systems name this clock otherwise")
def test_the_clock_of_the_lease_counts_the_time_of_suspension() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    read = elapsed()
    assert before <= read <= time.clock_gettime(time.CLOCK_BOOTTIME)


class TestLeadership:
    def test_activities_are_counted_and_refused_after_the_end(self) -> None:
        leads = Leadership(lambda: 100.0)
        leads.renewed(99.0, LeaseTimes())
        with leads.activity():
            leads.end()
            assert leads.active == 1
            with pytest.raises(NotLeading, match="lease expired"), leads.activity():
                raise AssertionError("it began")
            assert leads.active == 1
            assert not leads.wait_inactive(until=100.0)
        assert leads.wait_inactive(until=100.0)

    def test_leadership_never_returns_after_its_end(self) -> None:
        leads = Leadership(lambda: 100.0)
        leads.end()
        leads.renewed(100.0, LeaseTimes())
        assert not leads.valid

    def test_the_callback_runs_once_when_the_last_activity_ends(self) -> None:
        leads = Leadership(lambda: 100.0)
        leads.renewed(99.0, LeaseTimes())
        called: list[str] = []
        with ExitStack() as stack:
            stack.enter_context(leads.activity())
            leads.close(lambda: called.append("inactive"))
            with pytest.raises(NotLeading, match="stopping"), leads.activity():
                raise AssertionError("it began")
            assert leads.valid
            assert not called
        with pytest.raises(NotLeading), leads.activity():
            raise AssertionError("it began")
        assert called == ["inactive"]

    def test_the_callback_runs_at_once_without_activities(self) -> None:
        called: list[str] = []
        Leadership().close(lambda: called.append("inactive"))
        assert called == ["inactive"]

    @given(lease_times(), st.floats(0, 100))
    def test_the_process_ends_after_the_fence_closed_and_before_another_may_lead(
        self, times: LeaseTimes, noticed: float
    ) -> None:
        leads = Leadership(lambda: times.renew_deadline + noticed)
        leads.renewed(0.0, times)
        leads.end()
        assert times.renew_deadline < leads.exit_time(times) < times.seconds

    def test_a_lease_that_another_took_early_gives_no_more_time_than_one_that_ran_out(self) -> None:
        times = LeaseTimes(duration=15, renew_deadline=10)
        leads = Leadership(lambda: 2.0)
        leads.renewed(0.0, times)
        leads.end()
        assert leads.exit_time(times) == 2.0 + 5.0 - 1.0

    def test_work_may_start_without_leader_election(self) -> None:
        leads = Leadership.unlimited()
        leads.check()
        with leads.activity():
            assert leads.valid


async def test_a_thread_that_never_leads_ends_when_it_is_stopped() -> None:
    unreachable = ClusterConfig(server="http://127.0.0.1:9", namespace="ns")
    election = ElectionThread(unreachable, ElectionOptions(name="lease", namespace="ns"))
    election.start()
    await election.stop()
    assert not election.lost
    assert not any(thread.name == "kubewright-election" for thread in threading.enumerate())


async def test_an_election_that_never_began_can_be_stopped() -> None:
    unreachable = ClusterConfig("https://127.0.0.1:1")
    election = ElectionThread(unreachable, ElectionOptions(name="lease", namespace="ns"))
    await election.stop()
    assert not election.lost


@virtual_time
@pytest.mark.parametrize(
    "failure",
    [CredentialError("the plugin failed"), UnexpectedResponse("HTML"), msgspec.DecodeError("half of it")],
)
async def test_a_lease_survives_any_failure_of_a_renewal(failure: Exception) -> None:
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
async def test_a_lease_that_is_deleted_is_not_taken_while_its_holder_may_still_write() -> None:
    shared = SharedRecord()
    first, leads = elector(shared, "a")
    second, follows = elector(shared, "b")
    await first.acquire()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(second.acquire())
        await asyncio.sleep(5)
        shared.record = None

        def taken() -> bool:
            assert not (leads.valid and follows.valid)
            return waiting.done()

        await eventually(taken)
        assert not leads.valid


@virtual_time
async def test_a_server_that_cannot_be_reached_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
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
