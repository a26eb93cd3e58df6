"""Spans of what a controller does, for a tracer that is handed in; without one nothing is made."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from kubewright.client import Client, Request
from kubewright.controller.change import Cause
from kubewright.controller.running.reporting import FieldLog

Attributes = Mapping[str, str | Sequence[str]]


class Tracer(Protocol):
    """What is used of an OpenTelemetry tracer: spans that are current for the length of a block."""

    def start_as_current_span(self, name: str, *, attributes: Any = None) -> AbstractContextManager[Any]:
        """Begin a span below the current one; what the block raises is recorded with it."""
        ...


_NO_SPAN: AbstractContextManager[Any] = nullcontext()


class Traces:
    """Make a span of each reconcile and, below it, of each write."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer

    def reconcile(self, log: FieldLog, causes: Sequence[Cause]) -> AbstractContextManager[Any]:
        """Return the span of a reconcile; it carries what its log lines do, and what led to it."""
        tracer = self._tracer
        if tracer is None:
            return _NO_SPAN
        attributes: Attributes = {name: value for name, value in log.fields.items() if isinstance(value, str)}
        told = {**attributes, "causes": [str(cause) for cause in causes]}
        return tracer.start_as_current_span("reconcile", attributes=told)

    def of_writes(self, client: Client) -> Client:
        """Return the client with a span, named after its verb, around each of its writes."""
        tracer = self._tracer
        if tracer is None:
            return client

        def span(request: Request) -> AbstractContextManager[Any]:
            about = {"resource": request.resource, "namespace": request.namespace, "name": request.name}
            return tracer.start_as_current_span(request.verb, attributes=about)

        return client.traced(span)


NO_TRACES = Traces()
