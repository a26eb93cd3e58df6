"""A cluster and its operators in one thread, under virtual time, from a seed.

    def scenario(sim): ...            an async function
    simulate(scenario, seed=7)        runs it; the same seed gives the same trace, bit for bit

The API server, its controllers and each replica of an operator are processes of a `SimulationLoop`. They communicate over
a `SimulatedNetwork`. The test itself is not one of them: its requests take no time.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kubewright.api import Meta, Object
from kubewright.api.builtin import core_v1
from kubewright.client import Client, ClusterConfig
from kubewright.controller import Operator
from kubewright.devcluster import DevCluster
from kubewright.devserver import Faults, Match, RequestContext, Server
from kubewright.devserver.faults import Moment
from kubewright.devserver.objects.metadata import UID_SOURCE
from kubewright.devserver.storage import Backup
from kubewright.election import ElectionOptions
from kubewright.http.network import NETWORK
from kubewright.manager import Manager, ManagerOptions, WebhookOptions
from kubewright.testing.accounts import grant
from kubewright.testing.cluster import Cluster
from kubewright.testing.operator_program import busy_controllers
from kubewright.testing.releases import selected_release
from kubewright.testing.simulation.blocking import BlockDetector
from kubewright.testing.simulation.determinism import Determinism, UidsByName
from kubewright.testing.simulation.election import SimulatedElection, SimulatedShardElection
from kubewright.testing.simulation.external import EXTERNALS, ExternalSystems
from kubewright.testing.simulation.loop import SimulatedProcess, SimulationLoop
from kubewright.testing.simulation.network import (
    NUMBER_HEADER,
    PROCESS_HEADER,
    ApiExchange,
    SimulatedConnection,
    SimulatedNetwork,
)
from kubewright.testing.simulation.schedule import Deviation, MessageSchedule
from kubewright.testing.simulation.trace import Trace, What
from kubewright.testing.simulation.world import World, Write

R = TypeVar("R")
Scenario = Callable[["Simulation"], Awaitable[R]]

LATENCY = (0.0005, 0.02)
"""Seconds that a message between an operator and the API server takes, at least and at most."""
RESTART_AFTER = 1.0
"""Seconds until a crashed operator is started again, as a kubelet would."""
LONGEST_RESTART = 300.0
QUIET = 120.0
"""Seconds without a write after which an idle operator counts as settled: longer than a watch may be closed."""
NAMESPACE = "test"
"""The namespace of the operators' own objects, and of a scenario's objects unless it creates other namespaces."""
OPTIONS = ManagerOptions(
    metrics_bind_address="0",
    health_probe_bind_address="0",
    webhooks=WebhookOptions(bind_address="127.0.0.1:0", reach="url", declared_policies=True),
    watchdog=False,
)
_POLL = 0.05
_LEASES = "leases.coordination.k8s.io"
_log = logging.getLogger("kubewright.testing")


def simulate(
    scenario: Scenario[R],
    seed: int = 0,
    *,
    workloads: bool = False,
    garbage_collector: bool = True,
    feature_gates: Mapping[str, bool] | None = None,
) -> R:
    """Run a scenario on a new cluster and return its result.

    With `workloads` the dev cluster's controllers run: Deployments, Pods and so on. Without them only the controllers of
    namespaces and of garbage collection run, which is several times as fast. Without the `garbage_collector`, which
    watches all kinds, a scenario of days is again several times as fast. `feature_gates` are those of the API server.
    """
    _warm_up(workloads, garbage_collector)
    loop = SimulationLoop()

    def run() -> R:
        simulation = Simulation(loop, seed)
        loop.explain = simulation.explain
        loop.run_until_complete(simulation.start_cluster(workloads, garbage_collector, feature_gates))
        # Work that is done once per process, such as an import, must not change the random numbers of this run.
        determinism.reseed("scenario")
        return loop.run_until_complete(simulation.run(scenario))

    with Determinism(seed, loop) as determinism:
        try:
            with BlockDetector(loop):
                return run()
        finally:
            loop.dispose()


@cache
def _warm_up(workloads: bool, garbage_collector: bool) -> None:
    """Do the work that is done once per process, such as reading tables, so that the first run is like the others."""
    loop = SimulationLoop()
    with Determinism(0, loop):
        try:
            loop.run_until_complete(Simulation(loop, 0).start_cluster(workloads, garbage_collector))
        finally:
            loop.dispose()


class Replica:
    """One replica of an operator: it can be started, crashed, paused, and started again with an empty memory."""

    def __init__(
        self,
        simulation: "Simulation",
        name: str,
        make: Callable[[], Operator],
        config: ClusterConfig,
        options: ManagerOptions,
    ) -> None:
        self._simulation = simulation
        self._make = make
        self._options = options
        self._ended = asyncio.Event()
        self._wanted = True
        self.name = name
        self.endpoint: SimulatedConnection = SimulatedConnection(
            name, latency=LATENCY, on_crash=self._crashed, on_pause=self.pause_for
        )
        self._config = config
        self._work: asyncio.Task[None] | None = None
        self.process: SimulatedProcess | None = None
        self.manager: Manager | None = None
        self.clock_offset: float = 0.0
        self.started_at: float = 0.0
        self.exits: list[Exception] = []
        """The exceptions with which the operator ended by itself."""

    @property
    def running(self) -> bool:
        """Return True while its process runs."""
        return self.process is not None and not self.process.crashed

    def busy_reason(self) -> str:
        """Return why the replica is not idle, or an empty string.

        It is not idle if it does not run, or has keys in flight, queued or in backoff.
        """
        if not self.running or self.manager is None or not self.manager.synced.is_set():
            return f"{self.name} does not run"
        return busy_controllers(self.manager, self.name)

    def match(self, **which: Any) -> Callable[[RequestContext], bool]:
        """Return a function that matches requests of this replica with the fields of `Match`."""
        wanted = Match(**which)

        def matches(context: RequestContext) -> bool:
            return context.request.headers.get(PROCESS_HEADER) == self.name and wanted(context)

        return matches

    def crash(self) -> None:
        """End the process at once, without running any `finally`; it is started again soon."""
        if self.process is not None and self.running:
            self.process.crash()
            self._crashed()

    def restart(self) -> None:
        """Restart the process without a graceful shutdown, as for a new version; the trace shows no crash."""
        if self.process is not None and self.running:
            self.process.crash()
            self._simulation.record(self.name, "restart", "")
            self._ended.set()

    def crash_at(self, request: int, when: Moment = "before") -> None:
        """Crash the replica at its n-th request from now: before the API server sees it, or after it was carried out."""
        self.endpoint.crash_at[self.endpoint.requests + request] = when

    def lose_response_at(self, request: int) -> None:
        """Lose the response to the n-th request from now, after the request was carried out."""
        self.endpoint.lose_at.add(self.endpoint.requests + request)

    def refuse_at(self, request: int, status: int, retry_after: int | None = None) -> None:
        """Fail the n-th request from now with a status code; a call to an external system fails without an effect."""
        number = self.endpoint.requests + request
        self.endpoint.refuse_at.add(number)

        def matches(context: RequestContext) -> bool:
            headers = context.request.headers
            return headers.get(PROCESS_HEADER) == self.name and headers.get(NUMBER_HEADER) == str(number)

        self._simulation.faults.add(match=matches, fail=status, retry_after=retry_after, times=1)

    def pause(self) -> None:
        """Stop the process as SIGSTOP does; its connections stay open."""
        if self.process is not None:
            self.process.pause()
            self._simulation.record(self.name, "pause", "")

    def pause_for(self, seconds: float) -> None:
        """Stop the process as SIGSTOP does, and resume it after some seconds."""
        self.pause()
        # In another context, because callbacks of a paused process do not run.
        self._simulation.loop.call_later(seconds, self.resume, context=Context())

    def resume(self) -> None:
        """Resume the process as SIGCONT does."""
        if self.process is not None and self.process.paused:
            self._simulation.record(self.name, "resume", "")
            self.process.resume()

    def jump_clock(self, seconds: float) -> None:
        """Change the wall clock of its machine, forwards or backwards; restarts do not reset it."""
        self.clock_offset += seconds
        if self.process is not None:
            self.process.clock_offset = self.clock_offset

    async def stop(self) -> None:
        """Stop the process as SIGTERM does and wait until it has ended; it is not started again."""
        self._wanted = False
        if self.running and self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])
        self._ended.set()

    async def run(self) -> None:
        """Restart the process until `stop` is called, with a growing delay as a kubelet does."""
        pause = RESTART_AFTER
        while self._wanted:
            self._ended.clear()
            began = self._simulation.loop.time()
            self._start()
            await self._ended.wait()
            if self._simulation.loop.time() - began > LONGEST_RESTART:
                pause = RESTART_AFTER
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_RESTART)

    def _start(self) -> None:
        simulation = self._simulation
        self.process = process = simulation.loop.process(self.name)
        process.clock_offset = self.clock_offset
        self.started_at = simulation.loop.time()
        simulation.record(self.name, "start", "")
        simulation.externals.connections[self.name] = self.endpoint
        self._work = process.spawn(self._run(process))

    async def _run(self, process: SimulatedProcess) -> None:
        simulation = self._simulation
        config = replace(self._config, exchange=lambda: simulation.exchange(self.endpoint, process))
        options = self._options
        operator = self._make()
        if options.election is None and (options.shards or operator.shards):
            options = replace(options, election=ElectionOptions(identity=""))
        if options.election is not None:
            identity = f"{self.name}_{len(self.exits)}_{simulation.loop.time():.3f}"
            options = replace(options, election=msgspec.structs.replace(options.election, identity=identity))
        self.manager = manager = Manager(
            operator,
            config,
            options,
            elect=lambda config, lease: SimulatedElection(config, lease, end_process=self.crash),
            elect_shards=lambda config, lease, shards: SimulatedShardElection(
                config, lease, shards, end_process=self.crash
            ),
        )
        for notify in simulation.on_manager:
            notify(self.name, manager)
        try:
            await manager.run()
        except asyncio.CancelledError:
            pass
        except Exception as error:
            if process.crashed:
                # Its coroutines are closed after the run; exceptions that they raise then are ignored.
                return
            self.exits.append(error)
            _log.warning("%s ended: %r", self.name, error)
            for report in simulation.on_exit:
                report(self.name, error)
        simulation.record(self.name, "stop", "")
        process.crash()
        self._ended.set()

    def _crashed(self) -> None:
        self._simulation.record(self.name, "crash", "")
        self._ended.set()

    async def wait_ready(self, within: float = 600.0) -> None:
        """Wait until the replica is ready: its caches are synced and, with leader election, it is the leader."""
        await self._simulation.until(
            lambda: self.running and self.manager is not None and self.manager.ready.is_set(),
            f"{self.name} works",
            within,
        )


class Simulation:
    """One run: the cluster, the replicas, the network between them, and what happened."""

    def __init__(self, loop: SimulationLoop, seed: int) -> None:
        self.loop = loop
        self.seed = seed
        self.chance: random.Random = random.Random(f"scenario {seed}")
        """Random numbers for the scenario."""
        self.trace: Trace = Trace()
        self.network: SimulatedNetwork = SimulatedNetwork(loop, seed, self.trace)
        self.externals: ExternalSystems = ExternalSystems(self.network)
        self.replicas: list[Replica] = []
        self._cluster_process = loop.process("cluster")
        self.network.on_forbidden = self._forbidden
        self.on_manager: list[Callable[[str, Manager], None]] = []
        """Called with the name of a replica and its manager, each time that the replica starts."""
        self.on_exit: list[Callable[[str, Exception], None]] = []
        """Called with the name of a replica and the exception with which it ended by itself."""
        self.active_faults: Counter[type] = Counter()
        """How many faults of a plan are active now, by class."""
        self.fault_times: dict[type, float] = {}
        """When a fault of a class was active last."""
        self._supervisors: list[asyncio.Task[None]] = []

    async def start_cluster(
        self, workloads: bool, garbage_collector: bool, feature_gates: Mapping[str, bool] | None = None
    ) -> None:
        """Start the API server and its controllers."""
        self._dev = DevCluster(
            kubernetes=selected_release() or "",
            listen=False,
            workloads=workloads,
            garbage_collector=garbage_collector,
            feature_gates=feature_gates,
        )
        context = self._cluster_process.context()
        context.run(NETWORK.set, self.network)
        await self.loop.create_task(self._dev.__aenter__(), context=context)

    async def run(self, scenario: Scenario[R]) -> R:
        """Run the scenario; tasks that still run at its end are dropped with the loop."""
        NETWORK.set(self.network)
        EXTERNALS.set(self.externals)
        UID_SOURCE.set(UidsByName())
        test = SimulatedConnection("test")
        self.config: ClusterConfig = replace(
            self._dev.in_process_config(), exchange=lambda: self.exchange(test, None)
        )
        self.client: Client = await Client(self.config, field_manager="kubewright-testing").__aenter__()
        self.world: World = World(
            self.server.store, self.trace, self.loop.stamp, on_violation=self.loop.abort
        )
        self.world.follow()
        await self.client.create(core_v1.Namespace(Meta(NAMESPACE)))
        self.cluster: Cluster = Cluster(
            "embedded", self.client, self.config, Path("none"), NAMESPACE, self.server.faults
        )
        """The test cluster, with the same methods as in other tests: `create`, `get`, `eventually` and so on."""
        return await scenario(self)

    @property
    def server(self) -> Server:
        """The API server."""
        return self._dev.server

    @property
    def faults(self) -> Faults:
        """Faults of the API server, for the requests that `Replica.match` or `operators` matches."""
        return self.server.faults

    def operators(self, **which: Any) -> Callable[[RequestContext], bool]:
        """Return a function that matches requests of operators, not of the test or the cluster, with the fields of `Match`."""
        wanted = Match(**which)

        def matches(context: RequestContext) -> bool:
            return context.request.headers.get(PROCESS_HEADER) in self.world.operators and wanted(context)

        return matches

    async def start(
        self,
        make: Callable[[], Operator],
        *,
        replicas: int = 1,
        kinds: Sequence[type[Object]] = (),
        namespaces: Sequence[str] = (),
        options: ManagerOptions = OPTIONS,
        elect: bool = True,
    ) -> list[Replica]:
        """Install the CRDs and roles of an operator and run replicas of it, each with an operator that `make` returns.

        They run as a ServiceAccount with only the permissions that the operator declares. Several replicas elect a leader;
        with `elect=False` all of them work at once. `kinds` are custom kinds that the operator uses and whose CRDs it does
        not install. `namespaces` are the namespaces that it watches, by default all.
        """
        operator = make()
        await self.cluster.install(operator, *kinds)
        config = await grant(self.client, self.config, operator, NAMESPACE)
        if elect and replicas > 1 and options.election is None:
            options = replace(options, election=ElectionOptions(identity=""))
        options = replace(options, namespaces=namespaces)
        made = [
            Replica(self, f"{operator.name}-{number}", make, config, options) for number in range(replicas)
        ]
        for replica in made:
            self.world.operators.add(replica.name)
            self._supervisors.append(self.loop.create_task(replica.run()))
        self.replicas += made
        return made

    async def until(self, holds: Callable[[], object], what: str, within: float = 600.0) -> None:
        """Wait until a condition holds, without sending a request; `what` describes it in the error message."""
        try:
            async with asyncio.timeout(within):
                while not holds():  # noqa: ASYNC110 (there is no event to wait for)
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            raise AssertionError(
                f"timed out after {within:g} s while waiting until {what}\n{self.explain()}"
            ) from None

    async def settled(self, *, quiet: float = QUIET, within: float = 20_000.0) -> None:
        """Wait until every replica runs, has no key queued or retried, and has written nothing for `quiet` seconds.

        Raise AssertionError after `within` seconds.
        """
        began = self.loop.time()
        while True:
            left = max(began, self.world.last_work, self.externals.last_change) + quiet - self.loop.time()
            busy = [found for replica in self.replicas if (found := replica.busy_reason())]
            if left <= 0 and not busy:
                return
            if self.loop.time() > began + within:
                raise AssertionError(
                    f"operators still write after {within:g} s:\n{self.world.last_writes()}"
                    if left > 0
                    else f"operators did not settle within {within:g} s: {', '.join(busy)}\n{self.explain()}"
                )
            await asyncio.sleep(max(left, quiet / 4))

    async def leader(self) -> Replica | None:
        """Return the replica that holds a lease, if any."""
        holders = [lease["spec"].get("holderIdentity") or "" for lease in self.world.objects(_LEASES)]
        return next(
            (
                replica
                for replica in self.replicas
                if any(holder.startswith(f"{replica.name}_") for holder in holders)
            ),
            None,
        )

    def duration(self, seconds: float) -> float:
        """Return the seconds unchanged: virtual time costs nothing."""
        return seconds

    @contextmanager
    def active(self, fault: object) -> Generator[None]:
        """Count a fault of a plan as active while the context is open."""
        kind = type(fault)
        self.active_faults[kind] += 1
        self.fault_times[kind] = self.loop.time()
        try:
            yield
        finally:
            self.active_faults[kind] -= 1
            self.fault_times[kind] = self.loop.time()

    def record_fault(self, what: str) -> None:
        """Add a fault of a plan to the trace."""
        self.record("test", "fault", what)

    def disturbed_since(self, time: float, *faults: type) -> bool:
        """Return True if a fault of a plan was active at or after a time; `faults` limits it to some classes."""
        found = [kind for kind in self.fault_times if not faults or issubclass(kind, faults)]
        return any(self.active_faults[kind] or self.fault_times[kind] >= time for kind in found)

    def cluster_timers(self) -> list[tuple[float, str]]:
        """Return when the cluster's own controllers do something next, and a description of it."""
        return [
            (when, getattr(callback, "__qualname__", type(callback).__name__))
            for when, (callback, _) in self.loop.timers_of(self._cluster_process)
        ]

    def control(self, deviations: Sequence[Deviation]) -> MessageSchedule:
        """Deliver the messages of operators in the default order from now on, except for these deviations."""
        self.network.schedule = MessageSchedule(self.loop, deviations)
        return self.network.schedule

    def change(self, what: str) -> None:
        """Record that the scenario changed something."""
        self.record("test", "change", what)

    def invariant(self, check: Callable[[World, Write], None]) -> Callable[[World, Write], None]:
        """Call a function after every write; if it raises AssertionError, the run fails."""
        self.world.invariants.append(check)
        return check

    def backup(self) -> Backup:
        """Return a copy of the cluster's state, as a backup of etcd."""
        return self.server.store.backup()

    def restore(self, backup: Backup) -> None:
        """Restore the cluster from a backup: older objects, an older revision, and all watches are closed."""
        self.server.store.restore(backup)
        self.faults.catch_up()
        self.world.reread()
        self.record("cluster", "fault", f"restored from a backup of revision {backup.revision}")

    def _forbidden(self, process: str, why: str) -> None:
        if process in self.world.operators:
            self.loop.abort(
                AssertionError(f"{process} sent a request that its declarations do not allow: {why}")
            )

    def record(self, process: str, what: What, subject: str, data: bytes = b"") -> None:
        """Add to the trace."""
        self.trace.add(self.loop.stamp(), process, what, subject, data)

    def exchange(self, endpoint: SimulatedConnection, process: SimulatedProcess | None) -> ApiExchange:
        """Return a new connection of a client to the API server."""
        return ApiExchange(self.network, endpoint, process, self._cluster_process, self.server.handle)

    def explain(self) -> str:
        """Return the last writes and the end of the trace as text, for error messages."""
        world = getattr(self, "world", None)
        writes = world.last_writes() if isinstance(world, World) else ""
        return f"the last writes:\n{writes}\nthe last entries of the trace:\n{self.trace.tail()}"
