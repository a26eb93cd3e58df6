"""The worker loop of one controller: changes become keys, keys become reconciles.

Runner.enqueue(keys)    a change of its kind, of a child or of a watched object, mapped to keys (never waits)
WorkQueue.add(key)      queued once per key, however often it is added
|| Runner._work         takes keys, one at a time per worker, never the same key twice at once
Runner._reconcile(item) -> Reconciliation.reconcile(key) -> the author's function; then forget, delay or retry
"""

import asyncio
import logging
import random
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Coroutine,
    Hashable,
    Iterable,
    Sequence,
)
from contextlib import AsyncExitStack, aclosing
from datetime import timedelta
from functools import partial
from typing import Any, Generic, TypeVar, cast

import msgspec

from kubewright.api import (
    DecodeError,
    Forbidden,
    Kind,
    KubewrightError,
    ObjectKey,
    PartialMeta,
    RawObject,
    kind_of,
    leaves,
)
from kubewright.api.scoping import combined_selector
from kubewright.backoff import Backoff
from kubewright.cache import Index, Informer, StoreChange
from kubewright.controller.declaration import Controller, Result
from kubewright.controller.errors import ChildRecreateBackoff, ContestedField
from kubewright.controller.permissions import Permissions
from kubewright.controller.predicates import Cause
from kubewright.controller.running.context import Services, WorkerThreads
from kubewright.controller.running.dependencies import RuntimeDependencies
from kubewright.controller.running.disruption import DisruptionControl
from kubewright.controller.running.failures import FailureLog, expected_delay, shown_delay
from kubewright.controller.running.own_writes import OwnChanges
from kubewright.controller.running.pausing import PauseControl, Paused
from kubewright.controller.running.reading import AnyInformerSet, CacheReader, InformerSet
from kubewright.controller.running.reconciliation import (
    MalformedObject,
    Reconciliation,
    is_terminal,
)
from kubewright.controller.running.telemetry import (
    MAX_WRITES,
    FieldLog,
    Instruments,
    ReconcileOutcome,
    controller_log,
)
from kubewright.controller.running.writer import Writer
from kubewright.controller.watches import ReportFailure, Source, checked_keys, passes
from kubewright.election import NotLeading
from kubewright.guards import attempt, must_propagate, text_of
from kubewright.journal import Collected, Trigger, begin_collecting, end_collecting
from kubewright.rates import GroupBy
from kubewright.workqueue import LOW_PRIORITY, QueueItem, QueueShutDown, QueueStatistics, WorkQueue

T = TypeVar("T")

Requests = Callable[[StoreChange, ReportFailure], Iterable[ObjectKey]]
"""Maps a change to the keys to reconcile."""

JITTER = 0.1
MAX_CAUSES = 5
MAX_SOURCE_DELAY = 30.0
"""Maximum backoff in seconds before a source is opened again."""


class RunnerStatistics(msgspec.Struct, frozen=True):
    """Counts of one controller's reconciles, and of its queue."""

    controller: str
    queue: QueueStatistics
    outcomes: dict[str, int]
    threads: int


class Runner(Generic[T]):
    """Run one controller: `subscribe`, `wait_synced`, then `run` until `stop`."""

    def __init__(self, controller: Controller[T], dependencies: RuntimeDependencies) -> None:
        self.controller = controller
        self._kind = kind_of(controller.kind)
        self._dependencies = dependencies
        self._log = controller_log(controller.name, self._kind)
        self._instruments = Instruments(dependencies.metrics, controller.name)
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            backoff=controller.options.backoff,
            name=controller.name,
            metrics=dependencies.metrics,
            fair_by=self._group_function("fair_by", controller.options.fair_by),
        )
        rate = controller.options.rate
        self._rate_group = self._group_function("rate.by", None if rate is None else rate.by)
        self._rate_slots: dict[ObjectKey, float] = {}
        """When keys that wait for the rate may be reconciled."""
        self._triggers: dict[ObjectKey, dict[Cause, Trigger]] = {}
        """The causes of the next reconcile of each key."""
        self._awaited: dict[ObjectKey, int] | None = {}
        """Keys with their priorities before `run`; deleted objects are removed, as a standby replica may wait for weeks."""
        self._awaited_deletions: dict[str, set[ObjectKey]] = {}
        """Keys to reconcile when the object with this uid is deleted, regardless of predicates and maps."""
        self._failures = FailureLog()
        self._own_changes = OwnChanges()
        self._threads = WorkerThreads(controller.name, controller.options.threads)
        cache, namespaces = dependencies.cache, dependencies.namespaces
        shard = dependencies.shard
        self._is_part = shard is not None or bool(dependencies.selector)
        self._followed = followed = dependencies.followed
        labels = combined_selector(controller.selector.labels, dependencies.selector)
        self._own: AnyInformerSet = InformerSet(
            cache,
            controller.kind,
            msgspec.structs.replace(controller.selector, labels=labels),
            namespaces,
            shard=None if shard is None else shard.filter_of(self._kind),
            followed=followed,
        )
        self._children: list[AnyInformerSet] = [
            InformerSet(
                cache,
                child.kind,
                child.selector,
                namespaces,
                metadata_only=child.metadata_only,
                shard=None if shard is None else shard.filter_of(kind_of(child.kind), child, self._kind),
                followed=followed,
            )
            for child in controller.owns
        ]
        self._watched: list[AnyInformerSet] = [
            InformerSet(
                cache,
                watched.kind,
                watched.selector,
                namespaces,
                metadata_only=watched.metadata_only,
                optional=watched.optional,
                followed=followed,
            )
            for watched in controller.watches
        ]
        reader = CacheReader(
            dependencies.client, Permissions(controller), self._informer_sets, namespaces, followed
        )
        services = Services(
            controller=controller,
            dependencies=dependencies,
            informer_sets=self._informer_sets,
            reader=reader,
            writer=Writer(
                controller,
                dependencies,
                reader,
                self._instruments,
                self._wake_on_deletion,
                lambda key, after: self.queue.add(key, after=after),
            ),
            threads=self._threads,
            disruption=DisruptionControl(controller, dependencies, self._instruments),
        )
        self._pausing = PauseControl(
            controller,
            dependencies,
            reader,
            self._instruments,
            lambda key: self.enqueue((key,), Cause(self._kind.kind, key, "requested")),
        )
        self._reconciliation: Reconciliation[T] = Reconciliation(
            services, self._own, self._log, self._report_malformed, self._pausing
        )

    def _group_function(self, option: str, by: GroupBy) -> Callable[[ObjectKey], Hashable] | None:
        """Return the function that groups keys; if the author's function fails, the key is grouped by its namespace."""
        if by is None:
            return None
        if by == "namespace":
            return lambda key: key.namespace
        reported = False

        def group_of(key: ObjectKey) -> Hashable:
            group = by(key)
            hash(group)
            return group

        def failed(key: ObjectKey, error: BaseException) -> Hashable:
            nonlocal reported
            self._instruments.mapping_errors.inc()
            if not reported:
                reported = True
                self._log.error(
                    "%s failed on %s, which is queued with its namespace: %s",
                    option,
                    key,
                    error,
                    exc_info=error,
                )
            return key.namespace

        return lambda key: attempt(group_of, key, partial(failed, key))

    @property
    def _informer_sets(self) -> list[AnyInformerSet]:
        return [self._own, *self._children, *self._watched]

    @property
    def threads_running(self) -> int:
        """Return how many blocking functions have not returned."""
        return self._threads.running

    def subscribe(self) -> None:
        """Subscribe to the changes of all declared kinds."""
        show = self._dependencies.views.of
        for watched in self.controller.watches:
            if watched.via is not None:
                self._own.add_index(watched.via)
        self._own.subscribe(self._subscriber(self._own, self._own_requests))
        for child, informers in zip(self.controller.owns, self._children, strict=True):
            informers.subscribe(
                self._subscriber(
                    informers,
                    lambda change, report, child=child: child.requests(
                        show(child.form, change), self._kind, report, self._dependencies.holds_uid
                    ),
                )
            )
        for watched, informers in zip(self.controller.watches, self._watched, strict=True):
            informers.subscribe(
                self._subscriber(
                    informers,
                    lambda change, report, watched=watched: watched.requests(
                        show(watched.form, change), self._lookup, report
                    ),
                )
            )
        for informers in self._informer_sets:
            informers.on_undecodable(
                lambda found, informers=informers: self._report_malformed(
                    informers, found.object, found.error
                )
            )
        if self._followed is not None:
            self._followed.add(self)

    async def wait_synced(self) -> None:
        """Wait until all informers are filled and their objects are enqueued."""
        for informers in self._informer_sets:
            await informers.wait_synced()
        if self._followed is not None:
            await self._followed.wait_synced(self)

    @property
    def selects_nothing(self) -> bool:
        """Return True if the cache has no object of the reconciled kind."""
        return next(self._own.all_keys(), None) is None

    def open_namespace(self, name: str) -> list[tuple[Informer[Any], bool]]:
        """Start the informers of a followed namespace and return them; none if the namespace is in another shard."""
        shard = self._dependencies.shard
        held = self._informer_sets if shard is None or shard.holds(name) else self._watched
        return [(informers.open(name), informers.optional) for informers in held if informers.follows]

    def begin_namespace(self, name: str) -> None:
        """Reconcile the objects of a namespace whose informers are all synced."""
        opened = [informers for informers in self._informer_sets if informers.is_opened(name)]
        for informers in opened:
            informers.begin(name)
        for informers in opened:
            informers.notify(name)

    def leave_namespace(self, name: str) -> None:
        """Drop the objects of a namespace and their queued keys; a reconcile in flight ends as usual."""
        left = [(informers, informers.leave(name)) for informers in self._informer_sets if informers.follows]
        if self._own.follows:
            self._forget(lambda key: key.namespace == name)
        for informers, changes in left:
            if informers is not self._own:
                # Objects in other namespaces may own or refer to the dropped objects: those are enqueued.
                informers.notify_of(changes)
                continue
            for change in changes:
                self._pausing.observe(change)
                self._failures.forget(change.key)

    def _forget(self, selected: Callable[[ObjectKey], bool]) -> None:
        """Drop the selected keys from the queue, with all that is stored for their next reconcile."""
        self.queue.discard(selected)
        for remembered in (self._triggers, self._rate_slots, self._awaited or {}):
            for key in [key for key in remembered if selected(key)]:
                del remembered[key]

    def _is_left(self, key: ObjectKey) -> bool:
        """Return True if the key is in a namespace that is not, or not yet, followed."""
        return self._own.follows and self._own.informer_of(key.namespace) is None

    async def run(self) -> None:
        """Reconcile until stopped or cancelled."""
        self._instruments.workers.inc(self.controller.concurrency)
        self._log.info("Starting workers", extra={"worker count": self.controller.concurrency})
        awaited, self._awaited = self._awaited or {}, None
        for key, priority in awaited.items():
            self.queue.add(key, priority=priority)
        try:
            await self._work_until_stopped()
        finally:
            self._instruments.workers.dec(self.controller.concurrency)
            # Not in `stop`: reconciles in flight may still need threads to end.
            self._threads.close()
            self._pausing.close()
        self._log.info("All workers finished")

    def stop(self) -> None:
        """Accept no more keys; `run` returns when the reconciles in flight have ended."""
        self.queue.shutdown()
        self._pausing.close()

    def close(self) -> None:
        """Stop, and release the informers: after `run` has returned, or if it was never called."""
        self.stop()
        self._threads.close()
        self.queue.close()
        if self._followed is not None:
            self._followed.remove(self)
        for informers in self._informer_sets:
            informers.close()

    def statistics(self) -> RunnerStatistics:
        """Return counts of what was done and what is queued."""
        outcomes = {name: int(counter.value) for name, counter in self._instruments.outcomes.items()}
        return RunnerStatistics(self.controller.name, self.queue.statistics(), outcomes, self.threads_running)

    async def reconcile_once(self, key: ObjectKey, causes: Sequence[Cause]) -> None:
        """Reconcile one key now, without the queue, with these causes; for a replay."""
        self._failures.retrying = False
        self._triggers[key] = {cause: Trigger(cause.kind, cause.key, cause.type) for cause in causes}
        await self._reconcile(QueueItem(key, 0, asyncio.get_running_loop().time()))

    def enqueue(
        self,
        keys: Iterable[ObjectKey],
        cause: Cause,
        change: StoreChange | None = None,
        *,
        low: bool = False,
    ) -> None:
        """Add keys to the queue, or hold them until the workers run; store the cause and its change for the reconcile."""
        priority, awaited = LOW_PRIORITY if low else 0, self._awaited
        for key in keys:
            if self._is_left(key):
                continue
            if (self._is_part or awaited is not None) and not self._reconciliation.concerns(key):
                # It is most likely an object of another shard or selector, to which another object was mapped.
                if awaited is not None:
                    awaited.pop(key, None)
                    self._triggers.pop(key, None)
                continue
            triggers = self._triggers.setdefault(key, {})
            if (earlier := triggers.get(cause)) is not None or len(triggers) < MAX_CAUSES:
                triggers[cause] = _trigger(cause, change, earlier)
            if awaited is None:
                self.queue.add(key, priority=priority)
            else:
                awaited[key] = max(priority, awaited.get(key, LOW_PRIORITY))

    def _subscriber(self, informers: AnyInformerSet, requests: Requests) -> Callable[[StoreChange], None]:
        """Return a subscriber that enqueues the keys to which `requests` maps a change."""
        report = partial(self._report_failure, informers)

        def subscriber(change: StoreChange) -> None:
            if self._awaited_deletions and change.new is None and change.old is not None:
                awaited = self._awaited_deletions.pop(change.old.meta.uid, ())
                self.enqueue(awaited, _cause(informers.kind, change), change)
            if keys := requests(change, report):
                cause, low = _cause(informers.kind, change), _is_low(change)
                if informers is not self._own or not self._own_changes.hold(change, cause, low=low):
                    self.enqueue(keys, cause, change, low=low)

        return subscriber

    def _wake_on_deletion(self, kind: Kind, meta: PartialMeta, key: ObjectKey) -> bool:
        """Enqueue the key when this object is deleted; return False if no informer of this controller holds it."""
        for informers in self._informer_sets:
            if (informers.kind.group, informers.kind.kind) != (kind.group, kind.kind):
                continue
            held = informers.get_raw(meta.key)
            if held is not None and held.meta.uid == meta.uid:
                self._awaited_deletions.setdefault(meta.uid, set()).add(key)
                return True
        return False

    def _own_requests(self, change: StoreChange, report: ReportFailure) -> Iterable[ObjectKey]:
        when = self.controller.when
        # First, because it has to see every change.
        controlled = self._pausing.observe(change)
        if (
            when is None
            or controlled
            or _begins_deletion(change)
            or passes(when, self._dependencies.views.of(self.controller.kind, change), report)
        ):
            return (change.key,)
        return ()

    def _lookup(self, index: Index[Any], value: str) -> Iterable[ObjectKey]:
        return self._own.keys_by_index(index, value)

    async def _work_until_stopped(self) -> None:
        name = self.controller.name
        async with asyncio.TaskGroup() as group:
            background = [group.create_task(self._resync(), name=f"{name} resync")]
            background += [
                group.create_task(
                    follow(source, partial(self._take, source), self.controller.options.backoff, self._log),
                    name=f"{name} source",
                )
                for source in self.controller.sources
            ]
            workers = [
                group.create_task(self._work(), name=f"{name} worker {number}")
                for number in range(self.controller.concurrency)
            ]
            await asyncio.wait(workers)
            for task in background:
                task.cancel()

    async def _work(self) -> None:
        while True:
            try:
                item = await self.queue.get()
            except QueueShutDown:
                return
            try:
                if self._is_left(item.key):
                    pass
                elif (delay := self._rate_delay(item.key)) > 0:
                    self.queue.add(item.key, priority=item.priority, after=delay)
                else:
                    with self._dependencies.leadership.activity():
                        await self._reconcile(item)
            except NotLeading:
                # The process is about to end. If the lease is renewed nevertheless, the key is not lost.
                self.queue.add_rate_limited(item.key, priority=item.priority)
            finally:
                if self._is_left(item.key):
                    # The reconcile has queued its key again, after its namespace was left.
                    self._forget(item.key.__eq__)
                self.queue.done(item.key)

    def _rate_delay(self, key: ObjectKey) -> float:
        """Return how long a key has to wait because of the controller's rate; its reserved slot is kept while it waits."""
        rate = self.controller.options.rate
        if rate is None:
            return 0.0
        loop = asyncio.get_running_loop()
        group = None if self._rate_group is None else self._rate_group(key)
        due = self._rate_slots.pop(key, None)
        if due is None:
            due = rate.reserve(group, loop)
            if due > loop.time():
                self._instruments.rate_limited.inc()
        delay = due - loop.time()
        if delay <= 0 and (delay := rate.start(group, loop)) > 0:
            due = loop.time() + delay
        if delay > 0:
            self._rate_slots[key] = due
        return delay

    async def _reconcile(self, item: QueueItem[ObjectKey]) -> None:
        log = self._reconciliation.log_of(item.key)
        triggers = self._triggers.pop(item.key, {})
        causes, loop = tuple(triggers), asyncio.get_running_loop()
        started = loop.time()
        journal, verbose = self._dependencies.journal, log.logger.isEnabledFor(logging.DEBUG)
        entry: Collected | None = None
        traces, journaled = self._dependencies.traces, journal.enabled
        if verbose or journaled or traces.enabled:
            entry = Collected(self.controller.name, self._kind, item.key, tuple(triggers.values()), log)
        self._instruments.active_workers.inc()
        raised: BaseException | None = None
        span: Any = None
        outcome: ReconcileOutcome = "success"
        token = begin_collecting(entry)
        progress = self._own_changes.begin(item.key)
        try:
            if traces.enabled:
                with traces.reconcile(log, causes) as span:
                    result = await self._begin(item.key, log, causes)
            else:
                result = await self._begin(item.key, log, causes)
        except BaseException as error:
            if must_propagate(error):
                if span is not None:
                    span.end()
                raise
            raised = error
            outcome, delay = self._failed(item, error, log)
        else:
            outcome, delay = self._succeeded(item, result)
        finally:
            self._own_changes.end(item.key)
            self._instruments.active_workers.dec()
            if outcome != "paused":
                self._instruments.seconds.observe(loop.time() - started)
            failed = raised is not None and outcome in ("error", "requeue")
            for held in progress.unhandled(failed=failed):
                self.enqueue([item.key], held.cause, held.change, low=held.low)
            end_collecting(token)
        if outcome != "paused":
            self._instruments.outcomes[outcome].inc()
        if entry is None:
            return
        entry.retry_after = delay
        entry.finish(outcome, loop.time() - started, raised)
        if span is not None:
            traces.end_reconcile(span, entry)
        if journaled:
            journal.add(entry)
        if verbose:
            _log_reconciled(log, causes, entry)

    def _begin(
        self, key: ObjectKey, log: FieldLog, causes: tuple[Cause, ...]
    ) -> Coroutine[Any, Any, Result | Paused | None]:
        timeout = self.controller.options.timeout
        if timeout is None:
            return self._reconciliation.reconcile(key, log, causes, None)
        return self._bounded(key, log, causes, timeout)

    async def _bounded(
        self, key: ObjectKey, log: FieldLog, causes: tuple[Cause, ...], timeout: timedelta
    ) -> Result | Paused | None:
        limit = asyncio.timeout(timeout.total_seconds())
        try:
            async with limit:
                return await self._reconciliation.reconcile(key, log, causes, limit.when())
        except TimeoutError as error:
            if not limit.expired():
                raise
            self._instruments.timeouts.inc()
            raise TimeoutError(f"the reconcile did not end within {timeout.total_seconds():g} s") from error

    def _succeeded(
        self, item: QueueItem[ObjectKey], result: Result | Paused | None
    ) -> tuple[ReconcileOutcome, float | None]:
        """Reset the key's backoff and queue it according to the result; return the outcome and the delay."""
        self.queue.forget(item.key)
        self._failures.forget(item.key)
        if result is None:
            return "success", None
        if isinstance(result, Paused):
            return "paused", None
        priority = item.priority if result.priority is None else result.priority
        delay = _stretched(result.after.total_seconds())
        self.queue.add(item.key, priority=priority, after=delay)
        return "requeue_after", delay

    def _failed(
        self, item: QueueItem[ObjectKey], error: BaseException, log: FieldLog
    ) -> tuple[ReconcileOutcome, float | None]:
        """Report a failure and queue the key for its next try, if there is one; return the outcome and the delay."""
        if self._ends_with_its_namespace(item.key, error):
            log.info("The object's namespace is being deleted: waiting for the object's own deletion")
            return self._succeeded(item, None)
        if all(isinstance(leaf, ContestedField) for leaf in leaves(error)):
            # It was reported, once, and the writer has enqueued the key for the end of the backoff.
            return "requeue_after", None
        expected, after = expected_delay(error)
        if expected:
            delay = self._retry(item, after)
            self._failures.retry_later(error, delay, log)
            return "requeue", delay
        self._instruments.errors.inc()
        if not isinstance(error, Exception):
            self._instruments.panics.inc()
        delay = None
        if is_terminal(error):
            self._instruments.terminal_errors.inc()
            self.queue.forget(item.key)
        elif isinstance(error, ChildRecreateBackoff):
            delay = error.after  # the writer has enqueued the key
        else:
            delay = self._retry(item, None)
        if not isinstance(error, MalformedObject):
            self._failures.failed(item.key, error, delay, log)
        return "error", delay

    def _retry(self, item: QueueItem[ObjectKey], after: timedelta | None) -> float:
        """Queue a key that failed, after its backoff or the given time; return the delay in seconds."""
        if after is None:
            return self.queue.add_rate_limited(item.key, priority=item.priority)
        delay = _stretched(after.total_seconds())
        self.queue.add(item.key, priority=item.priority, after=delay)
        return delay

    def _ends_with_its_namespace(self, key: ObjectKey, error: BaseException) -> bool:
        """Return True if the write failed because the object's namespace is being deleted, so that a retry cannot help.

        The deletion of the object will enqueue its key again. If the object is already being deleted, return False: its
        finalizer must be retried, because no further event will come.
        """
        if not isinstance(error, Forbidden) or error.terminating_namespace != (key.namespace or None):
            return False
        state = self._own.get_raw(key)
        return state is None or state.meta.deletion_timestamp is None

    async def _resync(self) -> None:
        """Enqueue every object periodically, spread over time, with lower priority than changed ones."""
        period = self.controller.resync.total_seconds()
        while True:
            await asyncio.sleep(period * random.uniform(1 - JITTER, 1 + JITTER))
            for key in self._own.all_keys():
                self.queue.add(key, priority=LOW_PRIORITY, after=random.uniform(0, JITTER * period))

    def _take(self, source: Source[Any], event: Any) -> None:
        def failed(error: BaseException) -> set[ObjectKey]:
            self._instruments.mapping_errors.inc()
            self._log.error("The map of a source failed on an event: %s", text_of(error), exc_info=error)
            return set()

        for key in attempt(
            lambda event: checked_keys(source.map(event), "the map of a source"), event, failed
        ):
            self.enqueue((key,), Cause("", key, "external"))

    def _report_failure(self, informers: AnyInformerSet, state: RawObject, error: BaseException) -> None:
        """Report an object on which a predicate or map of the author failed."""
        if not isinstance(error, DecodeError):
            self._instruments.mapping_errors.inc()
        self._report_malformed(informers, state, error)

    def _report_malformed(self, informers: AnyInformerSet, state: RawObject, error: BaseException) -> None:
        """Report an object on which the author's classes or functions fail: once for each state of the object."""
        if not self._dependencies.malformed.is_new(informers.kind, state.meta):
            return
        self._instruments.malformed.inc()
        raised = error.__cause__ if isinstance(error, DecodeError) else error
        # The message names a value that the types refuse; for an error of the author's code the traceback matters.
        trace = None if isinstance(raised, msgspec.MsgspecError | UnicodeDecodeError) else raised
        text = text_of(error)
        reason = text if isinstance(error, KubewrightError) else f"{type(error).__name__}: {text}"
        self._log.error(
            "%s %s cannot be read: %s", informers.kind.kind, state.meta.key, reason, exc_info=trace
        )
        self._dependencies.publish_event(informers.kind, state.meta, "Warning", "Malformed", reason)


def _log_reconciled(log: FieldLog, causes: Sequence[Cause], entry: Collected) -> None:
    fields = {
        "outcome": entry.outcome,
        "duration": shown_delay(entry.duration),
        "causes": [str(cause) for cause in causes] or ["requeue or resync"],
        "writes": [
            f"{write.request.verb} {write.request.resource}/{write.request.name}"
            for write in entry.writes[:MAX_WRITES]
        ],
    }
    log.debug("Reconciled", extra=fields)


async def follow(source: Source[Any], take: Callable[[Any], None], backoff: Backoff, log: FieldLog) -> None:
    """Call `take` with each event of a source until its stream ends; reopen a stream that failed, with backoff.

    The backoff is reset only when a stream lasted longer than the last delay, so that a stream that fails after its
    first event each time does not become a busy loop.
    """
    loop = asyncio.get_running_loop()
    failures, delay = 0, 0.0
    while True:
        opened = loop.time()
        try:
            await _read_source(source, take)
        except BaseException as error:
            # A CancelledError or SystemExit that a library raises would silently end this task, or the operator.
            if must_propagate(error):
                raise
            failures = 0 if loop.time() - opened > delay else failures + 1
            delay = min(backoff.delay(failures), MAX_SOURCE_DELAY)
            log.error("Source failed, opening it again in %.1f s", delay, exc_info=error)
            await asyncio.sleep(delay)
        else:
            log.info("Source ended")
            return


async def _read_source(source: Source[Any], take: Callable[[Any], None]) -> None:
    async with AsyncExitStack() as stack:
        stream: AsyncIterable[Any] = source.events()
        if isinstance(stream, AsyncGenerator):
            stream = await stack.enter_async_context(aclosing(cast("AsyncGenerator[Any]", stream)))
        async for event in stream:
            take(event)


def _begins_deletion(change: StoreChange) -> bool:
    """Return True if the object was just marked for deletion: no predicate may hide that from a finalizer."""
    if change.new is None or change.new.meta.deletion_timestamp is None:
        return False
    return change.old is None or change.old.meta.deletion_timestamp is None


def _is_low(change: StoreChange) -> bool:
    if change.initial:
        return True
    old, new = change.old, change.new
    return old is not None and new is not None and old.meta.resource_version == new.meta.resource_version


def _cause(kind: Kind, change: StoreChange) -> Cause:
    if change.initial:
        return Cause(kind.kind, change.key, "initial")
    happened = "create" if change.old is None else "delete" if change.new is None else "update"
    return Cause(kind.kind, change.key, happened)


def _trigger(cause: Cause, change: StoreChange | None, earlier: Trigger | None) -> Trigger:
    """Return the cause with the object's state before the first and after the last of several changes."""
    before = None if change is None else change.old
    return Trigger(
        cause.kind,
        cause.key,
        cause.type,
        before if earlier is None else earlier.before,
        None if change is None else change.new,
    )


def _stretched(seconds: float) -> float:
    return seconds * (1 + JITTER * random.random())
