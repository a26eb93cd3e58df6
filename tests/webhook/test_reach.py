"""Whether the API server gets here: by its address, and by the one it gives out."""

import asyncio
from typing import Any

import pytest

import kubewright as kw
from kubewright.api import Forbidden
from kubewright.client import ClusterConfig
from kubewright.manager import Manager, ManagerOptions, WebhookOptions
from kubewright.testing import Cluster
from kubewright.webhook import Webhook
from kubewright.webhook.server import WebhookUnreachable, reach_of
from kubewright.webhook.server.reach import confirm_reach

from .kinds import Widget, from_alpha, from_beta, sensible

ELSEWHERE = "192.0.2.7"


class Slices:
    """A client that knows where the API server says it is."""

    def __init__(self, *addresses: str, refuse: bool = False) -> None:
        self._addresses = addresses
        self._refuse = refuse

    async def list(self, kind: Any, **options: Any) -> list[dict[str, Any]]:
        assert (kind.plural, options["namespace"]) == ("endpointslices", "default")
        if self._refuse:
            raise Forbidden({"message": "no", "code": 403, "reason": "Forbidden"})
        return [{"endpoints": [{"addresses": [address]} for address in self._addresses]}]


@pytest.mark.parametrize("server", ["https://127.0.0.1:6443", "https://[::1]:6443", "https://localhost:1"])
def test_an_api_server_on_this_machine_is_reached_by_url(server: str) -> None:
    assert reach_of(ClusterConfig(server)) == "url"


def test_the_service_is_used_in_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert reach_of(ClusterConfig("https://10.0.0.1:443")) == "service"


def test_an_unreachable_run_explains_why_and_suggests_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(
        WebhookUnreachable, match=r"cannot reach webhooks on this machine.*kubewright deploy.*--dev"
    ):
        reach_of(ClusterConfig("https://cluster.example.com:6443"))


async def test_the_api_server_of_a_test_reaches_this_machine(cluster: Cluster) -> None:
    await confirm_reach(cluster.client, "127.0.0.1")


async def test_an_api_server_behind_a_forwarded_port_is_detected_and_a_fix_suggested() -> None:
    with pytest.raises(
        WebhookUnreachable, match=rf"lives elsewhere, at {ELSEWHERE}.*--webhook-bind-address ADDRESS"
    ):
        await confirm_reach(Slices(ELSEWHERE), "127.0.0.1")


@pytest.mark.parametrize(
    "client",
    [Slices(ELSEWHERE, "127.0.0.1"), Slices(), Slices(ELSEWHERE, refuse=True)],
    ids=["one-address-is-here", "it-does-not-say", "one-may-not-look"],
)
async def test_an_address_counts_as_reachable_unless_proven_otherwise(client: Any) -> None:
    await confirm_reach(client, "127.0.0.1")


async def test_a_given_address_is_used_without_a_check() -> None:
    await confirm_reach(Slices(ELSEWHERE), "192.0.2.1")


@kw.controller(Widget, name="out-of-reach")
async def nothing(widget: Widget, ctx: kw.Context) -> None:
    pass


def manager_of(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, *webhooks: Webhook) -> Manager:
    """Make a manager whose API server lives elsewhere."""

    async def elsewhere(client: Any, host: str) -> None:
        await confirm_reach(Slices(ELSEWHERE), host)

    monkeypatch.setattr("kubewright.webhook.server.hosting.confirm_reach", elsewhere)
    options = ManagerOptions(
        metrics_bind_address="0",
        health_probe_bind_address="0",
        webhooks=WebhookOptions(bind_address="127.0.0.1:0"),
        namespaces=(cluster.namespace,),
    )
    return Manager(kw.Operator(nothing, webhooks=webhooks), cluster.config, options)


async def test_an_operator_with_only_admission_webhooks_runs_without_them_and_warns(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.install(kw.Operator(nothing, webhooks=[from_alpha, from_beta]))
    manager = manager_of(cluster, monkeypatch, sensible)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        work = group.create_task(manager.run())
        await manager.ready.wait()
        assert "Webhooks are not served: the API server is reached on this machine" in caplog.text
        assert not manager.readiness.failures()
        work.cancel()


async def test_an_operator_with_conversion_does_not_start_if_it_is_unreachable(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WebhookUnreachable, match="kubewright deploy"):
        await manager_of(cluster, monkeypatch, sensible, from_alpha, from_beta).run()
