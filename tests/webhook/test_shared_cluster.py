"""Several who run one operator by URL on one cluster, some beside a deployed one: who is asked, and what is left."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import kubewright as kw
from kubewright.api import CUSTOM_RESOURCE_DEFINITION, kind_of
from kubewright.api.builtin import admissionregistration_v1
from kubewright.controller import Operator
from kubewright.generate import Names, crds, webhooks
from kubewright.metrics import Registry
from kubewright.serving import BindAddress
from kubewright.testing import Cluster
from kubewright.webhook import WebhookNames
from kubewright.webhook.server import HostOptions, WebhookHost, clear_leftovers
from kubewright.webhook.server.by_url import UrlRegistration

from .kinds import Widget, colored, from_alpha, from_beta, sensible

JsonObject = dict[str, Any]
NAMES = WebhookNames("shared")
VALIDATING = kind_of(admissionregistration_v1.ValidatingWebhookConfiguration)
MUTATING = kind_of(admissionregistration_v1.MutatingWebhookConfiguration)
REGISTERED = [
    (MUTATING, NAMES.mutating),
    (VALIDATING, NAMES.validating),
    (CUSTOM_RESOURCE_DEFINITION, "widgets.widgets.example.com"),
]


@kw.controller(Widget, name="shared")
async def nothing(widget: Widget, ctx: kw.Context) -> None:
    pass


def operator() -> Operator:
    return Operator(nothing, webhooks=[sensible, colored, from_alpha, from_beta])


@asynccontextmanager
async def running(cluster: Cluster) -> AsyncIterator[WebhookHost]:
    chosen = HostOptions(address=BindAddress("127.0.0.1", 0), namespace=cluster.namespace, reach="url")
    host = WebhookHost("shared", operator().webhooks, cluster.client, chosen, Registry())
    async with asyncio.TaskGroup() as group, host.serving(group):
        yield host


async def places(cluster: Cluster) -> list[JsonObject]:
    """Return the addresses that the API server calls, without the CA bundles."""
    found: list[JsonObject] = []
    for kind, name in REGISTERED:
        live = await cluster.client.get(kind, name)
        entries = live.get("webhooks") or [live["spec"]["conversion"]["webhook"]]
        found += [entry["clientConfig"] for entry in entries]
    return [{name: value for name, value in address.items() if name != "caBundle"} for address in found]


def asked_at(places: list[JsonObject], host: WebhookHost) -> bool:
    return all(address.get("url", "").startswith(f"https://127.0.0.1:{host.port}/") for address in places)


@pytest.fixture
async def deployed(cluster: Cluster) -> AsyncIterator[list[JsonObject]]:
    """Bring what a deployment does; give where it is asked."""
    names = Names("shared", cluster.namespace)
    for document in (*crds(operator(), names), *webhooks(operator(), names)):
        await cluster.client.apply(document, field_manager="deployer")
    await clear_leftovers(cluster.client, operator().webhooks, NAMES)
    yield await places(cluster)
    for kind, name in REGISTERED[:2]:
        await cluster.client.delete(kind, name)


async def test_the_latest_run_serves_the_webhooks_and_the_last_one_restores_the_deployed_ones(
    cluster: Cluster, deployed: list[JsonObject]
) -> None:
    assert all("service" in address for address in deployed)
    async with running(cluster) as first:
        assert asked_at(await places(cluster), first)
        async with running(cluster) as second:
            assert asked_at(await places(cluster), second)
    assert await places(cluster) == deployed


async def test_a_run_that_ends_first_keeps_the_webhooks_of_the_other(
    cluster: Cluster, deployed: list[JsonObject]
) -> None:
    async with asyncio.TaskGroup() as group:
        chosen = HostOptions(address=BindAddress("127.0.0.1", 0), namespace=cluster.namespace, reach="url")
        first = WebhookHost("shared", operator().webhooks, cluster.client, chosen, Registry())
        serving = first.serving(group)
        await serving.__aenter__()
        async with running(cluster) as second:
            await serving.__aexit__(None, None, None)
            assert asked_at(await places(cluster), second)
    assert await places(cluster) == deployed


async def test_a_run_after_a_killed_one_restores_the_deployed_webhooks(
    cluster: Cluster, deployed: list[JsonObject], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(self: UrlRegistration) -> None:
        pass

    with monkeypatch.context() as patched:
        patched.setattr(UrlRegistration, "unregister", die)
        async with running(cluster):
            pass
    assert all("url" in address for address in await places(cluster))
    async with running(cluster) as host:
        assert asked_at(await places(cluster), host)
    assert await places(cluster) == deployed


async def test_deployed_webhooks_are_restored_when_a_killed_run_is_cleaned_up(
    cluster: Cluster, deployed: list[JsonObject], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(self: UrlRegistration) -> None:
        pass

    monkeypatch.setattr(UrlRegistration, "unregister", die)
    async with running(cluster):
        pass
    assert len(await clear_leftovers(cluster.client, operator().webhooks, NAMES)) == 3
    assert await places(cluster) == deployed


async def test_a_run_does_not_take_its_webhooks_back_from_another_and_logs_it_once(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    await cluster.install(operator())
    client, webhooks = cluster.client, operator().webhooks
    async with running(cluster) as other:
        first = UrlRegistration(client, webhooks, NAMES, "https://127.0.0.1:1")
        await first.register(b"")
        second = UrlRegistration(client, webhooks, NAMES, f"https://127.0.0.1:{other.port}")
        await second.register(b"")
        for _ in range(2):
            await first.register(b"")
        assert asked_at(await places(cluster), other)
        assert caplog.text.count("are registered at") == 1
        # The first run does not answer any more: the second one restores what it has to.
        first.lead()
        await first.register(b"")
        await second.register(b"")
        assert asked_at(await places(cluster), other)


async def test_a_run_keeps_webhooks_that_were_deployed_meanwhile(
    cluster: Cluster, deployed: list[JsonObject], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    run = UrlRegistration(cluster.client, operator().webhooks, NAMES, "https://127.0.0.1:1")
    await run.register(b"")
    await clear_leftovers(cluster.client, operator().webhooks, NAMES)
    await run.register(b"")
    assert await places(cluster) == deployed
    assert f"Service {cluster.namespace}/{NAMES.service}" in caplog.text
