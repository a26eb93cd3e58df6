"""Run an operator: create client and cache, start everything in order, stop in reverse.

Start: HTTP servers, webhooks, caches, lifespan, controllers that need no lease, then those that do.
Stop: reconciles in flight get `graceful_timeout` to end, then lifespan, caches, webhooks, HTTP servers, the lease, events.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import Any, NoReturn

import msgspec

from kubewright.api import ConfigError, Kind, Object, kind_of, leaves
from kubewright.cache import Cache
from kubewright.client import Client, ClusterConfig
from kubewright.controller import Controller, Operator
from kubewright.controller.running import (
    MalformedObjects,
    Runner,
    RunnerStatistics,
    RuntimeDependencies,
    Traces,
    Views,
)
from kubewright.election import LEASE, ElectionOptions, ElectionThread, Leadership, LeaseLost
from kubewright.events import EventRecorder, Reference
from kubewright.journal import Journal, RecordFile, Redactor, gathered_log
from kubewright.manager.options import ManagerOptions
from kubewright.manager.parts import installed_tracer
from kubewright.manager.servers import (
    JournalSource,
    ServedWebhooks,
    serve_journal,
    serve_metrics,
    serve_probes,
    serve_webhooks,
)
from kubewright.manager.watchdog import Watchdog
from kubewright.metrics import Registry
from kubewright.serving import Checks

_log = logging.getLogger("kubewright.manager")

DEFAULTS = ManagerOptions()


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
    ) -> None:
        self.operator = operator
        self.metrics: Registry = Registry()
        self.liveness: Checks = Checks("healthz")
        self.readiness: Checks = Checks("readyz")
        self.synced: asyncio.Event = asyncio.Event()
        """Set when every cache is filled and the readiness probe succeeds."""
        self.ready: asyncio.Event = asyncio.Event()
        """Set when this replica's workers run: at once after `synced`, or when it leads."""
        self.journal: Journal = Journal(options.journal_limit)
        """What the latest reconciles did."""
        self.metrics_port: int = 0
        self.probe_port: int = 0
        self.webhook_port: int = 0
        self.config: ClusterConfig = config
        self.cache: Cache | None = None
        """The informers of all controllers, once it runs."""
        self._options = options
        self._elect = elect
        self._lease = _lease(options.election or ElectionOptions(), operator, config)
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
                    await self._run(client, group)
        except BaseExceptionGroup as failures:
            _raise_first(failures)

    def statistics(self) -> ManagerStatistics:
        """Return whether this replica leads, statistics of the controllers, and the number of cached objects."""
        feeds = self.cache.feeds if self.cache is not None else []
        return ManagerStatistics(
            leading=self._election is None or self._election.leadership.valid,
            controllers=tuple(runner.statistics() for runner in self._runners),
            cached_objects=sum(len(feed.objects) for feed in feeds),
        )

    def _describe(self) -> dict[str, Any]:
        """Return the operator's name, the kinds that it reconciles, its lease, and its problems, for `kubewright why`."""
        leading = self._election is None or self._election.leadership.valid
        return {
            "operator": self.operator.name,
            "kinds": [f"{kind.kind}.{kind.group}" for kind in _reconciled(self.operator)],
            "leading": leading,
            "lease": f"{self._lease.namespace}/{self._lease.name}" if self._election is not None else "",
            "problems": list(self.cache.problems) if self.cache is not None else [],
        }

    async def _run(self, client: Client, group: asyncio.TaskGroup) -> None:
        options = self._options
        recorder = EventRecorder(
            client, controller=self.operator.name, host=socket.gethostname(), metrics=self.metrics
        )
        if options.election is not None:
            self._election = self._elect(self.config, self._lease)
        cache = self.cache = Cache(
            client,
            metrics=self.metrics,
            sync_timeout=options.cache_sync_timeout,
            field_managers=_field_managers(self.operator.controllers),
            pause_gc=options.pause_gc,
        )
        self._traces = Traces(options.tracer or await installed_tracer())
        self._runners = tuple(
            Runner(controller, self._dependencies(controller, client, cache, recorder))
            for controller in self.operator.controllers
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
                stack.callback(group.create_task(cache.run(), name="cache").cancel)
                if self.operator.lifespan is not None:
                    await stack.enter_async_context(self.operator.lifespan())
                try:
                    await self._work(group, recorder)
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
        file = RecordFile(
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
        source = JournalSource(self.journal, lambda: self.redactor, self._describe)
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

    async def _work(self, group: asyncio.TaskGroup, recorder: EventRecorder) -> None:
        """Reconcile until cancelled; then let running reconciles finish."""
        try:
            for runner in self._runners:
                await runner.wait_synced()
            self.synced.set()
            self._start_workers(group, elected=False)
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
                if self._election is not None:
                    await self._election.stop()

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
        self, controller: Controller[Any], client: Client, cache: Cache, recorder: EventRecorder
    ) -> RuntimeDependencies:
        leadership = Leadership.unlimited()
        if self._election is not None and controller.options.needs_leader_election:
            leadership = self._election.leadership
            client = client.fenced(leadership.check)
        return RuntimeDependencies(
            client=self._traces.observed(client),
            cache=cache,
            recorder=recorder,
            metrics=self.metrics,
            leadership=leadership,
            namespaces=self._options.namespaces,
            traces=self._traces,
            malformed=self._malformed,
            views=self._views,
            journal=self.journal,
            run_sync_observer=self._options.run_sync_observer,
        )

    def _cache_problem(self) -> str | None:
        problems = self.cache.problems if self.cache is not None else []
        if problems:
            return "; ".join(problems)
        return None if self.synced.is_set() else "not everything that is watched has been read yet"


def _lease(given: ElectionOptions, operator: Operator, config: ClusterConfig) -> ElectionOptions:
    name, namespace = given.name or operator.name, given.namespace or config.namespace
    return msgspec.structs.replace(given, name=name, namespace=namespace)


def _reconciled(operator: Operator) -> list[Kind]:
    return [kind_of(controller.kind) for controller in operator.controllers]


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
