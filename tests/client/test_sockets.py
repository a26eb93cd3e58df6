"""A closed client has closed its sockets: nothing is left to an event loop that may stop with it."""

import asyncio
import gc
import socket
from pathlib import Path

import pytest

from kubewright.api import Kind
from kubewright.certificates import Authority
from kubewright.client import Client, ClusterConfig

from .conftest import Exchange, Loopback, Serve, server_context

pytestmark = pytest.mark.usefixtures("transport")

MAPS = Kind(group="", version="v1", kind="ConfigMap", plural="configmaps")


def open_sockets_to(server: Loopback) -> list[socket.socket]:
    found = [it for it in gc.get_objects() if isinstance(it, socket.socket) and it.fileno() != -1]
    return [it for it in found if it.family == socket.AF_INET and peer_port(it) == server.port]


def peer_port(it: socket.socket) -> int:
    try:
        return it.getpeername()[1]
    except OSError:  # it listens
        return 0


async def test_a_watch_that_was_left_ends_with_the_client(
    serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        exchange.chunk(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n')
        await asyncio.Event().wait()

    pair = authority.serving("api", hosts=["127.0.0.1"])
    server = await serve(handler, server_context(pair.certificate, pair.key, tmp_path))
    async with Client(ClusterConfig(server.url, ca_data=authority.pair.certificate)) as client:
        async for _ in client.watch(MAPS):
            break
        assert open_sockets_to(server)
    assert not open_sockets_to(server)


async def test_a_request_that_was_cancelled_ends_with_the_client(
    serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    asked = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        asked.set()
        await asyncio.Event().wait()

    pair = authority.serving("api", hosts=["127.0.0.1"])
    server = await serve(handler, server_context(pair.certificate, pair.key, tmp_path))
    config = ClusterConfig(server.url, ca_data=authority.pair.certificate)
    async with Client(config) as client, asyncio.TaskGroup() as group:
        request = group.create_task(client.get(MAPS, "a", "default"))
        await asked.wait()
        request.cancel()
    assert not open_sockets_to(server)
