"""A work queue with priorities, delays and rate limits, like client-go's.

A key is in one of four places: ready (by priority, then by order), delayed (a heap by time), in flight (with a worker),
or both in flight and queued again. `get` passes a ready key to a worker, which calls `done` at the end.

Invariants:

- No key is passed to two workers at once; a key that is added while it is in flight becomes ready when it is done.
- A key that was added is returned by `get` at least once after that, however often it was added in the meantime.
- Merging two adds keeps the higher priority and the earlier time.
- With `fair_by`, the groups of keys take turns: between two keys of one group and priority, each other group that has
  a ready key of that priority all the time gets one taken. Within a group the order is kept.
"""

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import msgspec

from kubewright.backoff import RETRY_BACKOFF, Backoff
from kubewright.metrics import Gauge, Registry, exponential_buckets

K = TypeVar("K", bound=Hashable)

LOW_PRIORITY = -100
"""The priority of keys without a change: the initial list and resyncs."""

_REMOVED = -1
"""The order of an entry that was removed: no slot has it."""
_MAX_PRIORITY_LABELS = 25
_OTHER_PRIORITIES = "exceeded_cardinality_limit"


class QueueShutDown(Exception):
    """The queue was shut down and returns no more keys."""


class QueueItem(msgspec.Struct, Generic[K], frozen=True):
    """A key that `get` returned, its priority, and since when it was ready."""

    key: K
    priority: int
    queued_at: float


class QueueStatistics(msgspec.Struct, frozen=True):
    """Count the keys by where they are; a key in flight that was added again counts twice."""

    ready: int
    delayed: int
    in_flight: int
    retrying: int


class PendingRetry(msgspec.Struct, Generic[K], frozen=True):
    """A key that failed: in how many seconds it is ready again, and how often it failed in a row."""

    key: K
    seconds: float
    failures: int


class _Entry(Generic[K]):
    """One queued key; `ready_at` is None once `get` may return it."""

    __slots__ = ("key", "order", "priority", "queued_at", "ready_at")

    def __init__(self, key: K, order: int, priority: int, ready_at: float | None, now: float) -> None:
        self.key = key
        self.order = order
        self.priority = priority
        self.ready_at = ready_at
        self.queued_at = now


class WorkQueue(Generic[K]):
    """A queue of keys, each processed by one worker at a time.

    Adding a key that is queued merges both: the higher priority and the earlier time win. A key that is added while
    it is in flight becomes ready when it is done. Higher priorities come first, equal ones in the order in which they
    became ready; `fair_by` returns the group of a key, and groups with keys of equal priority take turns. A queue
    belongs to one event loop; only `get` waits.
    """

    def __init__(
        self,
        *,
        backoff: Backoff = RETRY_BACKOFF,
        name: str = "",
        metrics: Registry | None = None,
        fair_by: Callable[[K], Hashable] | None = None,
    ) -> None:
        self._backoff = backoff
        self._entries: dict[K, _Entry[K]] = {}
        self._in_flight: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._ready: _ReadyKeys[K] = _ReadyKeys(fair_by)
        # A heap of (time, order, entry); a slot whose order the entry no longer has is stale.
        self._delayed: list[tuple[float, int, _Entry[K]]] = []
        self._ready_count = 0
        self._next_order = 0
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0
        self._getters: deque[asyncio.Future[None]] = deque()
        self._shut_down = False
        self._metrics = _QueueMetrics(name, metrics or Registry(), self._in_flight)

    def add(self, key: K, *, priority: int = 0, after: float = 0.0) -> None:
        """Queue the key, at once or after `after` seconds."""
        if self._shut_down:
            return
        now = _now()
        ready_at = now + after if after > 0 else None
        if ready_at is not None:
            self._metrics.retries.inc()
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(key, self._order(), priority, ready_at, now)
            if ready_at is None:
                self._became_ready(entry)
            else:
                self._delay(entry, ready_at)
            return
        self._merge(entry, priority, ready_at, now)

    def add_rate_limited(self, key: K, priority: int = 0) -> float:
        """Queue the key after its backoff, which grows with each call until `forget`; return the delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = self._backoff.delay(failures)
        self.add(key, priority=priority, after=delay)
        return delay

    def forget(self, key: K) -> None:
        """Reset the key's backoff."""
        self._failures.pop(key, None)

    def discard(self, selected: Callable[[K], bool]) -> None:
        """Remove the keys for which the function returns True, and reset their backoff; those in flight end as usual."""
        for key in [key for key in self._entries if selected(key)]:
            entry = self._entries.pop(key)
            entry.order = _REMOVED
            if entry.ready_at is None:
                self._ready_count -= 1
                self._metrics.depth(entry.priority).dec()
        for key in [key for key in self._failures if selected(key)]:
            del self._failures[key]
        self._ready.drop_stale()
        self._arm_timer()

    def retries(self, key: K) -> int:
        """Return how often the key was added rate-limited since it was last forgotten."""
        return self._failures.get(key, 0)

    async def get(self) -> QueueItem[K]:
        """Wait for the next key and take it; `done` must follow. Raises QueueShutDown at the end."""
        while True:
            item = self._take()
            if item is not None:
                return item
            if self._shut_down:
                raise QueueShutDown
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter.done() and not getter.cancelled():
                    # Woken and cancelled at the same time: another getter must take the key, not wait for the next add.
                    self._wake_getter()
                else:
                    getter.cancel()
                    if getter in self._getters:
                        self._getters.remove(getter)
                raise

    def done(self, key: K) -> None:
        """Mark a key as done; if it was added in the meantime, it can be taken again."""
        started = self._in_flight.pop(key, None)
        if started is None:
            raise ValueError(f"{key!r} is not in flight")
        self._metrics.work_duration.observe(_now() - started)
        entry = self._entries.get(key)
        if entry is not None and entry.ready_at is None:
            self._push_ready(entry)

    def shutdown(self) -> None:
        """Accept no more keys and drop those that wait; `done` can still be called for keys in flight."""
        self._shut_down = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for entry in self._entries.values():
            if entry.ready_at is None:
                self._metrics.depth(entry.priority).dec()
        self._entries.clear()
        self._ready.clear()
        self._delayed.clear()
        self._ready_count = 0
        while self._getters:
            self._wake_getter()

    def close(self) -> None:
        """Shut down, and remove the queue from the metrics."""
        self.shutdown()
        self._metrics.close()

    def statistics(self) -> QueueStatistics:
        """Return how many keys are ready, delayed, in flight, and in backoff."""
        delayed = len(self._entries) - self._ready_count
        return QueueStatistics(self._ready_count, delayed, len(self._in_flight), len(self._failures))

    def pending_retries(self, limit: int) -> list[PendingRetry[K]]:
        """Return the keys in backoff that wait for their time, at most `limit`, the first due first."""
        now = _now()
        waiting = [
            (entry.ready_at, entry.order, key, failures)
            for key, failures in self._failures.items()
            if (entry := self._entries.get(key)) is not None and entry.ready_at is not None
        ]
        chosen = heapq.nsmallest(limit, waiting, key=lambda each: each[:2])
        return [PendingRetry(key, max(0.0, due - now), failures) for due, _, key, failures in chosen]

    def __len__(self) -> int:
        """Return how many keys are ready, not counting delayed ones."""
        return self._ready_count

    def _merge(self, entry: _Entry[K], priority: int, ready_at: float | None, now: float) -> None:
        raised = priority > entry.priority
        if raised and entry.ready_at is None:
            self._metrics.depth(entry.priority).dec()
            self._metrics.depth(priority).inc()
        if raised:
            entry.priority, entry.order = priority, self._order()
        if entry.ready_at is None:
            if raised and entry.key not in self._in_flight:
                self._push_ready(entry)
        elif ready_at is None:
            entry.ready_at, entry.queued_at, entry.order = None, now, self._order()
            self._became_ready(entry)
        elif raised or ready_at < entry.ready_at:
            entry.ready_at = min(ready_at, entry.ready_at)
            self._delay(entry, entry.ready_at)

    def _became_ready(self, entry: _Entry[K]) -> None:
        self._ready_count += 1
        self._metrics.adds.inc()
        self._metrics.depth(entry.priority).inc()
        if entry.key not in self._in_flight:
            self._push_ready(entry)

    def _push_ready(self, entry: _Entry[K]) -> None:
        self._ready.push(entry)
        if len(self._ready) > 2 * self._ready_count + 64:
            self._ready.drop_stale()
        self._wake_getter()

    def _delay(self, entry: _Entry[K], ready_at: float) -> None:
        heapq.heappush(self._delayed, (ready_at, entry.order, entry))
        # Keys that always run again before their delay is over would accumulate stale slots.
        if len(self._delayed) > 2 * (len(self._entries) - self._ready_count) + 64:
            self._delayed = [slot for slot in self._delayed if self._is_delayed(slot)]
            heapq.heapify(self._delayed)
        self._arm_timer()

    def _is_delayed(self, slot: tuple[float, int, _Entry[K]]) -> bool:
        ready_at, order, entry = slot
        return entry.ready_at == ready_at and entry.order == order and self._entries.get(entry.key) is entry

    def _arm_timer(self) -> None:
        while self._delayed and not self._is_delayed(self._delayed[0]):
            heapq.heappop(self._delayed)
        if self._timer is not None:
            if self._delayed and self._timer_at == self._delayed[0][0]:
                return
            self._timer.cancel()
            self._timer = None
        if self._delayed:
            # Stored here: uvloop's handle does not have the time of a timer that is already due.
            self._timer_at = self._delayed[0][0]
            self._timer = asyncio.get_running_loop().call_at(self._timer_at, self._release_due)

    def _release_due(self) -> None:
        self._timer = None
        now = _now()
        # The loop runs timers up to its clock's resolution early: what the timer was set for is due.
        due = max(now, self._delayed[0][0]) if self._delayed else now
        while self._delayed and self._delayed[0][0] <= due:
            slot = heapq.heappop(self._delayed)
            if self._is_delayed(slot):
                entry = slot[2]
                entry.ready_at, entry.queued_at, entry.order = None, now, self._order()
                self._became_ready(entry)
        self._arm_timer()

    def _take(self) -> QueueItem[K] | None:
        entry = self._ready.pop()
        if entry is None:
            return None
        now = _now()
        del self._entries[entry.key]
        self._ready_count -= 1
        self._in_flight[entry.key] = now
        self._metrics.depth(entry.priority).dec()
        self._metrics.queue_duration.observe(now - entry.queued_at)
        return QueueItem(entry.key, entry.priority, entry.queued_at)

    def _wake_getter(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _order(self) -> int:
        self._next_order += 1
        return self._next_order


class _ReadyKeys(Generic[K]):
    """Entries that `get` may return: by priority, then one of each group in turn, then by order.

    A slot is stale if its entry got another order since, which it does when its priority is raised.
    """

    def __init__(self, group_of: Callable[[K], Hashable] | None) -> None:
        self._group_of = group_of
        # By priority and group a heap of (order, entry); the first group is the next to be served.
        self._levels: dict[int, OrderedDict[Hashable, list[tuple[int, _Entry[K]]]]] = {}
        self._size = 0

    def __len__(self) -> int:
        """Return the number of slots, the stale ones included."""
        return self._size

    def push(self, entry: _Entry[K]) -> None:
        """Add an entry; its group, if it had none, waits for one turn of each other group."""
        level = self._levels.get(entry.priority)
        if level is None:
            level = self._levels[entry.priority] = OrderedDict()
        group = None if self._group_of is None else self._group_of(entry.key)
        slots = level.get(group)
        if slots is None:
            slots = level[group] = []
        heapq.heappush(slots, (entry.order, entry))
        self._size += 1

    def pop(self) -> _Entry[K] | None:
        """Remove and return the next entry."""
        while self._levels:
            priority = max(self._levels)
            level = self._levels[priority]
            while level:
                group, slots = next(iter(level.items()))
                order, entry = heapq.heappop(slots)
                self._size -= 1
                is_current = order == entry.order
                if not slots:
                    del level[group]
                elif is_current:
                    level.move_to_end(group)
                if is_current:
                    return entry
            del self._levels[priority]
        return None

    def drop_stale(self) -> None:
        """Remove the stale slots."""
        self._size = 0
        for level in self._levels.values():
            for group, slots in list(level.items()):
                level[group] = [slot for slot in slots if slot[0] == slot[1].order]
                heapq.heapify(level[group])
                if not level[group]:
                    del level[group]
            self._size += sum(map(len, level.values()))

    def clear(self) -> None:
        """Remove everything."""
        self._levels.clear()
        self._size = 0


class _QueueMetrics(Generic[K]):
    """The queue's metrics, with client-go's names."""

    def __init__(self, name: str, registry: Registry, in_flight: dict[K, float]) -> None:
        labels = {"name": name, "controller": name}
        names = tuple(labels)
        buckets = exponential_buckets(1e-8, 10, 12)
        self._labels = labels
        self._depths: dict[int, Gauge] = {}
        self._depth = registry.gauge(
            "workqueue_depth", "Current depth of workqueue by workqueue and priority", (*names, "priority")
        )
        self.adds = registry.counter(
            "workqueue_adds_total", "Total number of adds handled by workqueue", names
        ).labels(**labels)
        self.retries = registry.counter(
            "workqueue_retries_total", "Total number of items added to the workqueue with a delay", names
        ).labels(**labels)
        self.queue_duration = registry.histogram(
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested",
            names,
            buckets,
        ).labels(**labels)
        self.work_duration = registry.histogram(
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes",
            names,
            buckets,
        ).labels(**labels)
        self._removers = (
            registry.gauge(
                "workqueue_unfinished_work_seconds",
                "Seconds of work in progress that work_duration has not observed; stuck workers make it grow",
                names,
            )
            .labels(**labels)
            .add_function(lambda: sum(_ages(in_flight))),
            registry.gauge(
                "workqueue_longest_running_processor_seconds",
                "How many seconds the longest running processor for workqueue has been running",
                names,
            )
            .labels(**labels)
            .add_function(lambda: max(_ages(in_flight), default=0.0), combine=max),
        )

    def close(self) -> None:
        """Remove the functions of this queue; other queues of the same name keep theirs."""
        for remove in self._removers:
            remove()

    def depth(self, priority: int) -> Gauge:
        """Return the gauge of this priority; beyond the limit of label values all new ones share one."""
        gauge = self._depths.get(priority)
        if gauge is None:
            text = str(priority) if len(self._depths) < _MAX_PRIORITY_LABELS else _OTHER_PRIORITIES
            gauge = self._depth.labels(**self._labels, priority=text)
            if text != _OTHER_PRIORITIES:
                self._depths[priority] = gauge
        return gauge


def _ages(in_flight: dict[K, float]) -> list[float]:
    if not in_flight:
        return []
    now = _now()
    return [now - started for started in in_flight.values()]


def _now() -> float:
    return asyncio.get_running_loop().time()
