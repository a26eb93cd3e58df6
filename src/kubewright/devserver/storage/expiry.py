"""Objects that are deleted some time after their last write, as etcd deletes the Events of kube-apiserver."""

from collections import deque
from collections.abc import Callable

from kubewright.devserver.storage.records import StoreEvent
from kubewright.devserver.storage.store import ObjectStore

EVENT_SECONDS = 3600.0
"""kube-apiserver's default for `--event-ttl`."""


class Expiry:
    """Delete the objects of a collection when they are old; each write of an object starts the time again.

    Objects that the store was opened with count from then on.
    """

    def __init__(self, store: ObjectStore, name: str, seconds: float, now: Callable[[], float]) -> None:
        self._store = store
        self._collection = store.collection(name)
        self._seconds = seconds
        self._now = now
        self._due: deque[tuple[float, str, int]] = deque()
        for record in self._collection.records():
            self._add(record.key, record.revision)
        store.observers.append(self._observe)

    def _observe(self, name: str, event: StoreEvent) -> None:
        if name == self._collection.name and event.new is not None:
            self._add(event.key, event.revision)

    def _add(self, key: str, revision: int) -> None:
        self._due.append((self._now() + self._seconds, key, revision))

    def run(self) -> None:
        """Delete what is due."""
        now = self._now()
        while self._due and self._due[0][0] <= now:
            _, key, revision = self._due.popleft()
            record = self._collection.get(key)
            if record is not None and record.revision == revision:
                self._store.delete(self._collection, record)
