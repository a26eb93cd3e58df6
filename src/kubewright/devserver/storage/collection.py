"""All objects of one resource: the current state in key order, and the recent history as a log of events."""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from kubewright.devserver.storage.records import Record, StoreEvent


def _revision(event: StoreEvent) -> int:
    return event.revision


FRESH = 100
"""How many of the last events keep their encoded frames."""
FRESH_AND_LARGE = 8
"""How many of them do when their objects are large."""
LARGE = 64 * 1024


class Collection:
    """The records of one resource, their history, and waiters for the next change."""

    def __init__(self, name: str, floor: int) -> None:
        self.name = name
        self.floor: int = floor
        """The history has every event after this revision."""
        self.epoch: int = 0
        self._first_watched = 0
        """Counts the reasons to end all watches, as when a CRD's schema changes."""
        self.history_bytes: int = 0
        self.latest: int = floor
        """The revision of the last change."""
        self._records: dict[str, Record] = {}
        self._keys: list[str] = []
        self._events: list[StoreEvent] = []
        self._waiters: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def get(self, key: str) -> Record | None:
        """Return the current record of a key."""
        return self._records.get(key)

    def records(self, prefix: str = "") -> list[Record]:
        """Return the current records with a prefix, in key order."""
        return self.page(prefix, "")

    def page(self, prefix: str, start: str) -> list[Record]:
        """Return the current records with a prefix from a key on."""
        found = self._records
        return [found[key] for key in self._span(prefix, start)]

    def page_at(self, revision: int, prefix: str, start: str) -> list[Record]:
        """Return the records as of a past revision, which the history must still cover."""
        state = {record.key: record for record in self.page(prefix, start)}
        for event in reversed(self.after(revision)):
            if not event.key.startswith(prefix) or event.key < start:
                continue
            if event.old is None:
                state.pop(event.key, None)
            else:
                state[event.key] = event.old
        return [state[key] for key in sorted(state)]

    def _span(self, prefix: str, start: str) -> Sequence[str]:
        keys = self._keys
        if not prefix and not start:
            return keys
        low = bisect_left(keys, max(prefix, start))
        high = bisect_left(keys, prefix[:-1] + chr(ord(prefix[-1]) + 1)) if prefix else len(keys)
        return keys[low:high]

    def after(self, revision: int) -> list[StoreEvent]:
        """Return the events after a revision, oldest first."""
        if not self._events or self._events[-1].revision <= revision:
            return []
        return self._events[bisect_right(self._events, revision, key=_revision) :]

    @property
    def has_history(self) -> bool:
        """Return True if there are events that could be dropped."""
        return bool(self._events)

    @property
    def oldest(self) -> int:
        """Return the oldest revision of the history, which errors name."""
        return max(self._events[0].revision if self._events else self.floor, self._first_watched)

    @property
    def watch_floor(self) -> int:
        """Return the oldest revision a watch may start from."""
        return max(self.floor, self._first_watched)

    def load(self, records: Sequence[Record]) -> None:
        """Load records from a file, in key order."""
        self._records = {record.key: record for record in records}
        self._keys = [record.key for record in records]

    def reset(self, records: Sequence[Record], revision: int) -> None:
        """Replace everything with the records of a backup, and end all watches."""
        self.load(records)
        self._events.clear()
        self.history_bytes = 0
        self.floor = self.latest = revision
        self._first_watched = 0
        self.end_watches()

    def apply(self, event: StoreEvent) -> None:
        """Apply a change and wake the waiters."""
        if event.new is None:
            del self._records[event.key]
            del self._keys[bisect_left(self._keys, event.key)]
        else:
            if event.old is None:
                insort(self._keys, event.key)
            self._records[event.key] = event.new
        self._events.append(event)
        # Watchers that keep up have sent it; for one that lags behind, its frames are encoded again.
        if len(self._events) > FRESH:
            self._events[-FRESH - 1].frames.clear()
        if len(self._events) > FRESH_AND_LARGE and self._events[-FRESH_AND_LARGE - 1].size > LARGE:
            self._events[-FRESH_AND_LARGE - 1].frames.clear()
        self.latest = event.revision
        self.history_bytes += event.size
        self.wake()

    def compact(self, revision: int) -> None:
        """Drop the events up to a revision; the floor moves only past dropped events."""
        end = bisect_right(self._events, revision, key=_revision)
        if end:
            self.floor = self._events[end - 1].revision
            self.history_bytes -= sum(event.size for event in self._events[:end])
            del self._events[:end]

    def trim(self, max_events: int, max_bytes: int) -> None:
        """Drop the oldest events until the history is small enough."""
        end = max(0, len(self._events) - max_events)
        size = self.history_bytes - sum(event.size for event in self._events[:end])
        while end < len(self._events) and size > max_bytes:
            size -= self._events[end].size
            end += 1
        if end:
            self.compact(self._events[end - 1].revision)

    def expire_before(self, time: float) -> None:
        """Drop the events older than a time."""
        end = 0
        while end < len(self._events) and self._events[end].time < time:
            end += 1
        if end:
            self.compact(self._events[end - 1].revision)

    def end_watches(self, oldest: int = 0) -> None:
        """End every watch cleanly, as the server does when a kind changes; none may start before `oldest` from now on."""
        self._first_watched = max(self._first_watched, oldest)
        self.epoch += 1
        self.wake()

    @property
    def waiting(self) -> int:
        """Return how many watches wait for the next change."""
        return len(self._waiters)

    async def changed(self, deadline: float) -> None:
        """Wait for the next change, or until the loop's time reaches the deadline."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiters.add(waiter)
        timer = loop.call_at(deadline, _release, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            # Without changes, waiters whose time is up would never be removed.
            self._waiters.discard(waiter)

    def wake(self) -> None:
        """Wake the waiters."""
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            _release(waiter)


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
