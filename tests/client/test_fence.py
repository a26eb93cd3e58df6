"""A client with a fence sends no write that the fence refuses, however the write is asked for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubewright.api import Kind
from kubewright.client import Client, ClusterConfig, requests
from kubewright.testing.virtual_time import virtual_time

from .conftest import Exchange, Loopback, Serve

pytestmark = pytest.mark.usefixtures("transport")

MAPS = Kind(group="", version="v1", kind="ConfigMap", plural="configmaps")
OBJECT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1"},
}


class Refused(Exception):
    """What the fence of these tests raises."""


def closed() -> None:
    raise Refused


async def found(exchange: Exchange) -> None:
    exchange.answer(OBJECT)


WRITES: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "create": lambda client: client.create(OBJECT, kind=MAPS),
    "apply": lambda client: client.apply(OBJECT, kind=MAPS, field_manager="test"),
    "replace": lambda client: client.replace(OBJECT, kind=MAPS),
    "patch": lambda client: client.patch(MAPS, {"data": {"a": "b"}}, name="a", namespace="default"),
    "delete": lambda client: client.delete(MAPS, "a", "default"),
    "delete_collection": lambda client: client.delete_collection(MAPS, namespace="default"),
    "evict": lambda client: client.evict("a", "default"),
    "scale": lambda client: client.scale(MAPS, "a", "default", replicas=2),
    "token_request": lambda client: client.token_request("a", "default"),
    "send": lambda client: client.send(requests.create(OBJECT, MAPS)),
    "raw": lambda client: client.raw(requests.create(OBJECT, MAPS)),
}


@pytest.mark.parametrize("verb", WRITES)
async def test_no_verb_writes_past_a_closed_fence(serve: Serve, verb: str) -> None:
    server = await serve(found)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(Refused):
            await WRITES[verb](client.fenced(closed))
    assert {exchange.method for exchange in server.received} <= {"GET"}


async def test_reads_pass_and_the_client_itself_stays_open(serve: Serve) -> None:
    server = await serve(found)
    async with Client(ClusterConfig(server.url)) as client:
        fenced = client.fenced(closed)
        assert await fenced.get(MAPS, "a", "default") == OBJECT
        assert await client.create(OBJECT, kind=MAPS) == OBJECT
    assert server.connections == 1


@virtual_time
async def test_a_retried_write_checks_the_fence_again() -> None:
    loop = asyncio.get_running_loop()
    closes_at = loop.time() + 5

    def fence() -> None:
        if loop.time() >= closes_at:
            raise Refused

    async def busy(exchange: Exchange) -> None:
        exchange.refuse(429, "TooManyRequests", "wait", {"Retry-After": "3"})

    server = Loopback(busy)
    await server.start()
    try:
        async with Client(ClusterConfig(server.url)) as client:
            with pytest.raises(Refused):
                await client.fenced(fence).create(OBJECT, kind=MAPS)
    finally:
        await server.stop()
    assert len(server.received) == 2


async def test_a_fence_that_closes_while_the_connection_opens_keeps_the_write_from_leaving(
    serve: Serve,
) -> None:
    asked: list[None] = []

    def fence() -> None:
        asked.append(None)
        if len(asked) > 1:
            raise Refused

    server = await serve(found)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(Refused):
            await client.fenced(fence).create(OBJECT, kind=MAPS)
        assert await client.create(OBJECT, kind=MAPS) == OBJECT
    assert len(server.received) == 1
