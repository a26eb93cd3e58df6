"""Disruptive writes that keep to a budget and to windows."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.disruption import Budget, Window
from kubewright.errors import DisruptionDeferred
from kubewright.manager import Manager
from kubewright.testing import Cluster, eventually

from .kinds import Box, BoxSpec, BoxStatus
from .operators import options, running, settled, started

HOUR = Budget(at_most=1, every="1h")
SLOTS = "boxes-box-disruption"


def with_child(**limits: Any) -> kw.Controller[Box]:
    """Return a controller whose changes of a child are disruptive."""

    @kw.controller(Box, owns=[core_v1.ConfigMap], options=kw.Options(**limits))
    async def boxes(box: Box, ctx: kw.Context) -> None:
        with ctx.disruption():
            await ctx.apply(core_v1.ConfigMap(kw.Meta(box.metadata.name), data={"size": str(box.spec.size)}))

    return boxes


def closed_now() -> Window:
    """Return a window that is closed now and in the next hours."""
    later = datetime.now(UTC) + timedelta(hours=12)
    return Window(f"{later:%H}:00-{later:%H}:30")


async def create_boxes(cluster: Cluster, *names: str) -> list[Box]:
    boxes = [await cluster.create(Box(kw.Meta(name), spec=BoxSpec())) for name in names]
    for name in names:
        await cluster.eventually(core_v1.ConfigMap, name)
    return boxes


async def resize(cluster: Cluster, boxes: list[Box], size: int) -> None:
    for box in boxes:
        await cluster.client.patch(box, {"spec": {"size": size}})


async def resized(cluster: Cluster, names: str, size: int) -> list[str]:
    return [
        name for name in names if (await cluster.get(core_v1.ConfigMap, name)).data == {"size": str(size)}
    ]


def deferred(manager: Manager, reason: str) -> float:
    return sum(
        sample.value
        for family in manager.metrics.families()
        if family.name == "kubewright_disruptions_deferred_total"
        for sample in family.samples
        if sample.labels["reason"] == reason
    )


async def test_only_as_many_objects_are_disrupted_as_the_budget_allows(cluster: Cluster) -> None:
    await cluster.install(Box)
    async with running(cluster, with_child(budget=HOUR), name="boxes") as manager:
        boxes = await create_boxes(cluster, "a", "b", "c")
        assert await cluster.find(core_v1.ConfigMap, SLOTS) is None, "a create takes no slot"
        await resize(cluster, boxes, 2)
        await eventually(lambda: deferred(manager, "budget") >= 2)
        await settled(manager)
        [changed] = await resized(cluster, "abc", 2)
        [(uid, entry)] = (await cluster.get(core_v1.ConfigMap, SLOTS)).data.items()
        assert json.loads(entry)["object"] == f"Box {cluster.namespace}/{changed}"
        assert uid == next(box.metadata.uid for box in boxes if box.metadata.name == changed)

        queue = manager.statistics().controllers[0]
        assert (queue.queue.delayed, queue.outcomes["error"]) == (2, 0)
        await resize(cluster, [box for box in boxes if box.metadata.name == changed], 3)
        await cluster.eventually(core_v1.ConfigMap, changed, lambda found: found.data == {"size": "3"})


async def test_all_objects_are_disrupted_one_after_the_other(cluster: Cluster) -> None:
    await cluster.install(Box)
    held: list[int] = []

    async with running(cluster, with_child(budget=Budget(at_most=1, every="500ms")), name="boxes") as manager:
        boxes = await create_boxes(cluster, "a", "b", "c")
        await resize(cluster, boxes, 2)

        async def all_resized() -> bool:
            slots = await cluster.find(core_v1.ConfigMap, SLOTS)
            held.append(0 if slots is None else len(slots.data))
            return await resized(cluster, "abc", 2) == ["a", "b", "c"]

        await eventually(all_resized)
        assert max(held) == 1
        assert deferred(manager, "budget") >= 2


async def test_replicas_share_the_slots(cluster: Cluster) -> None:
    await cluster.install(Box)

    def replica() -> Manager:
        @kw.controller(Box, owns=[core_v1.ConfigMap], concurrency=4, options=kw.Options(budget=budget))
        async def boxes(box: Box, ctx: kw.Context) -> None:
            with ctx.disruption():
                await ctx.apply(
                    core_v1.ConfigMap(kw.Meta(box.metadata.name), data={"size": str(box.spec.size)})
                )

        operator = kw.Operator(boxes, name="boxes")
        return Manager(operator, cluster.config, options(namespaces=(cluster.namespace,)))

    budget, names = Budget(at_most=2, every="1h"), "abcdefgh"
    boxes = [await cluster.create(Box(kw.Meta(name), spec=BoxSpec())) for name in names]
    first, second = replica(), replica()
    async with started(first), started(second):
        for name in names:
            await cluster.eventually(core_v1.ConfigMap, name)
        await resize(cluster, boxes, 2)
        await eventually(lambda: deferred(first, "budget") >= 6 and deferred(second, "budget") >= 6)
        await settled(first)
        await settled(second)
        assert len(await resized(cluster, names, 2)) == 2
        assert len((await cluster.get(core_v1.ConfigMap, SLOTS)).data) == 2


async def test_the_declared_rights_suffice_and_a_reconcile_without_a_change_takes_no_slot(
    cluster: Cluster,
) -> None:
    operator = kw.Operator(with_child(budget=HOUR, windows=[Window("00:00-24:00")]), name="boxes")
    async with cluster.running(operator) as manager:
        [box] = await create_boxes(cluster, "a")
        await cluster.client.patch(box, {"metadata": {"annotations": {"unrelated": "1"}}})
        await settled(manager)
        assert await cluster.find(core_v1.ConfigMap, SLOTS) is None
        await resize(cluster, [box], 2)
        await cluster.eventually(core_v1.ConfigMap, "a", lambda found: found.data == {"size": "2"})
        assert len((await cluster.get(core_v1.ConfigMap, SLOTS)).data) == 1


async def test_a_closed_window_holds_back_changes_and_nothing_else(cluster: Cluster) -> None:
    await cluster.install(Box)
    refused: dict[str, str] = {}

    @kw.controller(
        Box,
        owns=[core_v1.ConfigMap],
        needs=[kw.needs(core_v1.ConfigMap, "delete")],
        options=kw.Options(windows=[closed_now()]),
    )
    async def boxes(box: Box, ctx: kw.Context) -> None:
        child = core_v1.ConfigMap(kw.Meta("child"), data={"size": str(box.spec.size)})
        with ctx.disruption() as disruption:
            await ctx.patch_status(box, BoxStatus(ready=box.spec.size))
            if box.spec.size == 1:
                await ctx.apply(child)
                return
            there = await ctx.get(core_v1.ConfigMap, "child")
            writes: list[tuple[str, Callable[[], Any]]] = [
                ("apply", lambda: ctx.apply(child)),
                ("update", lambda: ctx.update(there, lambda found: found.data.update(more="1"))),
                ("patch", lambda: ctx.patch(there, {"data": {"more": "1"}})),
                ("delete", lambda: ctx.delete(there)),
            ]
            for name, write in writes:
                try:
                    await write()
                except DisruptionDeferred as error:
                    refused[name] = str(error)
            await disruption.acquire()

    async with running(cluster, boxes, name="boxes") as manager:
        box = await cluster.create(Box(kw.Meta("a"), spec=BoxSpec()))
        await cluster.eventually(core_v1.ConfigMap, "child")
        await resize(cluster, [box], 2)
        await cluster.eventually(Box, "a", lambda found: found.status.ready == 2)
        await settled(manager)
        assert list(refused) == ["apply", "update", "patch", "delete"]
        assert all("waits for the window" in message for message in refused.values())
        assert (await cluster.get(core_v1.ConfigMap, "child")).data == {"size": "1"}
        assert deferred(manager, "window") >= 5
        assert manager.statistics().controllers[0].outcomes["requeue"] >= 1


async def test_a_block_without_declared_limits_is_an_error_that_names_them(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.install(Box)
    async with running(cluster, with_child(), name="boxes") as manager:
        await cluster.create(Box(kw.Meta("a"), spec=BoxSpec()))
        await eventually(lambda: manager.statistics().controllers[0].outcomes["error"] == 1)
        assert "controller 'box' uses ctx.disruption() and declares no limits: pass options=" in caplog.text


async def test_tasks_of_one_block_share_its_slot(cluster: Cluster) -> None:
    await cluster.install(Box)

    @kw.controller(Box, owns=[core_v1.ConfigMap], options=kw.Options(budget=HOUR))
    async def boxes(box: Box, ctx: kw.Context) -> None:
        size = {"size": str(box.spec.size)}
        with ctx.disruption():
            async with asyncio.TaskGroup() as group:
                for name in ("a", "b"):
                    group.create_task(ctx.apply(core_v1.ConfigMap(kw.Meta(name), data=size)))

    async with running(cluster, boxes, name="boxes") as manager:
        box = await cluster.create(Box(kw.Meta("a"), spec=BoxSpec()))
        await cluster.eventually(core_v1.ConfigMap, "b")
        await resize(cluster, [box], 2)
        await cluster.eventually(core_v1.ConfigMap, "a", lambda found: found.data == {"size": "2"})
        await cluster.eventually(core_v1.ConfigMap, "b", lambda found: found.data == {"size": "2"})
        await settled(manager)
        assert len((await cluster.get(core_v1.ConfigMap, SLOTS)).data) == 1
