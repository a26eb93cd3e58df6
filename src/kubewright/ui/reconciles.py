"""Summaries of reconciles for the page, and a history of the latest reconciles within a memory limit."""

import zlib
from collections import OrderedDict
from datetime import datetime

import msgspec

from kubewright.journal import ReconcileRecord

DEFAULT_LIMIT = 32 * 1024 * 1024
"""Maximum size of kept reconciles in bytes."""
MAX_SHOWN_CHANGES = 3
MAX_LAST = 50_000
"""Maximum number of objects whose last reconciles are remembered."""
_OVERHEAD = 1000
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

_encoder = msgspec.json.Encoder()


class CauseSummary(msgspec.Struct, frozen=True, rename="camel"):
    """A cause of a reconcile, with the paths of the first changed fields."""

    kind: str
    namespace: str
    name: str
    type: str
    changes: list[str]


class WriteSummary(msgspec.Struct, frozen=True, rename="camel"):
    """A write, and how many fields it changed."""

    verb: str
    resource: str
    namespace: str
    name: str
    status: int
    error: str
    created: bool
    changes: int


class ReconcileSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One reconcile in the timeline; `replaces` is the id of an earlier reconcile without effects that it repeats."""

    operator: str
    id: str
    number: int
    controller: str
    group: str
    kind: str
    namespace: str
    name: str
    uid: str
    started_at: datetime
    duration: float
    outcome: str
    error: str
    retry_at: datetime | None
    repeated: int
    causes: list[CauseSummary]
    writes: list[WriteSummary]
    skipped_applies: int
    events: int
    logs: int
    log_level: str
    previous_outcome: str
    """The outcome of the previous reconcile of the same object by the same controller; empty if unknown."""
    replaces: str | msgspec.UnsetType = msgspec.UNSET


def summarize_reconcile(
    operator: str, record: ReconcileRecord, *, previous: ReconcileSummary | None = None, replaces: str = ""
) -> ReconcileSummary:
    """Return what the timeline shows of a reconcile."""
    levels = [_LEVELS.index(line.level) for line in record.log if line.level in _LEVELS]
    return ReconcileSummary(
        operator=operator,
        id=record.id,
        number=record.number,
        controller=record.controller,
        group=record.group,
        kind=record.kind,
        namespace=record.namespace,
        name=record.name,
        uid=record.uid,
        started_at=record.started_at,
        duration=record.duration,
        outcome=record.outcome,
        error=record.error,
        retry_at=record.retry_at,
        repeated=record.repeated,
        causes=[
            CauseSummary(
                cause.kind,
                cause.namespace,
                cause.name,
                cause.type,
                [change.path for change in cause.changes[:MAX_SHOWN_CHANGES]],
            )
            for cause in record.causes
        ],
        writes=[
            WriteSummary(
                write.verb,
                write.resource,
                write.namespace,
                write.name,
                write.status,
                write.error,
                write.created,
                len(write.changes) + write.more_changes,
            )
            for write in record.writes
        ],
        skipped_applies=record.skipped_applies,
        events=len(record.events),
        logs=len(record.log),
        log_level=_LEVELS[max(levels)] if levels else "",
        previous_outcome="" if previous is None else previous.outcome,
        replaces=replaces or msgspec.UNSET,
    )


class KeptReconcile(msgspec.Struct):
    """A reconcile: its summary, and its whole record, compressed."""

    summary: ReconcileSummary
    encoded: bytes
    """The encoded summary."""
    packed: bytes

    @property
    def record(self) -> bytes:
        """Return the encoded ReconcileRecord."""
        return zlib.decompress(self.packed)

    @property
    def size(self) -> int:
        """Return the approximate memory in bytes."""
        return len(self.encoded) + len(self.packed) + _OVERHEAD


class ReconcileHistory:
    """Keep the latest reconciles of all operators within a limit of bytes."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.dropped: int = 0
        """How many were dropped to make room for newer ones."""
        self.size: int = 0
        self._limit = limit
        self._kept: OrderedDict[tuple[str, str], KeptReconcile] = OrderedDict()
        self._last: dict[tuple[str, ...], str] = {}
        """The id of the latest reconcile of each object by each controller."""

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, operator: str, record: ReconcileRecord) -> KeptReconcile | None:
        """Keep a reconcile; return None if it is known already."""
        if (operator, record.id) in self._kept:
            return None
        about = (operator, record.controller, record.group, record.kind, record.namespace, record.name)
        last = self._kept.get((operator, self._last.get(about, "")))
        previous = None if last is None else last.summary
        # A reconcile without effects is replaced by its repetition; reconciles in between may be missing here.
        replaces = previous.id if record.repeated and previous is not None and _is_idle(previous) else ""
        if replaces:
            self._remove((operator, replaces))
        self._last[about] = record.id
        summary = summarize_reconcile(operator, record, previous=previous, replaces=replaces)
        kept = KeptReconcile(summary, _encoder.encode(summary), zlib.compress(_encoder.encode(record), 1))
        self._kept[operator, record.id] = kept
        self.size += kept.size
        while self.size > self._limit and len(self._kept) > 1:
            self._remove(next(iter(self._kept)))
            self.dropped += 1
        return kept

    def get(self, operator: str, reconcile: str) -> KeptReconcile | None:
        """Return one reconcile."""
        return self._kept.get((operator, reconcile))

    def all(self) -> list[KeptReconcile]:
        """Return all kept reconciles, the oldest first."""
        return list(self._kept.values())

    def _remove(self, key: tuple[str, str]) -> None:
        kept = self._kept.pop(key, None)
        if kept is None:
            return
        self.size -= kept.size
        found = kept.summary
        about = (found.operator, found.controller, found.group, found.kind, found.namespace, found.name)
        if self._last.get(about) == key[1]:
            del self._last[about]


class FailureSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A failure of the last reconcile of an object; `outcome` is `error`, or `requeue` after a RetryLater."""

    operator: str
    id: str
    controller: str
    outcome: str
    error: str
    failures: int
    """How many of the known reconciles failed in a row."""
    retry_at: datetime | None


class _LastReconcile(msgspec.Struct, frozen=True):
    uid: str
    started_at: datetime
    failure: FailureSummary | None


ObjectName = tuple[str, str, str, str]
"""Group, kind, namespace and name."""


class LastFailures:
    """Remember for each object whether its last reconcile by each controller failed.

    The replicas of an operator have the same controllers, and their journals are read in any order, so the reconcile
    that started last counts.
    """

    def __init__(self, limit: int = MAX_LAST) -> None:
        self._limit = limit
        self._last: OrderedDict[ObjectName, dict[str, _LastReconcile]] = OrderedDict()

    def add(self, reconcile: ReconcileSummary) -> bool:
        """Add a reconcile; return True if it failed, or if the previous one had failed."""
        about = (reconcile.group, reconcile.kind, reconcile.namespace, reconcile.name)
        controllers = self._last.setdefault(about, {})
        self._last.move_to_end(about)
        before = controllers.get(reconcile.controller)
        if before is not None and before.started_at > reconcile.started_at:
            return False
        failed_before = None if before is None or before.uid != reconcile.uid else before.failure
        failure = None
        if reconcile.error and reconcile.outcome in ("error", "requeue"):
            failure = FailureSummary(
                operator=reconcile.operator,
                id=reconcile.id,
                controller=reconcile.controller,
                outcome=reconcile.outcome,
                error=reconcile.error,
                failures=1 + (0 if failed_before is None else failed_before.failures),
                retry_at=reconcile.retry_at,
            )
        controllers[reconcile.controller] = _LastReconcile(reconcile.uid, reconcile.started_at, failure)
        if len(self._last) > self._limit:
            self._last.popitem(last=False)
        return failure is not None or (before is not None and before.failure is not None)

    def find(self, about: ObjectName, uid: str) -> FailureSummary | None:
        """Return the failure of an object, preferably an error to a RetryLater; None if its last reconciles succeeded."""
        found = [
            last.failure
            for last in self._last.get(about, {}).values()
            if last.failure is not None and last.uid == uid
        ]
        return min(found, key=lambda failure: failure.outcome != "error", default=None)

    def forget(self, about: ObjectName, uid: str) -> None:
        """Forget an object that was deleted, but not another one of the same name."""
        controllers = self._last.get(about)
        if controllers is None:
            return
        for name in [name for name, last in controllers.items() if last.uid in ("", uid)]:
            del controllers[name]
        if not controllers:
            del self._last[about]


def _is_idle(summary: ReconcileSummary) -> bool:
    return not (summary.writes or summary.events or summary.logs or summary.error)
