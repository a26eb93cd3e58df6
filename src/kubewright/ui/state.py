"""The data that pages show, and the changes that have to be sent to each open page.

Sources (`cluster_source`, `operator_source`, `record_source`) report to one `PageState`. Each open page has a
`Subscription` with the ids of the objects and reconciles that it has not been sent yet, without their contents. Its
memory is bounded: if a browser reads too slowly, the ids are dropped and the page is sent everything again.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Literal, cast

import msgspec

from kubewright.api import JsonObject, Kind
from kubewright.journal import ReconcileRecord, Redactor
from kubewright.ui.history import DEFAULT_LIMIT, KeptVersion, ObjectIdentity, VersionHistory
from kubewright.ui.reconciles import FailureSummary, KeptReconcile, LastFailures, ReconcileHistory
from kubewright.ui.summaries import ObjectSummary, summarize, with_failure

SourceType = Literal["dev", "operator", "cluster", "record"]

MAX_PENDING = 20_000
"""Maximum number of unsent changes of a page; with more, the page is sent everything again."""
MAX_EVENTS = 20_000
"""Maximum number of Events of the cluster that are kept."""
MAX_EVENTS_OF_OBJECT = 50

_encoder = msgspec.json.Encoder()
_summaries = msgspec.json.Decoder(ObjectSummary)


class SourceDescription(msgspec.Struct, frozen=True, rename="camel"):
    """Where the page's data comes from, as shown on the page."""

    type: SourceType
    text: str


class LeaseSummary(msgspec.Struct, frozen=True, rename="camel"):
    """The lease of an operator, and its holder, if known."""

    name: str
    holder: str


class ControllerState(msgspec.Struct, frozen=True, rename="camel"):
    """The work queue and the workers of one controller."""

    name: str
    kind: str
    group: str
    queue_depth: int
    queue_delayed: int
    workers: int
    busy: int


class PlannedRetry(msgspec.Struct, frozen=True, rename="camel"):
    """An object that failed, and when it is reconciled again."""

    kind: str
    group: str
    namespace: str
    name: str
    at: datetime
    failures: int


class Throttling(msgspec.Struct, frozen=True, rename="camel"):
    """How many requests wait now because they were throttled, and how long requests waited altogether."""

    waiting: int = 0
    seconds: float = 0.0


class OperatorState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The current state of an operator."""

    name: str
    source: str
    leading: bool = True
    lease: LeaseSummary | msgspec.UnsetType = msgspec.UNSET
    controllers: list[ControllerState] = []
    retries: list[PlannedRetry] = []
    throttled: Throttling = Throttling()
    problems: list[str] = []
    dropped: int = 0


class ObjectEvent(msgspec.Struct, frozen=True, rename="camel"):
    """An Event about an object."""

    type: str
    reason: str
    message: str
    count: int
    last_seen: str
    from_: str = msgspec.field(name="from")


class Subscription:
    """The changes that one open page has not been sent yet."""

    def __init__(self, limit: int = MAX_PENDING) -> None:
        self.changed: dict[str, None] = {}
        self.removed: dict[str, float] = {}
        self.reconciles: dict[tuple[str, str], None] = {}
        self.reset: bool = True
        """True if everything must be sent again."""
        self.operators: bool = True
        self.problems: bool = True
        self.closed: bool = False
        self._limit = limit
        self._wake = asyncio.Event()

    def add_object(self, uid: str) -> None:
        """Record that an object was added or changed."""
        if not self.reset:
            self.removed.pop(uid, None)
            self.changed[uid] = None
            self._wake_or_reset()

    def remove_object(self, uid: str, at: float) -> None:
        """Note that an object was deleted."""
        if not self.reset:
            self.changed.pop(uid, None)
            self.removed[uid] = at
            self._wake_or_reset()

    def add_reconcile(self, kept: KeptReconcile) -> None:
        """Record that a reconcile was added."""
        if not self.reset:
            self.reconciles[kept.summary.operator, kept.summary.id] = None
            self._wake_or_reset()

    def notify(self) -> None:
        """Wake up the task that sends changes to the page."""
        self._wake.set()

    def close(self) -> None:
        """End the stream."""
        self.closed = True
        self._wake.set()

    async def wait(self, seconds: float) -> bool:
        """Wait until there is something to send; return False after a timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    def _wake_or_reset(self) -> None:
        if len(self.changed) + len(self.removed) + len(self.reconciles) > self._limit:
            self.changed, self.removed, self.reconciles = {}, {}, {}
            self.reset = True
        self._wake.set()


class PageState:
    """Objects with their history, Events, reconciles, operators and problems."""

    def __init__(
        self,
        *,
        redactor: Redactor | None = None,
        limit: int = DEFAULT_LIMIT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.clock = clock
        self.history: VersionHistory = VersionHistory(clock(), limit)
        self.reconciles: ReconcileHistory = ReconcileHistory()
        self.dropped: int = 0
        """How many reconciles the operators dropped before they could be read."""
        self.loading: bool = False
        """True while a source loads a record file: pages are sent everything at the end, not each change."""
        self._redactor = redactor
        """None if sensitive values were removed already, as in a record file."""
        self._failures = LastFailures()
        self._scalable: set[Kind] = set()
        self._reconciled: frozenset[tuple[str, str]] = frozenset()
        self._events: dict[str, tuple[str, ObjectEvent]] = {}
        self._events_of: dict[str, dict[str, None]] = {}
        self._operators: list[OperatorState] = []
        self._problems: dict[str, list[str]] = {}
        self._subscriptions: set[Subscription] = set()

    # Called by sources

    def put(self, kind: Kind, document: JsonObject, at: float | None = None) -> None:
        """Add a version of an object; a version that is known already is ignored."""
        metadata = document.get("metadata")
        if not isinstance(metadata, dict):
            return
        uid, version = (cast("JsonObject", metadata).get(name) for name in ("uid", "resourceVersion"))
        if not isinstance(uid, str) or not uid:
            return
        current = self.history.current(uid)
        if current is not None and current.resource_version == version:
            return
        document = {"apiVersion": kind.api_version, "kind": kind.kind, **document}
        summary, content = self._encoded(kind, document)
        known = cast("JsonObject", metadata)
        identity = ObjectIdentity(uid, kind, known.get("namespace") or "", known.get("name") or "")
        self.history.put(identity, str(version), self.clock() if at is None else at, summary, content)
        for subscription in self._receivers:
            subscription.add_object(uid)

    def remove(self, uid: str, at: float | None = None) -> None:
        """Note that an object was deleted."""
        current = self.history.current(uid)
        if current is None:
            return
        self._failures.forget(current.object.about, uid)
        at = self.clock() if at is None else at
        self.history.remove(uid, at)
        for subscription in self._receivers:
            subscription.remove_object(uid, at)

    def add_reconcile(self, operator: str, record: ReconcileRecord) -> None:
        """Add a reconcile; one that is known already is ignored."""
        kept = self.reconciles.add(operator, record)
        if kept is None:
            return
        self._add_reconciled(frozenset({(record.group, record.kind)}))
        changed = self._failures.add(kept.summary)
        for subscription in self._receivers:
            subscription.add_reconcile(kept)
            if changed and record.uid in self.history:
                subscription.add_object(record.uid)

    def put_event(self, document: JsonObject) -> None:
        """Add an Event of the cluster."""
        metadata = _object(document.get("metadata"))
        involved = _object(document.get("involvedObject")).get("uid")
        uid = metadata.get("uid")
        if not isinstance(involved, str) or not isinstance(uid, str):
            return
        self._events[uid] = (involved, _event(document))
        about = self._events_of.setdefault(involved, {})
        about[uid] = None
        if len(about) > MAX_EVENTS_OF_OBJECT:
            self.remove_event(next(iter(about)))
        if len(self._events) > MAX_EVENTS:
            self.remove_event(next(iter(self._events)))

    def remove_event(self, uid: str) -> None:
        """Remove an Event; API servers delete them after an hour."""
        found = self._events.pop(uid, None)
        if found is None:
            return
        about = self._events_of[found[0]]
        del about[uid]
        if not about:
            del self._events_of[found[0]]

    def finish_loading(self) -> None:
        """Set `loading` to False and send everything to the open pages."""
        self.loading = False
        for subscription in self._subscriptions:
            subscription.reset = True
            subscription.notify()

    def set_operators(self, operators: list[OperatorState]) -> None:
        """Replace the state of all operators."""
        if operators == self._operators:
            return
        self._operators = operators
        reconciled = frozenset(
            (controller.group, controller.kind) for each in operators for controller in each.controllers
        )
        self._add_reconciled(reconciled)
        self._notify(operators=True)

    def set_problems(self, source: str, problems: Iterable[str]) -> None:
        """Replace the problems of a source; an empty list means that it has none."""
        found = list(problems)
        if found == self._problems.get(source, []):
            return
        self._problems[source] = found
        self._notify(problems=True)

    def set_scalable(self, kind: Kind) -> None:
        """Record that a kind has the subresource scale."""
        self._scalable.add(kind)

    def declare_sensitive(self, group: str, kind: str, paths: Iterable[tuple[str, ...]]) -> None:
        """Redact these fields of a kind, also in the versions in the history."""
        if self._redactor is not None and self._redactor.declare(group, kind, paths):
            self._summarize_again({(group, kind)})

    # Called for pages

    @property
    def operators(self) -> list[OperatorState]:
        """Return the state of the operators."""
        return self._operators

    @property
    def problems(self) -> list[str]:
        """Return all problems, each once."""
        return list(dict.fromkeys(text for texts in self._problems.values() for text in texts))

    def events_of(self, uid: str) -> list[ObjectEvent]:
        """Return the Events about an object, the latest first."""
        found = [self._events[event][1] for event in self._events_of.get(uid, ())]
        return sorted(found, key=lambda event: event.last_seen, reverse=True)

    def reconciles_of(self, version: KeptVersion, limit: int) -> list[KeptReconcile]:
        """Return the latest reconciles of an object, the latest first."""
        known = version.object
        kind = known.kind
        about = (kind.group, kind.kind, known.namespace, known.name)
        found = list[KeptReconcile]()
        for kept in reversed(self.reconciles.all()):
            each = kept.summary
            # The reconcile of a deleted object has no uid.
            same = (each.group, each.kind, each.namespace, each.name) == about
            if same and each.uid in ("", known.uid):
                found.append(kept)
                if len(found) == limit:
                    break
        return found

    def summaries(self, uids: Iterable[str] | None = None) -> list[bytes]:
        """Return the encoded summaries of the objects that exist now: all of them, or those with these uids."""
        versions = self.history.objects if uids is None else map(self.history.current, uids)
        return [_with_failure(version, self._failures) for version in versions if version is not None]

    def summaries_at(self, at: float) -> list[bytes]:
        """Return the encoded summaries of the objects that existed at a point in time."""
        failures = LastFailures()
        for kept in self.reconciles.all():
            # In whole milliseconds, in which the page computes the end of a reconcile, too.
            started = _milliseconds(kept.summary.started_at.timestamp())
            if started + _milliseconds(kept.summary.duration) <= _milliseconds(at):
                failures.add(kept.summary)
        return [_with_failure(version, failures) for version in self.history.snapshot(at)]

    def is_reconciled(self, kind: Kind) -> bool:
        """Return True if one of the operators has a controller for the kind."""
        return (kind.group, kind.kind) in self._reconciled

    def redacted(self, kind: Kind, document: JsonObject) -> JsonObject:
        """Return an object of the cluster without sensitive values."""
        if self._redactor is None:
            return document
        return self._redactor.document(document, set(), group=kind.group, kind=kind.kind)

    def subscribe(self) -> Subscription:
        """Return a subscription for a new page, which starts with the whole state."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        subscription.notify()
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription."""
        self._subscriptions.discard(subscription)

    def close(self) -> None:
        """End all streams."""
        for subscription in self._subscriptions:
            subscription.close()

    @property
    def _receivers(self) -> Iterable[Subscription]:
        return () if self.loading else self._subscriptions

    def _add_reconciled(self, kinds: frozenset[tuple[str, str]]) -> None:
        # Kinds are never removed: an operator may be away only for a moment.
        if new := kinds - self._reconciled:
            self._reconciled |= new
            self._summarize_again(new)

    def _encoded(self, kind: Kind, document: JsonObject) -> tuple[bytes, bytes]:
        document = self.redacted(kind, document)
        summary = summarize(
            document,
            kind,
            scalable=kind in self._scalable,
            reconciled=self.is_reconciled(kind),
        )
        return _encoder.encode(summary), _encoder.encode(document)

    def _summarize_again(self, kinds: Iterable[tuple[str, str]]) -> None:
        """Redact and summarize the objects of these kinds again."""
        chosen = set(kinds)
        existing = self.history.rewrite(
            lambda identity: (identity.kind.group, identity.kind.kind) in chosen,
            lambda kind, content: self._encoded(kind, parse_object(content)),
        )
        for uid in existing:
            for subscription in self._subscriptions:
                subscription.add_object(uid)

    def _notify(self, *, operators: bool = False, problems: bool = False) -> None:
        for subscription in self._subscriptions:
            subscription.operators |= operators
            subscription.problems |= problems
            subscription.notify()


def _with_failure(version: KeptVersion, failures: LastFailures) -> bytes:
    failure: FailureSummary | None = failures.find(version.object.about, version.object.uid)
    if failure is None:
        return version.summary
    return _encoder.encode(with_failure(_summaries.decode(version.summary), failure))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1_000_000) // 1000


def parse_object(content: bytes) -> JsonObject:
    """Decode an object."""
    return msgspec.json.decode(content)


def format_time(seconds: float) -> str:
    """Return a time as RFC 3339 with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _event(document: JsonObject) -> ObjectEvent:
    series, source = _object(document.get("series")), _object(document.get("source"))
    metadata = _object(document.get("metadata"))
    last = next(
        (
            value
            for value in (
                series.get("lastObservedTime"),
                document.get("lastTimestamp"),
                document.get("eventTime"),
                metadata.get("creationTimestamp"),
            )
            if isinstance(value, str) and value
        ),
        "",
    )
    count = series.get("count") or document.get("count") or 1
    return ObjectEvent(
        str(document.get("type") or ""),
        str(document.get("reason") or ""),
        str(document.get("message") or ""),
        count if isinstance(count, int) else 1,
        last,
        str(document.get("reportingComponent") or source.get("component") or ""),
    )


def _object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}
