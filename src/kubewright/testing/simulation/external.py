"""Simulated external systems: their state survives crashes of the operator, and their calls can fail or crash it.

    class Registry(External):
        async def create(self, name: str) -> None:
            await self.call(f"create {name}", lambda: self.state.setdefault(name, {}))

Each call takes some milliseconds and counts as a request of its replica, so that the replica can crash before or after
it. A planned fault makes it fail: without an effect, or with an effect that is not reported. Outside of a simulation a
call is carried out at once, and the state belongs to the object.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import msgspec

from kubewright.devserver.faults import Moment
from kubewright.testing.simulation.loop import SimulationError, current_process
from kubewright.testing.simulation.network import SimulatedConnection, SimulatedNetwork

R = TypeVar("R")
LATENCY = (0.001, 0.05)
"""Seconds that a call to an external system takes in each direction, at least and at most."""

Resources = Mapping[str, Sequence[Any]]
"""The resources of an external system: a description of each, by a key such as the name of the owner."""


@dataclass(eq=False)
class ExternalFault:
    """Calls that fail: before they are carried out, or after that but before the response."""

    when: Moment
    times: int


@dataclass(eq=False)
class ExternalSystems:
    """The external systems of one simulation."""

    network: SimulatedNetwork
    connections: dict[str, SimulatedConnection] = field(default_factory=dict[str, SimulatedConnection])
    """The replicas by name."""
    states: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    systems: dict[str, "External"] = field(default_factory=dict[str, "External"])
    """The latest object for each system."""
    errors: set[type[Exception]] = field(default_factory=set[type[Exception]])
    """The exceptions that failing calls raise."""
    faults: list[ExternalFault] = field(default_factory=list[ExternalFault])
    delay: float = 0.0
    """Seconds that each call takes in addition."""
    on_call: list[Callable[[str, str], None]] = field(default_factory=list[Callable[[str, str], None]])
    """Called with the process and the operation, before each call."""
    on_change: list[Callable[[str, str], None]] = field(default_factory=list[Callable[[str, str], None]])
    """Called with the process and the operation, after each call that changed what exists."""
    last_change: float = 0.0
    """When a call changed what exists last."""
    changes: list[str] = field(default_factory=list[str])
    """The calls that changed what exists."""
    failed_at: float = float("-inf")
    """When a fault made a call fail last."""

    def resources(self) -> dict[str, list[Any]]:
        """Return a copy of what exists in all systems, by system and key."""
        found = {
            f"{name} {key}": resources
            for name, system in sorted(self.systems.items())
            for key, resources in sorted(system.resources().items())
            if resources
        }
        return msgspec.json.decode(_encoded(found), type=dict[str, list[Any]])

    async def call(self, system: "External", operation: str, carry_out: Callable[[], R]) -> R:
        """Carry out a call of the current process, with its delays and faults."""
        process = current_process()
        connection = None if process is None else self.connections.get(process.name)
        if process is None or connection is None:
            return carry_out()
        network = self.network
        text = f"{system.name}: {operation}"
        paused = await network.pause_before(connection, text) if network.pauses else 0.0
        connection.requests += 1
        number = connection.requests
        crash = connection.crash_at.pop(number, None)
        network.record(process.name, "external", f"{number} {text}")
        for notify in self.on_call:
            notify(process.name, text)
        if crash == "before":
            await self._crash(process, connection)
        await network.travel(process, LATENCY, f"request {number}", "request", text, self.delay)
        fault = self._take_fault()
        if number in connection.lose_at:
            connection.lose_at.discard(number)
            fault = "after"
        if number in connection.refuse_at:
            connection.refuse_at.discard(number)
            fault = "before"
        if fault == "before":
            self.failed_at = network.loop.time()
            network.record(process.name, "lost", f"{number} {text}: the call fails without an effect")
            raise system.error(f"{operation}: the external system is not available")
        before = _encoded(self.resources())
        result = carry_out()
        if _encoded(self.resources()) != before:
            self.changes.append(f"{process.name} {text}")
            self.last_change = network.loop.time()
            network.record(process.name, "write", f"{number} {text}", _encoded(system.state))
            for notify in self.on_change:
                notify(process.name, text)
        if crash == "after":
            await self._crash(process, connection)
        if paused:
            connection.on_pause(paused)
        await network.travel(process, LATENCY, f"request {number}", "response", text)
        if fault == "after":
            self.failed_at = network.loop.time()
            network.record(process.name, "lost", f"{number} {text}: carried out, but the response is lost")
            raise system.error(f"{operation}: the connection broke before the response")
        return result

    async def _crash(self, process: Any, connection: SimulatedConnection) -> None:
        if not process.crashed:
            process.crash()
            connection.on_crash()
        await asyncio.get_running_loop().create_future()

    def _take_fault(self) -> Moment | None:
        for fault in self.faults:
            if fault.times > 0:
                fault.times -= 1
                return fault.when
        return None


EXTERNALS: ContextVar[ExternalSystems | None] = ContextVar("kubewright_external_systems", default=None)


class External:
    """A simulated external system; see the module. Subclass it, and read and change `state` only in `call`."""

    error: ClassVar[type[Exception]] = ConnectionError
    """The exception that a call raises if it fails or its response is lost."""

    def __init__(self) -> None:
        self._systems = EXTERNALS.get()
        self.state: dict[str, Any] = {}
        """The stored JSON values of the system, which survive crashes and restarts of the operator."""
        if self._systems is None:
            self.state = self.initial()
            return
        self.state = self._systems.states.setdefault(self.name, {})
        if not self.state:
            self.state.update(self.initial())
        self._systems.systems[self.name] = self
        self._systems.errors.add(self.error)

    @property
    def name(self) -> str:
        """Return the name of the system in reports: the name of the class."""
        return type(self).__name__

    def initial(self) -> dict[str, Any]:
        """Return the initial state of the system; override it if that is not empty."""
        return {}

    def resources(self) -> Resources:
        """Return the existing resources, by a key such as the owner's name; override it unless `state` has this form.

        These properties are checked: nothing is left after everything is deleted, no key has more resources than without
        faults, and the final state is the same. Leave out values that differ from run to run, such as generated ids.
        """
        return {key: [value] for key, value in self.state.items()}

    async def call(self, operation: str, carry_out: Callable[[], R]) -> R:
        """Carry out an operation: `carry_out` reads and changes the state atomically.

        Raise `error` if a fault is injected, either before the operation was carried out or after it.
        """
        if self._systems is None:
            await asyncio.sleep(0)
            return carry_out()
        return await self._systems.call(self, operation, carry_out)


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, order="deterministic")
    except TypeError as error:
        raise SimulationError(f"the state of an External must be JSON: {error}") from None
