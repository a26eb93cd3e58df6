"""Metrics, logs and traces of one controller, under controller-runtime's names.

`Instruments` are its metrics. `FieldLog` writes records with structured fields; `ReconcileLog` adds the object and a
reconcileID. `Traces` makes spans if a tracer is given.
"""

import logging
import time
import uuid
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Literal, Protocol, Self, get_args

from kubewright.api import ApiError, Kind, ObjectKey
from kubewright.client import ApiRequest, Client
from kubewright.controller.predicates import Cause
from kubewright.guards import text_of
from kubewright.http.client import ClientResponse
from kubewright.journal import Collected, RequestExchange, current
from kubewright.metrics import Counter, Gauge, Histogram, Registry

RECONCILE_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0),
    *(15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
ReconcileOutcome = Literal["success", "error", "requeue", "requeue_after"]
"""The result of a reconcile in metrics; `requeue` is RetryLater, `requeue_after` a Result."""
OUTCOMES: tuple[ReconcileOutcome, ...] = get_args(ReconcileOutcome)
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
        self.outcomes: dict[ReconcileOutcome, Counter] = {
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
        self._controller = controller
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

    def drift(self, kind: str) -> Counter:
        """Return the counter of corrections of a kind."""
        return self._drift.labels(controller=self._controller, kind=kind)


FIELDS = "fields"
"""The attribute of a log record that holds its structured fields; `name` itself is taken by logging."""
RAISED = "raised"
"""The attribute of a log record that holds the exception that it is about, also where no traceback is to be shown."""


class FieldLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records carry `fields`; fields given with a call are added to its own."""

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
    """The logger of one reconcile; its reconcileID is made on first use: most reconciles log nothing."""

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


class Tracer(Protocol):
    """The part of an OpenTelemetry tracer that is used: spans that are current for the length of a block."""

    def start_as_current_span(self, name: str, *, attributes: Any = None) -> AbstractContextManager[Any]:
        """Begin a span below the current one; what the block raises is recorded with it."""
        ...


_NO_SPAN: AbstractContextManager[Any] = nullcontext()


class Traces:
    """Create a span for each reconcile and, below it, for each write."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer

    def reconcile(self, log: FieldLog, causes: Sequence[Cause]) -> AbstractContextManager[Any]:
        """Return the span of a reconcile, with the fields of its log records, and the cause of the reconcile."""
        tracer = self._tracer
        if tracer is None:
            return _NO_SPAN
        attributes: SpanAttributes = {
            name: value for name, value in log.fields.items() if isinstance(value, str)
        }
        shown = {**attributes, "causes": [str(cause) for cause in causes]}
        return tracer.start_as_current_span("reconcile", attributes=shown)

    def observed(self, client: Client) -> Client:
        """Return the client with its requests in the journal, and with a span, named after its verb, around each write."""
        return client.observed(self._observer)

    def _observer(self, request: ApiRequest) -> "_ObservedRequest":
        span = _NO_SPAN
        if self._tracer is not None and request.method != "GET":
            about = {"resource": request.resource, "namespace": request.namespace, "name": request.name}
            span = self._tracer.start_as_current_span(request.verb, attributes=about)
        return _ObservedRequest(request, span, current())


class _ObservedRequest:
    """One request: its span, and its entry in the journal."""

    __slots__ = ("_at", "_entry", "_request", "_response", "_span")

    def __init__(
        self, request: ApiRequest, span: AbstractContextManager[Any], entry: Collected | None
    ) -> None:
        self._request = request
        self._span = span
        self._entry = entry
        self._at = time.time()
        self._response: ClientResponse | None = None

    def __enter__(self) -> Self:
        self._span.__enter__()
        return self

    def responded(self, response: ClientResponse) -> None:
        """Note the response."""
        self._response = response

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> object:
        if self._entry is not None:
            response = self._response
            status, body = (0, b"") if response is None else (response.status, response.body)
            text, message = "" if error is None else text_of(error), ""
            if isinstance(error, ApiError):
                status, message = error.status.code, error.status.message
            add = self._entry.add if self._request.method == "GET" else self._entry.add_work
            add(RequestExchange(self._request, self._at, status, body, text, message))
        return self._span.__exit__(kind, error, trace)


NO_TRACES = Traces()
