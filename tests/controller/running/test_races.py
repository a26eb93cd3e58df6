"""What happens to an object between the moment it was read and the moment it is written."""

import asyncio
from typing import Any

from kubewright.api import InvalidRequest, Meta
from kubewright.controller import Context, Controller, needs
from kubewright.testing import Cluster, eventually, virtual_time

from .kinds import Box, BoxStatus
from .operators import ours, running, with_boxes

OWN = "running.example.com/own"
OTHERS = "running.example.com/others"


class Boxes:
    def __init__(self) -> None:
        self.seen: list[tuple[str, list[str]]] = []

    async def reconcile(self, box: Box, ctx: Context) -> None:
        self.seen.append((box.metadata.uid, box.metadata.finalizers))

    async def finalize(self, box: Box, ctx: Context) -> None: ...


async def meet_first_patch(cluster: Cluster, box: Box, meanwhile: Any) -> Any:
    """Create the box, and do something while the operator's first patch of it is on its way."""
    with cluster.faults.add(match=ours(verbs=("patch",)), delay=5.0, times=1) as slow:
        box = await cluster.create(box)
        await eventually(lambda: slow.hits == 1)
        return await meanwhile(box)


@virtual_time
async def test_an_object_replaced_before_its_finalizer_was_added_gets_its_own_finalizer() -> None:
    boxes = Boxes()
    async with with_boxes() as cluster, running(cluster, Controller(Box, boxes, finalizer=OWN)) as manager:

        async def replace(box: Box) -> Box:
            await cluster.client.delete(box)
            return await cluster.create(Box(Meta("a")))

        second = await meet_first_patch(cluster, Box(Meta("a")), replace)
        await eventually(lambda: bool(boxes.seen))
        await asyncio.sleep(60)
        assert {(uid, tuple(finalizers)) for uid, finalizers in boxes.seen} == {(second.metadata.uid, (OWN,))}
        assert manager.statistics().controllers[0].outcomes["error"] == 0


@virtual_time
async def test_an_object_deleted_before_its_finalizer_was_added_causes_no_error() -> None:
    boxes = Boxes()
    async with with_boxes() as cluster, running(cluster, Controller(Box, boxes, finalizer=OWN)) as manager:
        await meet_first_patch(cluster, Box(Meta("a")), cluster.client.delete)
        await meet_first_patch(cluster, Box(Meta("b", finalizers=[OTHERS])), cluster.client.delete)
        await asyncio.sleep(60)
        left = await cluster.client.list(Box, namespace=cluster.namespace)
        assert [(box.metadata.name, box.metadata.finalizers) for box in left] == [("b", [OTHERS])]
        assert boxes.seen == []
        assert manager.statistics().controllers[0].outcomes["error"] == 0


@virtual_time
async def test_an_update_does_not_change_another_object_of_the_same_name() -> None:
    replaced = asyncio.Event()
    first: list[str] = []
    failures: list[InvalidRequest] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        first[:] = first or [box.metadata.uid]
        if box.metadata.uid == first[0]:
            await replaced.wait()
            try:
                await ctx.update(box, lambda found: found.metadata.labels.update(seen=box.metadata.uid))
            except InvalidRequest as error:
                failures.append(error)
                raise

    async with (
        with_boxes() as cluster,
        running(cluster, Controller(Box, reconcile, needs=[needs(Box, "patch")])),
    ):
        box = await cluster.create(Box(Meta("a")))
        await eventually(lambda: bool(first))
        await cluster.client.delete(box)
        await cluster.create(Box(Meta("a")))
        await asyncio.sleep(1)
        replaced.set()
        await asyncio.sleep(60)
        assert (await cluster.get(Box, "a")).metadata.labels == {}
        assert len(failures) == 1
        assert "another of the same name" in str(failures[0])


@virtual_time
async def test_the_status_of_an_object_does_not_reach_another_of_the_same_name() -> None:
    returned: list[Box] = []
    first: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        if not first:
            first.append(box.metadata.uid)
        if box.metadata.uid == first[0]:
            returned.append(await ctx.patch_status(box, BoxStatus(ready=7)))

    async with with_boxes() as cluster, running(cluster, Controller(Box, reconcile)) as manager:

        async def replace(box: Box) -> Box:
            await cluster.client.delete(box)
            return await cluster.create(Box(Meta("a")))

        second = await meet_first_patch(cluster, Box(Meta("a")), replace)
        await eventually(lambda: bool(returned))
        found = await cluster.get(Box, "a")
        assert (found.metadata.uid, found.status.ready) == (second.metadata.uid, 0)
        assert [box.metadata.uid for box in returned] == first
        assert manager.statistics().controllers[0].outcomes["error"] == 0
