"""The latest reconciles of an operator, within a limit of memory."""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from kubewright.api import ObjectKey
from kubewright.journal.collected import Collected

DEFAULT_FILE_LIMIT = 200 * 1024 * 1024
"""Bytes of a record file and its predecessor."""
DEFAULT_LIMIT = 16 * 1024 * 1024
"""Bytes; counted as if each reconcile had its own copy of the objects that it read, so less is used."""

JournalSubscriber = Callable[[Collected], None]


class Journal:
    """Keep finished reconciles, the oldest of which are dropped when the limit is reached.

    Reconciles that do nothing are most of them in an operator at rest: of several in a row of the same object only the
    last is kept, with their number, so that they do not displace the ones that did something.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit: int = limit
        self.size: int = 0
        """Bytes that are held, by the count of `DEFAULT_LIMIT`."""
        self.dropped: int = 0
        """How many reconciles were dropped for newer ones."""
        self._entries: OrderedDict[int, Collected] = OrderedDict()
        self._idle: dict[tuple[str, ObjectKey], int] = {}
        self._subscribers: list[JournalSubscriber] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Collected]:
        """Return the kept reconciles, the oldest first."""
        return iter(tuple(self._entries.values()))

    def after(self, number: int, limit: int) -> list[Collected]:
        """Return the first `limit` kept reconciles with a higher number, the oldest first."""
        newer = list[Collected]()
        for entry in reversed(self._entries.values()):
            if entry.number <= number:
                break
            newer.append(entry)
        return newer[::-1][:limit]

    @property
    def enabled(self) -> bool:
        """Return True if finished reconciles are kept or passed on."""
        return self.limit > 0 or bool(self._subscribers)

    def subscribe(self, subscriber: JournalSubscriber) -> Callable[[], None]:
        """Call the function with each reconcile that ends; the returned function ends the subscription."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def add(self, entry: Collected) -> None:
        """Keep a finished reconcile."""
        self._number += 1
        entry.number = self._number
        for subscriber in self._subscribers:
            subscriber(entry)
        about = (entry.controller, entry.key)
        last = self._idle.pop(about, None)
        if entry.is_idle:
            if last is not None and last in self._entries:
                earlier = self._entries.pop(last)
                self.size -= earlier.size
                entry.repeated = earlier.repeated + 1
            self._idle[about] = entry.number
        self._entries[entry.number] = entry
        self.size += entry.size
        while self.size > self.limit and self._entries:
            _, oldest = self._entries.popitem(last=False)
            self.size -= oldest.size
            self.dropped += 1
            about = (oldest.controller, oldest.key)
            if self._idle.get(about) == oldest.number:
                del self._idle[about]
