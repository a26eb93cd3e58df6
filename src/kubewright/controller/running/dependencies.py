"""What all controllers of one manager share."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kubewright.api import Kind, ObjectKey, PartialMeta, RawObject
from kubewright.api.sharding import Shards
from kubewright.cache import Cache, ShardFilter, StoreChange
from kubewright.client import Client
from kubewright.controller.predicates import Change
from kubewright.controller.running.external_calls import RecordedAnswers
from kubewright.controller.running.namespaces import FollowedNamespaces
from kubewright.controller.running.telemetry import NO_TRACES, Traces
from kubewright.controller.watches import Owned
from kubewright.election import Leadership
from kubewright.events import EventRecorder, EventType, Reference
from kubewright.journal import Journal, PublishedEvent, current
from kubewright.metrics import Registry

REMEMBERED = 10_000


class MalformedObjects:
    """Remember which states of malformed objects any of the controllers has reported."""

    def __init__(self) -> None:
        self._reported: OrderedDict[tuple[Kind, str], str] = OrderedDict()

    def is_new(self, kind: Kind, meta: PartialMeta) -> bool:
        """Return True if this state of the object was not reported yet, and mark it as reported."""
        key = (kind, meta.uid)
        if self._reported.get(key) == meta.resource_version:
            return False
        self._reported[key] = meta.resource_version
        if len(self._reported) > REMEMBERED:
            self._reported.popitem(last=False)
        return True


class Views:
    """Decode a change once for all controllers that are notified of it, because decoding is expensive."""

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


class Shard(msgspec.Struct, frozen=True):
    """One of the shards of an operator."""

    shards: Shards
    number: int

    def holds(self, text: str) -> bool:
        """Return True if this uid or namespace is in the shard."""
        return self.shards.number_of(text) == self.number

    def filter_of(
        self, kind: Kind, child: Owned[Any] | None = None, owner: Kind | None = None
    ) -> ShardFilter | None:
        """Return the shard's filter for the reconciled kind, or for a kind of its children; None selects all objects."""
        if self.shards.by == "namespace":
            return ShardFilter(self.shards, self.number, "namespace") if kind.namespaced else None
        if child is None or owner is None:
            return ShardFilter(self.shards, self.number, "uid")
        names = (owner.group, owner.kind)
        return ShardFilter(self.shards, self.number, "owner", names, child.every_owner, child.finalizer)


class RuntimeDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies of the runners.

    - `client`: with leader election, it refuses writes when the lease has expired.
    - `leadership`: checked before each reconcile and each function in a thread; always valid without leader election.
    - `namespaces`: limits every namespaced kind; empty means all. With `followed`, the namespaces selected by label.
    - `selector`: a label selector that limits the reconciled kind.
    - `shard`: limits the runner to the objects of one shard; `leadership` is then that of the shard's lease.
    - `run_sync_observer`: called with the names of the controller and the function before each `ctx.run_sync`.
    - `disruption_object`: the ConfigMap with the slots of the controller's budget; without it, budgets and windows are
      not enforced.
    - `recorded_answers`: in a replay, the recorded results of calls to external systems.
    """

    client: Client
    cache: Cache
    recorder: EventRecorder
    metrics: Registry
    leadership: Leadership = msgspec.field(default_factory=Leadership.unlimited)
    namespaces: Sequence[str] = ()
    followed: FollowedNamespaces | None = None
    selector: str = ""
    traces: Traces = NO_TRACES
    malformed: MalformedObjects = msgspec.field(default_factory=MalformedObjects)
    views: Views = msgspec.field(default_factory=Views)
    journal: Journal = msgspec.field(default_factory=lambda: Journal(limit=0))
    run_sync_observer: Callable[[str, str], None] | None = None
    disruption_object: ObjectKey | None = None
    recorded_answers: RecordedAnswers | None = None
    shard: Shard | None = None

    def holds_uid(self, uid: str) -> bool:
        """Return True if the owner with this uid may be in our shard; always True with shards by namespace."""
        return self.shard is None or self.shard.shards.by != "uid" or self.shard.holds(uid)

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
