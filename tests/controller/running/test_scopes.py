"""What is watched may be narrowed: to a selection, to metadata, to what a transform leaves."""

from typing import Any

from kubewright.api import Meta, Object, ObjectKey
from kubewright.api.builtin import core_v1
from kubewright.controller import Context, Controller, Selector, needs, owned, watch
from kubewright.testing import Cluster, eventually

from .kinds import Box, Paper
from .operators import running, settled, writes


async def test_a_metadata_watch_causes_reconciles_and_stores_metadata_only(cluster: Cluster) -> None:
    await cluster.install(Box)
    given: list[Object] = []
    read: list[bytes] = []

    def to_boxes(secret: Object) -> list[ObjectKey]:
        given.append(secret)
        return [ObjectKey(secret.metadata.namespace, secret.metadata.labels["box"])]

    async def reconcile(box: Box, ctx: Context) -> None:
        secret = await ctx.find(core_v1.Secret, "s")
        if secret is not None:
            read.append(secret.data["password"])
        listed = await ctx.list(core_v1.Secret, namespace=box.metadata.namespace)
        read.extend(found.data["password"] for found in listed)

    declared = Controller(Box, reconcile, watches=[watch(core_v1.Secret, map=to_boxes, metadata_only=True)])
    async with running(cluster, declared) as manager:
        await cluster.create(Box(Meta("a")))
        await settled(manager)
        await cluster.create(
            core_v1.Secret(Meta("s", labels={"box": "a"}), string_data={"password": "secret"})
        )
        await eventually(lambda: len(read) >= 2)
        assert manager.statistics().cached_objects == 2
    assert set(read) == {b"secret"}
    assert {type(one) for one in given} == {Object}
    assert given[0].metadata.name == "s"


async def test_children_watched_by_metadata_are_applied_and_restored(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta(box.metadata.name), text="hello"))

    declared = Controller(Box, reconcile, owns=[owned(Paper, metadata_only=True)])
    async with running(cluster, declared) as manager:
        box = await cluster.create(Box(Meta("a")))
        paper = await cluster.eventually(Paper, "a", lambda found: found.text == "hello")
        await settled(manager)
        assert writes(manager) == 1
        await cluster.client.patch(box, {"metadata": {"annotations": {"touched": "yes"}}})
        await settled(manager)
        assert writes(manager) == 1
        await cluster.client.patch(paper, {"text": "spoilt"})
        await cluster.eventually(Paper, "a", lambda found: found.text == "hello")


def without_items(wire: dict[str, Any]) -> dict[str, Any]:
    wire.get("data", {}).pop("big", None)
    return wire


async def test_reads_see_the_transformed_object_and_writes_use_the_whole_one(cluster: Cluster) -> None:
    await cluster.install(Box)
    whole = {"big": "x" * 1000, "small": "1"}
    await cluster.create(core_v1.ConfigMap(Meta("a"), data=whole))
    seen: list[dict[str, str]] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        found = await ctx.find(core_v1.ConfigMap, "a")
        assert found is not None
        seen.append(found.data)
        seen.extend(one.data for one in await ctx.list(core_v1.ConfigMap) if one.metadata.name == "a")
        await ctx.update(found, lambda settings: settings.data.update(small="2"))

    declared = Controller(
        Box,
        reconcile,
        watches=[watch(core_v1.ConfigMap, map=lambda _: [], selector=Selector(transform=without_items))],
        needs=[needs(core_v1.ConfigMap, "patch")],
    )
    async with running(cluster, declared):
        await cluster.create(Box(Meta("a")))
        changed = await cluster.eventually(core_v1.ConfigMap, "a", lambda found: found.data["small"] == "2")
    assert seen[:2] == [{"small": "1"}, {"small": "1"}]
    assert changed.data == {**whole, "small": "2"}
