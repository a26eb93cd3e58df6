"""Changes of an object while it is reconciled, and which of them are the reconcile's own writes of the status.

A change that arrives during the reconcile of its object triggers another one. The exception: if the reconcile fails and
the change is only its own write of the status, the retry after the backoff suffices. Without this, a reconciler that
reports its errors in the status would be retried at once, again and again, as often as the text differs.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from kubewright.api import ObjectKey, RawObject
from kubewright.cache import StoreChange
from kubewright.controller.predicates import Cause

_written: ContextVar[set[str] | None] = ContextVar("written", default=None)
"""The resource versions that the current reconcile has written."""


def note_write(answer: RawObject) -> None:
    """Remember the version that a write of the current reconcile led to."""
    written = _written.get()
    if written is not None:
        written.add(answer.meta.resource_version)


class HeldChange(msgspec.Struct, frozen=True):
    """A change of an object that is being reconciled."""

    change: StoreChange
    cause: Cause
    low: bool


class Progress(msgspec.Struct, frozen=True):
    """What has happened to an object since its reconcile began."""

    held: list[HeldChange] = []
    written: set[str] = set()

    def unhandled(self, *, failed: bool) -> list[HeldChange]:
        """Return the changes that need another reconcile; one that failed is retried anyway."""
        if not failed:
            return self.held
        return [
            item
            for item in self.held
            if item.change.new is None
            or item.change.new.meta.resource_version not in self.written
            or not _changes_only_status(item.change)
        ]


class OwnChanges:
    """The changes of the objects that one controller is reconciling."""

    def __init__(self) -> None:
        self._progress: dict[ObjectKey, Progress] = {}

    def hold(self, change: StoreChange, cause: Cause, *, low: bool) -> bool:
        """Keep a change until the reconcile of its object has ended; return False if none is running."""
        progress = self._progress.get(change.key)
        if progress is None:
            return False
        progress.held.append(HeldChange(change, cause, low))
        return True

    @contextmanager
    def during(self, key: ObjectKey) -> Generator[Progress, None, None]:
        """Hold the changes of an object and note its writes until the block ends."""
        progress = self._progress[key] = Progress()
        token = _written.set(progress.written)
        try:
            yield progress
        finally:
            _written.reset(token)
            del self._progress[key]


def _changes_only_status(change: StoreChange) -> bool:
    """Return True if no one else's change came along with a write of the status."""
    return change.old is not None and change.new is not None and _rest(change.old) == _rest(change.new)


def _rest(obj: RawObject) -> object:
    document = msgspec.json.decode(obj.raw)
    document.pop("status", None)
    for name in ("resourceVersion", "managedFields"):
        document["metadata"].pop(name, None)
    return document
