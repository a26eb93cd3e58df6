"""Run an operator: create client and cache, start everything in order, stop in reverse.

Start: HTTP servers, webhooks, caches, lifespan, controllers that need no lease, then those that do.
Stop: reconciles in flight get `graceful_timeout` to end, then lifespan, caches, webhooks, HTTP servers, the lease, events.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from datetime import timedelta
from functools import cached_property
from typing import Any, NoReturn

import msgspec

from kubewright.api import (
    ConfigError,
    Kind,
    KubewrightError,
    Object,
    ObjectKey,
    PartialMeta,
    SelectorError,
    kind_of,
    leaves,
    utc_now,
)
from kubewright.api.scoping import NamespaceSelector, combined_selector, lease_name, normal_selector
from kubewright.api.sharding import Shards
from kubewright.cache import Cache
from kubewright.client import Client, ClusterConfig, ThrottleStatistics
from kubewright.controller import Controller, Operator, disruption_object
from kubewright.controller.running import (
    NAMESPACE,
    FollowedNamespaces,
    MalformedObjects,
    Runner,
    RunnerStatistics,
    RuntimeDependencies,
    Shard,
    Traces,
    Views,
)
from kubewright.election import (
    LEASE,
    ElectionOptions,
    ElectionThread,
    Leadership,
    LeaseLost,
    ShardElection,
)
from kubewright.events import EventRecorder, Reference
from kubewright.journal import Journal, Redactor, gathered_log
from kubewright.manager.options import ManagerOptions
from kubewright.manager.parts import OptionalModule, installed_tracer
from kubewright.manager.servers import (
    JournalSource,
    ServedWebhooks,
    serve_journal,
    serve_metrics,
    serve_probes,
    serve_webhooks,
)
from kubewright.manager.sharded import ShardedWork
from kubewright.manager.watchdog import Watchdog
from kubewright.metrics import Registry
from kubewright.serving import Checks
from kubewright.workqueue import QueueStatistics

_log = logging.getLogger("kubewright.manager")

DEFAULTS = ManagerOptions()
_MAX_RETRIES = 200
"""Retries of one controller that the journal's page lists."""


class ManagerStatistics(msgspec.Struct, frozen=True):
    """Statistics of a manager."""

    leading: bool
    controllers: tuple[RunnerStatistics, ...]
    cached_objects: int


class Manager:
    """Run one operator on one cluster until cancelled; it uses no global state."""

    def __init__(
        self,
        operator: Operator,
        config: ClusterConfig,
        options: ManagerOptions = DEFAULTS,
        *,
        elect: Callable[[ClusterConfig, ElectionOptions], ElectionThread] = ElectionThread,
        elect_shards: Callable[[ClusterConfig, ElectionOptions, Shards], ShardElection] = ShardElection,
    ) -> None:
        self.operator = operator
        self.metrics: Registry = Registry()
        self.liveness: Checks = Checks("healthz")
        self.readiness: Checks = Checks("readyz")
        self.synced: asyncio.Event = asyncio.Event()
        """Set when every cache is filled and the readiness probe succeeds."""
        self.ready: asyncio.Event = asyncio.Event()
        """Set when this replica's workers run: at once after `synced`, when it leads, or while it works on a shard."""
        self.journal: Journal = Journal(options.journal_limit)
        """What the latest reconciles did."""
        self.metrics_port: int = 0
        self.probe_port: int = 0
        self.webhook_port: int = 0
        self.config: ClusterConfig = config
        self.cache: Cache | None = None
        """The informers of all controllers, once it runs."""
        try:
            normal_selector(options.selector)
        except SelectorError as error:
            raise ConfigError(f"selector {options.selector!r}: {error}") from None
        self._options = options
        self._elect = elect
        self._elect_shards = elect_shards
        self.shards: Shards | None = options.shards or operator.shards
        """How the objects are divided over the replicas; None if one replica works on all of them."""
        self.namespace_selector: NamespaceSelector | None = (
            None if options.namespaces else options.namespace_selector or operator.namespaces
        )
        """The labels of the namespaces that are followed; None if it works in all, or in those of its options."""
        if self.shards is not None:
            operator.check_shards(self.shards, self.namespace_selector)
        self._sharded: ShardedWork | None = None
        self._lease = _lease(options.election or ElectionOptions(), operator, config, options.selector)
        self._followed: FollowedNamespaces | None = None
        self._client: Client | None = None
        self._runners: tuple[Runner[Any], ...] = ()
        self._election: ElectionThread | None = None
        self._webhooks: ServedWebhooks | None = None
        self._working: set[asyncio.Task[None]] = set()
        self._malformed = MalformedObjects()
        self._views = Views()
        self._traces = Traces()
        self._leading = self.metrics.gauge(
            "leader_election_master_status", "Whether this replica holds the lease (1) or not (0)", ("name",)
        ).labels(name=self._lease.name)

    @cached_property
    def redactor(self) -> Redactor:
        """Return what removes sensitive values from the records of the journal."""
        return Redactor(_classes(self.operator.controllers))

    async def run(self) -> None:
        """Run until cancelled, or until something fails that a retry cannot fix."""
        try:
            with gathered_log():
                async with Client(self.config, metrics=self.metrics) as client, asyncio.TaskGroup() as group:
                    self._client = client
                    await self._run(client, group)
        except BaseExceptionGroup as failures:
            _raise_first(failures)

    def statistics(self) -> ManagerStatistics:
        """Return whether this replica leads, statistics of the controllers, and the number of cached objects."""
        feeds = self.cache.feeds if self.cache is not None else []
        return ManagerStatistics(
            leading=self._is_leading,
            controllers=_combined(runner.statistics() for runner in self._all_runners),
            cached_objects=sum(len(feed.objects) for feed in feeds),
        )

    def describe(self) -> dict[str, Any]:
        """Return what the journal's page has beside the reconciles, for `kubewright why` and the live page."""
        election = self._election
        throttling = ThrottleStatistics() if self._client is None else self._client.throttling
        return {
            "operator": self.operator.name,
            "cluster": self.config.server,
            "holder": election.leadership.holder if election is not None else "",
            "controllers": _combined_states(map(_controller_state, self._all_runners)),
            "retries": [retry for runner in self._all_runners for retry in _pending_retries(runner)],
            "throttled": throttling,
            "kinds": [f"{kind.kind}.{kind.group}" for kind in _reconciled(self.operator)],
            "leading": self._is_leading,
            "lease": f"{self._lease.namespace}/{self._lease.name}" if self._has_lease else "",
            "shards": self._describe_shards(),
            "selector": self._options.selector,
            "namespaces": self._describe_namespaces(),
            "problems": list(self.cache.problems) if self.cache is not None else [],
        }

    @property
    def _has_lease(self) -> bool:
        return self._election is not None or self._sharded is not None

    @property
    def _is_leading(self) -> bool:
        """Return True if this replica may act now, with shards on at least one of them."""
        if self._sharded is not None:
            return bool(self._sharded.numbers)
        return self._election is None or self._election.leadership.valid

    @property
    def _all_runners(self) -> list[Runner[Any]]:
        return [*self._runners, *(self._sharded.runners if self._sharded is not None else ())]

    def _describe_shards(self) -> dict[str, Any] | None:
        """Return which replica holds which shard, as far as this one knows."""
        if self._sharded is None or self.shards is None:
            return None
        return {
            "by": self.shards.by,
            "count": self.shards.count,
            "replica": self._lease.identity,
            "held": self._sharded.numbers,
            "holders": [holder for _, holder in sorted(self._sharded.election.holders.items())],
            "waiting": self._sharded.election.waiting,
        }

    def _describe_namespaces(self) -> dict[str, Any] | None:
        """Return which namespaces are followed by their labels."""
        followed = self._followed
        if followed is None:
            return None
        return {
            "selector": followed.selector.labels,
            "followed": sorted(followed.names),
            "refused": dict(followed.refused),
        }

    async def _run(self, client: Client, group: asyncio.TaskGroup) -> None:
        options = self._options
        recorder = EventRecorder(
            client, controller=self.operator.name, host=socket.gethostname(), metrics=self.metrics
        )
        if options.election is not None and self.shards is None:
            self._election = self._elect(self.config, self._lease)
        cache = self.cache = Cache(
            client,
            metrics=self.metrics,
            sync_timeout=options.cache_sync_timeout,
            field_managers=_field_managers(self.operator.controllers),
            pause_gc=options.pause_gc,
        )
        if self.namespace_selector is not None:
            self._followed = FollowedNamespaces(cache, self.namespace_selector, _refusals(recorder))
        self._traces = Traces(options.tracer or await installed_tracer())
        self._runners = tuple(
            Runner(controller, self._dependencies(controller, client, cache, recorder))
            for controller in self.operator.controllers
            if self.shards is None or not controller.options.needs_leader_election
        )
        if self.shards is not None:
            self._sharded = ShardedWork(
                self._elect_shards(self.config, self._lease, self.shards),
                [
                    controller
                    for controller in self.operator.controllers
                    if controller.options.needs_leader_election
                ],
                lambda controller, shard, lease: Runner(
                    controller,
                    self._dependencies(controller, client, cache, recorder, shard, lease.leadership),
                ),
                cache,
                graceful_timeout=options.graceful_timeout,
                metrics=self.metrics,
                ready=self.ready,
            )
        self.readiness.add("caches", self._cache_problem)
        events = group.create_task(recorder.run(), name="events")
        stopped: asyncio.CancelledError | None = None
        try:
            async with AsyncExitStack() as stack:
                await self._record(stack)
                if options.watchdog:
                    await stack.enter_async_context(Watchdog(self.metrics))
                await self._serve(stack, group, client)
                for runner in self._runners:
                    runner.subscribe()
                if self._followed is not None:
                    stack.callback(group.create_task(self._followed.run(), name="namespaces").cancel)
                stack.callback(group.create_task(cache.run(), name="cache").cancel)
                if self.operator.lifespan is not None:
                    await stack.enter_async_context(self.operator.lifespan())
                try:
                    await self._work(group, client, recorder)
                except asyncio.CancelledError as error:
                    # A stop is not a failure of the lifespan: the code after its `yield` must run.
                    stopped = error
        finally:
            events.cancel()
        if stopped is not None:
            raise stopped

    async def _record(self, stack: AsyncExitStack) -> None:
        """Write all reconciles to a file, if one is given."""
        options = self._options
        if options.record is None:
            return
        recording = await OptionalModule.RECORD_FILE.load()
        file = recording.RecordFile(
            options.record,
            operator=self.operator.name,
            redactor=self.redactor,
            limit=options.record_limit,
        )
        try:
            await asyncio.to_thread(file.open)
        except OSError as error:
            raise ConfigError(
                f"cannot write the record {options.record}: {error.strerror}; choose another with --record"
            ) from None
        except recording.RecordFileError as error:
            raise ConfigError(f"{error}; choose another file with --record") from None
        stack.push_async_callback(asyncio.to_thread, file.close)
        stack.callback(self.journal.subscribe(file.add))
        dropped = self.metrics.gauge(
            "kubewright_record_dropped_reconciles", "Reconciles that are missing in the record file"
        ).labels()
        stack.callback(self.journal.subscribe(lambda _: dropped.set(file.dropped)))

    async def _serve(self, stack: AsyncExitStack, group: asyncio.TaskGroup, client: Client) -> None:
        """Serve probes and metrics before anything else starts, so that a slow start is visible."""
        options, metrics = self._options, self.metrics
        self.probe_port = await serve_probes(stack, options, self.liveness, self.readiness)
        source = JournalSource(self.journal, lambda: self.redactor, self.describe)
        self.metrics_port = await serve_metrics(stack, group, client, options, metrics, source)
        await serve_journal(stack, options, source)
        ports = {"probes": self.probe_port, "metrics": self.metrics_port}
        if served := {name: port for name, port in ports.items() if port}:
            _log.info("Serving probes and metrics", extra={"fields": {"ports": served}})
        # A kind with a conversion webhook of this operator cannot be listed before the webhook is served.
        self._webhooks = await serve_webhooks(
            stack, group, client, self.operator, options, metrics, self.readiness
        )
        self.webhook_port = self._webhooks.port if self._webhooks is not None else 0

    async def _work(self, group: asyncio.TaskGroup, client: Client, recorder: EventRecorder) -> None:
        """Reconcile until cancelled; then let running reconciles finish."""
        try:
            for runner in self._runners:
                await runner.wait_synced()
            if self._followed is not None:
                await self._followed.wait_known()
            await self._warn_if_nothing_matches(client)
            self.synced.set()
            self._start_workers(group, elected=False)
            if self._sharded is not None:
                await self._sharded.follow(group)
            if self._election is not None:
                await self._lead(group, self._election, recorder)
            self._start_workers(group, elected=True)
            self.ready.set()
            await asyncio.get_running_loop().create_future()
        finally:
            self.ready.clear()
            try:
                await self._drain()
            finally:
                # Webhooks and the lifespan run on every replica: the lease can be released before they end.
                if self._sharded is not None:
                    await self._sharded.stop()
                if self._election is not None:
                    await self._election.stop()

    async def _warn_if_nothing_matches(self, client: Client) -> None:
        """Log that there is nothing to reconcile now: a selector may be misspelled."""
        if self._followed is not None and not self._followed.names:
            _log.warning(
                "No namespace matches %s now: nothing is reconciled until one does", self._followed.selector
            )
        elif self._options.selector and await self._selects_nothing(client):
            kinds = ", ".join(sorted({kind.kind for kind in _reconciled(self.operator)}))
            _log.warning(
                "No object of %s matches the selector %s now: nothing is reconciled until one does",
                kinds,
                self._options.selector,
            )

    async def _selects_nothing(self, client: Client) -> bool:
        """Return True if no object is selected. A replica holds the objects of its shards only: then the server is asked."""
        if self._sharded is None:
            return all(runner.selects_nothing for runner in self._runners)
        try:
            return not await self._finds_any(client)
        except KubewrightError:
            # The informers of the shards report what cannot be read, and go on trying.
            return False

    async def _finds_any(self, client: Client) -> bool:
        """Return True if the server has an object that some replica would reconcile."""
        followed = () if self._followed is None else self._followed.names
        for controller in self.operator.controllers:
            selector = controller.selector
            labels = combined_selector(selector.labels, self._options.selector)
            for namespace in self._options.namespaces or followed or ("",):
                pages = client.list_raw(
                    controller.kind, namespace=namespace, labels=labels, fields=selector.fields, limit=1
                )
                async with aclosing(pages):
                    async for page in pages:
                        if page.items:
                            return True
                        break
        return False

    async def _lead(
        self, group: asyncio.TaskGroup, election: ElectionThread, recorder: EventRecorder
    ) -> None:
        election.start()
        group.create_task(self._follow_election(election), name="election")
        await election.wait_leading()
        self._leading.set(1)
        if self._webhooks is not None:
            await self._webhooks.lead()
        lease = Reference(LEASE.api_version, LEASE.kind, self._lease.namespace, self._lease.name, "")
        recorder.record(lease, "Normal", "LeaderElection", f"{self._lease.identity} became leader")

    async def _follow_election(self, election: ElectionThread) -> None:
        try:
            await election.wait_lost()
        finally:
            self._leading.set(0)

    def _start_workers(self, group: asyncio.TaskGroup, *, elected: bool) -> None:
        for runner in self._runners:
            if runner.controller.options.needs_leader_election == elected:
                name = f"controller {runner.controller.name}"
                self._working.add(group.create_task(runner.run(), name=name))

    async def _drain(self) -> None:
        """Wait for running reconciles; cancel them at once if another replica may lead."""
        for runner in self._runners:
            runner.stop()
        if not self._working:
            return
        timeout = self._options.graceful_timeout
        if self._election is not None and self._election.lost:
            timeout = 0.0
        _, late = await asyncio.wait(self._working, timeout=None if timeout < 0 else timeout)
        if late:
            _log.warning("Reconciles did not end within %.0f s: they are cancelled", timeout)
            for task in late:
                task.cancel()
            await asyncio.wait(late)

    def _dependencies(
        self,
        controller: Controller[Any],
        client: Client,
        cache: Cache,
        recorder: EventRecorder,
        shard: Shard | None = None,
        shard_leadership: Leadership | None = None,
    ) -> RuntimeDependencies:
        leadership = shard_leadership or Leadership.unlimited()
        if shard_leadership is not None:
            client = client.fenced(leadership.check)
        elif self._election is not None and controller.options.needs_leader_election:
            leadership = self._election.leadership
            client = client.fenced(leadership.check)
        return RuntimeDependencies(
            client=self._traces.observed(client),
            cache=cache,
            recorder=recorder,
            metrics=self.metrics,
            leadership=leadership,
            namespaces=self._options.namespaces,
            followed=self._followed,
            selector=self._options.selector,
            traces=self._traces,
            malformed=self._malformed,
            views=self._views,
            journal=self.journal,
            run_sync_observer=self._options.run_sync_observer,
            disruption_object=self._disruption_object(controller),
            shard=shard,
        )

    def _disruption_object(self, controller: Controller[Any]) -> ObjectKey | None:
        """Return the ConfigMap with the slots of the controller's budget, beside the lease of the operator."""
        if not self._options.disruption_limits:
            return None
        given = self._options.election
        namespace = given.namespace if given is not None and given.namespace else self.config.namespace
        return ObjectKey(namespace, disruption_object(self.operator.name, controller.name))

    def _cache_problem(self) -> str | None:
        feeds = self.cache.feeds if self.cache is not None else []
        # One tenant's missing role must not make the operator of all tenants unready.
        excused = self._followed.names if self._followed is not None else ()
        problems = [
            problem
            for feed in feeds
            if not (feed.is_forbidden and feed.selection.namespace in excused)
            for problem in feed.problems
        ]
        if problems:
            return "; ".join(problems)
        return None if self.synced.is_set() else "not everything that is watched has been read yet"


def _lease(
    given: ElectionOptions, operator: Operator, config: ClusterConfig, selector: str
) -> ElectionOptions:
    name, namespace = given.name or lease_name(operator.name, selector), given.namespace or config.namespace
    return msgspec.structs.replace(given, name=name, namespace=namespace)


def _refusals(recorder: EventRecorder) -> Callable[[PartialMeta, str], None]:
    """Return a function that records an Event about a namespace that cannot be read."""

    def report(namespace: PartialMeta, note: str) -> None:
        regarding = Reference(NAMESPACE.api_version, NAMESPACE.kind, "", namespace.name, namespace.uid)
        recorder.record(regarding, "Warning", "NamespaceNotReconciled", note)

    return report


def _reconciled(operator: Operator) -> list[Kind]:
    return [kind_of(controller.kind) for controller in operator.controllers]


def _controller_state(runner: Runner[Any]) -> dict[str, Any]:
    kind, queue = kind_of(runner.controller.kind), runner.queue.statistics()
    return {
        "name": runner.controller.name,
        "kind": kind.kind,
        "group": kind.group,
        "queueDepth": queue.ready,
        "queueDelayed": queue.delayed,
        "workers": runner.controller.concurrency,
        "busy": queue.in_flight,
    }


def _combined(statistics: Iterable[RunnerStatistics]) -> tuple[RunnerStatistics, ...]:
    """Return one entry for each controller: what is queued in several shards is added, outcomes are counted together."""
    found: dict[str, RunnerStatistics] = {}
    for one in statistics:
        known = found.get(one.controller)
        if known is not None:
            queue = QueueStatistics(
                *(
                    first + second
                    for first, second in zip(
                        msgspec.structs.astuple(known.queue), msgspec.structs.astuple(one.queue), strict=True
                    )
                )
            )
            one = msgspec.structs.replace(one, queue=queue, threads=known.threads + one.threads)
        found[one.controller] = one
    return tuple(found.values())


def _combined_states(states: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one entry for each controller, with the numbers of its shards added."""
    found: dict[str, dict[str, Any]] = {}
    for state in states:
        known = found.setdefault(state["name"], state)
        if known is not state:
            for count in ("queueDepth", "queueDelayed", "workers", "busy"):
                known[count] += state[count]
    return list(found.values())


def _pending_retries(runner: Runner[Any]) -> Iterator[dict[str, Any]]:
    kind, now = kind_of(runner.controller.kind), utc_now()
    for retry in runner.queue.pending_retries(_MAX_RETRIES):
        yield {
            "kind": kind.kind,
            "group": kind.group,
            "namespace": retry.key.namespace,
            "name": retry.key.name,
            "at": now + timedelta(seconds=retry.seconds),
            "failures": retry.failures,
        }


def _classes(controllers: Sequence[Controller[Any]]) -> list[type[Object]]:
    """Return the classes of all kinds that the controllers declare."""
    forms = [
        form
        for controller in controllers
        for form in (
            controller.kind,
            *(child.kind for child in controller.owns),
            *(watched.kind for watched in controller.watches),
        )
    ]
    return [form for form in dict.fromkeys(forms) if isinstance(form, type)]


def _field_managers(controllers: Sequence[Controller[Any]]) -> set[str]:
    return {
        manager
        for controller in controllers
        for manager in (
            controller.field_manager,
            *controller.options.former_field_managers,
            *(controller.step_managers if controller.steps_field else ()),
        )
    }


def _raise_first(failures: BaseExceptionGroup[BaseException]) -> NoReturn:
    """Raise the first failure; the ones that followed from it become its notes."""
    causes = [leaf for leaf in leaves(failures) if not isinstance(leaf, asyncio.CancelledError)]
    first = next((leaf for leaf in causes if isinstance(leaf, LeaseLost)), causes[0])
    for other in causes:
        if other is not first:
            first.add_note(f"and then: {other!r}")
    raise first
