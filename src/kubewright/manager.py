"""An operator at work: builds client and cache, starts all in order, stops in reverse.

Start: HTTP servers, webhooks, caches, lifespan, controllers that need no lease, then those that do.
Stop: reconciles in flight get `graceful_timeout` to end, then lifespan, caches, webhooks, HTTP servers, the lease, events.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, cast

import msgspec

from kubewright.cache import Cache
from kubewright.client import Client, ClusterConfig
from kubewright.controller import Controller, Operator
from kubewright.controller.running import (
    MalformedObjects,
    Runner,
    RunnerStatistics,
    Surroundings,
    Tracer,
    Traces,
    Views,
    Watchdog,
)
from kubewright.election import (
    LEASE,
    ElectionOptions,
    ElectionThread,
    LeaseLost,
    LeaseTimes,
    default_identity,
)
from kubewright.events import EventRecorder, Reference
from kubewright.http.server import Routes
from kubewright.metrics import Registry
from kubewright.serving import BindError, Checks, Guard, HttpServer, parse_address
from kubewright.webhook import Lifetimes, Reach


class Part(StrEnum):
    """What some operators never use, by its module: it brings libraries that are half of a start, so it waits."""

    METRICS_PAGE = "kubewright.serving.metrics_page"
    OPENTELEMETRY = "opentelemetry.trace"
    SERVING_CERTIFICATES = "kubewright.serving.certificates"
    WEBHOOK_SERVER = "kubewright.webhook.server"

    async def load(self) -> Any:
        """Import it where the event loop does not wait for that."""
        return await asyncio.to_thread(import_module, self.value)


_log = logging.getLogger("kubewright.manager")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerOptions:
    """How to run an operator; the defaults are controller-runtime's.

    Addresses are `:8080`, `127.0.0.1:0` or `0` for off. `namespaces` limits everything that is watched.
    `webhook_reach` says how the API server gets here, by Service, by URL, or as somebody else
    arranged (`given`); it is found out unless said.
    `webhook_state` is a file that keeps their certificates between runs by URL.
    `tracer` makes the spans of reconciles and writes, by default OpenTelemetry's where that is installed.
    `pause_gc` stops Python's garbage collector while the caches fill: for programs, not for tests.
    """

    namespaces: Sequence[str] = ()
    leader_elect: bool = False
    leader_election_id: str = ""
    leader_election_namespace: str = ""
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)
    identity: str = field(default_factory=default_identity)
    metrics_bind_address: str = ":8080"
    metrics_secure: bool = False
    metrics_cert_dir: Path | None = None
    health_probe_bind_address: str = ":8081"
    webhook_bind_address: str = ":9443"
    webhook_cert_dir: Path | None = None
    webhook_client_ca: Path | None = None
    webhook_reach: Reach | None = None
    webhook_lifetimes: Lifetimes = field(default_factory=Lifetimes)
    webhook_state: Path | None = None
    graceful_timeout: float = 30.0
    cache_sync_timeout: float = 120.0
    watchdog: bool = True
    tracer: Tracer | None = None
    pause_gc: bool = False


DEFAULTS = ManagerOptions()


class ManagerStatistics(msgspec.Struct, frozen=True):
    """Count what runs."""

    leading: bool
    controllers: tuple[RunnerStatistics, ...]
    cached_objects: int


class Manager:
    """Run one operator on one cluster until cancelled; nothing of it is global."""

    def __init__(self, operator: Operator, config: ClusterConfig, options: ManagerOptions = DEFAULTS) -> None:
        self.operator = operator
        self.metrics: Registry = Registry()
        self.liveness: Checks = Checks("healthz")
        self.readiness: Checks = Checks("readyz")
        self.synced: asyncio.Event = asyncio.Event()
        """Set when every cache is filled and the probes say ready."""
        self.ready: asyncio.Event = asyncio.Event()
        """Set when this replica's workers run: at once after `synced`, or when it leads."""
        self.metrics_port: int = 0
        self.probe_port: int = 0
        self.webhook_port: int = 0
        self._config = config
        self._options = options
        self._runners: tuple[Runner[Any], ...] = ()
        self._cache: Cache | None = None
        self._election: ElectionThread | None = None
        self._lead_webhooks: Callable[[], Awaitable[None]] | None = None
        self._working: set[asyncio.Task[None]] = set()
        self._malformed = MalformedObjects()
        self._views = Views()
        self._traces = Traces()
        self._leading = self.metrics.gauge(
            "leader_election_master_status", "Whether this replica holds the lease (1) or not (0)", ("name",)
        ).labels(name=self._lease_name)

    async def run(self) -> None:
        """Run until cancelled, or until something fails that a retry cannot mend."""
        try:
            async with Client(self._config, metrics=self.metrics) as client, asyncio.TaskGroup() as group:
                await self._run(client, group)
        except BaseExceptionGroup as failures:
            _raise_first(failures)

    def statistics(self) -> ManagerStatistics:
        """Return what runs and what it has to do."""
        feeds = self._cache.feeds if self._cache is not None else []
        return ManagerStatistics(
            leading=self._election is None or self._election.leadership.valid,
            controllers=tuple(runner.statistics() for runner in self._runners),
            cached_objects=sum(len(feed.objects) for feed in feeds),
        )

    async def _run(self, client: Client, group: asyncio.TaskGroup) -> None:
        options = self._options
        recorder = EventRecorder(
            client, controller=self.operator.name, host=socket.gethostname(), metrics=self.metrics
        )
        if options.leader_elect:
            self._election = ElectionThread(self._config, self._election_options())
        cache = self._cache = Cache(
            client,
            metrics=self.metrics,
            sync_timeout=options.cache_sync_timeout,
            field_managers=_field_managers(self.operator.controllers),
            pause_gc=options.pause_gc,
        )
        self._traces = Traces(options.tracer or await _installed_tracer())
        self._runners = tuple(
            Runner(controller, self._surroundings(controller, client, cache, recorder))
            for controller in self.operator.controllers
        )
        self.readiness.add("caches", self._cache_problem)
        events = group.create_task(recorder.run(), name="events")
        stopped: asyncio.CancelledError | None = None
        try:
            async with AsyncExitStack() as stack:
                if options.watchdog:
                    await stack.enter_async_context(Watchdog(self.metrics))
                await self._serve(stack, group, client)
                # A kind whose versions we convert cannot be listed before we answer.
                await self._serve_webhooks(stack, group, client)
                for runner in self._runners:
                    runner.subscribe()
                stack.callback(group.create_task(cache.run(), name="cache").cancel)
                if self.operator.lifespan is not None:
                    await stack.enter_async_context(self.operator.lifespan())
                try:
                    await self._work(group, recorder)
                except asyncio.CancelledError as error:
                    # A stop is no failure of the lifespan: what follows its `yield` must run.
                    stopped = error
        finally:
            await self._give_up_lease()
            events.cancel()
        if stopped is not None:
            raise stopped

    async def _serve(self, stack: AsyncExitStack, group: asyncio.TaskGroup, client: Client) -> None:
        """Answer probes and scrapes before anything else runs: a slow start must be seen."""
        options = self._options
        probes = parse_address(options.health_probe_bind_address)
        if probes is not None:
            routes = [*self.liveness.routes, *self.readiness.routes]
            server = HttpServer(probes, Routes(routes))
            self.probe_port = await _listen(stack, server, "--health-probe-bind-address")
        metrics = parse_address(options.metrics_bind_address)
        if metrics is None:
            return
        page_type = (await Part.METRICS_PAGE.load()).MetricsPage
        if not options.metrics_secure:
            server = HttpServer(metrics, Routes(page_type(self.metrics).routes))
        else:
            serving = await Part.SERVING_CERTIFICATES.load()
            certificate = await asyncio.to_thread(serving.ServingCertificate, options.metrics_cert_dir)
            stack.callback(group.create_task(certificate.follow(), name="certificate").cancel)
            page = page_type(self.metrics, Guard(client))
            server = HttpServer(metrics, Routes(page.routes), tls=certificate.context)
        self.metrics_port = await _listen(stack, server, "--metrics-bind-address")

    async def _serve_webhooks(self, stack: AsyncExitStack, group: asyncio.TaskGroup, client: Client) -> None:
        options, webhooks = self._options, self.operator.webhooks
        address = parse_address(options.webhook_bind_address)
        if not webhooks:
            return
        if address is None:
            _log.warning("Webhooks are off: nothing judges, completes or converts objects")
            return
        server = await Part.WEBHOOK_SERVER.load()
        try:
            chosen = server.HostOptions(
                address=address,
                namespace=self._config.namespace,
                cert_dir=options.webhook_cert_dir,
                client_ca=options.webhook_client_ca,
                reach=options.webhook_reach or server.reach_of(self._config),
                lifetimes=options.webhook_lifetimes,
                state=options.webhook_state,
                standby=options.leader_elect,
            )
            host = server.WebhookHost(self.operator.name, webhooks, client, chosen, self.metrics)
            if options.webhook_reach is None:
                await host.confirm_reach()
        except server.Unreachable as error:
            if self.operator.webhooks.conversions:
                raise
            _log.warning("Webhooks are not served: %s", error)
            return
        self.readiness.add("webhooks", host.problem)
        await stack.enter_async_context(host.serving(group))
        self.webhook_port, self._lead_webhooks = host.port, host.lead

    async def _work(self, group: asyncio.TaskGroup, recorder: EventRecorder) -> None:
        """Reconcile until cancelled; then let what is in flight end."""
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
            await self._drain()

    async def _lead(
        self, group: asyncio.TaskGroup, election: ElectionThread, recorder: EventRecorder
    ) -> None:
        election.start()
        group.create_task(self._follow_election(election), name="election")
        await election.wait_leading()
        self._leading.set(1)
        if self._lead_webhooks is not None:
            await self._lead_webhooks()
        options = self._election_options()
        lease = Reference(LEASE.api_version, LEASE.kind, options.namespace, options.name, "")
        recorder.record(lease, "Normal", "LeaderElection", f"{options.identity} became leader")

    async def _follow_election(self, election: ElectionThread) -> None:
        try:
            await election.wait_lost()
        finally:
            self._leading.set(0)

    def _start_workers(self, group: asyncio.TaskGroup, *, elected: bool) -> None:
        for runner in self._runners:
            if runner.controller.tuning.elected == elected:
                name = f"controller {runner.controller.name}"
                self._working.add(group.create_task(runner.run(), name=name))

    async def _drain(self) -> None:
        """Give reconciles in flight their time to end; none when another replica may lead by now."""
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

    async def _give_up_lease(self) -> None:
        if self._election is None:
            return
        # A thread of ours that still runs may still write to an outside system: then the lease must expire.
        idle = all(task.done() for task in self._working) and not any(
            runner.threads_running for runner in self._runners
        )
        await self._election.stop(release=idle)

    def _surroundings(
        self, controller: Controller[Any], client: Client, cache: Cache, recorder: EventRecorder
    ) -> Surroundings:
        if self._election is not None and controller.tuning.elected:
            client = client.fenced(self._election.leadership.check)
        return Surroundings(
            client=self._traces.of_writes(client),
            cache=cache,
            recorder=recorder,
            metrics=self.metrics,
            namespaces=self._options.namespaces,
            traces=self._traces,
            malformed=self._malformed,
            views=self._views,
        )

    def _election_options(self) -> ElectionOptions:
        return ElectionOptions(
            name=self._lease_name,
            namespace=self._options.leader_election_namespace or self._config.namespace,
            identity=self._options.identity,
            times=self._options.lease_times,
        )

    @property
    def _lease_name(self) -> str:
        return self._options.leader_election_id or self.operator.name

    def _cache_problem(self) -> str | None:
        problems = self._cache.problems if self._cache is not None else []
        if problems:
            return "; ".join(problems)
        return None if self.synced.is_set() else "not everything that is watched has been read yet"


async def _listen(stack: AsyncExitStack, server: HttpServer, option: str) -> int:
    try:
        return (await stack.enter_async_context(server)).port
    except BindError as error:
        raise BindError(f"{error}; choose another with {option}, 0 is off") from error


async def _installed_tracer() -> Tracer | None:
    """Return OpenTelemetry's tracer; it makes nothing of spans until the program sets a provider."""
    try:
        return (await Part.OPENTELEMETRY.load()).get_tracer("kubewright")
    except ModuleNotFoundError:
        return None


def _field_managers(controllers: Sequence[Controller[Any]]) -> set[str]:
    return {
        manager
        for controller in controllers
        for manager in (controller.field_manager, *controller.tuning.former_field_managers)
    }


def _raise_first(failures: BaseExceptionGroup[BaseException]) -> NoReturn:
    """Raise the failure that stopped everything; the others are its echoes, kept as its notes."""
    leaves = [leaf for leaf in _leaves(failures) if not isinstance(leaf, asyncio.CancelledError)]
    first = next((leaf for leaf in leaves if isinstance(leaf, LeaseLost)), leaves[0])
    for other in leaves:
        if other is not first:
            first.add_note(f"and then: {other!r}")
    raise first


def _leaves(failure: BaseException) -> list[BaseException]:
    if not isinstance(failure, BaseExceptionGroup):
        return [failure]
    group = cast("BaseExceptionGroup[BaseException]", failure)
    return [leaf for part in group.exceptions for leaf in _leaves(part)]
