"""An operator with the rendered roles of some namespaces, and no others, at work there."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from acceptance_waits import may

import kubewright as kw
from kubewright.api import GroupVersionKind
from kubewright.api.builtin import admissionregistration_v1, coordination_v1, core_v1, events_v1
from kubewright.api.scoping import lease_name
from kubewright.client import ClusterConfig
from kubewright.generate import Names, rbac
from kubewright.manager import ElectionOptions, Manager, ManagerOptions, WebhookOptions
from kubewright.namespaces import NamespaceSelector
from kubewright.testing import Cluster, eventually
from kubewright.webhook import WebhookNames
from kubewright.webhook.server import NotRegistered


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
    """Record that it was seen."""
    ctx.event("Seen", "seen")
    await ctx.patch_status(board, Status(seen=board.spec.text))


@kw.controller(Leaflet)
async def copies(leaflet: Leaflet, ctx: kw.Context) -> None:
    """Note the text in the status."""
    await ctx.patch_status(leaflet, Status(seen=leaflet.spec.text))


@kw.admission.validating_webhook(Leaflet)
def short(leaflet: Leaflet) -> Iterator[kw.admission.Problem]:
    """Refuse long texts."""
    if len(leaflet.spec.text) > 10:
        yield kw.admission.invalid("spec.text", leaflet.spec.text, "too long")


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


async def delete_cluster_roles(cluster: Cluster, documents: list[dict[str, Any]]) -> None:
    for document in documents:
        if document["kind"].startswith("ClusterRole"):
            kind = await cluster.client.resolve(
                GroupVersionKind.parse(document["apiVersion"], document["kind"])
            )
            await cluster.client.delete(kind, document["metadata"]["name"])


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
    await delete_cluster_roles(cluster, documents)


async def test_roles_in_one_of_the_followed_namespaces_suffice_there(cluster: Cluster) -> None:
    selector = NamespaceSelector(f"roles.example.com/team={cluster.namespace}")
    labels = {"roles.example.com/team": cluster.namespace}
    closed = f"{cluster.namespace}-closed"
    await cluster.client.create(core_v1.Namespace(kw.Meta(closed, labels=labels)))
    await cluster.client.patch(
        core_v1.Namespace, {"metadata": {"labels": labels}}, name=cluster.namespace, type="merge"
    )
    operator = kw.Operator(copies, name=f"followed-{cluster.namespace}", namespaces=selector)
    names = Names(operator.name, cluster.namespace)
    documents = rbac(operator, names, [cluster.namespace])
    await cluster.install(operator)
    config = await account(cluster, documents, names.account)
    options = ManagerOptions(
        election=ElectionOptions(), metrics_bind_address="0", health_probe_bind_address="0"
    )
    manager = Manager(operator, config, options)
    async with asyncio.TaskGroup() as group:
        work = group.create_task(manager.run())
        await cluster.create(Leaflet(kw.Meta("one"), spec=Spec(text="c")))
        await cluster.eventually(Leaflet, "one", lambda it: it.status.seen == "c")
        assert list(manager.describe()["namespaces"]["refused"]) == [closed]

        async def reported() -> bool:
            events = await cluster.client.list(events_v1.Event, namespace="default")
            return any(event.regarding is not None and event.regarding.name == closed for event in events)

        await eventually(reported)
        work.cancel()
    await cluster.client.delete(core_v1.Namespace, closed)
    await delete_cluster_roles(cluster, documents)


async def test_roles_for_a_selector_suffice_for_its_lease(cluster: Cluster) -> None:
    operator = kw.Operator(copies, name=f"selected-{cluster.namespace}")
    names = Names(operator.name, cluster.namespace)
    selector = "track=canary"
    documents = rbac(operator, names, [cluster.namespace], selector=selector)
    await cluster.install(operator)
    config = await account(cluster, documents, names.account)
    options = ManagerOptions(
        namespaces=(cluster.namespace,),
        selector=selector,
        election=ElectionOptions(),
        metrics_bind_address="0",
        health_probe_bind_address="0",
    )
    async with asyncio.TaskGroup() as group:
        work = group.create_task(Manager(operator, config, options).run())
        await cluster.create(Leaflet(kw.Meta("other"), spec=Spec(text="c")))
        await cluster.create(Leaflet(kw.Meta("one", labels={"track": "canary"}), spec=Spec(text="c")))
        await cluster.eventually(Leaflet, "one", lambda it: it.status.seen == "c")
        assert (await cluster.get(Leaflet, "other")).status.seen == ""
        assert await cluster.find(coordination_v1.Lease, lease_name(operator.name, selector)) is not None
        work.cancel()


@pytest.fixture
async def outside(cluster: Cluster) -> tuple[kw.Operator, Names]:
    """An operator with a webhook, run outside the cluster as its account."""
    operator = kw.Operator(copies, webhooks=[short], name=f"outside-{cluster.namespace}")
    await cluster.install(operator)
    return operator, Names(operator.name, cluster.namespace)


def outside_options(cluster: Cluster) -> ManagerOptions:
    return ManagerOptions(
        namespaces=(cluster.namespace,),
        metrics_bind_address="0",
        health_probe_bind_address="0",
        webhooks=WebhookOptions(bind_address="127.0.0.1:0", reach="url"),
    )


@pytest.mark.parametrize("limited", [True, False])
async def test_roles_for_a_run_outside_the_cluster_let_it_register_its_webhooks(
    cluster: Cluster, outside: tuple[kw.Operator, Names], limited: bool
) -> None:
    operator, names = outside
    namespaces = [cluster.namespace] if limited else []
    config = await account(cluster, rbac(operator, names, namespaces, "url"), names.account)
    await may(
        cluster.client,
        f"system:serviceaccount:{cluster.namespace}:{names.account}",
        "create",
        "validatingwebhookconfigurations",
        group="admissionregistration.k8s.io",
        name=WebhookNames(operator.name).validating,
    )
    manager = Manager(operator, config, outside_options(cluster))
    async with asyncio.TaskGroup() as group:
        work = group.create_task(manager.run())
        await asyncio.wait_for(manager.ready.wait(), 60)

        async def refused() -> bool:
            try:
                await cluster.client.create(
                    Leaflet(kw.Meta("long", namespace=cluster.namespace), spec=Spec(text="x" * 11)),
                    dry_run=True,
                )
            except kw.errors.Invalid:
                return True
            return False

        await eventually(refused)
        work.cancel()
    # What it registered went with it.
    kind = admissionregistration_v1.ValidatingWebhookConfiguration
    assert await cluster.client.find(kind, WebhookNames(operator.name).validating) is None


async def test_missing_roles_are_reported_with_the_command_that_renders_them(
    cluster: Cluster, outside: tuple[kw.Operator, Names]
) -> None:
    operator, names = outside
    config = await account(cluster, rbac(operator, names, [cluster.namespace]), names.account)
    await may(
        cluster.client,
        f"system:serviceaccount:{cluster.namespace}:{names.account}",
        "patch",
        "validatingwebhookconfigurations",
        group="admissionregistration.k8s.io",
        name=WebhookNames(operator.name).validating,
    )
    with pytest.raises(NotRegistered, match="--only rbac --webhook-reach url") as caught:
        await Manager(operator, config, outside_options(cluster)).run()
    assert "validatingwebhookconfigurations" in str(caught.value)
