"""What one reconcile reads, writes and reports, gathered while it runs.

This is on the path of every reconcile, so nothing is decoded, compared or copied here: objects are the bytes that the
cache and the responses hold anyway. `journal.records` makes a readable record of it when one is asked for.
"""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from kubewright.api import Kind, ObjectKey, RawObject
from kubewright.client import ApiRequest
from kubewright.guards import text_of

_OVERHEAD = 200
"""About what an entry of a list takes beside its bytes."""


class Trigger(NamedTuple):
    """A change that led to a reconcile; an event of an external source has no kind and no states."""

    kind: str
    key: ObjectKey
    type: str
    before: RawObject | None = None
    after: RawObject | None = None

    @property
    def size(self) -> int:
        """Return about how many bytes it holds."""
        return _OVERHEAD + _size(self.before) + _size(self.after)


class CachedRead(NamedTuple):
    """An object that was read from the cache; None if it was not there."""

    kind: Kind
    key: ObjectKey
    state: RawObject | None

    @property
    def size(self) -> int:
        """Return about how many bytes it holds."""
        return _OVERHEAD + _size(self.state)


class CachedList(NamedTuple):
    """Objects that were listed from the cache; `index_value` is given if an index was asked."""

    kind: Kind
    namespace: str
    labels: str
    index_value: str | None
    states: Sequence[RawObject]

    @property
    def size(self) -> int:
        """Return about how many bytes it holds."""
        return _OVERHEAD + sum(map(_size, self.states))


class RequestExchange(NamedTuple):
    """A request to the API server with its response; `error` is set if it failed, and `status` is 0 without a response."""

    request: ApiRequest
    at: float
    status: int
    body: bytes
    error: str
    message: str = ""
    """The message of the server, if it responded with an error."""

    @property
    def is_write(self) -> bool:
        """Return True unless the request only reads."""
        return self.request.method != "GET"

    @property
    def size(self) -> int:
        """Return about how many bytes it holds."""
        return _OVERHEAD + len(self.request.body) + len(self.body)


class SkippedApply(NamedTuple):
    """An apply that was not sent because nothing would change."""

    kind: Kind
    key: ObjectKey
    subresource: str

    @property
    def size(self) -> int:
        """Return about how many bytes it holds."""
        return _OVERHEAD


class PublishedEvent(NamedTuple):
    """An Event that was recorded."""

    at: float
    type: str
    reason: str
    note: str

    @property
    def size(self) -> int:
        """Return about how many bytes it holds."""
        return _OVERHEAD + len(self.note)


class LoggedLine(NamedTuple):
    """A log record."""

    at: float
    level: str
    logger: str
    message: str

    @property
    def size(self) -> int:
        """Return about how many bytes it holds."""
        return _OVERHEAD + len(self.message)


ReconcileStep = CachedRead | CachedList | RequestExchange | SkippedApply | PublishedEvent | LoggedLine


class Collected:
    """One reconcile: what caused it, its steps in order, and how it ended."""

    __slots__ = (
        "controller",
        "duration",
        "error",
        "finished",
        "key",
        "kind",
        "log",
        "number",
        "outcome",
        "repeated",
        "retry_after",
        "size",
        "started_at",
        "state",
        "steps",
        "triggers",
    )

    def __init__(
        self, controller: str, kind: Kind, key: ObjectKey, triggers: Sequence[Trigger], log: Any
    ) -> None:
        self.controller = controller
        self.kind = kind
        self.key = key
        self.triggers = triggers
        self.log = log
        """The logger of the reconcile, whose fields have its id: an id is made only when it is asked for."""
        self.started_at = time.time()
        self.state: RawObject | None = None
        """The object as the reconcile found it; None if it was gone."""
        self.steps: list[ReconcileStep] = []
        self.duration = 0.0
        self.outcome = ""
        self.error = ""
        self.retry_after: float | None = None
        """Seconds until the next reconcile that is already planned."""
        self.finished = False
        self.number = 0
        """Its place in the journal."""
        self.repeated = 0
        """How many reconciles of the same object before this one did nothing either and were dropped for it."""
        self.size = 0

    @property
    def id(self) -> str:
        """Return the reconcileID that its log records carry."""
        return self.log.fields["reconcileID"]

    @property
    def is_idle(self) -> bool:
        """Return True if it succeeded without a write, an Event or a log line."""
        if self.outcome not in ("success", "requeue_after"):
            return False
        return not any(
            isinstance(step, PublishedEvent | LoggedLine)
            or (isinstance(step, RequestExchange) and step.is_write)
            for step in self.steps
        )

    @property
    def writes(self) -> list[RequestExchange]:
        """Return the writes that were sent, in order."""
        return [step for step in self.steps if isinstance(step, RequestExchange) and step.is_write]

    def add(self, step: ReconcileStep) -> None:
        """Add a step; what a task does after the reconcile has ended does not belong to it."""
        if not self.finished:
            self.steps.append(step)

    def finish(self, outcome: str, duration: float, error: BaseException | None) -> None:
        """Note how the reconcile ended."""
        self.finished = True
        self.outcome = outcome
        self.duration = duration
        self.error = "" if error is None else f"{type(error).__name__}: {text_of(error)}"
        held = sum(step.size for step in self.steps) + sum(trigger.size for trigger in self.triggers)
        self.size = _OVERHEAD + held + _size(self.state) + len(self.error)


_current: ContextVar[Collected | None] = ContextVar("reconcile", default=None)


def current() -> Collected | None:
    """Return what the current reconcile is gathered in; None outside of a reconcile, or if nothing is gathered."""
    return _current.get()


@contextmanager
def collecting(entry: Collected | None) -> Generator[None]:
    """Gather in this entry what the block, its tasks and threads do."""
    token = _current.set(entry)
    try:
        yield
    finally:
        _current.reset(token)


def _size(state: RawObject | None) -> int:
    return 0 if state is None else min(state.stop, len(state.data)) - state.start
