"""WebSocket frames as values: what arrives is cut into messages, what leaves is put into frames (RFC 6455)."""

import base64
import hashlib
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MAX_MESSAGE = 4 * 1024 * 1024


class Opcode(IntEnum):
    """What a frame carries."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


class Message(NamedTuple):
    """A whole message, or a control frame."""

    opcode: Opcode
    data: bytes


class FrameError(ValueError):
    """What arrived is not WebSocket."""


def accept_key(key: str) -> str:
    """Return the proof that a server has understood the handshake."""
    digest = hashlib.sha1(f"{key.strip()}{_GUID}".encode(), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


def frame(opcode: Opcode, data: bytes) -> bytes:
    """Put a message into one frame, as servers send them: without a mask."""
    first, size = 0x80 | opcode, len(data)
    if size < 126:
        return struct.pack("!BB", first, size) + data
    if size < 65536:
        return struct.pack("!BBH", first, 126, size) + data
    return struct.pack("!BBQ", first, 127, size) + data


class FrameReader:
    """Cut what a client sends into messages."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._opcode = Opcode.CONTINUATION
        self._parts = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Take bytes, and give the messages that are whole with them."""
        self._waiting += data
        while (found := self._next()) is not None:
            last, opcode, payload = found
            if opcode >= Opcode.CLOSE:
                yield Message(opcode, payload)
                continue
            if opcode is not Opcode.CONTINUATION:
                self._opcode = opcode
                self._parts.clear()
            self._parts += payload
            if len(self._parts) > MAX_MESSAGE:
                raise FrameError("the message is too large")
            if last:
                yield Message(self._opcode, bytes(self._parts))
                self._parts.clear()

    def _next(self) -> tuple[bool, Opcode, bytes] | None:
        waiting = self._waiting
        if len(waiting) < 2:
            return None
        try:
            opcode = Opcode(waiting[0] & 0x0F)
        except ValueError:
            raise FrameError("the opcode is not known") from None
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
    """Take a mask off, or put it on."""
    # As one large number: byte by byte would be the slowest part of a copied file.
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")
