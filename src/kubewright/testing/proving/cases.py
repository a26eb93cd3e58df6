"""Cases: each describes one run and its faults as data, so that a failing run can be repeated.

Systematic cases come first: for each request of the run without faults a crash, a lost response, a refusal and a pause of
the leader; then single disturbances of the cluster, and pairs of crashes. Random cases, drawn from their seed, come last.
Cases with an `order` have no delays: their messages arrive in the default order, except for some deviations. Cases with a
`sequence` apply one spec after the other, without faults.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Any, Literal

import msgspec

from kubewright.api import JsonObject
from kubewright.devserver.faults import Moment
from kubewright.testing.proving.sequences import SpecSequence, sequence_from_json, sequence_to_json
from kubewright.testing.simulation import (
    COMMON,
    EXTERNAL_SYSTEMS,
    WEBHOOKS,
    Crash,
    CutWatches,
    Deviation,
    DropBookmarks,
    FailExternal,
    HoldEvents,
    JumpClock,
    Lose,
    LoseResponse,
    Pause,
    PauseAt,
    PauseLeader,
    Plan,
    PlannedFault,
    Refuse,
    RefuseRequest,
    SecondServer,
    Slow,
    SlowExternal,
    WebhooksAway,
    draw_plan,
)

Ending = Literal["delete", "namespace"]

NO_FAULTS = Plan((), ())
_FAULTS: dict[str, type[PlannedFault]] = {
    kind.__name__: kind
    for kind in (
        Crash,
        CutWatches,
        DropBookmarks,
        FailExternal,
        HoldEvents,
        JumpClock,
        Lose,
        LoseResponse,
        Pause,
        PauseAt,
        PauseLeader,
        Refuse,
        RefuseRequest,
        SecondServer,
        Slow,
        SlowExternal,
        WebhooksAway,
    )
}
_PAUSES = (0.0, 0.01, 0.3, 2.0, 20.0)
_WRITE_REFUSALS = (409, 429, 500, 503)
_READ_REFUSALS = (429, 500)
_RETRY_AFTER = 2
_TAKEN_OVER = 40.0
"""Seconds of a pause in which another replica takes the lease, which lasts 15 s."""
_BUSY = 20.02
"""Seconds after the start at which the operator reconciles the new samples, in runs that wait between changes."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run: the seed of its delays, its faults, and what is done with the samples."""

    seed: int = 0
    faults: Plan = NO_FAULTS
    """Faults from the start of the operator on."""
    late_faults: Plan = NO_FAULTS
    """Faults from the deletion on."""
    replicas: int = 1
    pauses: tuple[float, float] | None = None
    """Seconds to wait before the change and before the deletion; None waits until the operator has settled."""
    samples: tuple[int, ...] | None = None
    """Which samples are created, by their number; None means all."""
    change: bool = True
    """Whether the samples are changed after they were created."""
    ending: Ending = "delete"
    """Whether the samples are deleted, or their whole namespace."""
    order: tuple[Deviation, ...] | None = None
    """Where messages do not arrive in the default order; None draws delays from the seed instead."""
    sequence: SpecSequence | None = None
    """Specs that are applied to one of the samples, one after the other; None creates and changes all samples once."""

    @property
    def disturbed(self) -> bool:
        """Return True if the case has faults, does not wait between changes, or deviates from the default order."""
        return bool(self.faults.faults or self.late_faults.faults or self.pauses or self.order)

    @property
    def all_faults(self) -> tuple[PlannedFault, ...]:
        """Return the faults in their order."""
        return (*self.faults.faults, *self.late_faults.faults)


def undisturbed(case: Case) -> Case:
    """Return the case without faults that a case is compared with: it has the same samples."""
    return Case(samples=case.samples, change=case.change)


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A request of the run without faults at which a replica can crash."""

    number: int
    """The number of the request, from the start of the faults or, if it is late, from the deletion on."""
    request: str
    """What is requested, such as `create configmaps prove/photos`."""
    writes: bool
    late: bool = False
    """Whether it is sent after the deletion began."""
    external: bool = False
    """Whether it is a call to a simulated external system."""

    @property
    def moments(self) -> tuple[Moment, ...]:
        """Return when a crash makes a difference: for a read, a crash after it has the same effect as one before it."""
        return ("before", "after") if self.writes else ("before",)


def single_crashes(points: Sequence[CrashPoint]) -> Iterator[Case]:
    """Yield a case for each crash point."""
    for point in points:
        for when in point.moments:
            yield _crashing(((point, when),))


def lost_responses(points: Sequence[CrashPoint]) -> Iterator[Case]:
    """Yield a case for each write: it is carried out, and its response is lost."""
    for point in points:
        if point.writes:
            plan = Plan((LoseResponse(0, point.number),), (0.0,))
            yield Case(late_faults=plan) if point.late else Case(faults=plan)


def refused_requests(points: Sequence[CrashPoint]) -> Iterator[Case]:
    """Yield a case for each request and each status code with which an API server refuses such a request.

    Writes fail with 409, 429, 500 and 503, reads with 429 and 500. Calls to external systems fail without an effect.
    """
    for point in points:
        statuses = (503,) if point.external else _WRITE_REFUSALS if point.writes else _READ_REFUSALS
        for status in statuses:
            fault = RefuseRequest(0, point.number, status, _RETRY_AFTER if status == 429 else None)
            plan = Plan((fault,), (0.0,))
            yield Case(late_faults=plan) if point.late else Case(faults=plan)


def leader_pauses(points: Sequence[CrashPoint]) -> Iterator[Case]:
    """Yield cases with two replicas: the leader is paused at one of its writes and loses its lease to the other replica.

    Then the other replica is paused as well, so that the first one becomes the leader again. If the pause comes before
    the write, the resumed replica must not send it; if it comes after the write, the new leader must find its result.
    """
    for request, late in dict.fromkeys((point.request, point.late) for point in points if point.writes):
        moments: tuple[Moment, ...] = ("before", "after")
        for when in moments:
            plan = Plan((PauseAt(request, when, _TAKEN_OVER), PauseLeader(_TAKEN_OVER)), (0.0, 90.0))
            yield Case(late_faults=plan, replicas=2) if late else Case(faults=plan, replicas=2)


def single_disturbances(*, webhooks: bool, external: bool) -> Iterator[Case]:
    """Yield cases with one disturbance of the cluster each: while objects are created, and while they are deleted."""
    faults: list[PlannedFault] = [
        CutWatches("end", 1),
        CutWatches("reset", 1),
        CutWatches("expire", 1),
        CutWatches("expire", 1, compact=True),
        DropBookmarks(120.0),
        HoldEvents(0, 20.0),
        SecondServer(1.0, 30.0),
        Slow(5.0, (), 30.0),
        Pause(0, 40.0),
        JumpClock(0, 3600.0),
        JumpClock(0, -3600.0),
        *([WebhooksAway(20.0)] if webhooks else []),
        *([FailExternal("before", 3, 30.0), SlowExternal(5.0, 60.0)] if external else []),
    ]
    # The samples are changed and deleted while the operator is still reconciling.
    yield Case(pauses=(0.0, 0.0))
    yield Case(pauses=(0.3, 0.3))
    for fault in faults:
        yield Case(faults=Plan((fault,), (_BUSY,)))
        yield Case(late_faults=Plan((fault,), (0.0,)))
    # The namespace is deleted when the operator has settled, and while objects are still created in it.
    yield Case(ending="namespace")
    yield Case(pauses=(0.0, 0.0), ending="namespace")
    yield Case(replicas=2)


def crash_pairs(points: Sequence[CrashPoint]) -> list[Case]:
    """Return a case for each pair of crashes at different writes; pairs of close writes come first, as they are likelier."""
    writes: list[tuple[int, CrashPoint, Moment]] = [
        (place, point, when) for place, point in enumerate(points) if point.writes for when in point.moments
    ]
    pairs = [(one, other) for one, other in combinations(writes, 2) if one[0] < other[0]]
    pairs.sort(key=lambda pair: (pair[1][0] - pair[0][0], pair[0][0]))
    return [_crashing(((one[1], one[2]), (other[1], other[2]))) for one, other in pairs]


def _crashing(crashes: tuple[tuple[CrashPoint, Moment], ...]) -> Case:
    def plan(*, late: bool) -> Plan:
        chosen = tuple(Crash(0, point.number, when) for point, when in crashes if point.late is late)
        return Plan(chosen, (0.0,) * len(chosen))

    return Case(faults=plan(late=False), late_faults=plan(late=True))


def random_case(seed: int, *, webhooks: bool, external: bool = False) -> Case:
    """Return a random case drawn from a seed, with faults of webhooks and of external systems if the operator has them."""
    rng = random.Random(f"prove {seed}")
    draws = [*COMMON, *(WEBHOOKS if webhooks else ()), *(EXTERNAL_SYSTEMS if external else ())]
    hurried = rng.random() < 0.7
    return Case(
        seed=seed,
        faults=draw_plan(rng, rng.randint(1, 4), draws),
        late_faults=draw_plan(rng, rng.randint(0, 2), draws),
        replicas=rng.choice((1, 1, 2)),
        pauses=(rng.choice(_PAUSES), rng.choice(_PAUSES)) if hurried else None,
        ending=rng.choice(("delete", "delete", "namespace")),
    )


def smaller(case: Case, samples: int) -> Iterator[Case]:
    """Yield cases that are a little simpler than this one, the greatest simplifications first."""
    for number in range(len(case.order or ())):
        assert case.order is not None
        yield replace(case, order=(*case.order[:number], *case.order[number + 1 :]))
    if case.late_faults.faults:
        yield replace(case, late_faults=NO_FAULTS)
    if case.faults.faults:
        yield replace(case, faults=NO_FAULTS)
    for name in ("faults", "late_faults"):
        plan: Plan = getattr(case, name)
        for number in range(len(plan.faults) if len(plan.faults) > 1 else 0):
            yield replace(case, **{name: _without(plan, number)})
    if case.replicas > 1:
        yield replace(case, replicas=1)
    if case.ending != "delete":
        yield replace(case, ending="delete")
    if case.pauses is not None:
        yield replace(case, pauses=None)
    chosen = tuple(range(samples)) if case.samples is None else case.samples
    if len(chosen) > 1:
        for left_out in chosen:
            yield replace(case, samples=tuple(each for each in chosen if each != left_out))
    if case.change:
        yield replace(case, change=False)
    for name in ("faults", "late_faults"):
        plan = getattr(case, name)
        for number, fault in enumerate(plan.faults):
            for weaker in _weaker(fault):
                yield replace(case, **{name: _with(plan, number, weaker)})
    if case.seed:
        yield replace(case, seed=0)


def _without(plan: Plan, number: int) -> Plan:
    pauses = list(plan.pauses)
    # Later faults keep their time.
    if number + 1 < len(pauses):
        pauses[number + 1] = round(pauses[number + 1] + pauses[number], 3)
    del pauses[number]
    return Plan((*plan.faults[:number], *plan.faults[number + 1 :]), tuple(pauses))


def _with(plan: Plan, number: int, fault: PlannedFault) -> Plan:
    return Plan((*plan.faults[:number], fault, *plan.faults[number + 1 :]), plan.pauses)


def _weaker(fault: PlannedFault) -> Iterator[PlannedFault]:
    match fault:
        case Refuse() | Lose() | FailExternal() if fault.times > 1:
            yield replace(fault, times=1)
        case CutWatches() if fault.compact or fault.times > 1:
            yield replace(fault, times=1, compact=False)
        case _:
            pass


def to_json(case: Case) -> JsonObject:
    """Return a case as JSON."""
    return {
        "seed": case.seed,
        "faults": _plan_to_json(case.faults),
        "lateFaults": _plan_to_json(case.late_faults),
        "replicas": case.replicas,
        "pauses": None if case.pauses is None else list(case.pauses),
        "samples": None if case.samples is None else list(case.samples),
        "change": case.change,
        "ending": case.ending,
        "order": None if case.order is None else [[each.point, each.choice] for each in case.order],
        "sequence": None if case.sequence is None else sequence_to_json(case.sequence),
    }


def from_json(wire: JsonObject) -> Case:
    """Return the case that `to_json` encoded."""
    return Case(
        seed=wire["seed"],
        faults=_plan_from_json(wire["faults"]),
        late_faults=_plan_from_json(wire["lateFaults"]),
        replicas=wire["replicas"],
        pauses=None if wire["pauses"] is None else (wire["pauses"][0], wire["pauses"][1]),
        samples=None if wire["samples"] is None else tuple(wire["samples"]),
        change=wire["change"],
        ending=wire["ending"],
        order=None if wire["order"] is None else tuple(Deviation(*each) for each in wire["order"]),
        sequence=None if wire.get("sequence") is None else sequence_from_json(wire["sequence"]),
    )


def _plan_to_json(plan: Plan) -> list[JsonObject]:
    return [
        {"fault": type(fault).__name__, "after": pause, **_fields(fault)}
        for fault, pause in zip(plan.faults, plan.pauses, strict=True)
    ]


def _fields(fault: Any) -> JsonObject:
    return {field.name: getattr(fault, field.name) for field in fields(fault)}


def _plan_from_json(found: list[JsonObject]) -> Plan:
    faults = tuple(
        msgspec.convert(
            {name: value for name, value in each.items() if name not in ("fault", "after")},
            _FAULTS[each["fault"]],
        )
        for each in found
    )
    return Plan(faults, tuple(each["after"] for each in found))
