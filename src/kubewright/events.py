"""Events about objects: recorded without waiting, sent in the background, aggregated and rate-limited.

`EventRecorder.record` may be called from any thread and never waits. The first Event of an `EventKey` is sent at once;
the first repeat turns it into a series at once, as client-go does, and further ones are counted: the count is updated at
most once a minute. Each object has a budget of new Events, refilled over time, as in client-go's
EventSourceObjectSpamFilter. An Event that cannot be sent is retried a few times, then dropped and counted.
"""

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec

from kubewright.api import (
    AlreadyExists,
    ApiError,
    Forbidden,
    Kind,
    KubewrightError,
    MicroTime,
    NotFound,
    names,
)
from kubewright.backoff import Backoff
from kubewright.client import Client, requests
from kubewright.metrics import Registry

EventType = Literal["Normal", "Warning"]

EVENT = Kind(group="events.k8s.io", version="v1", kind="Event", plural="events", builtin=True)

SERIES_GAP = 360.0
"""Seconds after which a repeat is a new Event and no longer counted in the old one."""
SERIES_INTERVAL = 60.0
"""Seconds between two updates of one event's count; the first repeat does not wait."""
BURST = 25
REFILL = 300.0
"""An object may have BURST new Events at once, and one more every REFILL seconds."""
MAX_PENDING = 1000
MAX_REMEMBERED = 4096
MAX_ATTEMPTS = 6
FLUSH_TIMEOUT = 5.0

_RETRY = Backoff(base=0.5, maximum=30.0, jitter=0.5)
_log = logging.getLogger("kubewright.events")


class Reference(NamedTuple):
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def to_wire(self) -> dict[str, str]:
        """Return the reference in the JSON form of an Event."""
        found = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {key: value for key, value in found.items() if value}


class EventKey(NamedTuple):
    """Two Events with equal keys are the same Event, repeated."""

    reporter: str
    regarding: Reference
    related: Reference | None
    type: EventType
    reason: str
    action: str
    note: str


class _Series(msgspec.Struct):
    """How often an Event was recorded, the count that the server has, and when the next update is due."""

    name: str
    first_at: MicroTime
    last_at: MicroTime
    recorded_at: float
    count: int = 1
    sent: int = 0
    attempts: int = 0
    due_at: float = 0.0

    @property
    def behind(self) -> bool:
        return self.count > self.sent


class _Bucket(msgspec.Struct):
    tokens: float
    at: float


class EventRecorder:
    """Record events, by default as one controller; `run` sends them."""

    def __init__(self, client: Client, *, controller: str, host: str, metrics: Registry) -> None:
        self._client = client
        self._controller = controller
        self._host = host
        self._series: OrderedDict[EventKey, _Series] = OrderedDict()
        # Events to send; each has its series. Two bounded queues: repeats that wait for their interval must not
        # block new Events.
        self._new: dict[EventKey, None] = {}
        self._repeats: dict[EventKey, None] = {}
        self._last_stamp = 0
        self._buckets: OrderedDict[Reference, _Bucket] = OrderedDict()
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        dropped = metrics.counter(
            "kubewright_events_dropped_total", "Events that were not sent, by reason", ("reason",)
        )
        self._flooded = dropped.labels(reason="rate_limit")
        self._overflowed = dropped.labels(reason="queue_full")
        self._failed = dropped.labels(reason="error")
        self._logged: set[str] = set()

    def record(
        self,
        regarding: Reference,
        type: EventType,  # noqa: A002 (the field's name)
        reason: str,
        note: str,
        *,
        action: str = "",
        related: Reference | None = None,
        reporter: str = "",
    ) -> None:
        """Record an Event; never waits, never fails, may be called from any thread."""
        signed = reporter or self._controller
        done = _within(action or reason, 128)
        event = EventKey(signed, regarding, related, type, _within(reason, 128), done, _within(note, 1024))
        if threading.get_ident() == self._thread:
            self._record(event)
            return
        try:
            self._loop.call_soon_threadsafe(self._record, event)
        except RuntimeError:
            pass  # the loop is closed: the calling thread still runs after the operator has ended

    async def run(self) -> None:
        """Send what is recorded until cancelled; then flush for a short time."""
        try:
            while True:
                await self._send_due(everything=False)
                await self._wait_until_due()
        except asyncio.CancelledError:
            try:
                async with asyncio.timeout(FLUSH_TIMEOUT):
                    await self._send_due(everything=True)
            except TimeoutError:
                self._failed.inc(len(self._new) + len(self._repeats))
            raise

    def _record(self, event: EventKey) -> None:
        now, moment = self._loop.time(), MicroTime.now()
        series = self._series.get(event)
        if series is None or now - series.recorded_at > SERIES_GAP:
            if not self._take_token(event.regarding, now):
                self._flooded.inc()
                return
            name = _event_name(event.regarding.name, self._stamp())
            series = self._series[event] = _Series(name, moment, moment, now)
            if len(self._series) > MAX_REMEMBERED:
                self._forget_oldest()
        else:
            series.count += 1
            series.last_at, series.recorded_at = moment, now
        self._series.move_to_end(event)
        waiting = self._repeats if series.sent else self._new
        if event not in waiting and len(waiting) >= MAX_PENDING:
            self._overflowed.inc()
            return
        waiting[event] = None
        self._wake.set()

    def _forget_oldest(self) -> None:
        oldest, _ = self._series.popitem(last=False)
        if oldest in self._new or oldest in self._repeats:
            self._overflowed.inc()
        self._done_with(oldest)

    def _stamp(self) -> int:
        """Return a unique, increasing timestamp in nanoseconds: two Events at the same time need two names."""
        self._last_stamp = max(time.time_ns(), self._last_stamp + 1)
        return self._last_stamp

    def _take_token(self, regarding: Reference, now: float) -> bool:
        bucket = self._buckets.setdefault(regarding, _Bucket(BURST, now))
        self._buckets.move_to_end(regarding)
        while len(self._buckets) > MAX_REMEMBERED:
            self._buckets.popitem(last=False)
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.at) / REFILL)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    async def _wait_until_due(self) -> None:
        if not self._new and not self._repeats:
            self._wake.clear()
            await self._wake.wait()
            return
        due = min(self._series[event].due_at for event in (*self._new, *self._repeats))
        self._wake.clear()
        try:
            async with asyncio.timeout_at(due):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _send_due(self, *, everything: bool) -> None:
        await self._send_each(self._new, everything=everything)
        for event in tuple(self._repeats):
            await self._send_each((event,), everything=everything)
            # An Event that is recorded in the meantime does not wait for all the counts.
            await self._send_each(self._new, everything=everything)

    async def _send_each(self, events: Iterable[EventKey], *, everything: bool) -> None:
        for event in tuple(events):
            series = self._series.get(event)
            if series is not None and (everything or series.due_at <= self._loop.time()):
                await self._send(event, series)

    async def _send(self, event: EventKey, series: _Series) -> None:
        count, started = series.count, self._loop.time()
        try:
            if series.sent:
                await self._update(event, series)
            else:
                await self._client.raw(requests.create(self._document(event, series), EVENT))
        except AlreadyExists:
            # No other client uses these names: an earlier attempt succeeded, and its response was lost or timed out.
            pass
        except NotFound:
            # Events expire; a repeat after that starts a new series. In a namespace that is gone,
            # or being deleted, Events cannot be created.
            self._forget(event)
        except KubewrightError as error:
            # A failure to send an Event must not stop the operator, whatever the error is.
            if isinstance(error, Forbidden) and error.namespace_terminating:
                self._forget(event)
            else:
                self._note_failure(event, series, error)
                series.due_at = started + _RETRY.delay(series.attempts)
                return
        # The first repeat is sent at once: users see that it happens again.
        interval = 0.0 if count == 1 else SERIES_INTERVAL
        series.sent, series.attempts, series.due_at = count, 0, started + interval
        self._done_with(event)
        if series.behind and event in self._series and len(self._repeats) < MAX_PENDING:
            self._repeats[event] = None

    def _forget(self, event: EventKey) -> None:
        self._series.pop(event, None)
        self._done_with(event)

    def _done_with(self, event: EventKey) -> None:
        self._new.pop(event, None)
        self._repeats.pop(event, None)

    async def _update(self, event: EventKey, series: _Series) -> None:
        patch = {"series": {"count": series.count, "lastObservedTime": series.last_at.to_wire()}}
        await self._client.raw(requests.patch(EVENT, series.name, _namespace(event), patch, type="merge"))

    def _note_failure(self, event: EventKey, series: _Series, error: Exception) -> None:
        series.attempts += 1
        lasting = isinstance(error, ApiError) and 400 <= error.status.code < 500 and error.status.code != 429
        if not lasting and series.attempts < MAX_ATTEMPTS:
            return
        self._failed.inc()
        self._forget(event)
        kind_of_failure = type(error).__name__
        if kind_of_failure not in self._logged:
            self._logged.add(kind_of_failure)
            _log.warning("An event could not be sent; further failures like this are only counted: %s", error)

    def _document(self, event: EventKey, series: _Series) -> dict[str, Any]:
        document: dict[str, Any] = {
            "metadata": {"name": series.name, "namespace": _namespace(event)},
            "eventTime": series.first_at.to_wire(),
            "reportingController": event.reporter,
            "reportingInstance": f"{event.reporter}-{self._host}"[:128],
            "action": event.action,
            "reason": event.reason,
            "regarding": event.regarding.to_wire(),
            "note": event.note,
            "type": event.type,
        }
        if event.related is not None:
            document["related"] = event.related.to_wire()
        if series.count > 1:
            document["series"] = {"count": series.count, "lastObservedTime": series.last_at.to_wire()}
        return document


def _namespace(event: EventKey) -> str:
    return event.regarding.namespace or "default"


def _event_name(regarding: str, stamp: int) -> str:
    """Return the object's name with a stamp, or a neutral name if that is invalid: a Role may be named `system:node`."""
    name = f"{regarding[:200]}.{stamp:x}"
    return f"event.{stamp:x}" if names.dns1123_subdomain(name) else name


def _within(text: str, limit: int) -> str:
    """Return at most `limit` bytes of a text, as servers count them; unencodable characters are replaced."""
    if text.isascii():
        return text[:limit]
    return text.encode(errors="replace")[:limit].decode(errors="ignore")
