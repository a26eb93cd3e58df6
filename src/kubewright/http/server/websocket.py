"""The server side of a WebSocket connection (RFC 6455): decoding and encoding of frames, flow control, closing."""

import asyncio
import base64
import hashlib
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple, cast

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
VERSION = "13"
"""The only version of the protocol that RFC 6455 defines."""
MAX_MESSAGE = 4 * 1024 * 1024
NORMAL, PROTOCOL_ERROR = 1000, 1002


class Opcode(IntEnum):
    """The type of a frame."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


class WebSocketMessage(NamedTuple):
    """A complete message, or a control frame."""

    opcode: Opcode
    data: bytes


class FrameError(ValueError):
    """The data is not valid WebSocket."""


def accept_key(key: str) -> str:
    """Return the Sec-WebSocket-Accept value for a key."""
    digest = hashlib.sha1(f"{key.strip()}{_GUID}".encode(), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


def accept_headers(key: str, protocol: str = "") -> list[tuple[str, str]]:
    """Return the headers of the 101 response that accepts a WebSocket, with the chosen subprotocol."""
    headers = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", accept_key(key)),
    ]
    return [*headers, ("Sec-WebSocket-Protocol", protocol)] if protocol else headers


def frame(opcode: Opcode, data: bytes) -> bytes:
    """Encode a message as one unmasked frame."""
    first, size = 0x80 | opcode, len(data)
    if size < 126:
        return struct.pack("!BB", first, size) + data
    if size < 65536:
        return struct.pack("!BBH", first, 126, size) + data
    return struct.pack("!BBQ", first, 127, size) + data


class FrameReader:
    """Decode the frames of a client into messages."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._opcode = Opcode.CONTINUATION
        self._parts = bytearray()

    def feed(self, data: bytes) -> Iterator[WebSocketMessage]:
        """Add data and yield the complete messages."""
        self._waiting += data
        while (found := self._next()) is not None:
            last, opcode, payload = found
            if opcode >= Opcode.CLOSE:
                yield WebSocketMessage(opcode, payload)
                continue
            if opcode is not Opcode.CONTINUATION:
                self._opcode = opcode
                self._parts.clear()
            self._parts += payload
            if len(self._parts) > MAX_MESSAGE:
                raise FrameError("the message is too large")
            if last:
                yield WebSocketMessage(self._opcode, bytes(self._parts))
                self._parts.clear()

    def _next(self) -> tuple[bool, Opcode, bytes] | None:
        waiting = self._waiting
        if len(waiting) < 2:
            return None
        try:
            opcode = Opcode(waiting[0] & 0x0F)
        except ValueError:
            raise FrameError("unknown opcode") from None
        if not waiting[1] & 0x80:
            raise FrameError("clients must mask their frames")
        size, start = waiting[1] & 0x7F, 2
        if size >= 126:
            start += 2 if size == 126 else 8
            if len(waiting) < start:
                return None
            size = int.from_bytes(waiting[2:start], "big")
        if size > MAX_MESSAGE:
            raise FrameError("the frame is too large")
        end = start + 4 + size
        if len(waiting) < end:
            return None
        mask, payload = bytes(waiting[start : start + 4]), bytes(waiting[start + 4 : end])
        last = bool(waiting[0] & 0x80)
        del waiting[:end]
        return last, opcode, unmasked(payload, mask)


def unmasked(payload: bytes, mask: bytes) -> bytes:
    """Apply or remove a mask."""
    # XOR as one large integer is much faster than byte by byte.
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


class WebSocket(asyncio.Protocol):
    """A WebSocket connection; subclasses implement `received` and may override `ended`."""

    def __init__(self) -> None:
        self._transport = cast(asyncio.Transport, None)
        self._frames = FrameReader()
        self._writable = asyncio.Event()
        self._writable.set()
        self._paused = False
        self.lost: asyncio.Event = asyncio.Event()

    def received(self, data: bytes) -> None:
        """Handle a message."""
        raise NotImplementedError

    def ended(self) -> None:
        """Handle the end of the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Decode data into messages and handle them."""
        try:
            for message in self._frames.feed(data):
                self._take(message)
        except FrameError as error:
            self.close(PROTOCOL_ERROR, str(error))
            self.lost.set()

    def eof_received(self) -> bool:
        """Close the connection when the client closes its side."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Mark the connection as lost and release waiting writers."""
        self.lost.set()
        self._writable.set()
        self.ended()

    def pause_writing(self) -> None:
        """Block writers, and stop reading too: even pings cause responses, which the client does not read."""
        self._writable.clear()
        self._update_reading()

    def resume_writing(self) -> None:
        """Release writers and read again."""
        self._writable.set()
        self._update_reading()

    def _take(self, message: WebSocketMessage) -> None:
        if message.opcode is Opcode.PING:
            self._transport.write(frame(Opcode.PONG, message.data))
        elif message.opcode is Opcode.CLOSE:
            self.close(NORMAL)
            self.lost.set()
        elif message.opcode is not Opcode.PONG and message.data:
            self.received(message.data)

    def send(self, data: bytes, opcode: Opcode = Opcode.BINARY) -> None:
        """Send a message; await `writable` before sending more."""
        if not self.lost.is_set():
            self._transport.write(frame(opcode, data))

    async def writable(self) -> None:
        """Wait while the client reads slowly."""
        await self._writable.wait()

    def pause_reading(self) -> None:
        """Stop reading from the client until `resume_reading`."""
        self._paused = True
        self._update_reading()

    def resume_reading(self) -> None:
        """Read from the client again, unless writing is blocked."""
        self._paused = False
        self._update_reading()

    def _update_reading(self) -> None:
        transport, reading = self._transport, self._writable.is_set() and not self._paused
        if transport.is_closing() or transport.is_reading() == reading:
            return
        if reading:
            transport.resume_reading()
        else:
            transport.pause_reading()

    def close(self, code: int, reason: str = "") -> None:
        """Close the connection with a status code and a reason."""
        self._transport.write(frame(Opcode.CLOSE, struct.pack("!H", code) + reason.encode()))
        self._transport.close()

    def abort(self) -> None:
        """Close the connection immediately unless it is closing."""
        if not self._transport.is_closing():
            self._transport.abort()
