"""The seam for other protocols: a handler may take a connection over."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from http_wire import connected

from kubewright.http.server import Handler, HttpServer, Request, ServerResponse, Upgrade, text


class Echo(asyncio.Protocol):
    """Send back what comes, in capitals."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data.upper())


class Switching(Handler):
    """Accepts upgrades once it is allowed to."""

    def __init__(self) -> None:
        self.let = asyncio.Event()

    def handle(self, request: Request) -> ServerResponse | Coroutine[Any, Any, ServerResponse]:
        return self._switch() if request.upgrade else text(200, "done")

    async def _switch(self) -> Upgrade:
        await self.let.wait()
        return Upgrade(lambda _: Echo(), [("Connection", "Upgrade"), ("Upgrade", "echo")])


ASKED = b"GET /exec HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"


async def test_a_handler_may_upgrade_the_connection() -> None:
    handler = Switching()
    async with HttpServer(handler, "127.0.0.1", 0) as server, connected(server.port) as wire:
        assert (await wire.ask("GET", "/plain")).body == b"done"
        handler.let.set()
        wire.writer.write(ASKED)
        status, headers = await wire.head()
        assert (status, headers["upgrade"]) == (101, "echo")
        wire.writer.write(b"hello")
        assert await wire.reader.readexactly(5) == b"HELLO"
        assert not server.connections


async def test_bytes_before_the_upgrade_belong_to_the_next_protocol() -> None:
    handler = Switching()
    async with HttpServer(handler, "127.0.0.1", 0) as server, connected(server.port) as wire:
        wire.writer.write(ASKED + b"too ")
        wire.writer.write(b"early")
        handler.let.set()
        assert (await wire.head())[0] == 101
        assert await wire.reader.readexactly(9) == b"TOO EARLY"


async def test_a_refused_upgrade_closes_the_connection_after_its_response() -> None:
    class Plain(Handler):
        def handle(self, request: Request) -> ServerResponse:
            return text(200, "plain")

    async with HttpServer(Plain(), "127.0.0.1", 0) as server, connected(server.port) as wire:
        wire.writer.write(ASKED + b"\x81\x85garbage")
        reply = await wire.reply()
        assert (reply.text, reply.headers["connection"]) == ("plain", "close")
        assert await wire.ended()
