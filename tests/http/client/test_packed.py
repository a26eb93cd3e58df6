"""Packed bodies: unpacked as they come, to their end, and never into more memory than was agreed to."""

import asyncio
import gzip
import zlib

import pytest

from kubewright.http.client import ConnectionBroken, MalformedResponse
from kubewright.http.client.gzip_decoder import MAX_OUTPUT
from kubewright.testing.virtual_time import virtual_time

from .memory_wire import MemoryWire

REQUEST = b"GET / HTTP/1.1\r\n\r\n"
PACKED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def now() -> float:
    return asyncio.get_running_loop().time()


@virtual_time
async def test_a_compressed_stream_is_decompressed_in_pieces() -> None:
    wire = MemoryWire()
    packer = zlib.compressobj(wbits=31)
    async with asyncio.TaskGroup() as group:
        group.create_task(wire.connection.stream(REQUEST, b"", now() + 10))
        await asyncio.sleep(0)
        wire.feed(PACKED)
    wire.feed(chunk(packer.compress(b"one") + packer.flush(zlib.Z_SYNC_FLUSH)))
    assert await wire.connection.read(10.0) == b"one"
    wire.feed(chunk(packer.compress(b"two") + packer.flush()), b"0\r\n\r\n")
    assert await wire.connection.read(10.0) == b"two"
    assert await wire.connection.read(10.0) == b""


@virtual_time
async def test_a_compressed_response_is_decompressed() -> None:
    wire = MemoryWire()
    body = bytes(range(256)) * 4000
    packed = gzip.compress(body)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(wire.connection.send(REQUEST, b"", now() + 10))
        await asyncio.sleep(0)
        wire.feed(PACKED, *(chunk(packed[start : start + 1000]) for start in range(0, len(packed), 1000)))
        wire.feed(b"0\r\n\r\n")
    assert asking.result().body == body
    assert wire.connection.finish(60.0)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (gzip.compress(b"hello")[:-4], ConnectionBroken),
        (b"not packed", MalformedResponse),
        (gzip.compress(bytes(MAX_OUTPUT + 1)), MalformedResponse),
    ],
    ids=["cut", "not packed", "a bomb"],
)
def test_a_malicious_compressed_body_is_an_error(body: bytes, error: type[Exception]) -> None:
    @virtual_time
    async def scenario() -> None:
        wire = MemoryWire()

        async def asking() -> None:
            with pytest.raises(error):
                await wire.connection.send(REQUEST, b"", now() + 10)

        async with asyncio.TaskGroup() as group:
            group.create_task(asking())
            await asyncio.sleep(0)
            wire.feed(PACKED + chunk(body) + b"0\r\n\r\n")

    scenario()


@virtual_time
async def test_compressed_bytes_are_never_returned() -> None:
    wire = MemoryWire()
    packer = zlib.compressobj(wbits=31)
    async with asyncio.TaskGroup() as group:
        group.create_task(wire.connection.stream(REQUEST, b"", now() + 10))
        await asyncio.sleep(0)
        wire.feed(PACKED)
    wire.feed(chunk(packer.compress(b"one") + packer.flush(zlib.Z_SYNC_FLUSH)) + b"no chunk\r\n")
    assert await wire.connection.read(10.0) == b"one"
    with pytest.raises(MalformedResponse):
        await wire.connection.read(10.0)


@virtual_time
async def test_a_body_of_several_gzip_members_is_decompressed() -> None:
    wire = MemoryWire()
    parts = gzip.compress(b"one") + gzip.compress(b"two")
    for cut in range(len(parts)):
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(wire.connection.send(REQUEST, b"", now() + 10))
            await asyncio.sleep(0)
            wire.feed(PACKED, *(chunk(it) for it in (parts[:cut], parts[cut:]) if it), b"0\r\n\r\n")
        assert asking.result().body == b"onetwo"
        assert wire.connection.finish(60.0)


@virtual_time
async def test_empty_bodies_are_not_compressed() -> None:
    wire = MemoryWire()
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(wire.connection.send(REQUEST, b"", now() + 10))
        await asyncio.sleep(0)
        wire.feed(b"HTTP/1.1 304 Not Modified\r\nContent-Encoding: gzip\r\n\r\n")
    assert (asking.result().status, asking.result().body) == (304, b"")
    assert wire.connection.finish(60.0)
