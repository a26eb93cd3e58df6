"""Watches over the wire: how they end, break, stall and are left."""

import asyncio

import msgspec
import pytest

from kubewright.client import (
    Client,
    ClusterConfig,
    ConnectionLost,
    Expired,
    InternalError,
    TimedOut,
    UnexpectedResponse,
)
from kubewright.testing.virtual_time import virtual_time

from .conftest import Exchange, Handler, Serve
from .scripted import MAPS, OBJECT, serving

pytestmark = pytest.mark.usefixtures("transport")


def event(kind: str, version: int, **more: object) -> bytes:
    meta = {"name": "a", "namespace": "default", "resourceVersion": str(version)}
    return msgspec.json.encode({"type": kind, "object": {**OBJECT, "metadata": meta, **more}}) + b"\n"


async def watched(client: Client) -> list[tuple[str, str]]:
    return [(event.type, event.object.meta.resource_version) async for event in client.watch(MAPS)]


async def test_a_watch_ends_where_the_server_ends_it(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        lines = event("ADDED", 1) + event("MODIFIED", 2) + event("BOOKMARK", 3)
        for start in range(0, len(lines), 17):
            exchange.chunk(lines[start : start + 17])
        exchange.send(b"0\r\n\r\n")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        assert await watched(client) == [("ADDED", "1"), ("MODIFIED", "2"), ("BOOKMARK", "3")]


async def test_an_event_of_five_megabytes_arrives(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        exchange.chunk(event("ADDED", 1, data={"x": "y" * 5_000_000}))
        exchange.send(b"0\r\n\r\n")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        assert await watched(client) == [("ADDED", "1")]


async def test_a_version_too_old_is_expired(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        status = {
            "kind": "Status",
            "code": 410,
            "reason": "Expired",
            "message": "too old resource version: 1 (9)",
        }
        exchange.chunk(msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n")
        exchange.send(b"0\r\n\r\n")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(Expired, match="watch configmaps: too old resource version"):
            await watched(client)


async def test_any_other_error_in_a_stream_is_raised_too(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        exchange.chunk(b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd is gone"}}\n')
        exchange.send(b"0\r\n\r\n")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(InternalError, match="etcd is gone"):
            await watched(client)


async def test_a_watch_that_is_refused_is_an_error_like_any_other(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.refuse(410, "Expired", "too old")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(Expired):
            await watched(client)


async def half_an_event(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
    exchange.send(event("ADDED", 1) + b'{"type":"ADD')
    exchange.close()


async def broken_chunks(exchange: Exchange) -> None:
    exchange.begin_chunks()
    exchange.chunk(event("ADDED", 1))
    await exchange.writer.drain()
    exchange.abort()


@pytest.mark.parametrize("handler", [half_an_event, broken_chunks])
async def test_a_broken_stream_raises_an_error(serve: Serve, handler: Handler) -> None:
    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(ConnectionLost):
            await watched(client)


async def test_a_line_that_is_not_an_event_is_an_error(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        exchange.chunk(b"<html>\n")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(UnexpectedResponse, match="a line of the stream is no event"):
            await watched(client)


async def silence(exchange: Exchange) -> None:
    exchange.begin_chunks()
    await asyncio.sleep(100_000)


async def silence_after_a_bookmark(exchange: Exchange) -> None:
    exchange.begin_chunks()
    exchange.chunk(event("BOOKMARK", 1))
    await asyncio.sleep(100_000)


@pytest.mark.parametrize(("handler", "seconds"), [(silence, 415), (silence_after_a_bookmark, 180)])
def test_a_stream_that_stalls_is_noticed(handler: Handler, seconds: int) -> None:
    @virtual_time
    async def scenario() -> None:
        async with serving(handler) as (client, _):
            started = asyncio.get_running_loop().time()
            with pytest.raises(TimedOut, match="silent"):
                async for _ in client.watch(MAPS, timeout=400):
                    pass
            assert seconds - 1 <= asyncio.get_running_loop().time() - started <= seconds + 2

    scenario()


async def test_breaking_out_of_a_watch_closes_its_connection(serve: Serve) -> None:
    closed = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        exchange.chunk(event("ADDED", 1))
        await exchange.writer.drain()
        try:
            while True:
                exchange.chunk(b"\n")
                await exchange.writer.drain()
                await asyncio.sleep(0.01)
        finally:
            closed.set()

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        events = client.watch(MAPS)
        assert (await anext(events)).type == "ADDED"
        await events.aclose()
        async with asyncio.timeout(60):
            await closed.wait()
