"""Checks that run during the whole of a run: after each write, request and reconcile.

`CaseRun` derives from `ContinuousChecks` and adds the checks that are made when the operator has settled. The first
property that does not hold ends the run.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kubewright.api import JsonObject, KubewrightError, leaves
from kubewright.controller import Operator
from kubewright.devserver.request.info import RequestInfo
from kubewright.journal import Collected
from kubewright.manager import Manager
from kubewright.schema.json_tree import Schema
from kubewright.testing.proving.cases import Case, CrashPoint
from kubewright.testing.proving.end_states import about_write, described
from kubewright.testing.proving.exits import exit_problem
from kubewright.testing.proving.operator_state import SeenStates
from kubewright.testing.proving.properties import (
    HEALTHY,
    INVARIANTS,
    NOTHING_DOUBLED,
    TRUTHFUL_STATUS,
    WITHIN_RIGHTS,
    Property,
    PropertyFailed,
    pattern_of,
)
from kubewright.testing.proving.status_claims import (
    claims_done,
    decoded,
    early_claims,
    is_own_status,
    is_ready,
    was_done,
)
from kubewright.testing.proving.subject import ProofError, Subject
from kubewright.testing.simulation import (
    Simulation,
    SimulationError,
    World,
    Write,
    holds_shard,
    truthful_generation,
)
from kubewright.testing.simulation.invariants import Invariant
from kubewright.testing.simulation.network import described as described_request
from kubewright.tracebacks import place_of

_READS = frozenset({"get", "list", "watch"})


@dataclass
class Observed:
    """What was observed in a run in which all properties held."""

    outcome: dict[str, Any] = field(default_factory=dict[str, Any])
    most: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """The most children that existed at once, by resource and owner."""
    points: list[CrashPoint] = field(default_factory=list[CrashPoint])
    changes: dict[int, tuple[str, JsonObject]] = field(default_factory=dict[int, tuple[str, JsonObject]])
    """The change of each sample that can be changed, with its description."""
    requests: int = 0
    writes: int = 0
    reconciles: int = 0
    seconds: float = 0.0
    """Virtual time that passed."""
    webhooks: bool = False
    external: bool = False
    """Whether the operator used a simulated external system."""
    shards: bool = False
    schemas: dict[int, Schema] = field(default_factory=dict[int, Schema])
    """The schema of each sample whose kind is a custom resource."""
    early_claims: set[str] = field(default_factory=set[str])
    """A sentence for each object that was Ready=True while one of its workloads was still rolling out."""


class RaisedErrors(logging.Handler):
    """A log handler that passes on the exceptions of reconciles, which the runtime logs."""

    def __init__(self, notify: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._notify = notify

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on the exception of a log record, if it has one."""
        raised = getattr(record, "raised", None)
        if isinstance(raised, BaseException):
            self._notify(raised)


class ContinuousChecks:
    """The checks of one run; see the module."""

    _sim: Simulation

    def __init__(
        self, subject: Subject, case: Case, expected: Observed | None, seen: SeenStates | None
    ) -> None:
        self._subject = subject
        self._case = case
        self._expected = expected
        self._seen = seen
        self._records_crash_points = True
        self._deleting = False
        self._origin = self._deletion_origin = 0
        self._children_of_owner: dict[tuple[str, str], dict[str, str]] = {}
        self._group_by_uid: dict[str, tuple[str, str]] = {}
        self._lease_requests: set[tuple[str, bool]] = set()
        self.observed: Observed = Observed()
        self.reconciles: list[tuple[str, Collected, float]] = []
        """Each reconcile that ended, with its replica and the time of its end."""

    def _install_checks(self, operator: Operator) -> None:
        """Register the checks with the simulation."""
        sim = self._sim
        sim.network.on_forbidden = self._on_forbidden
        sim.invariant(self._count_children)
        sim.invariant(partial(self._check_invariant, TRUTHFUL_STATUS, truthful_generation))
        for invariant in self._subject.invariants:
            sim.invariant(partial(self._check_invariant, INVARIANTS, invariant))
        sim.on_manager.append(self._on_manager)
        sim.on_exit.append(self._on_exit)
        sim.network.on_request.append(self._on_request)
        sim.externals.on_call.append(self._on_external_call)
        sim.externals.on_change.append(self._count_resources)
        self.observed.shards = operator.shards is not None
        if operator.shards is not None:
            sim.invariant(partial(self._check_invariant, WITHIN_RIGHTS, holds_shard(operator)))

    def _check_invariant(self, checked: Property, check: Invariant, world: World, write: Write) -> None:
        name = getattr(check, "__name__", "")
        where = f"{name}: " if checked is INVARIANTS and name else ""
        about = name if where else about_write(write)
        try:
            check(world, write)
        except AssertionError as error:
            # pytest's assertion rewriting appends the values in further lines, which differ between runs.
            text = str(error).partition("\n")[0] or "does not hold"
            raise PropertyFailed(checked, f"{where}{text}, after {described(write)}", about) from None
        except Exception as error:
            if checked is not INVARIANTS:
                raise
            text = f"it raises {type(error).__name__}: {error}"
            raise PropertyFailed(checked, f"{where}{text}, after {described(write)}", about) from None

    def _count_children(self, world: World, write: Write) -> None:
        uid = write.object["metadata"]["uid"]
        gone = write.after is None or "deletionTimestamp" in write.after["metadata"]
        if gone:
            if (known := self._group_by_uid.pop(uid, None)) is not None:
                self._children_of_owner[known].pop(uid, None)
            return
        if write.before is not None or write.writer not in world.operators:
            return
        if write.resource in ("events", "events.events.k8s.io", "leases.coordination.k8s.io"):
            return
        group = self._group_by_uid[uid] = (write.resource, _owner(write.object))
        live = self._children_of_owner.setdefault(group, {})
        live[uid] = write.key
        self.observed.most[group] = max(self.observed.most.get(group, 0), len(live))
        if self._expected is None:
            return
        limit = max(1, self._expected.most.get(group, 0))
        if len(live) > limit:
            of = f"{group[1]} has" if group[1] else "there are"
            raise PropertyFailed(
                NOTHING_DOUBLED,
                f"{of} {len(live)} {group[0]} ({', '.join(sorted(live.values()))}); "
                f"the run without faults never has more than {limit}",
                f"{group[0]} of {group[1].partition(' ')[0]}",
            )

    def _count_resources(self, process: str, operation: str) -> None:
        for name, found in self._sim.externals.resources().items():
            group = ("external", name)
            self.observed.most[group] = max(self.observed.most.get(group, 0), len(found))
            if self._expected is None:
                continue
            limit = max(1, self._expected.most.get(group, 0))
            if len(found) > limit:
                self._sim.loop.abort(
                    PropertyFailed(
                        NOTHING_DOUBLED,
                        f"{name} has {len(found)} resources after {operation!r}; the run without faults never has more "
                        f"than {limit}",
                        f"external {name.partition(' ')[0]}",
                    )
                )

    def _on_exit(self, replica: str, error: Exception) -> None:
        cause, ended = next(leaves(error)), next(each for each in self._sim.replicas if each.name == replica)
        wrong = exit_problem(self._sim, ended, error)
        if not wrong:
            return
        place = place_of(cause)
        at = f" at {place}" if place else ""
        self._sim.loop.abort(
            PropertyFailed(
                HEALTHY,
                f"{replica} exited by itself: {type(cause).__name__}: {cause}{at}; {wrong}",
                f"exit with {type(cause).__name__}{at}",
            )
        )

    def _on_forbidden(self, process: str, why: str) -> None:
        if process in self._sim.world.operators:
            self._sim.loop.abort(
                PropertyFailed(WITHIN_RIGHTS, f"a request that the declarations do not allow: {why}")
            )

    def _on_error(self, error: BaseException) -> None:
        expected = (KubewrightError, OSError, *self._sim.externals.errors)
        unhandled = [each for each in leaves(error) if not isinstance(each, expected)]
        for each in unhandled:
            place = place_of(each)
            if isinstance(each, SimulationError):
                self._sim.loop.abort(ProofError(f"{place}: {each}" if place else str(each)))
                continue
            at = f" at {place}" if place else ""
            self._sim.loop.abort(
                PropertyFailed(
                    HEALTHY,
                    f"a reconcile failed with {type(each).__name__}: {each}{at}",
                    f"{type(each).__name__}{at or pattern_of(str(each))}",
                )
            )

    def _on_manager(self, name: str, manager: Manager) -> None:
        if self._seen is not None:
            self._seen.start(manager.operator)
        manager.journal.subscribe(partial(self._on_reconcile, name))

    def _on_reconcile(self, replica: str, entry: Collected) -> None:
        self.observed.reconciles += 1
        self.reconciles.append((replica, entry, self._sim.loop.stamp()))
        if (claims := early_claims(entry)) and self._is_still_ready(entry):
            self.observed.early_claims.update(claims)
        claimed: tuple[int, int] | None = None
        for step in entry.writes:
            if step.error or step.request.resource.startswith("events"):
                continue
            body = decoded(step.body)
            metadata: JsonObject = body.get("metadata") or {}
            version = int(metadata.get("resourceVersion") or 0)
            if claimed is not None and (version > claimed[1] or step.request.verb == "delete"):
                self._sim.loop.abort(
                    PropertyFailed(
                        TRUTHFUL_STATUS,
                        f"{entry.kind.kind} {key_of(entry)} reported generation {claimed[0]} as done, and only then the "
                        f"same reconcile sent {step.request.verb} {step.request.resource} {step.request.name}",
                        f"{entry.kind.kind} before {step.request.verb} {step.request.resource}",
                    )
                )
                return
            if (
                is_own_status(entry, step)
                and claims_done(body)
                and not was_done(entry, metadata.get("generation"))
            ):
                claimed = metadata.get("generation", 0), version

    def _is_still_ready(self, entry: Collected) -> bool:
        """Return True if the reconciled object is still ready and not being deleted."""
        stored = self._sim.world.find(entry.kind, entry.key.name, entry.key.namespace)
        return (
            stored is not None and "deletionTimestamp" not in stored["metadata"] and is_ready(stored) is True
        )

    def _on_external_call(self, process: str, operation: str) -> None:
        replica = self._sim.replicas[0]
        if self._records_crash_points and process == replica.name and self._expected is None:
            self.observed.points.append(self._crash_point(operation, writes=True, external=True))

    def _on_request(self, process: str, info: RequestInfo) -> None:
        replica = self._sim.replicas[0] if self._sim.replicas else None
        if (
            not self._records_crash_points
            or replica is None
            or process != replica.name
            or self._expected is not None
        ):
            return
        request = described_request(info)
        if info.resource == "leases":
            # Leases of shards are renewed all the time: one crash point for each kind of request is enough.
            if (request, self._deleting) in self._lease_requests:
                return
            self._lease_requests.add((request, self._deleting))
        self.observed.points.append(
            self._crash_point(
                request, writes=info.verb not in _READS and info.resource not in ("events", "leases")
            )
        )

    def _crash_point(self, request: str, *, writes: bool, external: bool = False) -> CrashPoint:
        origin = self._deletion_origin if self._deleting else self._origin
        number = self._sim.replicas[0].endpoint.requests - origin
        return CrashPoint(number, request, writes, self._deleting, external)


def _owner(obj: JsonObject) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner['kind']} {obj['metadata'].get('namespace', '')}/{owner['name']}"
    return ""


def key_of(entry: Collected) -> str:
    """Return the namespace and name of the reconciled object, for messages."""
    namespace, name = entry.key
    return f"{namespace}/{name}" if namespace else name
