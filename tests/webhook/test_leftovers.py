"""A killed run by URL: its registrations block no writes, and the next run or `uninstall` removes them."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import kubewright as kw
from kubewright.api import Kind
from kubewright.api.builtin import admissionregistration_v1, apiextensions_v1
from kubewright.controller import Operator
from kubewright.generate import crds
from kubewright.metrics import Registry
from kubewright.serving import BindAddress
from kubewright.testing import Cluster
from kubewright.webhook import WebhookNames, WebhookOptions
from kubewright.webhook.server import HostOptions, WebhookHost, clear_leftovers
from kubewright.webhook.server.by_url import UrlRegistration

from .kinds import Widget, WidgetSpec, colored, from_alpha, from_beta, sensible

NAMES = WebhookNames("killed")
DEFINITION = "widgets.widgets.example.com"
REGISTERED: list[tuple[type[Any] | Kind, str]] = [
    (admissionregistration_v1.MutatingWebhookConfiguration, NAMES.mutating),
    (admissionregistration_v1.ValidatingWebhookConfiguration, NAMES.validating),
    (apiextensions_v1.CustomResourceDefinition, DEFINITION),
]


@kw.controller(Widget, name="killed")
async def nothing(widget: Widget, ctx: kw.Context) -> None:
    pass


def operator() -> Operator:
    return Operator(nothing, webhooks=[sensible, colored, from_alpha, from_beta])


@asynccontextmanager
async def hosted(cluster: Cluster, state: Path, port: int = 0) -> AsyncIterator[WebhookHost]:
    chosen = HostOptions(
        address=BindAddress("127.0.0.1", port),
        namespace=cluster.namespace,
        reach="url",
        webhooks=WebhookOptions(state=state),
    )
    host = WebhookHost("killed", operator().webhooks, cluster.client, chosen, Registry())
    async with asyncio.TaskGroup() as group, host.serving(group):
        yield host


@pytest.fixture
async def killed(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """Leave behind what a killed run does; give the port it had."""

    async def die(self: UrlRegistration) -> None:
        pass

    for document in crds(operator()):
        await cluster.client.apply(document, field_manager="installer")
    with monkeypatch.context() as patched:
        patched.setattr(UrlRegistration, "unregister", die)
        async with hosted(cluster, tmp_path / "state.json") as host:
            port = host.port
    yield port
    await clear_leftovers(cluster.client, operator().webhooks, NAMES)


async def versions(cluster: Cluster) -> list[str]:
    return [(await cluster.client.get(kind, name)).metadata.resource_version for kind, name in REGISTERED]


async def test_a_run_after_a_killed_one_does_not_write_unchanged_configurations(
    cluster: Cluster, killed: int, tmp_path: Path
) -> None:
    before = await versions(cluster)
    async with hosted(cluster, tmp_path / "state.json", killed) as host:
        assert host.problem() is None
        assert await versions(cluster) == before


async def test_a_run_on_another_machine_takes_over_and_logs_it(
    cluster: Cluster, killed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with hosted(cluster, tmp_path / "other.json") as host:
        found = await cluster.client.get(*REGISTERED[1])
        assert found.webhooks[0].client_config.url.startswith(f"https://127.0.0.1:{host.port}/")
    assert f"Taking over {NAMES.validating}" in caplog.text
    with pytest.raises(kw.NotFound):
        await cluster.client.get(*REGISTERED[1])


async def test_writes_pass_while_no_webhook_answers(cluster: Cluster, killed: int) -> None:
    await cluster.create(Widget(kw.Meta("free"), spec=WidgetSpec(color="pink")))
    await cluster.client.delete(Widget, "free", cluster.namespace)


async def test_clearing_removes_leftover_webhooks_and_points_conversions_to_the_service(
    cluster: Cluster, killed: int
) -> None:
    cleared = await clear_leftovers(cluster.client, operator().webhooks, NAMES)
    assert [text.rpartition("/")[2] for text in cleared] == [
        NAMES.mutating,
        NAMES.validating,
        f"{DEFINITION} (conversion)",
    ]
    definition = await cluster.client.get(apiextensions_v1.CustomResourceDefinition, DEFINITION)
    assert definition.spec.conversion
    assert definition.spec.conversion.webhook
    config = definition.spec.conversion.webhook.client_config
    assert config
    assert config.service
    assert (config.url, config.ca_bundle) == (None, b"")
    assert await clear_leftovers(cluster.client, operator().webhooks, NAMES) == []
