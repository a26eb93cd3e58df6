"""Port-forward with misbehaving clients."""

import asyncio
import struct
import zlib
from typing import cast

from kubewright.processpods.streaming.spdy import DICTIONARY
from kubewright.processpods.streaming.tunnel import Tunnel


class Transport:
    """A transport that records writes and whether reading is paused."""

    def __init__(self) -> None:
        self.reading = True
        self.closed = False
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_reading(self) -> bool:
        return self.reading

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


class Client:
    """A client that opens streams and exchanges data."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def open(self, stream: int, sort: str, request: str = "0") -> bytes:
        headers = {"streamtype": sort, "port": "8080", "requestid": request}
        plain = struct.pack("!I", len(headers))
        for word in (part for pair in headers.items() for part in pair):
            plain += struct.pack("!I", len(word)) + word.encode()
        block = self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(1, struct.pack("!IIBB", stream, 0, 0, 0) + block)


def _control(sort: int, body: bytes) -> bytes:
    return struct.pack("!HHB", 0x8003, sort, 0) + len(body).to_bytes(3, "big") + body


def _data(stream: int, data: bytes) -> bytes:
    return struct.pack("!IB", stream, 0) + len(data).to_bytes(3, "big") + data


def _reset(stream: int) -> bytes:
    return _control(3, struct.pack("!II", stream, 5))


async def _refuse(_: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    raise ConnectionRefusedError("connection refused")


async def _never(_: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    await asyncio.Event().wait()
    raise AssertionError


async def _tick() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_data_of_a_reset_stream_does_not_block_the_others() -> None:
    tunnel, transport, client = Tunnel("web", _never), Transport(), Client()
    tunnel.connection_made(cast(asyncio.BaseTransport, transport))
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(tunnel.serve())
        await _tick()
        tunnel.received(client.open(1, "error") + client.open(3, "data"))
        tunnel.received(_data(3, b"x" * 2_000_000) + _reset(3))
        assert not transport.reading
        await _tick()
        assert transport.reading
        tunnel.received(client.open(5, "error") + client.open(7, "data") + _data(7, b"more"))
        await _tick()
        assert not serving.done()
        tunnel.lost.set()


async def test_streams_that_are_opened_twice_do_not_end_the_others() -> None:
    tunnel, transport, client = Tunnel("web", _refuse), Transport(), Client()
    tunnel.connection_made(cast(asyncio.BaseTransport, transport))
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(tunnel.serve())
        await _tick()
        tunnel.received(client.open(1, "error") + client.open(3, "data") + client.open(5, "data"))
        tunnel.received(client.open(7, "error", "1") + client.open(7, "data", "1"))
        await _tick()
        assert not serving.done()
        tunnel.lost.set()
