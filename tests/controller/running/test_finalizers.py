import pytest

from kubewright.api import Meta, owner_reference, to_wire
from kubewright.api.builtin import core_v1
from kubewright.controller import Context, Controller, Options, owned
from kubewright.testing import Cluster, eventually

from .kinds import Box, Paper
from .operators import (
    create_misfit,
    events,
    running,
    settled,
    wait_for_collector,
    wait_until_collector_saw_papers,
    writes,
)

OWN = "running.example.com/own"
CHILD = "running.example.com/child"


class Boxes:
    def __init__(self) -> None:
        self.reconciled: list[str] = []
        self.finalized: list[str] = []
        self.failures = 0

    async def reconcile(self, box: Box, ctx: Context) -> None:
        assert OWN in box.metadata.finalizers
        self.reconciled.append(box.metadata.name)

    async def finalize(self, box: Box, ctx: Context) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("not yet")
        self.finalized.append(box.metadata.name)


async def test_an_object_is_kept_until_its_finalizer_has_run(cluster: Cluster) -> None:
    await cluster.install(Box)
    boxes = Boxes()
    boxes.failures = 2
    async with running(cluster, Controller(Box, boxes, finalizer=OWN)) as manager:
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(Box, "a", lambda found: found.metadata.finalizers == [OWN])
        await settled(manager)
        assert boxes.reconciled
        boxes.reconciled.clear()
        await cluster.client.delete(box)
        await cluster.eventually_gone(Box, "a")
        assert boxes.finalized == ["a"]
        assert boxes.reconciled == []
        assert manager.statistics().controllers[0].outcomes["error"] == 2


async def test_an_event_reports_why_a_deleted_object_still_exists(cluster: Cluster) -> None:
    await cluster.install(Box)
    boxes = Boxes()
    boxes.failures = 1
    async with running(cluster, Controller(Box, boxes, finalizer=OWN)):
        box = await cluster.create(Box(Meta("reported")))
        await cluster.eventually(Box, "reported", lambda found: found.metadata.finalizers == [OWN])
        await cluster.client.delete(box)
        await cluster.eventually_gone(Box, "reported")

        (reported,) = await eventually(lambda: events(cluster, "FinalizerFailed"))
        assert (reported.type, reported.regarding.name, reported.note) == (
            "Warning",
            "reported",
            f"{OWN}: not yet",
        )


async def test_objects_deleted_while_the_operator_was_down_are_finalized_after_its_start(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    boxes = Boxes()
    declared = Controller(Box, boxes, finalizer=OWN)
    async with running(cluster, declared):
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(Box, "a", lambda found: found.metadata.finalizers == [OWN])
    await cluster.client.delete(box)
    assert (await cluster.get(Box, "a")).metadata.deletion_timestamp is not None
    async with running(cluster, declared):
        await cluster.eventually_gone(Box, "a")
    assert boxes.finalized == ["a"]


async def test_finalizers_of_other_controllers_are_kept(cluster: Cluster) -> None:
    await cluster.install(Box)
    boxes = Boxes()
    async with running(cluster, Controller(Box, boxes, finalizer=OWN)) as manager:
        box = await cluster.create(Box(Meta("a", finalizers=["other.example.com/x"])))
        await cluster.eventually(Box, "a", lambda found: OWN in found.metadata.finalizers)
        await cluster.client.delete(box)
        left = await cluster.eventually(
            Box, "a", lambda found: found.metadata.finalizers == ["other.example.com/x"]
        )
        await settled(manager)
        assert boxes.finalized == ["a"]
        await cluster.client.patch(left, {"metadata": {"finalizers": None}})
        await cluster.eventually_gone(Box, "a")


async def test_a_controller_may_reconcile_terminating_objects(cluster: Cluster) -> None:
    await cluster.install(Box)
    seen: list[bool] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        seen.append(box.metadata.deletion_timestamp is not None)

    box = await cluster.create(Box(Meta("a", finalizers=["other.example.com/x"])))
    await cluster.client.delete(box)
    async with running(
        cluster, Controller(Box, reconcile, options=Options(reconcile_terminating=True))
    ) as manager:
        await settled(manager)
    assert seen == [True]


async def make_paper(box: Box, ctx: Context) -> None:
    await ctx.apply(Paper(Meta(box.metadata.name), text="hello"))


async def test_a_deleted_child_loses_its_finalizer_and_is_created_again(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    async with running(cluster, Controller(Box, make_paper, owns=[owned(Paper, finalizer=CHILD)])) as manager:
        await cluster.create(Box(Meta("a")))
        paper = await cluster.eventually(Paper, "a", lambda found: found.metadata.finalizers == [CHILD])
        await settled(manager)
        assert writes(manager) == 1
        await cluster.client.delete(paper)
        again = await cluster.eventually(Paper, "a", lambda found: found.metadata.uid != paper.metadata.uid)
        assert again.metadata.finalizers == [CHILD]


async def test_children_lose_their_finalizers_when_their_owner_is_deleted(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    async with running(cluster, Controller(Box, make_paper, owns=[owned(Paper, finalizer=CHILD)])):
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(Paper, "a", lambda found: found.metadata.finalizers == [CHILD])
        await cluster.client.delete(box)
        await cluster.eventually(Paper, "a", lambda found: found.metadata.finalizers == [])


async def test_a_child_keeps_its_finalizer_while_its_controlling_owner_exists(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    declared = Controller(Box, make_paper, owns=[owned(Paper, finalizer=CHILD)])
    async with running(cluster, declared) as manager:
        for name in ("a", "b"):
            await cluster.create(Box(Meta(name)))
        paper = await cluster.eventually(Paper, "a", lambda found: found.metadata.finalizers == [CHILD])
        other = await cluster.eventually(Paper, "b", lambda found: found.metadata.finalizers == [CHILD])
        [reference] = to_wire(other)["metadata"]["ownerReferences"]
        shared = [
            {"op": "add", "path": "/metadata/ownerReferences/-", "value": reference | {"controller": False}}
        ]
        shared_paper = await cluster.client.patch(paper, shared, type="json")
        await settled(manager)
        await cluster.client.delete(await cluster.get(Box, "b"))
        await cluster.eventually(Paper, "b", lambda found: found.metadata.finalizers == [])
        await settled(manager)
        assert (await cluster.get(Paper, "a")).metadata == shared_paper.metadata


async def test_reports_a_terminating_object_that_cannot_be_decoded_with_the_fix(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    broken = {"metadata": {"name": "broken", "finalizers": [OWN]}, "spec": {"size": "not a number"}}
    untyped = await create_misfit(cluster, Box, broken)
    await cluster.client.delete(untyped, "broken", cluster.namespace)
    boxes = Boxes()
    async with running(cluster, Controller(Box, boxes, finalizer=OWN)) as manager:
        [event] = await eventually(lambda: events(cluster, "Malformed"))
        assert "spec.size" in event.note
        assert f"fix the object, or remove its finalizer {OWN} by hand" in event.note
        fine = await cluster.create(Box(Meta("fine")))
        await cluster.client.delete(
            await cluster.eventually(Box, "fine", lambda box: box.metadata.finalizers)
        )
        await cluster.eventually_gone(Box, fine.metadata.name)
        await settled(manager)
        repaired = {"spec": {"size": 3}}
        await cluster.client.patch(
            untyped, repaired, name="broken", namespace=cluster.namespace, type="merge"
        )
        await cluster.eventually_gone(Box, "broken")
    assert boxes.finalized == ["fine", "broken"]


ORPHANING = Controller(Box, make_paper, owns=[owned(Paper, finalizer=CHILD, when=lambda _: False)])


@pytest.mark.parametrize("while_running", [False, True])
async def test_an_orphaned_child_loses_the_finalizer_and_can_be_deleted(
    collected: Cluster, while_running: bool
) -> None:
    cluster = collected
    await cluster.install(Box, Paper)
    await wait_for_collector(cluster)
    async with running(cluster, ORPHANING):
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(Paper, "a", lambda found: found.metadata.finalizers == [CHILD])
        await wait_until_collector_saw_papers(cluster)
        if while_running:
            await cluster.client.delete(box, propagation="Orphan")
            await cluster.eventually_gone(Box, "a")
            await cluster.eventually(Paper, "a", lambda found: found.metadata.finalizers == [])
    if not while_running:
        await cluster.client.delete(box, propagation="Orphan")
        await cluster.eventually_gone(Box, "a")
        orphan = await cluster.eventually(Paper, "a", lambda found: not found.metadata.owner_references)
        assert orphan.metadata.finalizers == [CHILD]
    async with running(cluster, ORPHANING) as manager:
        orphan = await cluster.eventually(Paper, "a", lambda found: found.metadata.finalizers == [])
        await cluster.client.delete(orphan)
        await cluster.eventually_gone(Paper, "a")
        await settled(manager)
        assert manager.statistics().controllers[0].outcomes["error"] == 0


async def test_a_child_with_our_finalizer_that_another_object_controls_is_left_alone(
    cluster: Cluster,
) -> None:
    await cluster.install(Box, Paper)
    other = await cluster.create(core_v1.ConfigMap(Meta("other")))
    theirs = Meta("theirs", finalizers=[CHILD], owner_references=[owner_reference(other)])
    await cluster.create(Paper(theirs))
    async with running(cluster, ORPHANING) as manager:
        await settled(manager)
        assert writes(manager) == 0


async def test_a_child_that_is_applied_without_an_owner_gets_no_finalizer(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta("free"), text=box.metadata.name), owned=False)

    async with running(cluster, Controller(Box, reconcile, owns=[owned(Paper, finalizer=CHILD)])):
        await cluster.create(Box(Meta("a")))
        free = await cluster.eventually(Paper, "free", lambda found: found.text == "a")
        assert free.metadata.finalizers == []
