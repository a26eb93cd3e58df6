"""The MVCC store: every object of every resource under one revision that only increases."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kubewright.devserver.storage.collection import Collection
from kubewright.devserver.storage.journal import DataFile
from kubewright.devserver.storage.records import Record, StoreEvent

HISTORY_SECONDS = 300.0
MAX_EVENTS = 100_000
MAX_BYTES = 32 * 1024 * 1024


class WriteConflict(Exception):
    """The record is not the one the change was made from."""


@dataclass(frozen=True, slots=True)
class Backup:
    """All records as of a revision."""

    revision: int
    records: Mapping[str, Sequence[Record]]


class ObjectStore:
    """Read and change records; nothing here awaits, so inside one event loop each call is atomic."""

    def __init__(self, journal: DataFile | None, now: Callable[[], float]) -> None:
        self._journal = journal
        self._now = now
        self._collections: dict[str, Collection] = {}
        self._reached: list[tuple[int, asyncio.Future[None]]] = []
        self._commits = 0
        self._base = 0
        self.observers: list[Callable[[str, StoreEvent], None]] = []
        """Called with the collection's name after each change."""
        self.compacted: int = 0
        """Lists at an older revision are refused, also of kinds that have not changed since."""
        self.revision: int = 1
        if journal is not None:
            self._base = self.revision = journal.revision()
            for name, records in journal.collections():
                self.collection(name).load(records)
        self._mark, self._marked_at = self.revision, now()

    def collection(self, name: str) -> Collection:
        """Return the collection of a resource, created at the first use."""
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = Collection(name, self._base)
        return found

    def collections(self) -> Iterator[Collection]:
        """Return all collections."""
        return iter(list(self._collections.values()))

    def put(
        self,
        collection: Collection,
        key: str,
        expected: Record | None,
        encode: Callable[[int], bytes],
        shape: str,
        labels: Mapping[str, str],
    ) -> Record:
        """Store an object if `expected` is still the current record; `encode` gets the new revision. Raise WriteConflict otherwise."""
        if collection.get(key) is not expected:
            raise WriteConflict
        revision = self.revision + 1
        record = Record(key, revision, encode(revision), shape, labels)
        self._commit(collection, StoreEvent(revision, key, expected, record, self._now()))
        return record

    def delete(self, collection: Collection, expected: Record) -> int:
        """Remove an object that is still the expected one; return the revision of the removal."""
        if collection.get(expected.key) is not expected:
            raise WriteConflict
        revision = self.revision + 1
        self._commit(collection, StoreEvent(revision, expected.key, expected, None, self._now()))
        return revision

    def _commit(self, collection: Collection, event: StoreEvent) -> None:
        if self._journal is not None:
            self._journal.write(collection.name, event.key, event.revision, event.new)
        self.revision = event.revision
        collection.apply(event)
        self._commits += 1
        if self._commits % 1024 == 0:
            self.tidy()
        elif collection.history_bytes > 2 * MAX_BYTES:
            # A few large objects fill it sooner than many writes do.
            collection.trim(MAX_EVENTS, MAX_BYTES)
        if self._reached:
            self._release()
        for observe in self.observers:
            observe(collection.name, event)

    def tidy(self) -> None:
        """Drop history beyond the maximum age and size.

        As etcd does for kube-apiserver, every five minutes what is older than the last time is compacted.
        """
        now = self._now()
        if now - self._marked_at >= HISTORY_SECONDS:
            self.compacted, self._mark, self._marked_at = self._mark, self.revision, now
        oldest = now - HISTORY_SECONDS
        for collection in self._collections.values():
            if collection.has_history:
                collection.expire_before(oldest)
                collection.trim(MAX_EVENTS, MAX_BYTES)

    def wake(self) -> None:
        """Wake the waiters of all collections."""
        for collection in self._collections.values():
            collection.wake()

    def compact(self) -> None:
        """Drop all history now."""
        self.compacted = self.revision
        for collection in self._collections.values():
            collection.compact(self.revision)

    def backup(self) -> Backup:
        """Copy the current state, as `etcdctl snapshot save` does."""
        return Backup(self.revision, {name: found.records() for name, found in self._collections.items()})

    def restore(self, backup: Backup) -> None:
        """Go back to a backup, revision and all; history is lost and every watch ends.

        Nothing is written to the journal. The backup must contain the same CRDs as the current state.
        """
        self.revision = backup.revision
        for name, collection in self._collections.items():
            collection.reset(backup.records.get(name, ()), backup.revision)

    async def wait_for(self, revision: int, timeout: float) -> bool:
        """Wait until the store has reached a revision; return False at the timeout."""
        if self.revision >= revision:
            return True
        waiter = asyncio.get_running_loop().create_future()
        self._reached.append((revision, waiter))
        try:
            async with asyncio.timeout(timeout):
                await waiter
        except TimeoutError:
            return False
        finally:
            self._reached = [item for item in self._reached if item[1] is not waiter]
        return True

    def _release(self) -> None:
        for revision, waiter in self._reached:
            if revision <= self.revision and not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        """Close the data file."""
        if self._journal is not None:
            self._journal.close()


T = TypeVar("T")


class Derived(Generic[T]):
    """A value computed from the objects of some resources, by the names of their collections.

    `get` compares the revisions of their last changes, so that a request does not decode all objects of a resource.
    """

    def __init__(self, store: ObjectStore, names: Sequence[str], compute: Callable[[], T]) -> None:
        self._collections = [store.collection(name) for name in names]
        self._compute = compute
        self._revisions: list[int] | None = None

    def get(self) -> T:
        """Return the value, computed again if one of the collections has changed."""
        revisions = [collection.latest for collection in self._collections]
        if revisions != self._revisions:
            self._value = self._compute()
            self._revisions = revisions
        return self._value
