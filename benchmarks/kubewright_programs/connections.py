"""The lightest HTTP client that loads a server: prepared bytes out, one C parser in, no objects made."""

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httptools


class Connection(asyncio.Protocol):
    """One keep-alive connection with one request on the way at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[int] | None = None
        self._lines: Callable[[int], None] | None = None
        self.body = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the server closed the connection"))

    def on_body(self, body: bytes) -> None:
        if self._lines is not None:
            self._lines(body.count(b"\n"))
        else:
            self.body += body

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        self._parser = httptools.HttpResponseParser(self)
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(status)

    async def send(self, request: bytes) -> int:
        """Send a prepared request and wait for the whole response; return its status."""
        assert self._transport is not None
        self.body.clear()
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def follow(self, request: bytes, lines: Callable[[int], None]) -> None:
        """Send a prepared watch; `lines` hears how many lines came."""
        assert self._transport is not None
        self._lines = lines
        self._transport.write(request)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def prepared(method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """Write a request as it goes over the wire."""
    lines = [f"{method} {path} HTTP/1.1", "Host: bench", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass
class Load:
    """Connections to one server."""

    host: str
    port: int
    tls: ssl.SSLContext

    async def connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, self.host, self.port, ssl=self.tls)
        return connection

    async def rate(self, count: int, width: int, request: Callable[[int], bytes]) -> float:
        """Send `count` requests over `width` connections and return how many responses arrived per second."""
        connections = [await self.connect() for _ in range(width)]
        numbers = iter(range(count))
        started = time.perf_counter()

        async def work(connection: Connection) -> None:
            for number in numbers:
                status = await connection.send(request(number))
                if status >= 300:
                    raise RuntimeError(f"HTTP {status}: {bytes(connection.body[:300])!r}")

        async with asyncio.TaskGroup() as group:
            for connection in connections:
                group.create_task(work(connection))
        elapsed = time.perf_counter() - started
        for connection in connections:
            connection.close()
        return count / elapsed
