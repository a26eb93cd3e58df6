"""Changes of an object during its reconcile, and which of them are the reconcile's own writes of the status.

A change that arrives during the reconcile of its object triggers another reconcile. The exception: if the reconcile fails
and the change is only its own write of the status, the retry after the backoff is enough. Otherwise a reconciler that
reports its errors in the status would be retried without backoff each time that the message differs.
"""

from contextvars import ContextVar

import msgspec

from kubewright.api import ObjectKey
from kubewright.cache import StoreChange
from kubewright.controller.predicates import Cause

_written: ContextVar[dict[str, str] | None] = ContextVar("written", default=None)
"""The resource versions that the current reconcile has written, each with the version that it was written to."""


def note_status_write(before: str, after: str) -> None:
    """Remember that the current reconcile's write of a status led from one version of the object to another."""
    written = _written.get()
    if written is not None:
        written[after] = before


class HeldChange(msgspec.Struct, frozen=True):
    """A change of an object that is being reconciled."""

    change: StoreChange
    cause: Cause
    low: bool


class ReconcileProgress(msgspec.Struct, frozen=True):
    """What has happened to an object since its reconcile began."""

    held: list[HeldChange] = []
    written: dict[str, str] = {}

    def unhandled(self, *, failed: bool) -> list[HeldChange]:
        """Return the changes that need another reconcile; one that failed is retried anyway."""
        if not failed:
            return self.held
        return [item for item in self.held if not self._is_own(item.change)]

    def _is_own(self, change: StoreChange) -> bool:
        """Return True if the only change between the two versions is our own write of the status."""
        if change.old is None or change.new is None:
            return False
        return self.written.get(change.new.meta.resource_version) == change.old.meta.resource_version


class OwnChanges:
    """The changes of the objects that one controller is reconciling."""

    def __init__(self) -> None:
        self._progress: dict[ObjectKey, ReconcileProgress] = {}

    def hold(self, change: StoreChange, cause: Cause, *, low: bool) -> bool:
        """Keep a change until the reconcile of its object has ended; return False if none is running."""
        progress = self._progress.get(change.key)
        if progress is None:
            return False
        progress.held.append(HeldChange(change, cause, low))
        return True

    def begin(self, key: ObjectKey) -> ReconcileProgress:
        """Hold the changes of an object, and record the status writes of its reconcile, until `end`."""
        progress = self._progress[key] = ReconcileProgress()
        _written.set(progress.written)
        return progress

    def end(self, key: ObjectKey) -> None:
        """Stop what `begin` started; the next reconcile of the task replaces what its context has."""
        del self._progress[key]
