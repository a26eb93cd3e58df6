"""A cluster and its operators in one thread, under virtual time, from a seed.

    def scenario(sim): ...            an async function
    simulate(scenario, seed=7)        runs it; the same seed gives the same trace, bit for bit

The API server, its controllers and each replica of an operator are processes of a `SimulationLoop`. They meet over a
`SimulatedNetwork`. The test itself is outside: its requests take no time.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
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
from kubewright.devserver.storage import Backup
from kubewright.election import ElectionOptions
from kubewright.http.network import NETWORK
from kubewright.manager import Manager, ManagerOptions, WebhookOptions
from kubewright.testing.accounts import grant
from kubewright.testing.cluster import Cluster
from kubewright.testing.simulation.determinism import Determinism
from kubewright.testing.simulation.election import SimulatedElection
from kubewright.testing.simulation.loop import SimulatedProcess, SimulationLoop
from kubewright.testing.simulation.network import (
    PROCESS_HEADER,
    ApiExchange,
    SimulatedConnection,
    SimulatedNetwork,
)
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
"""Seconds without a write after which an operator without failed keys is at rest: longer than a watch is away."""
NAMESPACE = "test"
"""The namespace of the operators' own objects, and of a scenario's objects unless it creates other namespaces."""
OPTIONS = ManagerOptions(
    metrics_bind_address="0",
    health_probe_bind_address="0",
    webhooks=WebhookOptions(bind_address="127.0.0.1:0", reach="url"),
    watchdog=False,
)
_POLL = 0.05
_log = logging.getLogger("kubewright.testing")


def simulate(scenario: Scenario[R], seed: int = 0, *, workloads: bool = False) -> R:
    """Run a scenario on a cluster of its own and return what it returns.

    `workloads` brings the dev cluster's Deployments, Pods and so on; without them only namespaces and the garbage
    collector work, which is several times as fast.
    """
    _warm_up(workloads)
    loop = SimulationLoop()
    try:
        with Determinism(seed, loop) as determinism:
            simulation = Simulation(loop, seed)
            loop.explain = simulation.explain
            loop.run_until_complete(simulation.start_cluster(workloads=workloads))
            # What is done once per process, such as an import, must not shift the numbers of this run.
            determinism.reseed()
            return loop.run_until_complete(simulation.run(scenario))
    finally:
        loop.dispose()


@cache
def _warm_up(workloads: bool) -> None:
    """Do once what each process does once, such as reading tables, so that the first run is like the others."""
    loop = SimulationLoop()
    try:
        with Determinism(0, loop):
            loop.run_until_complete(Simulation(loop, 0).start_cluster(workloads=workloads))
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
            name, latency=LATENCY, on_crash=self._crashed
        )
        self._config = config
        self._work: asyncio.Task[None] | None = None
        self.process: SimulatedProcess | None = None
        self.manager: Manager | None = None
        self.clock_offset: float = 0.0
        self.exits: list[Exception] = []
        """The exception each time that the operator ended by itself."""

    @property
    def running(self) -> bool:
        """Return True while it has a process."""
        return self.process is not None and not self.process.crashed

    def unrest(self) -> str:
        """Return why it is not idle: it does not run, or has keys in flight, queued or in backoff."""
        if not self.running or self.manager is None or not self.manager.synced.is_set():
            return f"{self.name} does not run"
        busy = [
            f"{self.name}: {found.controller} has {found.queue}"
            for found in self.manager.statistics().controllers
            if found.queue.ready or found.queue.in_flight or found.queue.retrying
        ]
        return ", ".join(busy)

    def match(self, **which: Any) -> Callable[[RequestContext], bool]:
        """Match requests of this replica alone, narrowed as by `Match`."""
        wanted = Match(**which)

        def matches(context: RequestContext) -> bool:
            return context.request.headers.get(PROCESS_HEADER) == self.name and wanted(context)

        return matches

    def crash(self) -> None:
        """End it at once, without any `finally`; it is started again soon."""
        if self.process is not None and self.running:
            self.process.crash()
            self._crashed()

    def crash_at(self, request: int, when: Moment = "before") -> None:
        """Crash it at its n-th request from now: before the API server sees it, or after it was carried out."""
        self.endpoint.crash_at[self.endpoint.requests + request] = when

    def pause(self) -> None:
        """Stop it as SIGSTOP does; its connections stay open."""
        if self.process is not None:
            self.process.pause()
            self._simulation.record(self.name, "pause", "")

    def resume(self) -> None:
        """Let it go on."""
        if self.process is not None and self.process.paused:
            self._simulation.record(self.name, "resume", "")
            self.process.resume()

    def jump_clock(self, seconds: float) -> None:
        """Move the wall clock of its machine, forwards or backwards; it keeps that over restarts."""
        self.clock_offset += seconds
        if self.process is not None:
            self.process.clock_offset = self.clock_offset

    async def stop(self) -> None:
        """Stop it as SIGTERM does and wait for its end; it is not started again."""
        self._wanted = False
        if self.running and self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])
        self._ended.set()

    async def run(self) -> None:
        """Keep it running until it is stopped, with pauses that grow as those of a kubelet."""
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
        simulation.record(self.name, "start", "")
        self._work = process.spawn(self._run(process))

    async def _run(self, process: SimulatedProcess) -> None:
        simulation = self._simulation
        config = replace(self._config, exchange=lambda: simulation.exchange(self.endpoint, process))
        options = self._options
        if options.election is not None:
            identity = f"{self.name}_{len(self.exits)}_{simulation.loop.time():.3f}"
            options = replace(options, election=msgspec.structs.replace(options.election, identity=identity))
        self.manager = manager = Manager(
            self._make(),
            config,
            options,
            elect=lambda config, lease: SimulatedElection(config, lease, end_process=self.crash),
        )
        try:
            await manager.run()
        except asyncio.CancelledError:
            pass
        except Exception as error:
            self.exits.append(error)
            _log.warning("%s ended: %r", self.name, error)
        simulation.record(self.name, "stop", "")
        process.crash()
        self._ended.set()

    def _crashed(self) -> None:
        self._simulation.record(self.name, "crash", "")
        self._ended.set()

    async def wait_ready(self, within: float = 600.0) -> None:
        """Wait until it is ready: its caches are filled and, with leader election, it leads."""
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
        self.replicas: list[Replica] = []
        self._cluster_process = loop.process("cluster")
        self.network.on_forbidden = self._forbidden
        self._supervisors: list[asyncio.Task[None]] = []

    async def start_cluster(self, *, workloads: bool) -> None:
        """Start the API server and its controllers."""
        self._dev = DevCluster(listen=False, workloads=workloads)
        context = self._cluster_process.context()
        context.run(NETWORK.set, self.network)
        await self.loop.create_task(self._dev.__aenter__(), context=context)

    async def run(self, scenario: Scenario[R]) -> R:
        """Run the scenario; what is left then is dropped with the loop."""
        NETWORK.set(self.network)
        test = SimulatedConnection("test")
        self.config: ClusterConfig = replace(
            self._dev.in_process_config(), exchange=lambda: self.exchange(test, None)
        )
        self.client: Client = await Client(self.config, field_manager="kubewright-testing").__aenter__()
        self.world: World = World(self.server.store, self.trace, self.loop.time, on_violation=self.loop.abort)
        self.world.follow()
        await self.client.create(core_v1.Namespace(Meta(NAMESPACE)))
        self.cluster: Cluster = Cluster(
            "embedded", self.client, self.config, Path("none"), NAMESPACE, self.server.faults
        )
        """The same as in tests of other kinds: `create`, `get`, `eventually` and so on."""
        return await scenario(self)

    @property
    def server(self) -> Server:
        """The API server."""
        return self._dev.server

    @property
    def faults(self) -> Faults:
        """Faults of the API server, for requests that `Replica.match` or `operators` matches."""
        return self.server.faults

    def operators(self, **which: Any) -> Callable[[RequestContext], bool]:
        """Match requests of operators alone, not those of the test or of the cluster, narrowed as by `Match`."""
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
    ) -> list[Replica]:
        """Install what an operator needs and run replicas of it, each with an operator that `make` makes.

        They run as a ServiceAccount that may do what the operator declares. Several replicas elect a leader.
        `kinds` are custom resources that the operator uses and does not bring; `namespaces` is where it looks, by
        default everywhere.
        """
        operator = make()
        await self.cluster.install(operator, *kinds)
        config = await grant(self.client, self.config, operator, NAMESPACE)
        if replicas > 1 and options.election is None:
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
        """Wait until a condition of this process holds; it costs no request."""
        try:
            async with asyncio.timeout(within):
                while not holds():  # noqa: ASYNC110 (there is no event to wait for)
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            raise AssertionError(
                f"within {within:g} s it did not happen that {what}\n{self.explain()}"
            ) from None

    async def settled(self, *, quiet: float = QUIET, within: float = 20_000.0) -> None:
        """Wait until every replica runs, has nothing to do or to repeat, and has written nothing for a while.

        Fail if that does not happen.
        """
        began = self.loop.time()
        while True:
            left = max(began, self.world.last_work) + quiet - self.loop.time()
            busy = [found for replica in self.replicas if (found := replica.unrest())]
            if left <= 0 and not busy:
                return
            if self.loop.time() > began + within:
                raise AssertionError(
                    f"operators still write after {within:g} s:\n{self.world.last_writes()}"
                    if left > 0
                    else f"{', '.join(busy)} did not come to rest within {within:g} s\n{self.explain()}"
                )
            await asyncio.sleep(max(left, quiet / 4))

    def change(self, what: str) -> None:
        """Record that the scenario changed something."""
        self.record("test", "change", what)

    def invariant(self, check: Callable[[World, Write], None]) -> Callable[[World, Write], None]:
        """Call a function after every write; an AssertionError of it ends the run."""
        self.world.invariants.append(check)
        return check

    def backup(self) -> Backup:
        """Copy the state of the cluster, as a backup of etcd does."""
        return self.server.store.backup()

    def restore(self, backup: Backup) -> None:
        """Put the cluster back to a backup: older objects, an older revision, and all watches cut."""
        self.server.store.restore(backup)
        self.faults.catch_up()
        self.world.reread()
        self.record("cluster", "fault", f"restored from a backup of revision {backup.revision}")

    def _forbidden(self, process: str, why: str) -> None:
        if process in self.world.operators:
            self.loop.abort(AssertionError(f"{process} asked for what its declarations do not allow: {why}"))

    def record(self, process: str, what: What, subject: str, data: bytes = b"") -> None:
        """Add to the trace."""
        self.trace.add(self.loop.time(), process, what, subject, data)

    def exchange(self, endpoint: SimulatedConnection, process: SimulatedProcess | None) -> ApiExchange:
        """Make the way of one client to the API server."""
        return ApiExchange(self.network, endpoint, process, self._cluster_process, self.server.handle)

    def explain(self) -> str:
        """Describe what happened last, for errors."""
        world = getattr(self, "world", None)
        writes = world.last_writes() if isinstance(world, World) else ""
        return f"the last writes:\n{writes}\nand everything that happened last:\n{self.trace.tail()}"
