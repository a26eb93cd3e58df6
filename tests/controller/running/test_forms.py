"""What comes back is in the form that was asked for, and only objects of a kind are kept as such."""

import dataclasses
from typing import Any

import pytest

from kubewright.api import Meta, kind_of
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Context, Controller, needs

from .cluster import OPTIONS, Cluster
from .kinds import Box, Paper


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "shell", "image": "shell:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
    }


async def test_the_answer_to_a_scale_is_not_taken_for_the_object_itself(cluster: Cluster) -> None:
    await cluster.install(Box)
    found: list[apps_v1.Deployment | None] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.create(deployment(box.metadata.name))
        made = await ctx.get(apps_v1.Deployment, box.metadata.name)
        assert made is not None
        scaled = await ctx.patch(made, {"spec": {"replicas": 5}}, subresource="scale")
        found.extend((scaled, await ctx.get(apps_v1.Deployment, box.metadata.name)))

    scaling = needs(apps_v1.Deployment, "patch", subresource="scale")
    controller = Controller(Box, reconcile, owns=[apps_v1.Deployment], needs=[scaling])
    async with cluster.running(controller):
        await cluster.create(Box(Meta("a")))

        async def done() -> bool:
            return len(found) >= 2

        await cluster.eventually(done)
    for deployed in found[:2]:
        assert deployed is not None
        assert [container.name for container in deployed.spec.template.spec.containers] == ["shell"]


@pytest.mark.parametrize("declares", ["kind", "class"])
async def test_a_read_gives_the_class_or_the_wire_value_as_it_is_asked(
    cluster: Cluster, declares: str
) -> None:
    await cluster.install(Box, Paper)
    read: list[Any] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta(box.metadata.name), text="hello"))
        kind = kind_of(Paper)
        read.append(await ctx.get(Paper, box.metadata.name))
        read.append(await ctx.get(kind, box.metadata.name))
        read.extend(await ctx.list(Paper, namespace=box.metadata.namespace))
        read.extend(await ctx.list(kind, namespace=box.metadata.namespace))

    declared = kind_of(Paper) if declares == "kind" else Paper
    async with cluster.running(Controller(Box, reconcile, owns=[declared])):
        await cluster.create(Box(Meta("a")))

        async def done() -> bool:
            return len(read) >= 4

        await cluster.eventually(done)
    assert [type(found) for found in read[:4]] == [Paper, dict, Paper, dict]
    assert [found.text for found in read[:4:2]] == ["hello", "hello"]
    assert [found["text"] for found in read[1:4:2]] == ["hello", "hello"]


async def test_the_server_is_asked_for_no_more_than_the_namespaces_that_are_looked_at(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    elsewhere = await Cluster.prepare(cluster.config, cluster.client)
    await elsewhere.create(core_v1.ConfigMap(Meta("theirs")))
    await cluster.create(core_v1.ConfigMap(Meta("ours")))
    asked: list[set[str]] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        for listed in (
            await ctx.list(core_v1.ConfigMap),
            await ctx.live.list(core_v1.ConfigMap),
            await ctx.live.list(core_v1.ConfigMap, namespace=elsewhere.namespace),
        ):
            asked.append({found.metadata.name for found in listed})

    async with cluster.running(Controller(Box, reconcile, needs=[needs(core_v1.ConfigMap, "list")])):
        await cluster.create(Box(Meta("a")))

        async def done() -> bool:
            return len(asked) >= 3

        await cluster.eventually(done)
    assert ["ours" in names for names in asked[:3]] == [True, True, False]
    assert ["theirs" in names for names in asked[:3]] == [False, False, True]


async def test_a_namespace_that_is_named_twice_is_looked_at_once(cluster: Cluster) -> None:
    await cluster.install(Box)
    seen: list[int] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        seen.append(len(await ctx.list(Box)))

    twice = dataclasses.replace(OPTIONS, namespaces=(cluster.namespace, cluster.namespace))
    async with cluster.running(Controller(Box, reconcile), options=twice):
        await cluster.create(Box(Meta("a")))

        async def done() -> bool:
            return bool(seen)

        await cluster.eventually(done)
    assert seen[0] == 1
