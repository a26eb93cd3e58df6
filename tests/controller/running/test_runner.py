import asyncio
import functools
import logging
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, cast

import pytest

from kubewright.api import (
    DeclarationError,
    Meta,
    ObjectKey,
)
from kubewright.api.builtin import core_v1
from kubewright.backoff import Backoff
from kubewright.controller import (
    Cause,
    Context,
    Controller,
    Index,
    Options,
    Result,
    TerminalError,
    UndeclaredAccess,
    generation_changed,
    needs,
    source,
    watch,
)
from kubewright.testing import Cluster, eventually

from .kinds import Box, BoxStatus, Paper
from .operators import create_misfit, events, running, settled


class Recorder:
    """A reconciler that records its arguments and returns or raises what it is configured to."""

    def __init__(self, *outcomes: Any) -> None:
        self.runs: list[str] = []
        self.causes: list[tuple[Cause, ...]] = []
        self.outcomes = list(outcomes)

    async def reconcile(self, box: Box, ctx: Context) -> Result | None:
        self.runs.append(box.metadata.name)
        self.causes.append(ctx.causes)
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


async def wait_for_runs(cluster: Cluster, recorder: Recorder, count: int) -> None:
    await eventually(lambda: len(recorder.runs) >= count)


async def test_a_failed_reconcile_is_retried_and_others_continue(cluster: Cluster) -> None:
    await cluster.install(Box)
    recorder = Recorder(ConnectionError("a"), SystemExit("b"), asyncio.CancelledError(), None)
    async with running(cluster, Controller(Box, recorder)) as manager:
        await cluster.create(Box(Meta("a")))
        await wait_for_runs(cluster, recorder, 4)
        await settled(manager)
        outcomes = manager.statistics().controllers[0].outcomes
        assert (outcomes["error"], outcomes["success"]) == (3, 1)


async def test_a_terminal_error_is_not_retried_until_something_changes(cluster: Cluster) -> None:
    await cluster.install(Box)
    failure = RuntimeError("outer")
    failure.__cause__ = TerminalError("inner")
    recorder = Recorder(TerminalError("never"), failure)
    async with running(cluster, Controller(Box, recorder)) as manager:
        box = await cluster.create(Box(Meta("a")))
        await wait_for_runs(cluster, recorder, 1)
        await settled(manager)
        assert len(recorder.runs) == 1
        await cluster.client.patch(box, {"spec": {"size": 2}})
        await wait_for_runs(cluster, recorder, 2)
        await settled(manager)
        assert len(recorder.runs) == 2
        assert manager.statistics().controllers[0].queue.retrying == 0


async def test_a_result_requeues_the_object(cluster: Cluster) -> None:
    await cluster.install(Box)
    recorder = Recorder(Result(after=timedelta(milliseconds=20)), Result(after=timedelta(milliseconds=20)))
    async with running(cluster, Controller(Box, recorder)) as manager:
        await cluster.create(Box(Meta("a")))
        await wait_for_runs(cluster, recorder, 3)
        await settled(manager)
        assert manager.statistics().controllers[0].outcomes["requeue_after"] == 2


async def test_a_resync_reconciles_unchanged_objects(cluster: Cluster) -> None:
    await cluster.install(Box)
    recorder = Recorder()
    async with running(cluster, Controller(Box, recorder, resync=timedelta(milliseconds=50))):
        await cluster.create(Box(Meta("a")))
        await wait_for_runs(cluster, recorder, 4)


async def test_a_reconcile_that_never_returns_is_cancelled_after_its_timeout(cluster: Cluster) -> None:
    await cluster.install(Box)
    deadlines: list[float | None] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        deadlines.append(ctx.deadline)
        if len(deadlines) == 1:
            await asyncio.get_running_loop().create_future()

    options = Options(timeout=timedelta(milliseconds=50))
    async with running(cluster, Controller(Box, reconcile, options=options)) as manager:
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(deadlines) == 2)
        assert all(deadlines)
        timeouts = manager.metrics.counter("controller_runtime_reconcile_timeouts_total", "", ("controller",))
        assert timeouts.labels(controller="box").value == 1


async def test_a_forgotten_await_is_named(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    await cluster.install(Box)

    async def reconcile(box: Box, ctx: Context) -> None:
        return cast(Any, ctx.patch_status(box))

    async with running(cluster, Controller(Box, reconcile)) as manager:
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: manager.statistics().controllers[0].outcomes["error"] == 1)
    assert "an `await` is missing" in caplog.text


async def test_a_malformed_object_is_reported_once_and_does_not_stop_the_others(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.install(Box)
    untyped = await create_misfit(
        cluster, Box, {"metadata": {"name": "broken"}, "spec": {"size": "not a number"}}
    )
    recorder = Recorder()
    async with running(cluster, Controller(Box, recorder)) as manager:
        await cluster.create(Box(Meta("fine")))
        await wait_for_runs(cluster, recorder, 1)
        await settled(manager)
        assert set(recorder.runs) == {"fine"}
        malformed = manager.metrics.counter("kubewright_malformed_objects_total", "", ("controller",))
        assert malformed.labels(controller="box").value == 1

        async def reported() -> Any:
            return await events(cluster, "Malformed")

        [event] = await eventually(reported)
        assert "spec.size" in event.note
        await cluster.client.patch(
            untyped, {"spec": {"size": 3}}, name="broken", namespace=cluster.namespace, type="merge"
        )
        await wait_for_runs(cluster, recorder, 2)
    assert caplog.text.count("cannot be read") == 1


async def test_a_malformed_object_is_reported_once_for_all_controllers(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.install(Box)
    await create_misfit(cluster, Box, {"metadata": {"name": "broken"}, "spec": {"size": "not a number"}})
    first, second = Controller(Box, Recorder()), Controller(Box, Recorder(), name="second")
    async with running(cluster, first, second) as manager:
        await eventually(lambda: events(cluster, "Malformed"))
        await settled(manager)
    [event] = await events(cluster, "Malformed")
    assert event.series is None
    assert caplog.text.count("cannot be read") == 1


async def test_a_watched_object_reconciles_only_objects_that_refer_to_it(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    by_label = Index(Box, lambda box: [box.spec.labels.get("friend", "")])
    papers = Index(Paper, lambda paper: [paper.friend])
    seen: list[tuple[str, int]] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        friends = await ctx.list(papers, box.spec.labels["friend"])
        seen.append((box.metadata.name, len(friends)))

    declared = Controller(
        Box, reconcile, watches=[watch(Paper, via=by_label, key=lambda paper: paper.friend)]
    )
    async with running(cluster, declared) as manager:
        for name, friend in (("a", "joe"), ("b", "ann")):
            box = Box(Meta(name))
            box.spec.labels = {"friend": friend}
            await cluster.create(box)
        await eventually(lambda: {("a", 0), ("b", 0)} <= set(seen))
        await settled(manager)
        seen.clear()
        paper = await cluster.create(Paper(Meta("p"), friend="joe"))
        await cluster.create(Paper(Meta("q"), friend="missing"))
        await eventually(lambda: ("a", 1) in seen)
        await cluster.client.patch(paper, {"friend": "ann"})
        await eventually(lambda: ("a", 0) in seen and ("b", 1) in seen)
        await settled(manager)
        assert seen.count(("a", 1)) == 1


async def test_a_predicate_drops_changes_but_never_a_deletion(cluster: Cluster) -> None:
    await cluster.install(Box)
    finalized: list[str] = []

    class Boxes(Recorder):
        async def finalize(self, box: Box, ctx: Context) -> None:
            finalized.append(box.metadata.name)

    recorder = Boxes()
    declared = Controller(Box, recorder, finalizer="example.com/x", when=generation_changed)
    async with running(cluster, declared) as manager:
        box = await cluster.create(Box(Meta("a")))
        await wait_for_runs(cluster, recorder, 1)
        await settled(manager)
        await cluster.client.patch(box, {"metadata": {"labels": {"a": "b"}}})
        await cluster.client.patch(box, {"spec": {"size": 2}})
        await wait_for_runs(cluster, recorder, 2)
        await settled(manager)
        assert len(recorder.runs) == 2
        await cluster.client.delete(box)
        await cluster.eventually_gone(Box, "a")
    assert finalized == ["a"]


async def test_external_events_cause_reconciles_and_a_broken_source_is_reopened(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    await cluster.create(Box(Meta("a")))
    recorder = Recorder()
    opened: list[int] = []

    async def stream() -> AsyncIterator[str]:
        opened.append(1)
        yield "a"
        if len(opened) < 3:
            raise ConnectionError("cut")

    declared = Controller(
        Box,
        recorder,
        watches=[source(stream, map=lambda name: [ObjectKey(cluster.namespace, name)])],
        options=Options(backoff=Backoff(base=0.01)),
    )
    async with running(cluster, declared):

        async def three() -> bool:
            return (
                len(opened) == 3
                and (Cause("", ObjectKey(cluster.namespace, "a"), "external"),) in recorder.causes
            )

        await eventually(three)


async def test_a_map_function_that_fails_does_not_stop_others(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    recorder = Recorder()

    def to_keys(paper: Paper) -> list[ObjectKey]:
        if paper.text == "bad":
            raise LookupError("a mistake in a map")
        return [paper.key]

    async with running(cluster, Controller(Box, recorder, watches=[watch(Paper, map=to_keys)])) as manager:
        await cluster.create(Box(Meta("a")))
        await wait_for_runs(cluster, recorder, 1)
        await settled(manager)
        await cluster.create(Paper(Meta("x"), text="bad"))
        await cluster.create(Paper(Meta("a")))
        await wait_for_runs(cluster, recorder, 2)
        assert recorder.causes[-1] == (Cause("Paper", ObjectKey(cluster.namespace, "a"), "create"),)
        assert str(recorder.causes[-1][0]) == f"Paper {cluster.namespace}/a was created"


async def test_the_context_serves_only_what_is_declared(cluster: Cluster) -> None:
    await cluster.install(Box)
    refusals: list[str] = []
    await cluster.create(core_v1.ConfigMap(Meta("settings"), data={"a": "1"}))

    async def reconcile(box: Box, ctx: Context) -> None:
        settings = await ctx.find(core_v1.ConfigMap, "settings")
        assert settings is not None
        assert await ctx.find(core_v1.ConfigMap, "absent") is None
        assert await ctx.live.find(Box, box.metadata.name) is not None
        for attempt in (
            ctx.list(core_v1.ConfigMap),
            ctx.find(core_v1.Secret, "a"),
            ctx.delete(settings),
            ctx.apply(settings),
            ctx.create(core_v1.Secret(Meta("a"))),
            ctx.patch(box, {"spec": {"size": 7}}),
        ):
            try:
                await attempt
            except UndeclaredAccess as refusal:
                refusals.append(str(refusal))

    async with running(cluster, Controller(Box, reconcile, needs=[needs(core_v1.ConfigMap, "get")])):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(refusals) >= 6)
    assert 'add needs=[kw.needs(core_v1.ConfigMap, "list")]' in refusals[0]
    assert "called at" in refusals[0]


async def test_own_writes_are_read_at_once(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    read: list[tuple[str | None, int | None, bool]] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        if read:
            return
        made = await ctx.apply(Paper(Meta("p"), text="one", number=1))
        first = await ctx.find(Paper, "p")
        await ctx.update(made, lambda paper: setattr(paper, "number", 5))
        second = await ctx.find(Paper, "p")
        await ctx.delete(made)
        third = await ctx.find(Paper, "p")
        read.append((first and first.text, second and second.number, third is None))
        await ctx.patch_status(box, BoxStatus(ready=9))
        own = await ctx.find(Box, box.metadata.name)
        assert own is not None
        assert own.status.ready == 9

    declared = Controller(Box, reconcile, owns=[Paper], needs=[needs(Paper, "delete")])
    async with running(cluster, declared) as manager:
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: bool(read))
        await settled(manager)
        assert manager.statistics().controllers[0].outcomes["error"] == 0
    assert read == [("one", 5, True)]


async def test_blocking_work_runs_in_threads_and_can_record_events(cluster: Cluster) -> None:
    await cluster.install(Box)
    names: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        def work(text: str) -> str:
            ctx.event("Worked", text)
            return threading.current_thread().name

        names.append(await ctx.run_sync(work, "in a thread"))

    async with running(cluster, Controller(Box, reconcile)):
        await cluster.create(Box(Meta("a")))

        async def reported() -> Any:
            return await events(cluster, "Worked")

        [event] = await eventually(reported)
        assert event.note == "in a thread"
    assert names[0].startswith("kubewright-box")


async def test_run_sync_refuses_coroutine_functions(cluster: Cluster) -> None:
    await cluster.install(Box)
    calls: list[str] = []
    refusals: list[str] = []

    async def call(name: str) -> None:
        calls.append(name)

    async def reconcile(box: Box, ctx: Context) -> None:
        def returns_coroutine() -> Any:
            return call("b")

        for function in (functools.partial(call, "a"), returns_coroutine):
            try:
                await ctx.run_sync(function)
            except TypeError as error:
                refusals.append(str(error))

    async with running(cluster, Controller(Box, reconcile)):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(refusals) >= 2)
    assert refusals[:2] == [
        "run_sync got the coroutine function 'call': write `await call(...)`",
        (
            "run_sync got 'returns_coroutine', which returned a coroutine: run_sync takes functions that block; "
            "write `await returns_coroutine(...)`"
        ),
    ]
    assert calls == []


async def test_each_log_line_names_its_controller_and_object(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.install(Box)
    caplog.set_level(logging.INFO)

    async def reconcile(box: Box, ctx: Context) -> None:
        ctx.log.info("looking", extra={"size": box.spec.size})

    async with running(cluster, Controller(Box, reconcile)):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: "looking" in caplog.text)
    record = next(record for record in caplog.records if record.message == "looking")
    fields: dict[str, Any] = record.__dict__["fields"]
    assert len(fields.pop("reconcileID")) == 36
    assert fields == {
        "controller": "box",
        "controllerGroup": "running.example.com",
        "controllerKind": "Box",
        "Box": {"namespace": cluster.namespace, "name": "a"},
        "namespace": cluster.namespace,
        "name": "a",
        "size": 1,
    }


async def test_several_objects_are_reconciled_at_once_but_never_one_twice(cluster: Cluster) -> None:
    await cluster.install(Box)
    active: set[str] = set()
    most = 0
    all_busy = asyncio.Event()

    async def reconcile(box: Box, ctx: Context) -> None:
        nonlocal most
        assert box.metadata.name not in active
        active.add(box.metadata.name)
        most = max(most, len(active))
        if len(active) == 3:
            all_busy.set()
        # Until then the changes of each box come while it is being reconciled.
        await all_busy.wait()
        await asyncio.sleep(0)
        active.remove(box.metadata.name)

    async with running(cluster, Controller(Box, reconcile, concurrency=3)) as manager:
        for number in range(6):
            box = await cluster.create(Box(Meta(f"b{number}")))
            await cluster.client.patch(box, {"spec": {"size": 2}})
        await settled(manager)
        assert manager.statistics().controllers[0].outcomes["error"] == 0
    assert most == 3


@pytest.mark.parametrize("failing", [False, True])
async def test_groups_take_turns_in_the_queue_if_the_controller_is_fair(
    cluster: Cluster, failing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.install(Box)
    reconciled: list[str] = []
    all_queued = asyncio.Event()

    async def reconcile(box: Box, ctx: Context) -> None:
        reconciled.append(box.metadata.name)
        await all_queued.wait()

    def group(key: ObjectKey) -> str:
        if failing:
            raise LookupError("no group")
        return key.name.partition("-")[0]

    controller = Controller(Box, reconcile, options=Options(fair_by=group))
    async with running(cluster, controller) as manager:
        for name in ("busy-0", "busy-1", "busy-2", "busy-3", "quiet-0", "quiet-1"):
            await cluster.create(Box(Meta(name)))
        await eventually(lambda: manager.statistics().controllers[0].queue.ready == 5)
        all_queued.set()
        await settled(manager)
    reports = [record for record in caplog.records if "fair_by failed on" in record.message]
    if failing:
        assert reconciled == ["busy-0", "busy-1", "busy-2", "busy-3", "quiet-0", "quiet-1"]
        assert len(reports) == 1
    else:
        assert reconciled == ["busy-0", "busy-1", "quiet-0", "busy-2", "quiet-1", "busy-3"]
        assert not reports


def test_a_cluster_scoped_kind_has_no_namespaces_to_be_fair_to() -> None:
    async def reconcile(node: core_v1.Node, ctx: Context) -> None: ...

    with pytest.raises(DeclarationError, match="Node is cluster-scoped; pass a function"):
        Controller(core_v1.Node, reconcile, options=Options(fair_by="namespace"))
