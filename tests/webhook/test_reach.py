"""Whether the API server gets here: by its address, and by the one it gives out."""

from typing import Any

import pytest

from kubewright.api import Forbidden
from kubewright.client import ClusterConfig
from kubewright.testing import Cluster
from kubewright.webhook.server import Unreachable, reach_of
from kubewright.webhook.server.reach import confirm_reach

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


def test_in_a_pod_the_service_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert reach_of(ClusterConfig("https://10.0.0.1:443")) == "service"


def test_an_api_server_elsewhere_is_told_why_not_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(Unreachable, match=r"cannot reach webhooks on this machine.*kubewright deploy.*--dev"):
        reach_of(ClusterConfig("https://cluster.example.com:6443"))


async def test_the_api_server_of_a_test_reaches_this_machine(cluster: Cluster) -> None:
    await confirm_reach(cluster.client, "127.0.0.1")


async def test_an_api_server_behind_a_forwarded_port_is_found_out_and_the_way_out_told() -> None:
    with pytest.raises(
        Unreachable, match=rf"lives elsewhere, at {ELSEWHERE}.*--webhook-bind-address ADDRESS"
    ):
        await confirm_reach(Slices(ELSEWHERE), "127.0.0.1")


@pytest.mark.parametrize(
    "client",
    [Slices(ELSEWHERE, "127.0.0.1"), Slices(), Slices(ELSEWHERE, refuse=True)],
    ids=["one-address-is-here", "it-does-not-say", "one-may-not-look"],
)
async def test_without_proof_to_the_contrary_it_is_reachable(client: Any) -> None:
    await confirm_reach(client, "127.0.0.1")


async def test_an_address_that_is_given_is_not_doubted() -> None:
    await confirm_reach(Slices(ELSEWHERE), "192.0.2.1")
