"""HTTP/1.1 over asyncio streams, as bare as it gets: what the tests of our servers speak."""

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any


@dataclass
class Reply:
    """An answer with its body whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class HttpConnection:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        lines = [f"{method} {path} HTTP/1.1", "Host: test", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def head(self) -> tuple[int, dict[str, str]]:
        text = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = text.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        return int(first.split()[1]), headers

    async def reply(self) -> Reply:
        status, headers = await self.head()
        if headers.get("transfer-encoding") == "chunked":
            body = b"".join([chunk async for chunk in self.chunks()])
        else:
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Reply(status, headers, body)

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Reply:
        self.send(method, path, body, headers)
        return await self.reply()

    async def chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self.reader.readline(), 16):
            yield await self.reader.readexactly(size)
            await self.reader.readline()
        await self.reader.readline()

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        async for chunk in self.chunks():
            for line in chunk.splitlines():
                yield json.loads(line)

    async def ended(self) -> bool:
        """Wait until the server hangs up, in whatever way."""
        try:
            return await self.reader.read() == b""
        except (ConnectionError, ssl.SSLError):
            return True

    def reset(self) -> None:
        """Send a TCP reset, as a crashed client's kernel does."""
        linger = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            pass


@asynccontextmanager
async def connected(
    port: int, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[HttpConnection]:
    """Connect to a server on this machine."""
    wire = HttpConnection(*await asyncio.open_connection(host, port, ssl=tls))
    try:
        yield wire
    finally:
        await wire.close()


def without_verification() -> ssl.SSLContext:
    """Make TLS settings for servers that sign their own certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
