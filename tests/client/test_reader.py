"""What reading does when the server forgets, and when an answer comes in pieces."""

import pytest

from kubewright.api import Kind
from kubewright.client import Client, ClusterConfig, Expired

from .conftest import Exchange, Serve

MAPS = Kind(group="", version="v1", kind="ConfigMap", plural="configmaps")


def page(*names: str, token: str = "") -> dict[str, object]:
    items = [{"metadata": {"name": name, "namespace": "default"}} for name in names]
    return {"kind": "ConfigMapList", "metadata": {"resourceVersion": "9", "continue": token}, "items": items}


async def forgetful(exchange: Exchange) -> None:
    """Send a first page, and reject the continue token of the second as expired."""
    if "continue=" in exchange.target:
        exchange.refuse(410, "Expired", "The provided continue parameter is too old")
    elif "limit=" in exchange.target:
        exchange.answer(page("a", token="t"))
    else:
        exchange.answer(page("a", "b", "c"))


async def test_a_list_that_expires_is_read_again_from_the_start(serve: Serve) -> None:
    server = await serve(forgetful)
    async with Client(ClusterConfig(server.url)) as client:
        listed = await client.list(MAPS, limit=1)
    assert [item["metadata"]["name"] for item in listed] == ["a", "b", "c"]
    assert listed.resource_version == "9"
    assert len(server.received) == 3


async def test_expired_pages_are_raised_to_the_caller(serve: Serve) -> None:
    server = await serve(forgetful)
    async with Client(ClusterConfig(server.url)) as client:
        pages = client.list_raw(MAPS, limit=1)
        assert [item.meta.name for item in (await anext(pages)).items] == ["a"]
        with pytest.raises(Expired):
            await anext(pages)


async def test_null_items_are_an_empty_list(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer({"kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": None})

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        assert await client.list(MAPS) == []


async def test_logs_are_streamed(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
        for line in (b"one\n", b"two\n"):
            exchange.chunk(line)
        exchange.send(b"0\r\n\r\n")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        pieces = [piece async for piece in client.pod_logs("web", "default", container="main", follow=True)]
    assert b"".join(pieces) == b"one\ntwo\n"
    assert server.received[0].target == "/api/v1/namespaces/default/pods/web/log?container=main&follow=true"
