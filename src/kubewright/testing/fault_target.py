"""The targets of a plan of faults: a simulation, or processes of an operator that use any API server.

A `Plan` uses only these protocols, so that the same plan runs on both. `Simulation` and `Replica` implement them, and so do
`DisturbedRun` and `ReplicaProcess`.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from kubewright.devserver.faults import Matcher, Moment, RequestFaults


class UnsupportedFault(RuntimeError):
    """A plan has a fault that only a simulation can inject."""


class FaultEndpoint(Protocol):
    """The connection of one replica to the API server."""

    requests: int
    """How many requests the replica has sent, including those of earlier processes."""
    drops_bookmarks: bool
    """Whether its watches get no bookmarks."""
    holds_events: bool
    """Whether the events of its watches are held back."""

    def release_events(self) -> None:
        """Send the events that were held back, in order, and hold back no more."""
        ...


class FaultReplica(Protocol):
    """One replica of an operator; the n-th request is counted from now on, over all verbs."""

    @property
    def name(self) -> str:
        """The name of the replica, with which the holder of a lease starts."""
        ...

    @property
    def endpoint(self) -> FaultEndpoint:
        """Its connection to the API server."""
        ...

    def match(self, **which: Any) -> Matcher:
        """Return a function that matches requests of this replica with the fields of `Match`."""
        ...

    def crash_at(self, request: int, when: Moment = "before") -> None:
        """Crash the replica at its n-th request: before the API server sees the request, or after it was carried out."""
        ...

    def lose_response_at(self, request: int) -> None:
        """Break the connection of its n-th request after it was carried out."""
        ...

    def refuse_at(self, request: int, status: int, retry_after: int | None = None) -> None:
        """Respond to its n-th request with an error, without carrying it out."""
        ...

    def pause(self) -> None:
        """Stop the process as SIGSTOP does; its connections stay open."""
        ...

    def resume(self) -> None:
        """Resume the process as SIGCONT does."""
        ...


class FaultTarget(Protocol):
    """Replicas of an operator, and the faults that can be injected into their requests."""

    @property
    def replicas(self) -> Sequence[FaultReplica]:
        """The replicas, at least one."""
        ...

    @property
    def faults(self) -> RequestFaults:
        """Faults of the requests that `operators` or the `match` of a replica matches."""
        ...

    def operators(self, **which: Any) -> Matcher:
        """Return a function that matches requests of all replicas with the fields of `Match`."""
        ...

    async def leader(self) -> FaultReplica | None:
        """Return the replica that holds the lease, if any."""
        ...

    def duration(self, seconds: float) -> float:
        """Return the real duration of something that takes this many seconds in a plan."""
        ...

    def active(self, fault: object) -> AbstractContextManager[None]:
        """Count a fault as active while the context is open."""
        ...

    def record_fault(self, what: str) -> None:
        """Record what happens, for error messages."""
        ...
