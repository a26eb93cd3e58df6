"""gRPC health checks against recorded responses."""

import asyncio
import struct
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest

from kubewright.processpods.grpc_health import HealthCheckError, health_status

SETTINGS, DATA, HEADERS, PING, GO_AWAY = 4, 0, 1, 6, 7
END, END_HEADERS, PADDED = 1, 4, 8
# `:status: 200` and `content-type: application/grpc`, then `grpc-status: 0`, compressed as by a server.
HEAD = b"\x88\x5f\x8b\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x4d\x65\x64"
TRAILERS = b"\x40\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f\x01\x30"


def frame(sort: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return len(body).to_bytes(3, "big") + struct.pack("!BBI", sort, flags, stream) + body


def encoded(message: bytes) -> bytes:
    return struct.pack("!BI", 0, len(message)) + message


@asynccontextmanager
async def serving(answer: Sequence[bytes]) -> AsyncGenerator[tuple[int, bytearray], None]:
    """Serve one response after the call has arrived; yield the port and the received data."""
    asked = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while b"Health/Check" not in asked:
            asked.extend(await reader.read(4096))
        for part in answer:
            writer.write(part)
            await writer.drain()
        asked.extend(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], asked


@pytest.mark.parametrize(
    ("message", "status"), [(b"\x08\x01", "SERVING"), (b"\x08\x02", "NOT_SERVING"), (b"", "UNKNOWN")]
)
async def test_returns_the_health_status(message: bytes, status: str) -> None:
    answer = [
        frame(SETTINGS, 0, 0, b"\0\x03\0\0\0\x64") + frame(PING, 0, 0, b"12345678"),
        frame(HEADERS, END_HEADERS, 1, HEAD),
        frame(DATA, PADDED, 1, b"\x02" + encoded(message) + b"\0\0"),
        frame(HEADERS, END | END_HEADERS, 1, TRAILERS),
    ]
    async with serving(answer) as (port, asked):
        assert await health_status("127.0.0.1", port, "shop.v1.Cart") == status
    assert b"shop.v1.Cart" in asked


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([frame(HEADERS, END | END_HEADERS, 1, HEAD + TRAILERS)], "does not report this service"),
        ([frame(GO_AWAY, 0, 0, b"\0" * 8)], "ended the call"),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "is not HTTP/2"),
    ],
)
async def test_reports_an_invalid_response(answer: list[bytes], reason: str) -> None:
    async with serving(answer) as (port, _):
        with pytest.raises(HealthCheckError, match=reason):
            await health_status("127.0.0.1", port, "")
