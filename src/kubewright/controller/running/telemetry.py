"""Metrics, logs and traces of one controller, under controller-runtime's names.

`Instruments` are its metrics. `FieldLog` writes records with structured fields; `ReconcileLog` adds the object and a
reconcileID. `Traces` makes spans if a tracer is given.
"""

import logging
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, Self, get_args

import msgspec

from kubewright.api import ApiError, Kind, ObjectKey
from kubewright.client import ApiRequest, Client
from kubewright.controller.predicates import Cause
from kubewright.guards import text_of
from kubewright.http.client import ClientResponse
from kubewright.journal import Collected, RequestExchange, Trigger, current
from kubewright.metrics import Counter, Gauge, Histogram, Registry

RECONCILE_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0),
    *(15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
CountedOutcome = Literal["success", "error", "requeue", "requeue_after"]
"""The result of a reconcile in metrics; `requeue` is RetryLater, `requeue_after` a Result."""
OUTCOMES: tuple[CountedOutcome, ...] = get_args(CountedOutcome)
ReconcileOutcome = CountedOutcome | Literal["paused"]
"""The result in the journal; a reconcile that was not started because its object is paused is not counted."""
MAX_WRITES = 20
"""Maximum number of writes that the log line of a reconcile lists."""


class Instruments:
    """The metrics of one controller."""

    def __init__(self, registry: Registry, controller: str) -> None:
        labels = ("controller",)
        total = registry.counter(
            "controller_runtime_reconcile_total",
            "Total number of reconciliations per controller",
            ("controller", "result"),
        )
        self.outcomes: dict[CountedOutcome, Counter] = {
            outcome: total.labels(controller=controller, result=outcome) for outcome in OUTCOMES
        }
        self.errors: Counter = registry.counter(
            "controller_runtime_reconcile_errors_total",
            "Total number of reconciliation errors per controller",
            labels,
        ).labels(controller=controller)
        self.terminal_errors: Counter = registry.counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Total number of terminal reconciliation errors per controller",
            labels,
        ).labels(controller=controller)
        self.panics: Counter = registry.counter(
            "controller_runtime_reconcile_panics_total",
            "Total number of reconciliations that raised a BaseException that is no Exception, per controller",
            labels,
        ).labels(controller=controller)
        self.timeouts: Counter = registry.counter(
            "controller_runtime_reconcile_timeouts_total",
            "Total number of reconciliations that ran into their timeout, per controller",
            labels,
        ).labels(controller=controller)
        self.seconds: Histogram = registry.histogram(
            "controller_runtime_reconcile_time_seconds",
            "Length of time per reconciliation per controller",
            labels,
            RECONCILE_SECONDS,
        ).labels(controller=controller)
        self.workers: Gauge = registry.gauge(
            "controller_runtime_max_concurrent_reconciles",
            "Maximum number of concurrent reconciles per controller",
            labels,
        ).labels(controller=controller)
        self.active_workers: Gauge = registry.gauge(
            "controller_runtime_active_workers", "Number of currently used workers per controller", labels
        ).labels(controller=controller)
        self.malformed: Counter = registry.counter(
            "kubewright_malformed_objects_total",
            "Objects that do not fit their class, each state of an object once, per controller",
            labels,
        ).labels(controller=controller)
        self.paused: Gauge = registry.gauge(
            "kubewright_paused_objects", "Objects that are paused by their annotation, per controller", labels
        ).labels(controller=controller)
        self.mapping_errors: Counter = registry.counter(
            "kubewright_mapping_errors_total",
            "Changes on which a predicate or map function failed, per controller",
            labels,
        ).labels(controller=controller)
        self.applies_skipped: Counter = registry.counter(
            "kubewright_applies_skipped_total",
            "Applies that were not sent because nothing would change, per controller",
            labels,
        ).labels(controller=controller)
        self.contested_fields: Counter = registry.counter(
            "kubewright_contested_fields_total",
            "Fields that another field manager changed back again and again, per controller",
            labels,
        ).labels(controller=controller)
        self.rate_limited: Counter = registry.counter(
            "kubewright_rate_limited_total",
            "Reconciles that had to wait for the rate of their controller, per controller",
            labels,
        ).labels(controller=controller)
        self._controller = controller
        self._deferred = registry.counter(
            "kubewright_disruptions_deferred_total",
            "Disruptive writes that had to wait for a window or for a slot of the budget, per controller and reason",
            ("controller", "reason"),
        )
        self._drift = registry.counter(
            "kubewright_drift_corrections_total",
            "Applies that corrected a field which another field manager changed, per controller and kind",
            ("controller", "kind"),
        )
        self.applies_altered: Counter = registry.counter(
            "kubewright_applies_altered_total",
            "Applies whose response differs from what was applied, once for each desired state, per controller",
            labels,
        ).labels(controller=controller)

    def disruptions_deferred(self, reason: Literal["window", "budget"]) -> Counter:
        """Return the counter of disruptive writes that had to wait."""
        return self._deferred.labels(controller=self._controller, reason=reason)

    def drift(self, kind: str) -> Counter:
        """Return the counter of corrections of a kind."""
        return self._drift.labels(controller=self._controller, kind=kind)


FIELDS = "fields"
"""The attribute of a log record that holds its structured fields; `name` itself is taken by logging."""
RAISED = "raised"
"""The attribute of a log record that holds the exception that it is about, also where no traceback is to be shown."""


class FieldLog(logging.LoggerAdapter[logging.Logger]):
    """A logger that adds `fields` to each record, together with the fields of the call."""

    def __init__(self, logger: logging.Logger, fields: Mapping[str, Any]) -> None:
        super().__init__(logger)
        self._fields = fields

    @property
    def fields(self) -> Mapping[str, Any]:
        """Return the fields that each record carries."""
        return self._fields

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Put the fields of the adapter and of the call into the record."""
        given: Mapping[str, Any] = kwargs.get("extra") or {}
        fields: dict[str, Any] = {**self.fields, **given}
        raised = fields.pop(RAISED, None)
        kwargs["extra"] = {FIELDS: fields, RAISED: raised}
        return msg, kwargs


class ReconcileLog(FieldLog):
    """The logger of one reconcile; its reconcileID is created on first use, because most reconciles log nothing."""

    def __init__(self, log: FieldLog, kind: Kind, key: ObjectKey) -> None:
        super().__init__(log.logger, log.fields)
        self._kind = kind
        self._key = key
        self._complete = False

    @property
    def fields(self) -> Mapping[str, Any]:
        """Return the fields that each record carries."""
        if not self._complete:
            namespace, name = self._key
            self._complete = True
            self._fields = {
                **self._fields,
                self._kind.kind: {"namespace": namespace, "name": name},
                "namespace": namespace,
                "name": name,
                "reconcileID": str(uuid.uuid4()),
            }
        return self._fields


def controller_log(name: str, kind: Kind) -> FieldLog:
    """Return the logger of a controller, with controller-runtime's keys."""
    fields = {"controller": name, "controllerGroup": kind.group, "controllerKind": kind.kind}
    return FieldLog(logging.getLogger("kubewright.controller"), fields)


SpanAttributes = Mapping[str, str | Sequence[str]]


class Span(Protocol):
    """The part of an OpenTelemetry span that is used."""

    def get_span_context(self) -> Any:
        """Return what identifies the span."""
        ...

    def add_link(self, context: Any, attributes: Any = None) -> None:
        """Link the span to another one."""
        ...

    def end(self, end_time: int | None = None) -> None:
        """End the span, at a time in nanoseconds or now, and export it: a span that is not ended is not exported."""
        ...


class Tracer(Protocol):
    """The part of an OpenTelemetry tracer that is used: spans that are current for the length of a block."""

    def start_as_current_span(
        self, name: str, *, attributes: Any = None, end_on_exit: bool = True
    ) -> AbstractContextManager[Any]:
        """Start a child of the current span; an exception of the block is recorded with it."""
        ...


_NO_SPAN: AbstractContextManager[Any] = nullcontext()
MAX_LINKED_WRITES = 10_000
"""Latest writes whose spans are remembered, for links from the reconciles that they cause."""


class Traces:
    """Create a span for each reconcile that does something and, below it, for each write.

    The span of a reconcile is linked to the write that caused it, also if another controller of this process sent it. The
    watch event of a write may arrive before its response, which contains the written version: a span with an unknown
    cause is exported when the writes that were in flight have their responses. The span of a reconcile that did nothing
    is never ended, so it is not exported.
    """

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer
        self._writes: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._in_flight: set[_TracedWrite] = set()
        self._unlinked: list[_UnlinkedSpan] = []

    @property
    def enabled(self) -> bool:
        """Return True if spans are created."""
        return self._tracer is not None

    def reconcile(self, log: FieldLog, causes: Sequence[Cause]) -> AbstractContextManager[Any]:
        """Return the span of a reconcile, with the fields of its log records, and the cause of the reconcile.

        `end_reconcile` ends it, after the block.
        """
        tracer = self._tracer
        if tracer is None:
            return _NO_SPAN
        attributes: SpanAttributes = {
            name: value for name, value in log.fields.items() if isinstance(value, str)
        }
        shown = {**attributes, "causes": [str(cause) for cause in causes]}
        return tracer.start_as_current_span("reconcile", attributes=shown, end_on_exit=False)

    def end_reconcile(self, span: Span, entry: Collected) -> None:
        """Link the span of a reconcile to the writes that caused it, and end it; or drop it if nothing was done."""
        if entry.is_idle:
            return
        unknown = self._link(span, entry.triggers)
        if unknown and self._in_flight:
            self._unlinked.append(_UnlinkedSpan(span, unknown, set(self._in_flight), time.time_ns()))
        else:
            span.end()

    def _link(self, span: Span, triggers: Iterable[Trigger]) -> list[Trigger]:
        """Link a span to the writes among its triggers; return the triggers that no known write explains."""
        unknown: list[Trigger] = []
        for trigger in triggers:
            state = trigger.after or trigger.before
            if state is None:
                continue
            version = "" if trigger.after is None else state.meta.resource_version
            if (context := self._writes.get((state.meta.uid, version))) is not None:
                cause = {"kind": trigger.kind, "namespace": trigger.key.namespace, "name": trigger.key.name}
                span.add_link(context, attributes={**cause, "type": trigger.type})
            else:
                unknown.append(trigger)
        return unknown

    def observed(self, client: Client) -> Client:
        """Return the client with its requests in the journal, and with a span, named after its verb, around each write."""
        return client.observed(self._observer)

    def _observer(self, request: ApiRequest) -> "_JournaledRequest | _TracedWrite | None":
        entry = current()
        journaled = None if entry is None else _JournaledRequest(request, entry, time.time())
        if self._tracer is None or request.method == "GET":
            return journaled
        about = {"resource": request.resource, "namespace": request.namespace, "name": request.name}
        span = self._tracer.start_as_current_span(request.verb, attributes=about)
        return _TracedWrite(request, span, self, journaled)

    def begin_write(self, write: "_TracedWrite") -> None:
        """Record that a write is in flight."""
        self._in_flight.add(write)

    def end_write(self, write: "_TracedWrite") -> None:
        """Export the spans of reconciles that waited for the response to this write."""
        self._in_flight.discard(write)
        waiting: list[_UnlinkedSpan] = []
        for unlinked in self._unlinked:
            unlinked.writes.discard(write)
            unlinked.triggers = self._link(unlinked.span, unlinked.triggers)
            if unlinked.triggers and unlinked.writes:
                waiting.append(unlinked)
            else:
                unlinked.span.end(unlinked.ended_at)
        self._unlinked = waiting

    def remember(self, span: Span, request: ApiRequest, response: ClientResponse) -> None:
        """Remember the span of a write by the resourceVersion that it created; a deletion creates none."""
        try:
            written = _written.decode(response.body)
        except msgspec.MsgspecError:
            return
        uid = written.metadata.uid or written.details.uid
        if uid:
            version = "" if request.method == "DELETE" else written.metadata.resource_version
            self._writes[uid, version] = span.get_span_context()
            if len(self._writes) > MAX_LINKED_WRITES:
                self._writes.popitem(last=False)


@dataclass(slots=True)
class _UnlinkedSpan:
    """The span of a reconcile that has ended, with the causes that a write in flight may explain."""

    span: Span
    triggers: list[Trigger]
    writes: "set[_TracedWrite]"
    ended_at: int


class _WrittenMetadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Written(msgspec.Struct):
    """The identity of the object in the response to a write: the object, or the Status of a deletion."""

    metadata: _WrittenMetadata = msgspec.field(default_factory=_WrittenMetadata)
    details: _WrittenMetadata = msgspec.field(default_factory=_WrittenMetadata)


_written = msgspec.json.Decoder(_Written)


class _JournaledRequest(msgspec.Struct, eq=False, gc=False):
    """One request of a reconcile, which becomes an entry in its journal."""

    request: ApiRequest
    entry: Collected
    at: float
    response: ClientResponse | None = None

    def __enter__(self) -> Self:
        return self

    def responded(self, response: ClientResponse) -> None:
        """Record the response."""
        self.response = response

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        response = self.response
        status, body = (0, b"") if response is None else (response.status, response.body)
        text = message = ""
        if error is not None:
            text = text_of(error)
            if isinstance(error, ApiError):
                status, message = error.status.code, error.status.message
        exchange = RequestExchange(self.request, self.at, status, body, text, message)
        if self.request.method == "GET":
            self.entry.add(exchange)
        else:
            self.entry.add_work(exchange)


class _TracedWrite:
    """One write with its span, and its entry in the journal if there is one."""

    def __init__(
        self,
        request: ApiRequest,
        span: AbstractContextManager[Any],
        traces: Traces,
        journaled: _JournaledRequest | None,
    ) -> None:
        self._request = request
        self._span = span
        self._traces = traces
        self._journaled = journaled
        self._entered: Any = None

    def __enter__(self) -> Self:
        self._entered = self._span.__enter__()
        self._traces.begin_write(self)
        return self

    def responded(self, response: ClientResponse) -> None:
        """Record the response."""
        self._traces.remember(self._entered, self._request, response)
        if self._journaled is not None:
            self._journaled.responded(response)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> object:
        if self._journaled is not None:
            self._journaled.__exit__(kind, error, trace)
        self._traces.end_write(self)
        return self._span.__exit__(kind, error, trace)


NO_TRACES = Traces()
