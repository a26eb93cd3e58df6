"""The seam for other protocols: a handler may take a connection over."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from kubewright.devserver.connection import Connection
from kubewright.devserver.request import Request
from kubewright.devserver.responses import Answer, Upgrade, text


class Echo(asyncio.Protocol):
    """Send back what comes, in capitals."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data.upper())


class Host:
    """A server that upgrades whoever asks for it."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self.open: set[Connection] = set()

    def handle(self, request: Request) -> Answer | Coroutine[Any, Any, Answer]:
        if request.upgrade:
            return Upgrade(lambda _: Echo(), [("Connection", "Upgrade"), ("Upgrade", "echo")])
        return text(200, "done")

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._group.create_task(work)

    def date(self) -> str:
        return "now"

    def opened(self, connection: Connection) -> None:
        self.open.add(connection)

    def closed(self, connection: Connection) -> None:
        self.open.discard(connection)


async def test_a_handler_may_take_the_connection_over() -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        host = Host(group)
        server = await loop.create_server(lambda: Connection(host, loop), "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
            writer.write(b"GET /plain HTTP/1.1\r\nHost: t\r\n\r\n")
            assert (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200")
            writer.write(b"GET /exec HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 101")
            assert b"Upgrade: echo" in head
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"HELLO"
            assert not host.open
            writer.close()
            await writer.wait_closed()
