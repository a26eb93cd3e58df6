"""Discovery reads both forms of the answer and remembers what it learned."""

from typing import Any

import pytest

from kubewright.api import GroupVersionKind
from kubewright.client import Client, ClusterConfig, NotFound, UnexpectedResponse

from .conftest import Exchange, Serve

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def aggregated(group: str, version: str, *resources: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {"metadata": {"name": group}, "versions": [{"version": version, "resources": list(resources)}]}
        ],
    }


PODS = {
    "resource": "pods",
    "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
    "scope": "Namespaced",
    "singularResource": "pod",
    "verbs": ["get", "list"],
    "shortNames": ["po"],
    "subresources": [{"subresource": "status", "responseKind": None, "verbs": ["get"]}],
}
FOOS = {
    "resource": "foos",
    "responseKind": {"group": "example.com", "version": "v1", "kind": "Foo"},
    "scope": "Cluster",
    "singularResource": "foo",
    "verbs": ["get"],
}


class Modern:
    """A server with aggregated discovery and entity tags."""

    async def __call__(self, exchange: Exchange) -> None:
        assert "as=APIGroupDiscoveryList" in exchange.headers["accept"]
        if exchange.headers.get("if-none-match") == '"1"':
            exchange.send(b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n')
            return
        document = (
            aggregated("", "v1", PODS) if exchange.target == "/api" else aggregated("example.com", "v1", FOOS)
        )
        exchange.answer(document, headers={"Content-Type": AGGREGATED, "ETag": '"1"'})


LEGACY: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {"name": "example.com", "versions": [{"groupVersion": "example.com/v1", "version": "v1"}]},
            {"name": "down.example.com", "versions": [{"groupVersion": "down.example.com/v1", "version": "v1"}]},
        ],
    },
    "/api/v1": {
        "kind": "APIResourceList",
        "resources": [
            {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"], "shortNames": ["po"]},
            {"name": "pods/status", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]},
        ],
    },
    "/apis/example.com/v1": {
        "kind": "APIResourceList",
        "resources": [{"name": "foos", "singularName": "foo", "namespaced": False, "kind": "Foo", "verbs": ["get"]}],
    },
}  # fmt: skip


async def legacy(exchange: Exchange) -> None:
    if exchange.target in LEGACY:
        exchange.answer(LEGACY[exchange.target])
    else:
        exchange.refuse(503, "ServiceUnavailable", "down")


@pytest.mark.parametrize("handler", [Modern(), legacy], ids=["aggregated", "legacy"])
async def test_aggregated_and_plain_discovery_agree(serve: Serve, handler: Any) -> None:
    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        resources = await client.api_resources()
    pods, foos = resources
    assert (pods.kind.resource, pods.kind.namespaced, pods.kind.status, pods.kind.short_names) == (
        "pods",
        True,
        True,
        ("po",),
    )
    assert (pods.verbs, pods.subresources) == (("get", "list"), ("status",))
    assert (foos.kind.resource, foos.kind.namespaced, foos.kind.status) == ("foos.example.com", False, False)


async def test_an_unchanged_answer_is_not_sent_again(serve: Serve) -> None:
    server = await serve(Modern())
    async with Client(ClusterConfig(server.url)) as client:
        assert await client.api_resources() == await client.api_resources()
    assert [exchange.headers.get("if-none-match") for exchange in server.received] == [
        None,
        None,
        '"1"',
        '"1"',
    ]


async def test_a_kind_is_discovered_once(serve: Serve) -> None:
    server = await serve(legacy)
    async with Client(ClusterConfig(server.url)) as client:
        for _ in range(3):
            kind = await client.resolve(GroupVersionKind("example.com", "v1", "Foo"))
    assert kind.plural == "foos"
    assert [exchange.target for exchange in server.received] == ["/apis/example.com/v1"]


async def test_a_missing_kind_is_discovered_again(serve: Serve) -> None:
    server = await serve(legacy)
    async with Client(ClusterConfig(server.url)) as client:
        for _ in range(2):
            with pytest.raises(NotFound, match=r"example\.com/v1, Kind=Bar: the server does not serve it"):
                await client.resolve(GroupVersionKind("example.com", "v1", "Bar"))
    assert len(server.received) == 2


async def test_invalid_discovery_documents_are_refused(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer([1, 2])

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        for asked in (
            client.api_resources(),
            client.server_version(),
            client.resolve(GroupVersionKind("", "v1", "A")),
        ):
            with pytest.raises(UnexpectedResponse, match="not the response of a Kubernetes API server"):
                await asked
