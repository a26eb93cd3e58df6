"""Servers and proxies on loopback that count their connections and answer as a test says."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Self

Answering = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


async def hello(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HELLO)


class Listener:
    """Read heads of requests, and have each answered."""

    def __init__(self, answering: Answering = hello, tls: ssl.SSLContext | None = None) -> None:
        self.answering = answering
        self.heads: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []
        self._tls = tls

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self.writers:
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                await self.answering(head, reader, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def tunnelled(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Do what a proxy does with CONNECT."""
    host, _, port = head.split(b" ")[1].decode().rpartition(":")
    upstream, downstream = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
    async with asyncio.TaskGroup() as group:
        group.create_task(_pump(reader, downstream))
        group.create_task(_pump(upstream, writer))


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    except ConnectionError:
        pass
    target.close()
