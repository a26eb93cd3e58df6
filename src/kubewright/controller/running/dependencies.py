"""What all controllers of one manager share."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kubewright.api import Kind, PartialMeta, RawObject
from kubewright.cache import Cache, StoreChange
from kubewright.client import Client
from kubewright.controller.predicates import Change
from kubewright.controller.running.telemetry import NO_TRACES, Traces
from kubewright.election import Leadership
from kubewright.events import EventRecorder, EventType, Reference
from kubewright.journal import Journal, PublishedEvent, current
from kubewright.metrics import Registry

REMEMBERED = 10_000


class MalformedObjects:
    """Remember which states of objects were reported as malformed, by any of the controllers."""

    def __init__(self) -> None:
        self._reported: OrderedDict[tuple[Kind, str], str] = OrderedDict()

    def is_new(self, kind: Kind, meta: PartialMeta) -> bool:
        """Return True if this state of the object was not reported yet, and remember that it is now."""
        key = (kind, meta.uid)
        if self._reported.get(key) == meta.resource_version:
            return False
        self._reported[key] = meta.resource_version
        if len(self._reported) > REMEMBERED:
            self._reported.popitem(last=False)
        return True


class Views:
    """Decode a change once for all controllers that are notified of it: decoding is most of the work."""

    def __init__(self) -> None:
        self._current: StoreChange | None = None
        self._views: dict[Any, Change[Any]] = {}

    def of(self, kind: Any, change: StoreChange) -> Change[Any]:
        """Return the typed view of a change."""
        if change is not self._current:
            self._current, self._views = change, {}
        view = self._views.get(kind)
        if view is None:
            view = Change(kind, change.key, change.old, change.new, change.initial)
            self._views[kind] = view
        return view


class RuntimeDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies of the runners; with leader election, `client` rejects writes once the lease has run out.

    `leadership` is checked before each reconcile and each function in a thread; without leader election it is always
    valid. `namespaces` limits every namespaced kind; empty means all. `run_sync_observer` is called with the names of
    the controller and the function before each `ctx.run_sync`.
    """

    client: Client
    cache: Cache
    recorder: EventRecorder
    metrics: Registry
    leadership: Leadership = msgspec.field(default_factory=Leadership.unlimited)
    namespaces: Sequence[str] = ()
    traces: Traces = NO_TRACES
    malformed: MalformedObjects = msgspec.field(default_factory=MalformedObjects)
    views: Views = msgspec.field(default_factory=Views)
    journal: Journal = msgspec.field(default_factory=lambda: Journal(limit=0))
    run_sync_observer: Callable[[str, str], None] | None = None

    def record_write(self, kind: Kind, response: RawObject) -> None:
        """Store the response to a write in every feed of its kind, as if the watch had sent it."""
        for feed in self.cache.feeds:
            if feed.selection.kind.gvk == kind.gvk:
                feed.record_write(response)

    def record_delete(self, kind: Kind, meta: PartialMeta) -> None:
        """Remove an object that our own write deleted from every feed of its kind."""
        for feed in self.cache.feeds:
            if feed.selection.kind.gvk == kind.gvk:
                feed.record_delete(meta.key, meta.uid, meta.resource_version)

    def publish_event(self, kind: Kind, about: PartialMeta, type: EventType, reason: str, note: str) -> None:  # noqa: A002 (the field's name)
        """Record an Event about an object on behalf of the runtime itself."""
        self.record_event(reference_to(kind, about), type, reason, note)

    def record_event(
        self,
        regarding: Reference,
        type: EventType,  # noqa: A002 (the field's name)
        reason: str,
        note: str,
        *,
        action: str = "",
        reporter: str = "",
        related: Reference | None = None,
    ) -> None:
        """Record an Event, in the journal of the current reconcile as well."""
        self.recorder.record(regarding, type, reason, note, action=action, reporter=reporter, related=related)
        if (entry := current()) is not None:
            entry.add_work(PublishedEvent(time.time(), type, reason, note))


def reference_to(kind: Kind, meta: PartialMeta) -> Reference:
    """Return the reference to the object for an Event."""
    return Reference(kind.api_version, kind.kind, meta.namespace, meta.name, meta.uid)
