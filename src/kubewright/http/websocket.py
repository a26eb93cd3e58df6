"""WebSocket (RFC 6455) for both sides: frames to messages and back, and the keys of the handshake (pure)."""

import base64
import hashlib
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

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


def frame(opcode: Opcode, data: bytes, mask: bytes = b"") -> bytes:
    """Encode a message as one frame; a client gives four random bytes as its mask, a server none."""
    first, size, masked = 0x80 | opcode, len(data), 0x80 if mask else 0
    payload = unmasked(data, mask) if mask else data
    if size < 126:
        return struct.pack("!BB", first, masked | size) + mask + payload
    if size < 65536:
        return struct.pack("!BBH", first, masked | 126, size) + mask + payload
    return struct.pack("!BBQ", first, masked | 127, size) + mask + payload


class FrameReader:
    """Decode frames into messages: those of a client, which masks them, or those of a server, which does not."""

    def __init__(self, *, masked: bool = True) -> None:
        self._masked = masked
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
        if bool(waiting[1] & 0x80) != self._masked:
            raise FrameError(
                "clients must mask their frames" if self._masked else "servers must not mask their frames"
            )
        size, start = waiting[1] & 0x7F, 2
        if size >= 126:
            start += 2 if size == 126 else 8
            if len(waiting) < start:
                return None
            size = int.from_bytes(waiting[2:start], "big")
        if size > MAX_MESSAGE:
            raise FrameError("the frame is too large")
        begin = start + 4 if self._masked else start
        end = begin + size
        if len(waiting) < end:
            return None
        mask, payload = bytes(waiting[start:begin]), bytes(waiting[begin:end])
        last = bool(waiting[0] & 0x80)
        del waiting[:end]
        return last, opcode, unmasked(payload, mask) if mask else payload


def unmasked(payload: bytes, mask: bytes) -> bytes:
    """Apply or remove a mask."""
    # XOR as one large integer is much faster than byte by byte.
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")
