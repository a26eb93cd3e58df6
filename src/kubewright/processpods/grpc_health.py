"""A gRPC health check (grpc.health.v1) over a minimal HTTP/2 client."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from typing import NamedTuple

from kubewright.devserver.data import MINOR

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GO_AWAY = 0, 1, 3, 4, 6, 7
_ACK = _END_STREAM = 0x1
_END_HEADERS, _PADDED = 0x4, 0x8
_CALL = 1
_STATUSES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_LARGEST = 1 << 20


class HealthCheckError(RuntimeError):
    """The server gave no health status; the message has the reason."""


class _Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    body: bytes


async def health_status(host: str, port: int, service: str) -> str:
    """Return the health status of a service, such as SERVING."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(_PREFACE + _frame(_SETTINGS, 0, 0, b"") + _request(f"{host}:{port}", service))
        response = bytearray()
        async for frame in _frames(reader):
            if frame.kind in (_SETTINGS, _PING) and not frame.flags & _ACK:
                writer.write(_frame(frame.kind, _ACK, 0, frame.body if frame.kind == _PING else b""))
            elif frame.kind == _GO_AWAY or (frame.kind == _RST_STREAM and frame.stream == _CALL):
                raise HealthCheckError("the server ended the call")
            elif frame.stream == _CALL and frame.kind in (_DATA, _HEADERS):
                response += _content(frame) if frame.kind == _DATA else b""
                if frame.flags & _END_STREAM:
                    return _status(bytes(response))
        raise HealthCheckError("the server closed the connection")
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _request(authority: str, service: str) -> bytes:
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": authority,
        "te": "trailers",
        "content-type": "application/grpc",
        "user-agent": f"kube-probe/1.{MINOR}",
    }
    # Header fields are literal, uncompressed and not indexed.
    head = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())
    name = service.encode()
    message = b"\x0a" + _number(len(name)) + name if name else b""
    body = struct.pack("!BI", 0, len(message)) + message
    return _frame(_HEADERS, _END_HEADERS, _CALL, head) + _frame(_DATA, _END_STREAM, _CALL, body)


def _text(value: str) -> bytes:
    data = value.encode()
    return bytes([len(data)]) + data


def _number(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + struct.pack("!BBI", kind, flags, stream) + body


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[_Frame]:
    while head := await reader.read(1):
        try:
            head += await reader.readexactly(8)
            size = int.from_bytes(head[:3], "big")
            if size > _LARGEST:
                raise HealthCheckError("the response is not HTTP/2")
            kind, flags, stream = struct.unpack("!BBI", head[3:])
            yield _Frame(kind, flags, stream & 0x7FFFFFFF, await reader.readexactly(size))
        except asyncio.IncompleteReadError:
            raise HealthCheckError("the response is not HTTP/2") from None


def _content(frame: _Frame) -> bytes:
    if not frame.flags & _PADDED or not frame.body:
        return frame.body
    return frame.body[1 : len(frame.body) - frame.body[0]]


def _status(response: bytes) -> str:
    """Parse a HealthCheckResponse: a five-byte prefix, then field 1, which is 0 if omitted."""
    if len(response) < 5:
        # The reason is in compressed trailers; a server without the health service answers like this.
        raise HealthCheckError("the server does not report this service through grpc.health.v1.Health")
    message = response[5:]
    number = message[1] if len(message) >= 2 and message[0] == 0x08 else 0
    return _STATUSES[number] if number < len(_STATUSES) else str(number)
