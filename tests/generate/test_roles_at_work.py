"""An operator with the rendered roles of some namespaces, and no others, at work there."""

import asyncio
from typing import Any

import kubewright as kw
from kubewright.api import GroupVersionKind
from kubewright.api.builtin import core_v1
from kubewright.client import ClusterConfig
from kubewright.generate import Names, rbac
from kubewright.manager import ElectionOptions, Manager, ManagerOptions
from kubewright.testing import Cluster


class Spec(kw.Model):
    text: str = "a"


class Status(kw.Model):
    seen: str = ""


class Leaflet(kw.Resource[Spec, Status], group="roles.example.com", version="v1"):
    """A leaflet."""


class Board(kw.Resource[Spec, Status], group="roles.example.com", version="v1", scope="Cluster"):
    """A board for the whole cluster."""


@kw.controller(Leaflet, owns=[core_v1.ConfigMap], watches=[kw.watch(Board, map=lambda board: [])])
async def leaflets(leaflet: Leaflet, ctx: kw.Context) -> None:
    """Copy the text."""
    await ctx.apply(core_v1.ConfigMap(kw.Meta(leaflet.metadata.name), data={"text": leaflet.spec.text}))
    ctx.event("Copied", "copied")
    await ctx.patch_status(leaflet, Status(seen=leaflet.spec.text))


@kw.controller(Board)
async def boards(board: Board, ctx: kw.Context) -> None:
    """Tell that it was seen."""
    ctx.event("Seen", "seen")
    await ctx.patch_status(board, Status(seen=board.spec.text))


async def account(cluster: Cluster, documents: list[dict[str, Any]], name: str) -> ClusterConfig:
    for document in documents:
        if document["kind"] != "Namespace":
            await cluster.client.apply(document, field_manager="kubewright-testing")
    token = await cluster.client.token_request(name, cluster.namespace)
    config = cluster.config
    return ClusterConfig(
        config.server,
        cluster.namespace,
        config.ca_data,
        config.insecure,
        config.tls_server_name,
        token=token.token,
    )


async def test_roles_in_a_namespace_suffice_there(cluster: Cluster) -> None:
    operator = kw.Operator(leaflets, boards, name=f"leaflets-{cluster.namespace}")
    names = Names(operator.name, cluster.namespace)
    documents = rbac(operator, names, [cluster.namespace])
    await cluster.install(operator)
    config = await account(cluster, documents, names.account)
    options = ManagerOptions(
        namespaces=(cluster.namespace,),
        election=ElectionOptions(),
        metrics_bind_address="0",
        health_probe_bind_address="0",
    )
    async with asyncio.TaskGroup() as group:
        work = group.create_task(Manager(operator, config, options).run())
        board = await cluster.create(Board(kw.Meta(cluster.namespace), spec=Spec(text="b")))
        await cluster.create(Leaflet(kw.Meta("one"), spec=Spec(text="c")))
        await cluster.eventually(Leaflet, "one", lambda it: it.status.seen == "c")
        await cluster.eventually(core_v1.ConfigMap, "one")
        await cluster.eventually(Board, cluster.namespace, lambda it: it.status.seen == "b")
        work.cancel()
    await cluster.client.delete(board)
    for document in documents:
        if document["kind"].startswith("ClusterRole"):
            kind = await cluster.client.resolve(
                GroupVersionKind.parse(document["apiVersion"], document["kind"])
            )
            await cluster.client.delete(kind, document["metadata"]["name"])
