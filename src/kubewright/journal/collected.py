"""What one reconcile reads, writes and reports, gathered while it runs.

This is on the path of every reconcile, so nothing is decoded, compared or copied here: objects are the bytes that the
cache and the responses hold anyway. `journal.records` creates a readable record from it when one is requested.
"""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

import msgspec

from kubewright.api import Kind, ObjectKey, RawObject
from kubewright.client import ApiRequest
from kubewright.guards import text_of

_OVERHEAD = 200
"""About what an entry of a list takes beside its bytes."""


class Trigger(msgspec.Struct, frozen=True, gc=False):
    """A change that led to a reconcile; an event of an external source has no kind and no states."""

    kind: str
    key: ObjectKey
    type: str
    before: RawObject | None = None
    after: RawObject | None = None


class CachedRead(msgspec.Struct, frozen=True, gc=False):
    """An object that was read from the cache; None if it was not there."""

    kind: Kind
    key: ObjectKey
    state: RawObject | None


class CachedList(msgspec.Struct, frozen=True, gc=False):
    """Objects that were listed from the cache; `index_value` is given if an index was asked."""

    kind: Kind
    namespace: str
    labels: str
    index_value: str | None
    states: Sequence[RawObject]


class RequestExchange(msgspec.Struct, frozen=True, gc=False):
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


class PublishedEvent(msgspec.Struct, frozen=True, gc=False):
    """An Event that was recorded."""

    at: float
    type: str
    reason: str
    note: str


class LoggedLine(msgspec.Struct, frozen=True, gc=False):
    """A log record."""

    at: float
    level: str
    logger: str
    message: str


class ExternalCall(msgspec.Struct, frozen=True, gc=False):
    """A call of an external system that `ctx.record` made; arguments and answer are JSON, since they may be changed later.

    `missing` says why the answer is not recorded; a function that `ctx.run_sync` ran has neither. The paths are those
    of sensitive values.
    """

    at: float
    function: str
    arguments: bytes = b"{}"
    answer: bytes = b"null"
    error: str = ""
    error_type: str = ""
    missing: str = ""
    sensitive_arguments: tuple[tuple[str, ...], ...] = ()
    sensitive_answer: tuple[tuple[str, ...], ...] = ()


ReconcileStep = CachedRead | CachedList | RequestExchange | PublishedEvent | LoggedLine | ExternalCall


class Collected(msgspec.Struct, eq=False, gc=False):
    """One reconcile: what caused it, its steps in order, and how it ended.

    Thousands are kept, which the garbage collector need not follow: nothing that one refers to refers back to it.
    """

    controller: str
    kind: Kind
    key: ObjectKey
    triggers: Sequence[Trigger]
    log: Any
    """The logger of the reconcile, whose fields have its id: an id is created only when it is requested."""
    # Not time.time itself: a simulation replaces that attribute of the module.
    started_at: float = msgspec.field(default_factory=lambda: time.time())  # noqa: PLW0108
    steps: list[ReconcileStep] = []
    state: RawObject | None = None
    """The object as the reconcile found it; None if it was gone."""
    worked: bool = False
    """True if it sent a write, recorded an Event or logged a line."""
    skipped_applies: int = 0
    """How many applies were not sent because nothing would change."""
    duration: float = 0.0
    outcome: str = ""
    error: str = ""
    retry_after: float | None = None
    """Seconds until the next reconcile that is already planned."""
    finished: bool = False
    number: int = 0
    """Its place in the journal."""
    repeated: int = 0
    """How many reconciles of the same object before this one did nothing either and were dropped for it."""
    size: int = 0
    """About how many bytes it holds."""

    @property
    def id(self) -> str:
        """Return the reconcileID that its log records carry."""
        return self.log.fields["reconcileID"]

    @property
    def is_idle(self) -> bool:
        """Return True if it succeeded without a write, an Event or a log line."""
        return not self.worked and not self.error

    @property
    def writes(self) -> list[RequestExchange]:
        """Return the writes that were sent, in order."""
        return [step for step in self.steps if isinstance(step, RequestExchange) and step.is_write]

    def add(self, step: ReconcileStep) -> None:
        """Add a step that changes nothing; what a task does after the reconcile has ended does not belong to it."""
        if not self.finished:
            self.steps.append(step)

    def add_work(self, step: ReconcileStep) -> None:
        """Add a write, an Event or a log line."""
        if not self.finished:
            self.worked = True
            self.steps.append(step)

    def finish(self, outcome: str, duration: float, error: BaseException | None) -> None:
        """Note how the reconcile ended."""
        self.finished = True
        self.outcome = outcome
        self.duration = duration
        if error is not None:
            self.error = f"{type(error).__name__}: {text_of(error)}"
        self.size = _size(self)


_current: ContextVar[Collected | None] = ContextVar("reconcile", default=None)

current: Callable[[], Collected | None] = _current.get
"""Return what the current reconcile is gathered in; None outside of a reconcile, or if nothing is gathered."""


@contextmanager
def collecting(entry: Collected | None) -> Generator[None]:
    """Gather in this entry what the block, its tasks and threads do."""
    token = begin_collecting(entry)
    try:
        yield
    finally:
        end_collecting(token)


def begin_collecting(entry: Collected | None) -> Token[Collected | None]:
    """Gather in this entry until `end_collecting`: for the path of each reconcile, where a generator costs too much."""
    return _current.set(entry)


def end_collecting(token: Token[Collected | None]) -> None:
    """End what `begin_collecting` began."""
    _current.reset(token)


def _size(entry: Collected) -> int:
    """Return about how many bytes an entry holds."""
    size = _OVERHEAD * (1 + len(entry.steps))
    for step in entry.steps:
        if isinstance(step, CachedRead):
            if step.state is not None:
                size += len(step.state.data)
        elif isinstance(step, RequestExchange):
            size += len(step.request.body) + len(step.body)
        elif isinstance(step, CachedList):
            size += sum(len(state.data) for state in step.states)
        elif isinstance(step, PublishedEvent):
            size += len(step.note)
        elif isinstance(step, LoggedLine):
            size += len(step.message)
        else:
            size += len(step.arguments) + len(step.answer) + len(step.error)
    for trigger in entry.triggers:
        if trigger.before is not None:
            size += len(trigger.before.data)
        if trigger.after is not None:
            size += len(trigger.after.data)
    if entry.state is not None:
        size += len(entry.state.data)
    return size + len(entry.error)
