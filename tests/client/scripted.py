"""A ConfigMap, and handlers that answer with it, or not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from kubewright.api import Kind
from kubewright.client import Client, ClusterConfig

from .conftest import Exchange, Handler, Loopback

MAPS = Kind(group="", version="v1", kind="ConfigMap", plural="configmaps")
OBJECT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "default", "uid": "u"},
}


@asynccontextmanager
async def serving(handler: Handler, **options: object) -> AsyncIterator[tuple[Client, Loopback]]:
    """Run a server and a client for it inside one loop, also one with virtual time."""
    server = Loopback(handler)
    await server.start()
    try:
        async with Client(ClusterConfig(server.url), **options) as client:  # pyright: ignore[reportArgumentType]
            yield client, server
    finally:
        await server.stop()


def in_turn(*handlers: Handler) -> Handler:
    """Answer each request by the next handler, and all further ones by the last."""
    turns = iter(handlers)
    last = handlers[-1]

    async def handler(exchange: Exchange) -> None:
        await next(turns, last)(exchange)

    return handler


async def found(exchange: Exchange) -> None:
    exchange.answer(OBJECT)


async def aborted(exchange: Exchange) -> None:
    exchange.abort()


async def cut_in_half(exchange: Exchange) -> None:
    body = msgspec.json.encode(OBJECT)
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    exchange.send(f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:20])
    exchange.close()


def busy(code: int, seconds: int) -> Handler:
    async def handler(exchange: Exchange) -> None:
        exchange.refuse(code, "", "wait", {"Retry-After": str(seconds)})

    return handler
