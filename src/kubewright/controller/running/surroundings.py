"""What all controllers of one manager share."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import msgspec

from kubewright.api import Kind, PartialMeta, RawObject
from kubewright.cache import Cache
from kubewright.cache import Change as CacheChange
from kubewright.client import Client
from kubewright.controller.change import Change
from kubewright.controller.running.traces import NO_TRACES, Traces
from kubewright.election import Leadership
from kubewright.events import EventRecorder, EventType, Reference
from kubewright.metrics import Registry

REMEMBERED = 10_000


class MalformedObjects:
    """Know which states of objects were reported as malformed, whoever of the controllers met them first."""

    def __init__(self) -> None:
        self._reported: OrderedDict[tuple[Kind, str], str] = OrderedDict()

    def is_new(self, kind: Kind, meta: PartialMeta) -> bool:
        """Tell whether this state of the object was not reported yet, and note that it is now."""
        key = (kind, meta.uid)
        if self._reported.get(key) == meta.resource_version:
            return False
        self._reported[key] = meta.resource_version
        if len(self._reported) > REMEMBERED:
            self._reported.popitem(last=False)
        return True


class Views:
    """Show the change that is told at the moment as a kind, once for all who look: decoding it is most of looking."""

    def __init__(self) -> None:
        self._told: CacheChange | None = None
        self._views: dict[Any, Change[Any]] = {}

    def of(self, kind: Any, change: CacheChange) -> Change[Any]:
        """Give the typed view of a change."""
        if change is not self._told:
            self._told, self._views = change, {}
        view = self._views.get(kind)
        if view is None:
            view = Change(kind, change.key, change.old, change.new, change.initial)
            self._views[kind] = view
        return view


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Collaborators of the runners; where a lease is held, `client` refuses writes once it ran out.

    `leadership` is asked before each reconcile and each function in a thread; without a lease it always agrees.
    `namespaces` limits every namespaced kind; empty means all.
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

    def record_write(self, kind: Kind, answer: RawObject) -> None:
        """Let the answer to a write enter every feed of its kind, by the door of the watch events."""
        for feed in self.cache.feeds:
            if feed.selection.kind.gvk == kind.gvk:
                feed.record_write(answer)

    def record_delete(self, kind: Kind, meta: PartialMeta) -> None:
        """Let every feed of the kind know that our own write ended the object."""
        for feed in self.cache.feeds:
            if feed.selection.kind.gvk == kind.gvk:
                feed.record_delete(meta.key, meta.uid, meta.resource_version)

    def tell(self, kind: Kind, about: PartialMeta, type: EventType, reason: str, note: str) -> None:  # noqa: A002 (the field's name)
        """Tell an event about an object on the framework's own behalf."""
        self.recorder.record(reference_to(kind, about), type, reason, note)


def reference_to(kind: Kind, meta: PartialMeta) -> Reference:
    """Return the reference by which an event names the object."""
    return Reference(kind.api_version, kind.kind, meta.namespace, meta.name, meta.uid)
