"""Exec over WebSocket with misbehaving clients: memory is bounded, and nothing is sent twice."""

import asyncio
import struct
from typing import cast

from kubewright.http.websocket import Opcode, unmasked
from kubewright.processpods.streaming.requests import Size
from kubewright.processpods.streaming.session import RESIZE, STDIN, Session

HIGH = 64 * 1024


class Transport:
    """A transport whose client reads nothing until it is asked to; it pauses writers as asyncio does."""

    def __init__(self, protocol: Session) -> None:
        self.protocol = protocol
        self.buffered = 0
        self.reading = True

    def write(self, data: bytes) -> None:
        before, self.buffered = self.buffered, self.buffered + len(data)
        if before <= HIGH < self.buffered:
            self.protocol.pause_writing()

    def drain(self) -> None:
        self.buffered = 0
        self.protocol.resume_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_reading(self) -> bool:
        return self.reading

    def is_closing(self) -> bool:
        return False


def masked(opcode: Opcode, data: bytes) -> bytes:
    mask = b"\x01\x02\x03\x04"
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack("!H", len(data))
    return bytes([0x80 | opcode]) + size + mask + unmasked(data, mask)


def connected() -> tuple[Session, Transport]:
    session = Session()
    transport = Transport(session)
    session.connection_made(cast(asyncio.BaseTransport, transport))
    return session, transport


async def test_pings_of_a_client_that_does_not_read_pause_reading() -> None:
    session, transport = connected()
    pings = masked(Opcode.PING, b"x" * 100) * 100
    sent = 0
    while transport.reading:
        session.data_received(pings)
        sent += 1
    assert transport.buffered < 2 * HIGH
    transport.drain()
    assert transport.reading
    session.data_received(pings)
    assert transport.buffered == 100 * 102
    assert sent < 10


async def test_many_small_messages_pause_reading() -> None:
    session, transport = connected()
    keys = masked(Opcode.BINARY, bytes([STDIN]) + b"k") * 100
    count = 0
    while transport.reading:
        session.data_received(keys)
        count += 100
    assert count < 10_000
    assert await session.read() == b"k" * count
    assert transport.reading


async def test_reading_stays_paused_while_the_client_does_not_read() -> None:
    session, transport = connected()
    session.data_received(masked(Opcode.PING, b"x" * 100) * 1000)
    session.data_received(masked(Opcode.BINARY, bytes([STDIN]) + b"k"))
    assert await session.read() == b"k"
    assert not transport.reading
    transport.drain()
    assert transport.reading


async def test_only_the_newest_terminal_size_counts() -> None:
    session, _ = connected()
    for width in range(1, 1000):
        size = b'{"Width":%d,"Height":24}' % width
        session.data_received(masked(Opcode.BINARY, bytes([RESIZE]) + size))
    assert await session.resized() == Size(999, 24)
    waiting = asyncio.ensure_future(session.resized())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])
