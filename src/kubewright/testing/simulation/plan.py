"""Faults as data: a plan is drawn from a seed, run and printed, and can be run again without the seed.

Each fault is a small frozen class whose fields define it completely, so that the repr of a plan reproduces it:

    Plan((Pause(replica=0, seconds=40.0), Crash(replica=0, request=7, when="after")), pauses=(0.5, 12.0))

The faults of a plan are injected into a `FaultTarget`: a simulation, or processes of an operator that use any API server
(`Cluster.disturbed`). Faults that only a simulation can inject are subclasses of `SimulationFault`.
"""

import asyncio
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from kubewright.devserver.faults import Moment
from kubewright.devserver.request.context import RequestContext
from kubewright.testing.fault_target import FaultReplica, FaultTarget, UnsupportedFault
from kubewright.testing.simulation.external import ExternalFault
from kubewright.testing.simulation.network import SECOND_SERVER
from kubewright.testing.simulation.simulation import Simulation

VERBS: tuple[tuple[str, ...], ...] = (
    (),
    ("patch",),
    ("watch", "list"),
    ("get",),
    ("delete",),
    ("create", "update"),
)
"""Choices of the verbs that a fault affects; an empty tuple means all verbs."""


class PlannedFault(ABC):
    """A fault that happens once or lasts for a while."""

    seconds: float = 0.0
    """How long it lasts."""

    @property
    def needs_simulation(self) -> bool:
        """Return True if only a simulation can inject the fault."""
        return False

    @abstractmethod
    async def inject(self, target: FaultTarget) -> None:
        """Inject the fault, and return when it is over."""


class SimulationFault(PlannedFault):
    """A fault of a part that only a simulation has: its API server, clocks or external systems."""

    @property
    def needs_simulation(self) -> bool:
        """Return True."""
        return True

    async def inject(self, target: FaultTarget) -> None:
        """Inject the fault; raise UnsupportedFault outside of a simulation."""
        await self.inject_into_simulation(_simulation(target, self))

    @abstractmethod
    async def inject_into_simulation(self, sim: Simulation) -> None:
        """Inject the fault into a simulation, and return when it is over."""


def _simulation(target: FaultTarget, *faults: PlannedFault) -> Simulation:
    """Return the target if it is a simulation; otherwise raise UnsupportedFault for the faults that need one."""
    if isinstance(target, Simulation):
        return target
    raise UnsupportedFault(
        f"{', '.join(map(repr, faults))}: only a simulation can inject this, not a proxy in front of an API server. "
        "Use `draw_plan(chance, draws=PORTABLE)`, or run the plan in a simulation"
    )


def _replica(target: FaultTarget, number: int) -> FaultReplica:
    """Return the replica with this number, modulo the number of replicas."""
    return target.replicas[number % len(target.replicas)]


def _retry_after(target: FaultTarget, seconds: int | None) -> int | None:
    return None if seconds is None else math.ceil(target.duration(seconds))


@dataclass(frozen=True, slots=True)
class Crash(PlannedFault):
    """A replica crashes at its n-th request from now: before the request is carried out, or after it."""

    replica: int
    request: int
    when: Moment

    async def inject(self, target: FaultTarget) -> None:
        """Schedule the crash."""
        _replica(target, self.replica).crash_at(self.request, self.when)


@dataclass(frozen=True, slots=True)
class LoseResponse(PlannedFault):
    """The n-th request of a replica from now is carried out, and its response is lost."""

    replica: int
    request: int

    async def inject(self, target: FaultTarget) -> None:
        """Schedule the lost response."""
        _replica(target, self.replica).lose_response_at(self.request)


@dataclass(frozen=True, slots=True)
class RefuseRequest(PlannedFault):
    """The n-th request of a replica from now fails with a status; a call to an external system fails without an effect."""

    replica: int
    request: int
    status: int
    retry_after: int | None = None

    async def inject(self, target: FaultTarget) -> None:
        """Schedule the failure."""
        retry_after = _retry_after(target, self.retry_after)
        _replica(target, self.replica).refuse_at(self.request, self.status, retry_after)


@dataclass(frozen=True, slots=True)
class PauseAt(SimulationFault):
    """The replica that sends a given request next is paused just before the request, or after it was carried out.

    `request` describes it as crash points do: `create configmaps prove/photos`, or `Registry: create photos`.
    """

    request: str
    when: Moment
    pause: float

    async def inject_into_simulation(self, sim: Simulation) -> None:
        """Schedule the pause."""
        sim.network.pauses[self.request] = self.when, self.pause


@dataclass(frozen=True, slots=True)
class PauseLeader(PlannedFault):
    """The replica that holds the lease is paused, long enough for another replica to take over."""

    seconds: float

    async def inject(self, target: FaultTarget) -> None:
        """Pause it."""
        replica = await target.leader()
        if replica is not None:
            replica.pause()
            await asyncio.sleep(target.duration(self.seconds))
            replica.resume()


@dataclass(frozen=True, slots=True)
class Pause(PlannedFault):
    """A replica is paused as by SIGSTOP, and then resumed."""

    replica: int
    seconds: float

    async def inject(self, target: FaultTarget) -> None:
        """Pause it."""
        replica = _replica(target, self.replica)
        replica.pause()
        await asyncio.sleep(target.duration(self.seconds))
        replica.resume()


@dataclass(frozen=True, slots=True)
class Refuse(PlannedFault):
    """The API server responds with an error and carries nothing out."""

    status: int
    verbs: tuple[str, ...]
    times: int
    seconds: float
    retry_after: int | None = None

    async def inject(self, target: FaultTarget) -> None:
        """Refuse the operators' requests."""
        match = target.operators(verbs=self.verbs)
        retry_after = _retry_after(target, self.retry_after)
        with target.faults.add(match=match, fail=self.status, retry_after=retry_after, times=self.times):
            await asyncio.sleep(target.duration(self.seconds))


@dataclass(frozen=True, slots=True)
class Lose(PlannedFault):
    """Connections break before the request is carried out, or after that and before the response."""

    when: Moment
    verbs: tuple[str, ...]
    times: int
    seconds: float

    async def inject(self, target: FaultTarget) -> None:
        """Break the connections of operators."""
        match = target.operators(verbs=self.verbs)
        with target.faults.add(match=match, fail="reset", when=self.when, times=self.times):
            await asyncio.sleep(target.duration(self.seconds))


@dataclass(frozen=True, slots=True)
class Slow(PlannedFault):
    """Responses are slow."""

    delay: float
    verbs: tuple[str, ...]
    seconds: float

    async def inject(self, target: FaultTarget) -> None:
        """Delay the operators' requests."""
        with target.faults.add(match=target.operators(verbs=self.verbs), delay=target.duration(self.delay)):
            await asyncio.sleep(target.duration(self.seconds))


@dataclass(frozen=True, slots=True)
class CutWatches(PlannedFault):
    """All watches of operators end: cleanly, by a broken connection, or because their revision is too old."""

    how: Literal["end", "reset", "expire"]
    times: int
    compact: bool = False
    """Whether the API server's history is also compacted, so that no watch can be resumed; only in simulations."""

    @property
    def needs_simulation(self) -> bool:
        """Return True if the history is compacted."""
        return self.compact

    async def inject(self, target: FaultTarget) -> None:
        """Cut the watches, several times in a row."""
        for _ in range(self.times):
            if self.compact:
                _simulation(target, self).server.compact()
            target.faults.cut_watches(target.operators(), how=self.how)
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class DropBookmarks(PlannedFault):
    """Watches send no bookmarks, as with an old API server."""

    seconds: float

    async def inject(self, target: FaultTarget) -> None:
        """Drop bookmarks."""
        for replica in target.replicas:
            replica.endpoint.drops_bookmarks = True
        await asyncio.sleep(target.duration(self.seconds))
        for replica in target.replicas:
            replica.endpoint.drops_bookmarks = False


@dataclass(frozen=True, slots=True)
class HoldEvents(PlannedFault):
    """Watch events arrive late and all together."""

    replica: int
    seconds: float

    async def inject(self, target: FaultTarget) -> None:
        """Hold watch events back."""
        endpoint = _replica(target, self.replica).endpoint
        endpoint.holds_events = True
        await asyncio.sleep(target.duration(self.seconds))
        endpoint.release_events()


@dataclass(frozen=True, slots=True)
class SecondServer(SimulationFault):
    """Two API servers share one address, and the watch cache of one of them is stale."""

    share: float
    seconds: float

    async def inject_into_simulation(self, sim: Simulation) -> None:
        """Send a share of the requests to a second server."""

        def second(context: RequestContext) -> bool:
            return SECOND_SERVER in context.request.headers

        with sim.faults.lag(second) as lag:
            for replica in sim.replicas:
                replica.endpoint.second_server = self.share
            for _ in range(4):
                await asyncio.sleep(self.seconds / 4)
                lag.catch_up(by=3)
            for replica in sim.replicas:
                replica.endpoint.second_server = 0.0


@dataclass(frozen=True, slots=True)
class WebhooksAway(SimulationFault):
    """The API server cannot reach the webhooks of any replica."""

    seconds: float

    async def inject_into_simulation(self, sim: Simulation) -> None:
        """Refuse connections to the webhooks."""
        names = {replica.name for replica in sim.replicas}
        sim.network.unreachable |= names
        await asyncio.sleep(self.seconds)
        sim.network.unreachable -= names


@dataclass(frozen=True, slots=True)
class FailExternal(SimulationFault):
    """Calls to simulated external systems fail: without an effect, or after they were carried out."""

    when: Moment
    times: int
    seconds: float

    async def inject_into_simulation(self, sim: Simulation) -> None:
        """Make the calls fail."""
        fault = ExternalFault(self.when, self.times)
        sim.externals.faults.append(fault)
        await asyncio.sleep(self.seconds)
        sim.externals.faults.remove(fault)


@dataclass(frozen=True, slots=True)
class SlowExternal(SimulationFault):
    """Simulated external systems are slow."""

    delay: float
    seconds: float

    async def inject_into_simulation(self, sim: Simulation) -> None:
        """Delay each call."""
        sim.externals.delay += self.delay
        await asyncio.sleep(self.seconds)
        sim.externals.delay -= self.delay


@dataclass(frozen=True, slots=True)
class JumpClock(SimulationFault):
    """The wall clock of a replica's machine jumps."""

    replica: int
    by: float

    async def inject_into_simulation(self, sim: Simulation) -> None:
        """Change the clock."""
        sim.replicas[self.replica % len(sim.replicas)].jump_clock(self.by)


@dataclass(frozen=True, slots=True)
class RestoreBackup(SimulationFault):
    """The cluster's data is restored from a backup that is `seconds` old.

    `lost` is the number of writes of other clients that are lost with it. An operator detects a restored cluster by a
    revision that is lower than before. It cannot detect a cluster whose revision is already higher again when it looks.
    """

    seconds: float
    lost: int = 10_000

    async def inject_into_simulation(self, sim: Simulation) -> None:
        """Take a backup, wait, and restore it."""
        backup = sim.backup()
        sim.server.store.revision += self.lost
        await asyncio.sleep(self.seconds)
        sim.restore(backup)


@dataclass(frozen=True, slots=True)
class Plan:
    """A list of faults; each starts some seconds after the previous one, so long faults overlap."""

    faults: tuple[PlannedFault, ...]
    pauses: tuple[float, ...]

    async def run(self, target: FaultTarget) -> None:
        """Execute the plan; return when the last fault is over.

        Raise UnsupportedFault before the first fault if the target is not a simulation and one of the faults needs one.
        """
        if needing := [fault for fault in self.faults if fault.needs_simulation]:
            _simulation(target, *needing)
        async with asyncio.TaskGroup() as group:
            for pause, fault in zip(self.pauses, self.faults, strict=True):
                await asyncio.sleep(target.duration(pause))
                target.record_fault(repr(fault))
                group.create_task(_inject(fault, target))
        target.record_fault("all faults are over")


async def _inject(fault: PlannedFault, target: FaultTarget) -> None:
    with target.active(fault):
        await fault.inject(target)


Draw = Callable[[random.Random], PlannedFault]


def _verbs(chance: random.Random) -> tuple[str, ...]:
    return chance.choice(VERBS)


def _duration(chance: random.Random) -> float:
    return round(chance.choice([0.2, 2.0, 20.0, 90.0]) * chance.uniform(0.5, 1.5), 3)


_REQUESTS: Sequence[Draw] = (
    lambda c: Crash(c.randrange(8), c.randint(1, 40), c.choice(["before", "after"])),
    lambda c: Crash(c.randrange(8), c.randint(1, 10), c.choice(["before", "after"])),
    lambda c: Pause(c.randrange(8), _duration(c)),
    lambda c: Refuse(c.choice([409, 500, 503]), _verbs(c), c.randint(1, 30), _duration(c)),
    lambda c: Refuse(429, _verbs(c), c.randint(1, 30), _duration(c), retry_after=c.randint(1, 9)),
    lambda c: Lose(c.choice(["before", "after"]), _verbs(c), c.randint(1, 20), _duration(c)),
    lambda c: Slow(round(c.uniform(0.1, 40), 3), _verbs(c), _duration(c)),
)
_WATCHES: Sequence[Draw] = (
    lambda c: DropBookmarks(_duration(c)),
    lambda c: HoldEvents(c.randrange(8), _duration(c)),
)
COMMON: Sequence[Draw] = (
    *_REQUESTS,
    lambda c: CutWatches(c.choice(["end", "reset", "expire"]), c.randint(1, 3), c.random() < 0.3),
    *_WATCHES,
    lambda c: SecondServer(round(c.uniform(0.2, 1.0), 2), _duration(c)),
    lambda c: JumpClock(c.randrange(8), round(c.uniform(-7200, 7200), 3)),
)
"""Faults that every operator must survive; the default of `draw_plan`."""
PORTABLE: Sequence[Draw] = (
    *_REQUESTS,
    lambda c: CutWatches(c.choice(["end", "reset", "expire"]), c.randint(1, 3)),
    *_WATCHES,
)
"""The common faults that need no simulation: a plan of them also runs in `Cluster.disturbed`, on any API server."""
WEBHOOKS: Sequence[Draw] = (lambda c: WebhooksAway(_duration(c)),)
"""Faults for operators with webhooks: `draw_plan(chance, draws=[*COMMON, *WEBHOOKS])`."""
EXTERNAL_SYSTEMS: Sequence[Draw] = (
    lambda c: FailExternal(c.choice(["before", "after"]), c.randint(1, 6), _duration(c)),
    lambda c: FailExternal("after", 1, _duration(c)),
    lambda c: SlowExternal(round(c.uniform(0.1, 40), 3), _duration(c)),
)
"""Faults of simulated external systems (`External`)."""
BACKUPS: Sequence[Draw] = (lambda c: RestoreBackup(_duration(c)),)
"""A restore of the cluster from a backup."""


def draw_plan(chance: random.Random, count: int = 6, draws: Sequence[Draw] = COMMON) -> Plan:
    """Return a random plan of `count` faults."""
    faults = tuple(chance.choice(draws)(chance) for _ in range(count))
    pauses = tuple(round(chance.choice([0.0, 0.05, 1.0, 15.0]) * chance.uniform(0.5, 1.5), 3) for _ in faults)
    return Plan(faults, pauses)
