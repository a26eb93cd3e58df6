import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubewright.backoff import Backoff
from kubewright.metrics import Registry
from kubewright.testing.virtual_time import VirtualTimeLoop, settle, virtual_time
from kubewright.workqueue import LOW_PRIORITY, QueueShutDown, QueueStatistics, WorkQueue

PLAIN = Backoff()


def now() -> float:
    return asyncio.get_running_loop().time()


async def take(queue: WorkQueue[str]) -> str:
    """Take and finish the next key."""
    item = await queue.get()
    queue.done(item.key)
    return item.key


async def take_all(queue: WorkQueue[str]) -> list[str]:
    return [await take(queue) for _ in range(len(queue))]


@virtual_time
async def test_keys_of_equal_priority_are_handed_out_in_order() -> None:
    queue = WorkQueue[str]()
    for key in "abc":
        queue.add(key)
    assert await take_all(queue) == ["a", "b", "c"]


@virtual_time
async def test_a_key_added_twice_is_handed_out_once() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 1
    assert await take_all(queue) == ["a"]


@virtual_time
async def test_higher_priorities_go_first() -> None:
    queue = WorkQueue[str]()
    queue.add("initial", priority=LOW_PRIORITY)
    queue.add("changed")
    queue.add("urgent", priority=5)
    assert await take_all(queue) == ["urgent", "changed", "initial"]


@virtual_time
async def test_a_key_raised_in_priority_goes_behind_its_new_equals() -> None:
    queue = WorkQueue[str]()
    queue.add("a", priority=LOW_PRIORITY)
    queue.add("b")
    queue.add("a")
    assert await take_all(queue) == ["b", "a"]


@virtual_time
async def test_a_key_is_never_lowered_in_priority() -> None:
    queue = WorkQueue[str]()
    queue.add("a", priority=3)
    queue.add("b", priority=2)
    queue.add("a", priority=1)
    item = await queue.get()
    assert (item.key, item.priority) == ("a", 3)


@virtual_time
async def test_a_key_in_flight_waits_until_it_is_done() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("b")
    assert await take(queue) == "b"
    assert len(queue) == 1
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 10)
    queue.done("a")
    assert await take(queue) == "a"


@virtual_time
async def test_get_wakes_when_a_key_is_added() -> None:
    queue = WorkQueue[str]()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(queue.get())
        await settle()
        queue.add("a")
    assert waiting.result().key == "a"


@virtual_time
async def test_a_delayed_key_is_handed_out_when_it_is_due() -> None:
    queue = WorkQueue[str]()
    queue.add("a", after=30)
    assert len(queue) == 0
    item = await queue.get()
    assert now() == pytest.approx(30)
    assert item.queued_at == pytest.approx(30)


@virtual_time
async def test_the_earlier_of_two_delays_wins() -> None:
    queue = WorkQueue[str]()
    queue.add("a", after=30)
    queue.add("a", after=10)
    queue.add("a", after=20)
    await take(queue)
    assert now() == pytest.approx(10)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 100)


@virtual_time
async def test_adding_now_overrides_a_delay_and_a_delay_never_holds_back_a_ready_key() -> None:
    queue = WorkQueue[str]()
    queue.add("a", after=30)
    queue.add("a")
    queue.add("a", after=50)
    assert await take(queue) == "a"
    assert now() == 0
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 100)


@virtual_time
async def test_delayed_keys_keep_the_highest_priority_they_were_given() -> None:
    queue = WorkQueue[str]()
    queue.add("a", after=10)
    queue.add("b", after=10)
    queue.add("b", after=20, priority=1)
    await asyncio.sleep(11)
    assert await take_all(queue) == ["b", "a"]


@virtual_time
async def test_a_delay_that_ends_in_flight_waits_for_done() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    await queue.get()
    queue.add("a", after=5)
    await asyncio.sleep(10)
    assert len(queue) == 1
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 1)
    queue.done("a")
    assert await take(queue) == "a"


@virtual_time
async def test_rate_limited_adds_double_until_forgotten() -> None:
    queue = WorkQueue[str](backoff=PLAIN)
    waits: list[float] = []
    for _ in range(4):
        started = now()
        queue.add_rate_limited("a")
        await take(queue)
        waits.append(now() - started)
    assert waits == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert queue.retries("a") == 4
    queue.forget("a")
    assert queue.retries("a") == 0
    started = now()
    queue.add_rate_limited("a", priority=7)
    assert (await queue.get()).priority == 7
    assert now() - started == pytest.approx(0.005)


@virtual_time
async def test_delays_by_default_carry_jitter() -> None:
    waits: set[float] = set()
    for _ in range(20):
        queue = WorkQueue[str]()
        queue.add_rate_limited("a")
        started = now()
        await take(queue)
        waits.add(round(now() - started, 7))
    assert len(waits) > 1
    assert min(waits) >= 0.005
    assert max(waits) <= 0.0055


@virtual_time
async def test_a_cancelled_getter_passes_its_wake_up_on() -> None:
    queue = WorkQueue[str]()
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(queue.get())
        second = tasks.create_task(queue.get())
        await settle()
        queue.add("a")
        first.cancel()
    assert first.cancelled()
    assert second.result().key == "a"


@virtual_time
async def test_a_getter_cancelled_while_waiting_takes_nothing() -> None:
    queue = WorkQueue[str]()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 1)
    queue.add("a")
    assert await take(queue) == "a"


@virtual_time
async def test_done_of_a_key_not_in_flight_is_an_error() -> None:
    with pytest.raises(ValueError, match="'a' is not in flight"):
        WorkQueue[str]().done("a")


@virtual_time
async def test_shutdown_ends_getters_and_drops_delayed_keys() -> None:
    queue = WorkQueue[str]()
    async with asyncio.TaskGroup() as tasks:
        getters = [tasks.create_task(_ended(queue)) for _ in range(3)]
        await settle()
        queue.add("delayed", after=5)
        queue.shutdown()
    assert all(getter.result() for getter in getters)
    queue.add("late")
    assert queue.statistics() == QueueStatistics(0, 0, 0, 0)
    with pytest.raises(QueueShutDown):
        await queue.get()


@virtual_time
async def test_shutdown_drops_ready_keys_and_accepts_keys_in_flight() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("b")
    queue.shutdown()
    queue.done("a")
    assert queue.statistics() == QueueStatistics(0, 0, 0, 0)
    with pytest.raises(QueueShutDown):
        await queue.get()


@virtual_time
async def test_many_early_runs_of_a_long_delayed_key_leave_nothing_behind() -> None:
    queue = WorkQueue[str]()
    for _ in range(5000):
        queue.add("a", after=36000)
        queue.add("a")
        await take(queue)
    timers = [found for found in gc.get_objects() if isinstance(found, asyncio.TimerHandle)]
    assert len(timers) < 500
    assert queue.statistics() == QueueStatistics(0, 0, 0, 0)
    assert now() == 0


async def _ended(queue: WorkQueue[str]) -> bool:
    try:
        await queue.get()
    except QueueShutDown:
        return True
    return False


def samples(registry: Registry) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in registry.families()
        for sample in family.samples
    }


@virtual_time
async def test_metrics_carry_the_names_and_labels_of_controller_runtime() -> None:
    registry = Registry()
    queue = WorkQueue[str](name="shells", metrics=registry, backoff=PLAIN)
    queue.add("a")
    queue.add("b", priority=LOW_PRIORITY)
    queue.add("c", after=100)
    await queue.get()
    await asyncio.sleep(4)
    found = samples(registry)
    assert found["workqueue_depth", "shells", "shells", "0"] == 0
    assert found["workqueue_depth", "shells", "shells", "-100"] == 1
    assert found["workqueue_adds_total", "shells", "shells"] == 2
    assert found["workqueue_retries_total", "shells", "shells"] == 1
    assert found["workqueue_queue_duration_seconds_count", "shells", "shells"] == 1
    assert found["workqueue_unfinished_work_seconds", "shells", "shells"] == 4
    assert found["workqueue_longest_running_processor_seconds", "shells", "shells"] == 4
    queue.done("a")
    found = samples(registry)
    assert found["workqueue_work_duration_seconds_sum", "shells", "shells"] == 4
    assert found["workqueue_unfinished_work_seconds", "shells", "shells"] == 0


@virtual_time
async def test_depth_labels_are_bounded_and_never_negative() -> None:
    registry = Registry()
    queue = WorkQueue[str](name="q", metrics=registry)
    for number in range(40):
        queue.add(str(number), priority=number)
    found = samples(registry)
    assert sum(1 for name, *_ in found if name == "workqueue_depth") == 26
    assert found["workqueue_depth", "q", "q", "exceeded_cardinality_limit"] == 15
    await take_all(queue)
    depths = [value for (name, *_), value in samples(registry).items() if name == "workqueue_depth"]
    assert depths == [0] * 26


@virtual_time
async def test_a_quiet_group_is_served_between_the_keys_of_a_busy_one() -> None:
    queue = WorkQueue[str](fair_by=lambda key: key[0])
    for number in range(1000):
        queue.add(f"busy-{number}")
    queue.add("quiet-0")
    queue.add("quiet-1")
    first = [await take(queue) for _ in range(6)]
    assert first == ["busy-0", "quiet-0", "busy-1", "quiet-1", "busy-2", "busy-3"]


@virtual_time
async def test_a_higher_priority_of_a_busy_group_still_goes_first() -> None:
    queue = WorkQueue[str](fair_by=lambda key: key[0])
    for number in range(3):
        queue.add(f"busy-{number}")
    queue.add("quiet", priority=LOW_PRIORITY)
    assert await take_all(queue) == ["busy-0", "busy-1", "busy-2", "quiet"]


@virtual_time
async def test_raising_keys_of_a_group_costs_it_no_turns() -> None:
    queue = WorkQueue[str](fair_by=lambda key: key[0])
    for number in range(100):
        queue.add(f"a-{number}")
        queue.add(f"a-{number}", priority=1)
    for number in range(100):
        assert await take(queue) == f"a-{number}"
    for number in range(2):
        queue.add(f"b-{number}")
        queue.add(f"a-{number}")
    assert await take_all(queue) == ["b-0", "a-0", "b-1", "a-1"]


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 3), st.integers(0, 1))
        | st.sampled_from(["get", "get", "done"]),
        max_size=60,
    )
)
def test_each_group_with_a_ready_key_is_served_between_two_keys_of_another(steps: list[Any]) -> None:
    ready: dict[str, int] = {}
    in_flight: list[str] = []
    ready_since: dict[tuple[str, int], int] = {}
    taken_at: dict[tuple[str, int], int] = {}

    def note(step: int) -> None:
        """Note since when each group has a key of a priority that can be taken."""
        now = {(key[0], priority) for key, priority in ready.items() if key not in in_flight}
        for group in now:
            ready_since.setdefault(group, step)
        for group in set(ready_since) - now:
            del ready_since[group]

    @virtual_time
    async def play() -> None:
        queue = WorkQueue[str](fair_by=lambda key: key[0])
        for number, step in enumerate(steps):
            if step == "done":
                if in_flight:
                    queue.done(in_flight.pop(0))
            elif step == "get":
                if not ready_since:
                    continue
                item = await queue.get()
                group = (item.key[0], item.priority)
                assert item.priority == max(priority for _, priority in ready_since)
                last = taken_at.get(group, -1)
                waiting = [
                    each for each, since in ready_since.items() if each[1] == group[1] and since <= last
                ]
                assert all(taken_at.get(each, -1) > last for each in waiting if each != group)
                taken_at[group] = number
                del ready[item.key]
                in_flight.append(item.key)
            else:
                group, number_in_group, priority = step
                key = f"{group}{number_in_group}"
                ready[key] = max(priority, ready.get(key, priority))
                queue.add(key, priority=priority)
            note(number)

    play()


class Model:
    """What the queue must do, written for clarity: scan everything on each step."""

    def __init__(self) -> None:
        self.queued: dict[str, tuple[int, float, int]] = {}  # priority, ready at, order
        self.in_flight: set[str] = set()
        self.order = 0

    def add(self, key: str, priority: int, at: float, now: float) -> None:
        self.order += 1
        if key not in self.queued:
            self.queued[key] = (priority, at, self.order)
            return
        old_priority, old_at, order = self.queued[key]
        becomes_ready = at <= now < old_at
        if priority > old_priority or becomes_ready:
            order = self.order
        self.queued[key] = (max(priority, old_priority), min(at, old_at), order)

    def advance(self, before: float, now: float) -> None:
        due = [(at, order, key) for key, (_, at, order) in self.queued.items() if before < at <= now]
        for at, _, key in sorted(due):
            self.order += 1
            self.queued[key] = (self.queued[key][0], at, self.order)

    def ready(self, now: float) -> list[str]:
        found = [(-p, order, key) for key, (p, at, order) in self.queued.items() if at <= now]
        return [key for _, _, key in sorted(found)]

    def next(self, now: float) -> str | None:
        return next((key for key in self.ready(now) if key not in self.in_flight), None)


KEYS = st.sampled_from("abcdef")


class QueueMachine(RuleBasedStateMachine):
    """Compare the queue with the model under adds, gets, dones and the passing of time."""

    @initialize()
    def start(self) -> None:
        self.loop = VirtualTimeLoop()
        self.queue = self.call(lambda: WorkQueue[str](backoff=PLAIN))
        self.model = Model()
        self.failures: dict[str, int] = {}

    def call(self, work: Callable[[], Any]) -> Any:
        async def inside() -> Any:
            return work()

        return self.loop.run_until_complete(inside())

    @rule(key=KEYS, priority=st.integers(-2, 2), after=st.sampled_from([0, 0, 0, 1, 3, 3, 7]))
    def add(self, key: str, priority: int, after: int) -> None:
        self.call(lambda: self.queue.add(key, priority=priority, after=after))
        self.model.add(key, priority, self.loop.time() + after, self.loop.time())

    @rule(key=KEYS)
    def add_rate_limited(self, key: str) -> None:
        failures = self.failures.get(key, 0)
        self.failures[key] = failures + 1
        self.call(lambda: self.queue.add_rate_limited(key))
        self.model.add(key, 0, self.loop.time() + PLAIN.delay(failures), self.loop.time())

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        self.failures.pop(key, None)
        self.queue.forget(key)

    @rule(keys=st.sets(KEYS))
    def discard(self, keys: set[str]) -> None:
        self.call(lambda: self.queue.discard(keys.__contains__))
        for key in keys:
            self.failures.pop(key, None)
            self.model.queued.pop(key, None)

    @rule()
    def get(self) -> None:
        expected = self.model.next(self.loop.time())
        if expected is None:
            assert self.loop.run_until_complete(self.get_or_none()) is None
            return
        item = self.loop.run_until_complete(self.queue.get())
        priority, _, _ = self.model.queued.pop(expected)
        assert (item.key, item.priority) == (expected, priority)
        assert item.queued_at <= self.loop.time()
        self.model.in_flight.add(expected)

    async def get_or_none(self) -> str | None:
        getter = asyncio.ensure_future(self.queue.get())
        await settle(5)
        getter.cancel()
        try:
            return (await getter).key
        except asyncio.CancelledError:
            return None

    @precondition(lambda self: self.model.in_flight)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.in_flight)))
        self.call(lambda: self.queue.done(key))
        self.model.in_flight.discard(key)

    @rule(seconds=st.integers(1, 5))
    def wait(self, seconds: int) -> None:
        before = self.loop.time()
        self.loop.run_until_complete(asyncio.sleep(seconds))
        self.loop.run_until_complete(settle(3))
        self.model.advance(before, self.loop.time() + 1e-9)

    @invariant()
    def counts_agree(self) -> None:
        if not hasattr(self, "model"):
            return
        statistics = self.queue.statistics()
        ready = len(self.model.ready(self.loop.time() + 1e-9))
        assert statistics.ready == ready == len(self.queue)
        assert statistics.delayed == len(self.model.queued) - ready
        assert statistics.in_flight == len(self.model.in_flight)
        assert statistics.retrying == len(self.failures)

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.close()


QueueMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestQueueMachine = QueueMachine.TestCase


def test_a_delay_in_the_past_is_due_at_once_on_any_event_loop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def pass_by() -> list[str]:
        queue = WorkQueue[str]()
        for key in ("late", "later", "latest"):
            # Below the resolution of the loop's clock: due before the timer is set.
            queue.add(key, after=1e-9)
        return [await take(queue) for _ in range(3)]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert sorted(runner.run(pass_by())) == ["late", "later", "latest"]


@virtual_time
async def test_keys_in_backoff_are_listed_by_the_time_of_their_retry() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(base=1.0, maximum=100.0, jitter=0.0))
    queue.add("healthy", after=5)
    queue.add("ready")
    for _ in range(3):
        queue.add_rate_limited("often")
    queue.add_rate_limited("once")
    found = [(retry.key, retry.failures) for retry in queue.pending_retries(10)]
    assert sorted(found) == [("often", 3), ("once", 1)]
    assert len(queue.pending_retries(1)) == 1
    assert all(0 < retry.seconds <= 4 for retry in queue.pending_retries(10))
