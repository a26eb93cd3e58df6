"""What a test works with: running operators, waiting, stories of failure, faults, time."""

import asyncio
import logging
from datetime import timedelta
from typing import Annotated

import pytest

import kubewright as kw
from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.devcluster import SCENARIO_ANNOTATION, PodScenario
from kubewright.devserver import Match
from kubewright.testing import Cluster, embedded, virtual_time
from kubewright.testing.failure_report import ObjectHistory, folded


class LampSpec(kw.Model):
    on: bool = False


class LampStatus(kw.Model):
    seen: Annotated[int, kw.Field(description="How often it was looked at.")] = 0


class Lamp(kw.Resource[LampSpec, LampStatus], group="testing.kubewright.dev", version="v1"):
    """A lamp."""


def lamps(name: str = "lamps") -> kw.Operator:
    """Make an operator that says what it sees."""

    async def look(lamp: Lamp, ctx: kw.Context) -> None:
        ctx.log.info("the lamp is seen by %s", name)
        ctx.event("Seen", f"seen by {name}")
        await ctx.patch_status(lamp, LampStatus(seen=1))

    return kw.Operator(kw.Controller(Lamp, look, name=name), name=name)


async def test_each_line_is_kept_once_however_many_operators_run(cluster: Cluster) -> None:
    before = logging.getLogger("kubewright").level
    async with cluster.running(lamps("first")), cluster.running(lamps("second")):
        await cluster.create(Lamp(Meta("desk"), spec=LampSpec()))
        await cluster.eventually(Lamp, "desk", lambda lamp: lamp.status.seen)
    assert any(line.startswith("the lamp is seen by first") for line in cluster.log)
    assert sum("Starting workers" in line for line in cluster.log) == 2
    assert logging.getLogger("kubewright").level == before


@pytest.mark.parametrize("outcome", [AssertionError, pytest.fail.Exception, pytest.skip.Exception])
async def test_running_does_not_change_the_outcome_of_a_test(
    cluster: Cluster, outcome: type[BaseException]
) -> None:
    with pytest.raises(outcome, match=r"^as it is$"):
        async with cluster.running(lamps()):
            raise outcome("as it is")


@pytest.mark.parametrize("outcome", [AssertionError, pytest.fail.Exception])
async def test_embedded_does_not_change_the_outcome_of_a_test(outcome: type[BaseException]) -> None:
    with pytest.raises(outcome, match=r"^as it is$"):
        async with embedded():
            raise outcome("as it is")


async def test_faults_do_not_fail_the_cleanup() -> None:
    async with embedded() as cluster, cluster.running(lamps()):
        cluster.faults.add(fail=500)


@virtual_time
async def test_a_failure_shows_the_objects_history() -> None:
    async with embedded() as cluster, cluster.running(lamps()):
        made = await cluster.create(Lamp(Meta("desk"), spec=LampSpec()))
        await cluster.eventually(Lamp, "desk", lambda lamp: lamp.status.seen)

        story = ""

        async def wait_in_vain() -> None:
            nonlocal story
            with pytest.raises(AssertionError) as caught:
                await cluster.eventually(Lamp, "desk", lambda lamp: False, timeout=3)
            story = str(caught.value)

        async with asyncio.TaskGroup() as group:
            group.create_task(wait_in_vain())
            await asyncio.sleep(0)
            await cluster.client.patch(made, {"spec": {"on": True}})
    assert "Lamp desk did not become what the test waits for within 3 s" in story
    assert "Normal Seen: seen by lamps" in story
    assert "spec.on: false -> true" in story
    assert "the lamp is seen by lamps" in story


@virtual_time
async def test_a_condition_that_reads_a_missing_item_is_evaluated_again() -> None:
    async with embedded() as cluster:
        made = await cluster.create(core_v1.ConfigMap(Meta("list")))

        async def write_soon() -> None:
            await asyncio.sleep(0)
            await cluster.client.patch(made, {"data": {"first": "milk"}})

        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(
                cluster.eventually(core_v1.ConfigMap, "list", lambda it: it.data["first"] == "milk")
            )
            group.create_task(write_soon())
        assert waiting.result().data == {"first": "milk"}

        with pytest.raises(AssertionError, match="did not become") as caught:
            await cluster.eventually(core_v1.ConfigMap, "list", lambda it: it.data["second"], timeout=3)
        assert "KeyError: 'second'" in str(caught.value)


async def test_an_error_in_a_condition_is_raised_at_once(cluster: Cluster) -> None:
    await cluster.create(core_v1.ConfigMap(Meta("list")))
    with pytest.raises(ZeroDivisionError):
        await cluster.eventually(core_v1.ConfigMap, "list", lambda it: len(it.data) / 0)


def test_a_history_has_the_fields_that_changed_without_resource_versions() -> None:
    history = ObjectHistory(began=0.0)
    history.see({"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}, "spec": {"size": 1}}, 1.0)
    history.see({"metadata": {"resourceVersion": "2"}, "spec": {"size": 2, "text": "x" * 200}}, 2.0)
    assert list(history.lines) == [
        '  2.00 s: metadata.labels: {"a": "b"} -> nothing',
        "  2.00 s: spec.size: 1 -> 2",
        f'  2.00 s: spec.text: nothing -> "{"x" * 96}...',
    ]


@virtual_time
async def test_settled_waits_for_quiet_and_fails_without_it() -> None:
    async with embedded() as cluster:
        made = await cluster.create(core_v1.ConfigMap(Meta("busy")))
        await cluster.settled(core_v1.ConfigMap, quiet=0.05)

        async def disturb() -> None:
            for number in range(1000):
                await cluster.client.patch(made, {"data": {"count": str(number)}})
                await asyncio.sleep(0.01)

        async with asyncio.TaskGroup() as group:
            work = group.create_task(disturb())
            with pytest.raises(AssertionError, match=r"still change after 2 s: .*ConfigMap/busy \(\d+ ch"):
                await cluster.settled(core_v1.ConfigMap, quiet=30, timeout=2)
            work.cancel()


async def test_a_timeout_shorter_than_the_quiet_time_is_reported_as_such(cluster: Cluster) -> None:
    with pytest.raises(AssertionError, match=r"0\.1 s were too short to see 30 s without a change"):
        await cluster.settled(core_v1.Secret, quiet=30, timeout=0.1)


def test_repeated_log_lines_are_shown_once() -> None:
    assert folded(["start", "no such region", "no such region", "end"]) == [
        "start",
        "(2 times) no such region",
        "end",
    ]


async def test_faults_are_refused_on_a_shared_cluster(cluster: Cluster) -> None:
    with pytest.raises(RuntimeError, match="embedded_cluster"):
        _ = cluster.faults


async def test_an_operator_recovers_from_faults(embedded_cluster: Cluster) -> None:
    cluster = embedded_cluster
    async with cluster.running(lamps()):
        writes = Match(verbs=("patch",), resource="lamps.testing.kubewright.dev")
        with cluster.faults.add(match=writes, fail=500, times=2) as fault:
            await cluster.create(Lamp(Meta("desk"), spec=LampSpec()))
            await cluster.eventually(Lamp, "desk", lambda lamp: lamp.status.seen)
        assert fault.hits == 2


@virtual_time
async def test_minutes_pass_at_once_on_an_embedded_cluster_in_virtual_time() -> None:
    async with embedded() as cluster:
        container = core_v1.Container(name="main", image="i")
        pod = core_v1.Pod(
            Meta("broken", annotations={SCENARIO_ANNOTATION: PodScenario.CRASH_LOOP}),
            spec=core_v1.PodSpec(containers=[container]),
        )
        await cluster.create(pod)

        def restarted(found: core_v1.Pod) -> bool:
            return any(item.restart_count >= 5 for item in found.status.container_statuses)

        found = await cluster.eventually(
            core_v1.Pod, "broken", restarted, timeout=timedelta(hours=1).total_seconds()
        )
        born, condition = found.metadata.creation_timestamp, found.status.container_statuses[0]
        assert condition.last_state.terminated is not None
        ended = condition.last_state.terminated.finished_at
        assert born is not None
        assert ended is not None
        assert ended - born > timedelta(minutes=1)
