"""What comes back is in the form that was asked for, and only objects of a kind are kept as such."""

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubewright.api import Index, InvalidRequest, Kind, Meta, NotFound, kind_of
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Context, Controller, needs, watch
from kubewright.testing import Cluster, eventually, isolated

from .kinds import Box, Paper
from .operators import OPTIONS, running


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "shell", "image": "shell:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
    }


@pytest.fixture
async def elsewhere(cluster: Cluster) -> AsyncIterator[Cluster]:
    """Provide a second namespace on the server of the test."""
    async with isolated(cluster.server, cluster.kubeconfig, controllers=False) as made:
        yield made


async def test_the_response_of_a_scale_is_not_cached_as_the_object(cluster: Cluster) -> None:
    await cluster.install(Box)
    found: list[apps_v1.Deployment | None] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.create(deployment(box.metadata.name))
        made = await ctx.find(apps_v1.Deployment, box.metadata.name)
        assert made is not None
        scaled = await ctx.patch(made, {"spec": {"replicas": 5}}, subresource="scale")
        found.extend((scaled, await ctx.find(apps_v1.Deployment, box.metadata.name)))

    scaling = needs(apps_v1.Deployment, "patch", subresource="scale")
    controller = Controller(Box, reconcile, owns=[apps_v1.Deployment], needs=[scaling])
    async with running(cluster, controller):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(found) >= 2)
    for deployed in found[:2]:
        assert deployed is not None
        assert [container.name for container in deployed.spec.template.spec.containers] == ["shell"]


@pytest.mark.parametrize("declares", ["kind", "class"])
async def test_a_read_returns_the_class_or_the_json_object_as_requested(
    cluster: Cluster, declares: str
) -> None:
    await cluster.install(Box, Paper)
    read: list[Any] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta(box.metadata.name), text="hello"))
        kind = kind_of(Paper)
        read.append(await ctx.find(Paper, box.metadata.name))
        read.append(await ctx.find(kind, box.metadata.name))
        read.extend(await ctx.list(Paper, namespace=box.metadata.namespace))
        read.extend(await ctx.list(kind, namespace=box.metadata.namespace))

    declared = kind_of(Paper) if declares == "kind" else Paper
    async with running(cluster, Controller(Box, reconcile, owns=[declared])):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(read) >= 4)
    assert [type(found) for found in read[:4]] == [Paper, dict, Paper, dict]
    assert [found.text for found in read[:4:2]] == ["hello", "hello"]
    assert [found["text"] for found in read[1:4:2]] == ["hello", "hello"]


async def test_lists_are_limited_to_the_watched_namespaces(cluster: Cluster, elsewhere: Cluster) -> None:
    await cluster.install(Box)
    await elsewhere.create(core_v1.ConfigMap(Meta("theirs")))
    await cluster.create(core_v1.ConfigMap(Meta("ours")))
    asked: list[set[str]] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        for listed in (
            await ctx.list(core_v1.ConfigMap, all_namespaces=True),
            await ctx.live.list(core_v1.ConfigMap, all_namespaces=True),
            await ctx.live.list(core_v1.ConfigMap, namespace=elsewhere.namespace),
        ):
            asked.append({found.metadata.name for found in listed})

    async with running(cluster, Controller(Box, reconcile, needs=[needs(core_v1.ConfigMap, "list")])):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(asked) >= 3)
    assert ["ours" in names for names in asked[:3]] == [True, True, False]
    assert ["theirs" in names for names in asked[:3]] == [False, False, True]


async def test_a_namespace_given_twice_is_watched_once(cluster: Cluster) -> None:
    await cluster.install(Box)
    seen: list[int] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        seen.append(len(await ctx.list(Box, all_namespaces=True)))

    twice = dataclasses.replace(OPTIONS, namespaces=(cluster.namespace, cluster.namespace))
    async with running(cluster, Controller(Box, reconcile), options=twice):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: bool(seen))
    assert seen[0] == 1


async def test_get_raises_not_found_where_find_returns_none(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    answers: list[tuple[object, str]] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        for reader in (ctx, ctx.live):
            try:
                await reader.get(Paper, "absent")
            except NotFound as missing:
                answers.append((await reader.find(Paper, "absent"), str(missing)))

    async with running(cluster, Controller(Box, reconcile, owns=[Paper])):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(answers) >= 2)
    with pytest.raises(NotFound) as server:
        await cluster.client.get(Paper, "absent", cluster.namespace)
    assert answers[:2] == [(None, str(server.value))] * 2
    assert await cluster.client.find(Paper, "absent", cluster.namespace) is None


async def test_find_does_not_take_a_kind_that_is_not_served_for_a_missing_object(cluster: Cluster) -> None:
    unserved = Kind(group="unserved.example.com", version="v1", kind="Thing", plural="things")
    with pytest.raises(NotFound, match="is its CRD installed"):
        await cluster.client.find(unserved, "a", cluster.namespace)


async def test_list_reads_the_namespace_of_the_reconciled_object_by_default(
    cluster: Cluster, elsewhere: Cluster
) -> None:
    await cluster.install(Box, Paper)
    await elsewhere.create(Paper(Meta("theirs"), friend="f"))
    await cluster.create(Paper(Meta("ours"), friend="f"))
    by_friend = Index(Paper, lambda paper: [paper.friend])
    listed: list[list[str]] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        for found in (
            await ctx.list(Paper),
            await ctx.list(by_friend, "f"),
            await ctx.live.list(Paper),
            await ctx.list(Paper, all_namespaces=True),
            await ctx.list(by_friend, "f", all_namespaces=True),
            await ctx.list(by_friend, "f", namespace=elsewhere.namespace),
        ):
            listed.append(sorted(paper.metadata.name for paper in found))

    both = dataclasses.replace(OPTIONS, namespaces=(cluster.namespace, elsewhere.namespace))
    async with running(
        cluster, Controller(Box, reconcile, watches=[watch(Paper, map=lambda _: [])]), options=both
    ):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(listed) >= 6)
    everywhere = ["ours", "theirs"]
    assert listed[:6] == [["ours"], ["ours"], ["ours"], everywhere, everywhere, ["theirs"]]


async def test_a_cluster_scoped_object_must_name_the_namespace_that_it_lists(cluster: Cluster) -> None:
    refusals: list[str] = []
    await cluster.create(core_v1.Namespace(Meta(f"{cluster.namespace}-listed")))

    async def reconcile(namespace: core_v1.Namespace, ctx: Context) -> None:
        for attempt in (
            ctx.list(core_v1.ConfigMap),
            ctx.list(core_v1.ConfigMap, namespace="a", all_namespaces=True),
        ):
            with pytest.raises(InvalidRequest) as refusal:
                await attempt
            refusals.append(str(refusal.value))

    async with running(
        cluster, Controller(core_v1.Namespace, reconcile, needs=[needs(core_v1.ConfigMap, "list")])
    ):
        await eventually(lambda: len(refusals) >= 2)
    assert "all_namespaces=True" in refusals[0]
    assert "not both" in refusals[1]
