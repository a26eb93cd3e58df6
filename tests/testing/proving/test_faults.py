"""Each fault is really injected: what a run records shows it, and it ends when it should."""

import asyncio
from collections.abc import Callable, Iterator, Sequence

import pytest

import kubewright as kw
from kubewright.api import utc_now
from kubewright.api.builtin import core_v1
from kubewright.testing import (
    Crash,
    CutWatches,
    DropBookmarks,
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
    Simulation,
    Slow,
    WebhooksAway,
    simulate,
)
from kubewright.testing.proving import Case, Prover, leader_pauses, refused_requests, single_disturbances

SAMPLE = {
    "apiVersion": "faults.example.com/v1",
    "kind": "Crate",
    "metadata": {"name": "apples"},
    "spec": {"size": 1},
}


class CrateSpec(kw.Model):
    size: int = 1


class CrateStatus(kw.Model):
    seen: str = ""


class Crate(kw.Resource[CrateSpec, CrateStatus], group="faults.example.com", version="v1"):
    """Holds apples."""


async def crates(crate: Crate, ctx: kw.Context) -> None:
    await ctx.apply(core_v1.ConfigMap(kw.Meta(crate.metadata.name), data={"size": str(crate.spec.size)}))


def operator() -> kw.Operator:
    return kw.Operator(kw.Controller(Crate, crates, owns=[core_v1.ConfigMap], name="crates"), name="crates")


def lines_of(
    fault: PlannedFault, *, rest: float = 120.0, make: Callable[[], kw.Operator] = operator
) -> list[str]:
    """Create an object while a fault is injected; return what happened from then on, one line each."""
    lines: list[str] = []

    async def scenario(sim: Simulation) -> None:
        await sim.start(make)
        await sim.settled(quiet=20)
        before = len(sim.trace)
        async with asyncio.TaskGroup() as group:
            group.create_task(Plan((fault,), (0.0,)).run(sim))
            await asyncio.sleep(0.1)
            await sim.cluster.create(Crate(kw.Meta("apples"), spec=CrateSpec()))
        await sim.settled(quiet=rest)
        lines.extend(
            f"{entry.time:.3f} {entry.what} {entry.subject} {entry.data.decode('utf-8', 'replace')}"
            for entry in sim.trace.entries[before:]
            if entry.process == "crates-0"
        )

    simulate(scenario, 3)
    return lines


def having(lines: Sequence[str], *parts: str) -> list[str]:
    return [line for line in lines if all(part in line for part in parts)]


def time_of(line: str) -> float:
    return float(line.partition(" ")[0])


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_a_single_request_is_refused_with_a_status(status: int) -> None:
    lines = lines_of(RefuseRequest(0, 1, status, 2 if status == 429 else None))
    [refused] = having(lines, " response ", f" {status} ")
    [first, second] = having(lines, " request ", "patch /api/v1/namespaces/test/configmaps/apples")
    assert time_of(first) < time_of(refused) < time_of(second)


def test_requests_are_refused_for_a_while() -> None:
    lines = lines_of(Refuse(503, ("patch",), 2, 60.0))
    assert len(having(lines, " response ", " 503 ")) == 2


@pytest.mark.parametrize("when", ["before", "after"])
def test_connections_break_before_or_after_the_request_was_carried_out(when: str) -> None:
    lines = lines_of(Lose("before" if when == "before" else "after", ("patch",), 1, 60.0))
    assert having(lines, " lost ", "the connection broke")
    carried_out = [time_of(line) for line in having(lines, " write ", "created configmaps")]
    broken = time_of(having(lines, " lost ", "the connection broke")[0])
    assert (carried_out[0] <= broken) is (when == "after")


def test_the_response_of_a_single_request_is_lost() -> None:
    assert having(lines_of(LoseResponse(0, 1)), " lost ", "the response is lost")


def test_a_replica_crashes_at_a_request_and_starts_again() -> None:
    lines = lines_of(Crash(0, 1, "after"))
    [crash] = having(lines, " crash ")
    assert time_of(having(lines, " start ")[0]) > time_of(crash)


def test_responses_are_slow() -> None:
    lines = lines_of(Slow(5.0, ("patch",), 60.0))
    sent = time_of(having(lines, " request ", "patch ", "/configmaps/apples")[0])
    written = time_of(having(lines, " write ", "created configmaps")[0])
    assert written - sent >= 5


@pytest.mark.parametrize(
    ("fault", "evidence"),
    [
        (CutWatches("end", 1), "the watch ended"),
        (CutWatches("reset", 1), "the watch broke"),
        (CutWatches("expire", 1), "too old"),
    ],
)
def test_watches_are_cut_and_begun_again(fault: CutWatches, evidence: str) -> None:
    lines = lines_of(fault)
    cut = time_of(having(lines, evidence)[0])
    assert [line for line in having(lines, " request ", " watch ") if time_of(line) >= cut]


def test_an_api_server_that_dropped_its_history_makes_operators_list_again() -> None:
    lines = lines_of(CutWatches("expire", 1, compact=True))
    assert having(lines, " request ", "/crates", "sendInitialEvents=true")


def test_watches_send_no_bookmarks_for_a_while() -> None:
    with_bookmarks = having(lines_of(Crash(0, 10_000, "after"), rest=300), " event ", '"BOOKMARK"')
    without = having(lines_of(DropBookmarks(250.0), rest=300), " event ", '"BOOKMARK"')
    assert len([line for line in with_bookmarks if time_of(line) < 250]) > 0
    assert [line for line in without if time_of(line) < 250] == []


def test_events_arrive_late_and_together() -> None:
    lines = lines_of(HoldEvents(0, 30.0))
    late = [time_of(line) for line in having(lines, " event ", '"ADDED"')]
    assert late
    assert min(late) >= 50


def test_a_paused_replica_sends_nothing() -> None:
    lines = lines_of(Pause(0, 30.0))
    [pause], [resume] = having(lines, " pause "), having(lines, " resume ")
    assert time_of(resume) - time_of(pause) == pytest.approx(30)
    assert not [
        line for line in having(lines, " request ") if time_of(pause) < time_of(line) < time_of(resume)
    ]


async def dated(crate: Crate, ctx: kw.Context) -> None:
    if not crate.status.seen:
        await ctx.patch_status(crate, CrateStatus(seen=f"hour {utc_now().hour}"))


def dating_operator() -> kw.Operator:
    return kw.Operator(kw.Controller(Crate, dated, name="crates"), name="crates")


def test_the_wall_clock_of_a_replica_jumps() -> None:
    # Each simulation begins at 8:00.
    assert having(lines_of(JumpClock(0, 7200.0), make=dating_operator), "hour 10")


@kw.admission.validating_webhook(Crate)
def modest(crate: Crate) -> Iterator[kw.admission.Problem]:
    if crate.spec.size > 100:
        yield kw.admission.invalid("spec.size", crate.spec.size, "a crate holds at most 100 apples")


def test_webhooks_cannot_be_reached_for_a_while() -> None:
    def make() -> kw.Operator:
        made = operator()
        return kw.Operator(*made.controllers, name="crates", webhooks=[modest])

    async def scenario(sim: Simulation) -> None:
        await sim.start(make)
        await sim.settled(quiet=20)
        async with asyncio.TaskGroup() as group:
            group.create_task(Plan((WebhooksAway(10.0),), (0.0,)).run(sim))
            await asyncio.sleep(0.1)
            with pytest.raises(kw.errors.ApiError, match="refused"):
                await sim.client.create(Crate(kw.Meta("apples", namespace="test"), spec=CrateSpec()))
        await sim.client.create(Crate(kw.Meta("apples", namespace="test"), spec=CrateSpec()))

    simulate(scenario, 3)


def test_a_leader_that_was_paused_before_a_write_does_not_send_it_any_more() -> None:
    async def scenario(sim: Simulation) -> None:
        replicas = await sim.start(operator, replicas=2)
        await sim.settled(quiet=20)
        plan = Plan((PauseAt("patch configmaps test/apples", "before", 40.0), PauseLeader(40.0)), (0.0, 60.0))
        async with asyncio.TaskGroup() as group:
            group.create_task(plan.run(sim))
            await sim.cluster.create(Crate(kw.Meta("apples"), spec=CrateSpec()))
        await sim.settled()
        paused = [entry.process for entry in sim.trace.of("pause")]
        writes = [write.writer for write in sim.world.work() if write.resource == "configmaps"]
        assert len(paused) == 2
        assert paused[0] != paused[1], "the second pause is one of the new leader"
        assert writes == [paused[1]]
        assert [bool(replica.exits) for replica in replicas] == [True, True]

    simulate(scenario, 3)


def test_objects_cannot_be_created_in_a_namespace_that_is_terminated() -> None:
    prover = Prover(operator, [SAMPLE])
    case = Case(pauses=(0.0, 0.0), ending="namespace")
    assert case in list(single_disturbances(webhooks=False, external=False))
    assert prover.run(case).failure is None


def test_each_request_is_refused_with_each_status_that_fits() -> None:
    points = Prover(operator, [SAMPLE]).undisturbed().points
    writes, reads = (
        sum(point.writes for point in points),
        sum(not point.writes for point in points),
    )
    assert len(list(refused_requests(points))) == 4 * writes + 2 * reads


def test_a_correct_operator_survives_pauses_of_its_leader() -> None:
    prover = Prover(operator, [SAMPLE])
    cases = list(leader_pauses(prover.undisturbed().points))
    assert {case.replicas for case in cases} == {2}
    for case in cases:
        result = prover.run(case)
        assert result.failure is None, result.failure
