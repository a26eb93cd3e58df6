"""Objects that users pause, resume and have reconciled by annotations."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest

from kubewright import conditions, predicates
from kubewright.api import (
    PAUSED,
    RECONCILE_AT,
    Kind,
    Meta,
    Object,
    Resource,
    control_patch,
    utc_now,
)
from kubewright.api.builtin import core_v1
from kubewright.api.control_annotations import ControlAction
from kubewright.backoff import Backoff
from kubewright.controller import (
    Context,
    Controller,
    Operator,
    Options,
    Result,
    RetryLater,
    Selector,
    owned,
)
from kubewright.election import ElectionOptions, LeaseTimes
from kubewright.manager import Manager
from kubewright.testing import Cluster, eventually

from .kinds import Box, BoxSpec, BoxStatus, Paper
from .operators import events, options, running, settled, started, writes

HELD = "running.example.com/held"
QUICK_LEASE = LeaseTimes(duration=6.0, renew_deadline=4.0, retry_period=0.2, main_loop_silence=4.0)
QUICK = Options(backoff=Backoff(base=0.01, maximum=0.05))


class PausedCrate(
    Resource[BoxSpec, BoxStatus],
    group="running.example.com",
    version="v1",
    scope="Cluster",
):
    """Is cluster-scoped and has conditions."""


async def control(cluster: Cluster, obj: Object, action: ControlAction) -> None:
    await cluster.client.patch(obj, control_patch(action, utc_now()), type="merge")


async def annotate(cluster: Cluster, obj: Object, name: str, value: str | None) -> None:
    await cluster.client.patch(obj, {"metadata": {"annotations": {name: value}}}, type="merge")


def paused_meta(name: str, **more: Any) -> Meta:
    return Meta(name, annotations={PAUSED: "true"}, **more)


def shown(box: Box | PausedCrate) -> bool:
    return conditions.is_true(box.status.conditions, "Paused")


def paused_objects(manager: Manager, controller: str = "box") -> int:
    for family in manager.metrics.families():
        if family.name == "kubewright_paused_objects":
            return sum(int(each.value) for each in family.samples if each.labels["controller"] == controller)
    raise AssertionError("the metric is missing")


class Seen:
    """A reconciler that notes the sizes of the boxes that it sees."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.causes: list[str] = []

    async def reconcile(self, box: Box, ctx: Context) -> None:
        self.sizes.append(box.spec.size)
        self.causes += [cause.type for cause in ctx.causes]


async def test_a_paused_object_is_reconciled_when_it_is_resumed_and_not_before(cluster: Cluster) -> None:
    await cluster.install(Box)
    seen = Seen()
    controller = Controller(Box, seen, when=predicates.generation_changed)
    async with running(cluster, controller) as manager:
        box = await cluster.create(Box(Meta("a"), spec=BoxSpec(size=1)))
        await eventually(lambda: seen.sizes)
        await control(cluster, box, "pause")
        await cluster.eventually(Box, "a", shown)
        await cluster.client.patch(box, {"spec": {"size": 2}}, type="merge")
        await settled(manager)
        assert seen.sizes == [1]
        assert paused_objects(manager) == 1
        assert manager.statistics().controllers[0].outcomes["success"] == 1

        await control(cluster, box, "resume")
        await eventually(lambda: seen.sizes == [1, 2])
        await cluster.eventually(Box, "a", lambda found: not found.status.conditions)
        await settled(manager)
        assert seen.sizes == [1, 2]
        assert paused_objects(manager) == 0


async def test_the_condition_of_a_pause_leaves_the_status_of_the_reconciler_alone(cluster: Cluster) -> None:
    await cluster.install(Box)

    async def reconcile(box: Box, ctx: Context) -> None:
        ready = conditions.true("Ready", "Filled")
        await ctx.patch_status(box, BoxStatus(ready=box.spec.size, conditions=[ready]))

    async with running(cluster, Controller(Box, reconcile)) as manager:
        box = await cluster.create(Box(Meta("a"), spec=BoxSpec(size=7)))
        before = await cluster.eventually(Box, "a", lambda found: found.status.conditions)
        await control(cluster, box, "pause")
        during = await cluster.eventually(Box, "a", shown)
        assert during.status.ready == 7
        [ready, paused] = during.status.conditions
        assert ready == before.status.conditions[0]
        assert (paused.reason, paused.observed_generation) == ("PausedByAnnotation", 0)
        assert PAUSED in paused.message
        written = writes(manager)
        await annotate(cluster, box, "unrelated", "1")
        await settled(manager)
        assert writes(manager) == written

        await control(cluster, box, "resume")
        after = await cluster.eventually(Box, "a", lambda found: not shown(found))
        assert after.status == before.status
        assert not [entry for entry in after.metadata.managed_fields if entry.manager == "kubewright-pause"]


async def test_a_pause_before_the_first_reconcile_adds_no_finalizer_and_creates_the_status(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    seen: list[str] = []

    class Boxes:
        async def reconcile(self, box: Box, ctx: Context) -> None:
            seen.append(box.metadata.name)

        async def finalize(self, box: Box, ctx: Context) -> None:
            seen.append("finalized")

    async with running(cluster, Controller(Box, Boxes(), finalizer=HELD)) as manager:
        box = await cluster.create(Box(paused_meta("a")))
        found = await cluster.eventually(Box, "a", shown)
        await settled(manager)
        assert (found.metadata.finalizers, seen) == ([], [])
        await control(cluster, box, "resume")
        await eventually(lambda: seen)


async def test_an_event_shows_a_pause_once_if_the_kind_has_no_conditions(cluster: Cluster) -> None:
    await cluster.install(Paper)
    seen: list[str] = []

    async def reconcile(paper: Paper, ctx: Context) -> None:
        seen.append(paper.metadata.name)

    controller = Controller(Paper, reconcile, resync=timedelta(seconds=0.1))
    async with running(cluster, controller):
        paper = await cluster.create(Paper(paused_meta("a")))
        [event] = await eventually(lambda: events(cluster, "Paused"))
        assert (event.type, event.regarding.name, event.series) == ("Normal", "a", None)
        await annotate(cluster, paper, "unrelated", "1")
        await cluster.create(Paper(Meta("resynced")))
        await eventually(lambda: seen.count("resynced") > 3)
        [event] = await events(cluster, "Paused")
        assert event.series is None
        assert "a" not in seen
        await control(cluster, paper, "resume")
        await eventually(lambda: "a" in seen)
        await eventually(lambda: events(cluster, "Resumed"))


async def test_deleting_a_paused_object_runs_its_finalizer(cluster: Cluster) -> None:
    await cluster.install(Box)
    seen: list[str] = []

    class Boxes:
        async def reconcile(self, box: Box, ctx: Context) -> None:
            seen.append("reconciled")

        async def finalize(self, box: Box, ctx: Context) -> None:
            seen.append("finalized")

    async with running(cluster, Controller(Box, Boxes(), finalizer=HELD)) as manager:
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(Box, "a", lambda found: found.metadata.finalizers == [HELD])
        await settled(manager)
        seen.clear()
        await control(cluster, box, "pause")
        await cluster.eventually(Box, "a", shown)
        await cluster.client.delete(box)
        await cluster.eventually_gone(Box, "a")
        await settled(manager)
        assert seen == ["finalized"]
        assert paused_objects(manager) == 0


async def test_children_of_a_paused_object_lose_the_finalizer_and_are_not_created_again(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    seen: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        seen.append(box.metadata.name)
        await ctx.apply(core_v1.ConfigMap(Meta("child"), data={"size": str(box.spec.size)}))

    controller = Controller(Box, reconcile, owns=[owned(core_v1.ConfigMap, finalizer=HELD)])
    async with running(cluster, controller) as manager:
        box = await cluster.create(Box(Meta("a")))
        child = await cluster.eventually(core_v1.ConfigMap, "child")
        await control(cluster, box, "pause")
        await cluster.eventually(Box, "a", shown)
        await settled(manager)
        seen.clear()
        await cluster.client.patch(child, {"data": {"size": "changed"}}, type="merge")
        await settled(manager)
        assert (await cluster.get(core_v1.ConfigMap, "child")).data == {"size": "changed"}
        await cluster.client.delete(child)
        await cluster.eventually_gone(core_v1.ConfigMap, "child")
        await settled(manager)
        assert seen == []
        await control(cluster, box, "resume")
        await cluster.eventually(core_v1.ConfigMap, "child", lambda found: found.data == {"size": "1"})


@pytest.mark.parametrize("ending", ["error", "retry_later", "result"])
async def test_retries_and_requeues_of_a_paused_object_are_dropped(cluster: Cluster, ending: str) -> None:
    await cluster.install(Box)
    tries = 0

    async def reconcile(box: Box, ctx: Context) -> Result | None:
        nonlocal tries
        tries += 1
        if ending == "error":
            raise ConnectionError("not yet")
        if ending == "retry_later":
            raise RetryLater("not yet", after=timedelta(seconds=0.02))
        return Result(after=timedelta(seconds=0.02))

    async with running(cluster, Controller(Box, reconcile, options=QUICK)) as manager:
        box = await cluster.create(Box(Meta("a")))
        await eventually(lambda: tries > 2)
        await control(cluster, box, "pause")
        await cluster.eventually(Box, "a", shown)

        def dropped() -> bool:
            queue = manager.statistics().controllers[0].queue
            return (queue.ready, queue.delayed, queue.in_flight, queue.retrying) == (0, 0, 0, 0)

        await eventually(dropped)
        before = tries
        await settled(manager)
        assert tries == before
        await control(cluster, box, "resume")
        await eventually(lambda: tries > before)


async def test_a_pause_during_a_reconcile_takes_effect_after_it(cluster: Cluster) -> None:
    await cluster.install(Box)
    begun, paused = asyncio.Event(), asyncio.Event()
    ended: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        begun.set()
        await paused.wait()
        ended.append(box.metadata.name)

    async with running(cluster, Controller(Box, reconcile)) as manager:
        box = await cluster.create(Box(Meta("a")))
        await begun.wait()
        await control(cluster, box, "pause")
        await eventually(lambda: paused_objects(manager) == 1)
        paused.set()
        await cluster.eventually(Box, "a", shown)
        await settled(manager)
        assert ended == ["a"]


async def test_a_restart_keeps_objects_paused_and_a_resume_while_it_was_down_is_reconciled(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    seen = Seen()
    controller = Controller(Box, seen, when=predicates.generation_changed)
    box = await cluster.create(Box(paused_meta("a")))
    for _ in range(2):
        async with running(cluster, controller) as manager:
            found = await cluster.eventually(Box, "a", shown)
            await settled(manager)
            assert seen.sizes == []
    await control(cluster, box, "resume")
    assert shown(await cluster.get(Box, "a"))
    async with running(cluster, controller):
        after = await cluster.eventually(Box, "a", lambda found: not shown(found))
        await eventually(lambda: seen.sizes == [1])
    assert len(found.status.conditions) == 1
    assert after.status.conditions == []


async def test_a_new_leader_keeps_objects_paused(cluster: Cluster) -> None:
    await cluster.install(Box)
    worked: list[str] = []

    def replica(name: str) -> Manager:
        async def reconcile(box: Box, ctx: Context) -> None:
            worked.append(name)

        chosen = options(
            election=ElectionOptions(times=QUICK_LEASE, identity=name), namespaces=(cluster.namespace,)
        )
        return Manager(Operator(Controller(Box, reconcile)), cluster.config, chosen)

    box = await cluster.create(Box(paused_meta("a")))
    first, second = replica("first"), replica("second")
    async with AsyncExitStack() as stack:
        async with started(first):
            await first.ready.wait()
            await cluster.eventually(Box, "a", shown)
            await stack.enter_async_context(started(second))
            await second.synced.wait()
        await second.ready.wait()
        await settled(second)
        assert worked == []
        assert paused_objects(second) == 1
        await control(cluster, box, "resume")
        await eventually(lambda: set(worked) == {"second"})
        await cluster.eventually(Box, "a", lambda found: not shown(found))


async def test_any_other_value_does_not_pause_and_is_reported_once(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.install(Box)
    seen = Seen()
    async with running(cluster, Controller(Box, seen)) as manager:
        box = await cluster.create(Box(Meta("a", annotations={PAUSED: "yes"})))
        await eventually(lambda: seen.sizes)
        [event] = await eventually(lambda: events(cluster, "InvalidAnnotation"))
        assert event.type == "Warning"
        assert event.note == (
            'kubewright.dev/paused: \'yes\' is neither "true" nor "false": the object is not paused'
        )
        await annotate(cluster, box, "unrelated", "1")
        await eventually(lambda: len(seen.sizes) == 2)
        await annotate(cluster, box, PAUSED, "false")
        await eventually(lambda: len(seen.sizes) == 3)
        await settled(manager)
        [event] = await events(cluster, "InvalidAnnotation")
        assert event.series is None
        assert caplog.text.count("Invalid annotation") == 1
        assert paused_objects(manager) == 0


async def test_reconcile_at_triggers_one_reconcile_in_spite_of_predicates(cluster: Cluster) -> None:
    await cluster.install(Box)
    seen = Seen()
    async with running(cluster, Controller(Box, seen, when=predicates.generation_changed)) as manager:
        box = await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(seen.sizes) == 1)
        for count in (2, 3):
            await control(cluster, box, "reconcile")
            await eventually(lambda count=count: len(seen.sizes) == count)
        await annotate(cluster, box, "unrelated", "1")
        await annotate(cluster, box, RECONCILE_AT, None)
        await settled(manager)
        assert len(seen.sizes) == 3


async def test_reconcile_at_in_the_future_waits_for_its_time_and_the_last_value_counts(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    seen = Seen()
    async with running(cluster, Controller(Box, seen, when=predicates.generation_changed)) as manager:
        box = await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(seen.sizes) == 1)
        await annotate(cluster, box, RECONCILE_AT, "2999-01-01T00:00:00Z")
        await settled(manager)
        assert len(seen.sizes) == 1
        soon = utc_now() + timedelta(seconds=0.5)
        await annotate(cluster, box, RECONCILE_AT, soon.isoformat())
        await eventually(lambda: len(seen.sizes) == 2)
        assert utc_now() >= soon
        assert seen.causes[-1] == "requested"


async def test_reconcile_at_in_the_future_survives_a_restart_and_earlier_reconciles(cluster: Cluster) -> None:
    await cluster.install(Box)
    seen = Seen()
    soon = utc_now() + timedelta(seconds=1.5)
    box = await cluster.create(Box(Meta("a", annotations={RECONCILE_AT: soon.isoformat()})))
    async with running(cluster, Controller(Box, seen)):
        await eventually(lambda: seen.sizes)
    async with running(cluster, Controller(Box, seen)):
        await annotate(cluster, box, "unrelated", "1")
        await eventually(lambda: "requested" in seen.causes)
        assert utc_now() >= soon


@pytest.mark.parametrize("value", ["tomorrow", "", "2026-01-31", "2026-01-31T15:04:05"])
async def test_an_invalid_time_is_reported_once(cluster: Cluster, value: str) -> None:
    await cluster.install(Box)
    seen = Seen()
    async with running(cluster, Controller(Box, seen)) as manager:
        box = await cluster.create(Box(Meta("a", annotations={RECONCILE_AT: value})))
        [event] = await eventually(lambda: events(cluster, "InvalidAnnotation"))
        assert event.note == (
            f"kubewright.dev/reconcile-at: {value!r} is not a time of RFC 3339 such as 2026-01-31T15:04:05Z"
        )
        before = len(seen.sizes)
        await annotate(cluster, box, "unrelated", "1")
        await eventually(lambda: len(seen.sizes) > before)
        await settled(manager)
        [event] = await events(cluster, "InvalidAnnotation")
        assert event.series is None


async def test_a_requested_reconcile_of_a_paused_object_waits_until_it_is_resumed(cluster: Cluster) -> None:
    await cluster.install(Box)
    seen = Seen()
    async with running(cluster, Controller(Box, seen, when=predicates.generation_changed)) as manager:
        box = await cluster.create(Box(paused_meta("a")))
        await cluster.eventually(Box, "a", shown)
        await control(cluster, box, "reconcile")
        await settled(manager)
        assert seen.sizes == []
        await control(cluster, box, "resume")
        await eventually(lambda: seen.sizes == [1])


async def test_a_cluster_scoped_object_is_paused_and_resumed(cluster: Cluster) -> None:
    await cluster.install(PausedCrate)
    name = f"crate-{cluster.namespace}"
    seen: list[str] = []

    async def reconcile(crate: PausedCrate, ctx: Context) -> None:
        seen.append(crate.metadata.name)

    async with running(cluster, Controller(PausedCrate, reconcile)):
        crate = await cluster.client.create(PausedCrate(paused_meta(name)))

        async def is_shown() -> bool:
            return shown(await cluster.client.get(PausedCrate, name))

        await eventually(is_shown)
        assert name not in seen
        await control(cluster, crate, "resume")
        await eventually(lambda: name in seen)
    await cluster.client.delete(crate)


async def test_the_annotations_of_a_child_do_nothing(cluster: Cluster) -> None:
    await cluster.install(Box)

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(core_v1.ConfigMap(Meta("child"), data={"size": str(box.spec.size)}))

    async with running(cluster, Controller(Box, reconcile, owns=[core_v1.ConfigMap])) as manager:
        box = await cluster.create(Box(Meta("a")))
        child = await cluster.eventually(core_v1.ConfigMap, "child")
        await control(cluster, child, "pause")
        await annotate(cluster, child, RECONCILE_AT, "nonsense")
        await cluster.client.patch(box, {"spec": {"size": 2}}, type="merge")
        await cluster.eventually(core_v1.ConfigMap, "child", lambda found: found.data == {"size": "2"})
        await settled(manager)
        assert paused_objects(manager) == 0
        assert await events(cluster, "Paused") == await events(cluster, "InvalidAnnotation") == []


async def test_a_transform_that_drops_annotations_does_not_hide_a_pause(cluster: Cluster) -> None:
    await cluster.install(Box)
    seen = Seen()

    def bare(wire: dict[str, Any]) -> dict[str, Any]:
        wire["metadata"].pop("annotations", None)
        wire.pop("status", None)
        return wire

    box = await cluster.create(Box(paused_meta("a")))
    ready = {"type": "Ready", "status": "True", "reason": "Set", "message": ""}
    status = {"ready": 3, "conditions": [ready | {"lastTransitionTime": "2026-01-31T15:04:05Z"}]}
    await cluster.client.patch(box, {"status": status}, type="merge", subresource="status")
    before = await cluster.get(Box, "a")
    async with running(cluster, Controller(Box, seen, selector=Selector(transform=bare))):
        during = await cluster.eventually(Box, "a", shown)
        assert (during.status.ready, len(during.status.conditions), seen.sizes) == (3, 2, [])
        await control(cluster, box, "resume")
        after = await cluster.eventually(Box, "a", lambda found: not shown(found))
        assert after.status == before.status
        await eventually(lambda: seen.sizes)


async def test_two_controllers_of_one_kind_show_one_condition(cluster: Cluster) -> None:
    await cluster.install(Box)
    first, second = Seen(), Seen()
    controllers = (Controller(Box, first, name="first"), Controller(Box, second, name="second"))
    async with running(cluster, *controllers) as manager:
        box = await cluster.create(Box(paused_meta("a")))
        await cluster.eventually(Box, "a", shown)
        await settled(manager)
        assert len((await cluster.get(Box, "a")).status.conditions) == 1
        await control(cluster, box, "resume")
        await eventually(lambda: first.sizes and second.sizes)
        await settled(manager)
        assert (await cluster.get(Box, "a")).status.conditions == []


async def test_a_paused_condition_of_the_reconciler_itself_is_left_alone(cluster: Cluster) -> None:
    await cluster.install(Box)
    seen = Seen()

    async def reconcile(box: Box, ctx: Context) -> None:
        own = conditions.false("Paused", "Running", "by the reconciler")
        await ctx.patch_status(box, BoxStatus(conditions=[own]))
        await seen.reconcile(box, ctx)

    async with running(cluster, Controller(Box, reconcile)) as manager:
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(Box, "a", lambda found: found.status.conditions)
        await settled(manager)
        await control(cluster, box, "pause")
        await eventually(lambda: events(cluster, "Paused"))
        [own] = (await cluster.get(Box, "a")).status.conditions
        assert own.message == "by the reconciler"
        before = len(seen.sizes)
        await control(cluster, box, "resume")
        await eventually(lambda: len(seen.sizes) > before)
        [own] = (await cluster.get(Box, "a")).status.conditions
        assert own.message == "by the reconciler"


async def test_an_object_of_a_kind_without_a_class_is_paused(cluster: Cluster) -> None:
    await cluster.install(Box)
    untyped = Kind(group="running.example.com", version="v1", kind="Box", plural="boxes", status=True)
    seen: list[str] = []

    async def reconcile(box: dict[str, Any], ctx: Context) -> None:
        seen.append(box["metadata"]["name"])

    async with running(cluster, Controller(untyped, reconcile)):
        box = await cluster.create(Box(paused_meta("a")))
        await eventually(lambda: events(cluster, "Paused"))
        assert seen == []
        await control(cluster, box, "resume")
        await eventually(lambda: seen)


async def test_the_journal_shows_that_a_reconcile_was_not_started(cluster: Cluster) -> None:
    await cluster.install(Box)
    seen = Seen()
    async with running(cluster, Controller(Box, seen)) as manager:
        await cluster.create(Box(paused_meta("a")))
        await cluster.eventually(Box, "a", shown)
        await settled(manager)
        outcomes = {entry.outcome for entry in manager.journal}
        assert outcomes == {"paused"}
