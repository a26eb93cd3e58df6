"""Objects that exist before a controller applies them: refused unless its object controls them, or `adopt=True`."""

import asyncio
from collections.abc import Callable

import pytest

from kubewright.api import Meta, OwnerReference, is_controlled_by, kind_of
from kubewright.api.builtin import core_v1
from kubewright.controller import Context, Controller, OwnedByAnother, needs
from kubewright.testing import Cluster, eventually
from kubewright.testing.virtual_time import virtual_time

from .kinds import Box, Paper
from .operators import events, ours, running, settled, with_boxes


def references(kind: str, name: str, uid: str) -> list[OwnerReference]:
    return [
        OwnerReference(
            api_version=kind_of(Box).api_version if kind == "Box" else "v1",
            kind=kind,
            name=name,
            uid=uid,
            controller=True,
        )
    ]


async def refusal(cluster: Cluster, *, adopt: bool = False) -> str:
    """Return the error of the first apply of Paper a by a controller of Box a."""
    refused: asyncio.Queue[str] = asyncio.Queue()

    async def reconcile(box: Box, ctx: Context) -> None:
        try:
            await ctx.apply(Paper(Meta("a"), text="ours"), adopt=adopt)
        except OwnedByAnother as error:
            refused.put_nowait(str(error))

    async with running(cluster, Controller(Box, reconcile, owns=[Paper])):
        await cluster.create(Box(Meta("a")))
        async with asyncio.timeout(60):
            return await refused.get()


async def test_an_existing_object_without_a_controller_is_refused(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    await cluster.create(Paper(Meta("a"), text="theirs"))
    assert await refusal(cluster) == (
        f"Paper {cluster.namespace}/a exists and is not controlled by Box {cluster.namespace}/a: "
        "pass adopt=True to take it over"
    )
    paper = await cluster.get(Paper, "a")
    assert (paper.text, paper.metadata.owner_references) == ("theirs", [])


async def test_the_child_of_an_earlier_owner_of_the_same_name_is_refused_and_the_reason_named(
    cluster: Cluster,
) -> None:
    await cluster.install(Box, Paper)
    await cluster.create(Paper(Meta("a", owner_references=references("Box", "a", "earlier")), text="theirs"))
    message = await refusal(cluster)
    assert "is controlled by another Box a (uid earlier)" in message
    assert "restored from a backup" in message
    assert "orphan" in message
    assert "pass adopt=True to take it over" in message
    assert (await cluster.get(Paper, "a")).text == "theirs"


async def test_adopt_does_not_take_a_child_from_another_owner(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    owner = await cluster.create(core_v1.ConfigMap(Meta("owner")))
    theirs = references("ConfigMap", "owner", owner.metadata.uid)
    await cluster.create(Paper(Meta("a", owner_references=theirs), text="theirs"))
    assert "is controlled by ConfigMap owner" in await refusal(cluster, adopt=True)
    paper = await cluster.get(Paper, "a")
    assert (paper.text, [one.uid for one in paper.metadata.owner_references]) == (
        "theirs",
        [owner.metadata.uid],
    )


@pytest.mark.parametrize("earlier", [list[OwnerReference], lambda: references("Box", "a", "earlier")])
async def test_adopt_takes_over_an_existing_object(
    cluster: Cluster, earlier: Callable[[], list[OwnerReference]]
) -> None:
    await cluster.install(Box, Paper)
    before = await cluster.create(Paper(Meta("a", owner_references=earlier()), text="theirs"))

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta("a"), text="ours"), adopt=True)

    async with running(cluster, Controller(Box, reconcile, owns=[Paper])) as manager:
        box = await cluster.create(Box(Meta("a")))
        paper = await cluster.eventually(Paper, "a", lambda found: found.text == "ours")
        assert is_controlled_by(paper, box)
        assert paper.metadata.uid == before.metadata.uid
        assert len(paper.metadata.owner_references) == 1
        await settled(manager)
        assert manager.statistics().controllers[0].outcomes["error"] == 0


async def test_an_object_of_a_kind_that_is_only_needed_is_shared(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    await cluster.create(Paper(Meta("a"), text="theirs"))

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta("a"), text="ours"))

    shared = [needs(Paper, "get", "create", "patch")]
    async with running(cluster, Controller(Box, reconcile, needs=shared)):
        await cluster.create(Box(Meta("a")))
        paper = await cluster.eventually(Paper, "a", lambda found: found.text == "ours")
        assert paper.metadata.owner_references == []


def test_a_child_is_controlled_by_the_owner_whose_uid_its_controller_reference_has() -> None:
    box = Box(Meta("a", uid="1"))
    assert is_controlled_by(Paper(Meta("a", owner_references=references("Box", "a", "1"))), box)
    assert not is_controlled_by(Paper(Meta("a", owner_references=references("Box", "a", "2"))), box)
    assert not is_controlled_by(Paper(Meta("a")), Box(Meta("a")))
    shared = references("Box", "a", "1")
    shared[0].controller = None
    assert not is_controlled_by(Paper(Meta("a", owner_references=shared)), box)


@virtual_time
async def test_an_object_that_is_created_between_read_and_apply_is_reported() -> None:
    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta("a"), text="ours"))

    async with with_boxes() as cluster:
        await cluster.install(Paper)
        async with running(cluster, Controller(Box, reconcile, owns=[Paper])):
            with cluster.faults.add(match=ours(verbs=("patch",)), delay=5.0, times=1) as slow:
                await cluster.create(Box(Meta("a")))
                await eventually(lambda: slow.hits == 1)
                await cluster.create(Paper(Meta("a"), text="theirs"))

                async def reported() -> bool:
                    return bool(await events(cluster, "ExistingObjectAdopted"))

                await eventually(reported)
            (event,) = await events(cluster, "ExistingObjectAdopted")
            assert event.regarding.name == "a"
            assert "was created by another client just before controller box applied it" in event.note
