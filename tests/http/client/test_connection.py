"""One connection: time, room, bodies of every size, and what ends it."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable

import pytest

from kubewright.http.client import (
    ClientResponse,
    ConnectionBroken,
    MalformedResponse,
    NotSent,
    ReadTimeout,
    ResponseTooLarge,
)
from kubewright.http.client.connection import (
    BREATH,
    FLOOD_READS,
    HIGH_WATER,
    MAX_ERROR_BODY,
    PIECE,
    ClientConnection,
)
from kubewright.testing.virtual_time import virtual_time

from .memory_wire import MemoryWire

REQUEST = b"GET / HTTP/1.1\r\n\r\n"
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def now() -> float:
    return asyncio.get_running_loop().time()


async def streaming(wire: MemoryWire) -> None:
    """Begin an answer in chunks."""
    async with asyncio.TaskGroup() as group:
        group.create_task(wire.connection.stream(REQUEST, b"", now() + 10))
        await asyncio.sleep(0)
        wire.feed(CHUNKS)


@virtual_time
async def test_a_missing_response_times_out_at_its_deadline() -> None:
    wire = MemoryWire()
    with pytest.raises(ReadTimeout):
        await wire.connection.send(REQUEST, b"", 7.0)
    assert now() == pytest.approx(7.0)
    assert wire.aborted


@virtual_time
async def test_each_request_has_its_own_deadline() -> None:
    wire = MemoryWire()
    for seconds in (30.0, 20.0, 5.0):
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(wire.connection.send(REQUEST, b"", now() + seconds))
            await asyncio.sleep(4.0)
            wire.feed(EMPTY)
        assert asking.result().status == 200
        assert wire.connection.finish(60.0)
    started = now()
    with pytest.raises(ReadTimeout):
        await wire.connection.send(REQUEST, b"", started + 3.0)
    assert now() == pytest.approx(started + 3.0)


@virtual_time
async def test_an_idle_connection_is_closed_after_its_timeout() -> None:
    wire = MemoryWire()
    async with asyncio.TaskGroup() as group:
        group.create_task(wire.connection.send(REQUEST, b"", 5.0))
        await asyncio.sleep(0)
        wire.feed(EMPTY)
    assert wire.connection.finish(60.0)
    await asyncio.sleep(59.0)
    assert wire.connection.usable
    await asyncio.sleep(2.0)
    assert not wire.connection.usable
    assert not wire.aborted
    with pytest.raises(NotSent):
        await wire.connection.send(REQUEST, b"", now() + 5.0)


@virtual_time
async def test_unsolicited_bytes_close_an_idle_connection() -> None:
    wire = MemoryWire()
    async with asyncio.TaskGroup() as group:
        group.create_task(wire.connection.send(REQUEST, b"", 5.0))
        await asyncio.sleep(0)
        wire.feed(EMPTY)
    assert wire.connection.finish(60.0)
    wire.feed(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n")
    assert not wire.connection.usable


@pytest.mark.parametrize("way", [ClientConnection.stream, ClientConnection.send])
def test_endless_headers_are_refused(way: Callable[..., Awaitable[ClientResponse]]) -> None:
    @virtual_time
    async def scenario() -> None:
        wire = MemoryWire()

        async def asking() -> None:
            with pytest.raises(MalformedResponse):
                await way(wire.connection, REQUEST, b"", now() + 10)

        async with asyncio.TaskGroup() as group:
            group.create_task(asking())
            await asyncio.sleep(0)
            wire.feed(b"HTTP/1.1 200 OK\r\n")
            for _ in range(40):
                wire.feed(b"X-A: " + b"a" * 65536 + b"\r\n")
        assert now() < 10
        assert wire.aborted

    scenario()


@virtual_time
async def test_a_cancelled_request_closes_its_connection() -> None:
    wire = MemoryWire()
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(wire.connection.send(REQUEST, b"", 10.0))
        await asyncio.sleep(0)
        asking.cancel()
    assert not wire.connection.finish(60.0)
    assert wire.aborted


@virtual_time
async def test_a_body_that_we_stopped_reading_is_not_complete() -> None:
    wire = MemoryWire()

    async def asking() -> None:
        with pytest.raises(ConnectionBroken):
            await wire.connection.send(REQUEST, b"", now() + 10)

    async with asyncio.TaskGroup() as group:
        group.create_task(asking())
        await asyncio.sleep(0)
        wire.feed(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nthe first half")
        wire.connection.close()


@virtual_time
async def test_a_transfer_encoding_that_is_not_decoded_is_refused() -> None:
    wire = MemoryWire()

    async def asking() -> None:
        with pytest.raises(MalformedResponse, match="unsupported Transfer-Encoding 'identity, chunked'"):
            await wire.connection.send(REQUEST, b"", now() + 10)

    async with asyncio.TaskGroup() as group:
        group.create_task(asking())
        await asyncio.sleep(0)
        wire.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n")
        wire.feed(chunk(b"the first half"))
        wire.end()


# Bodies piece by piece.


@virtual_time
async def test_all_received_chunks_are_read_together() -> None:
    wire = MemoryWire()
    await streaming(wire)
    wire.feed(chunk(b"one\n") + chunk(b"two\n"), chunk(b"three\n"))
    assert await wire.connection.read(10.0) == b"one\ntwo\nthree\n"
    wire.feed(chunk(b"four\n") + b"0\r\n\r\n")
    assert await wire.connection.read(10.0) == b"four\n"
    assert await wire.connection.read(10.0) == b""
    assert wire.connection.finish(60.0)


@virtual_time
async def test_a_slow_reader_pauses_the_transport() -> None:
    wire = MemoryWire()
    await streaming(wire)
    piece = b"x" * 65536
    fed = 0
    while wire.reading:
        wire.feed(chunk(piece))
        fed += len(piece)
    assert HIGH_WATER <= fed <= HIGH_WATER + 2 * len(piece)
    assert len(await wire.connection.read(10.0)) == fed
    assert wire.reading
    wire.feed(b"0\r\n\r\n")
    assert await wire.connection.read(10.0) == b""


@virtual_time
async def test_a_flood_of_chunks_is_buffered_up_to_a_bound() -> None:
    wire = MemoryWire()
    await streaming(wire)
    for _ in range(FLOOD_READS):
        wire.feed(chunk(b"x" * 1000))
        assert await wire.connection.read(10.0) == b"x" * 1000
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(wire.connection.read(10.0))
        await asyncio.sleep(0)
        assert not wire.reading
        await asyncio.sleep(BREATH * 2)
        assert wire.reading
        wire.feed(chunk(b"y" * 1000))
    assert reading.result() == b"y" * 1000
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(wire.connection.read(10.0))
        await asyncio.sleep(0)
        assert wire.reading, "so little is no flood"
        wire.feed(chunk(b"z"))
    assert reading.result() == b"z"


@virtual_time
async def test_a_connection_that_ends_in_a_flood_is_read_to_its_end() -> None:
    wire = MemoryWire()
    await streaming(wire)
    for _ in range(FLOOD_READS):
        wire.feed(chunk(b"x"))
        await wire.connection.read(10.0)
    wire.feed(chunk(b"last words"))
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(wire.connection.read(10.0))
        await asyncio.sleep(0)
        wire.end()
    assert reading.result() == b"last words"
    with pytest.raises(ConnectionBroken):
        await wire.connection.read(10.0)


@virtual_time
async def test_a_stalled_stream_times_out_after_the_timeout_of_each_read() -> None:
    wire = MemoryWire()
    await streaming(wire)
    for idle in (400.0, 50.0):
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(wire.connection.read(idle))
            await asyncio.sleep(idle - 1)
            wire.feed(chunk(b"still here"))
        assert reading.result() == b"still here"
    started = now()
    with pytest.raises(ReadTimeout):
        await wire.connection.read(20.0)
    assert now() == pytest.approx(started + 20.0)


@virtual_time
async def test_a_reader_that_gave_up_waiting_may_come_back_later() -> None:
    wire = MemoryWire()
    await streaming(wire)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await wire.connection.read(20.0)
    await asyncio.sleep(30.0)
    wire.feed(chunk(b"still here"))
    assert await wire.connection.read(20.0) == b"still here"


@virtual_time
async def test_bytes_before_a_reset_are_read_first() -> None:
    wire = MemoryWire()
    await streaming(wire)
    wire.feed(chunk(b"last words"))
    wire.end(ConnectionResetError())
    assert await wire.connection.read(10.0) == b"last words"
    with pytest.raises(ConnectionBroken):
        await wire.connection.read(10.0)


@virtual_time
async def test_the_rest_of_a_body_is_read_completely() -> None:
    wire = MemoryWire()
    await streaming(wire)
    while wire.reading:
        wire.feed(chunk(b"x" * 65536))
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(wire.connection.read_all(now() + 10))
        await asyncio.sleep(0)
        assert wire.reading
        for _ in range(40):
            wire.feed(chunk(b"x" * 65536))
        wire.feed(b"0\r\n\r\n")
    assert len(reading.result()) >= HIGH_WATER + 40 * 65536


@pytest.mark.parametrize("status", [200, 404, 500])
@pytest.mark.parametrize(
    "begins", [b"Transfer-Encoding: chunked", b"Content-Length: 99999999999", b"Connection: close"]
)
def test_an_endless_body_is_an_error(status: int, begins: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 4 * 65536
    bound = "MAX_BODY" if status == 200 else "MAX_ERROR_BODY"
    monkeypatch.setattr(f"kubewright.http.client.connection.{bound}", limit)

    @virtual_time
    async def scenario() -> None:
        wire = MemoryWire()

        async def sending() -> None:
            with pytest.raises(ResponseTooLarge) as caught:
                await wire.connection.send(REQUEST, b"", now() + 10)
            assert (caught.value.status, caught.value.limit) == (status, limit)

        async with asyncio.TaskGroup() as group:
            group.create_task(sending())
            await asyncio.sleep(0)
            wire.feed(b"HTTP/1.1 %d X\r\n%b\r\n\r\n" % (status, begins))
            piece = b"x" * 65536
            for _ in range(6):
                wire.feed(chunk(piece) if b"chunked" in begins else piece)
        assert wire.aborted

    scenario()


@virtual_time
async def test_a_compressed_error_body_is_bounded_by_its_content() -> None:
    wire = MemoryWire()

    async def sending() -> None:
        with pytest.raises(ResponseTooLarge):
            await wire.connection.send(REQUEST, b"", now() + 10)

    async with asyncio.TaskGroup() as group:
        group.create_task(sending())
        await asyncio.sleep(0)
        wire.feed(b"HTTP/1.1 500 X\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n")
        wire.feed(chunk(gzip.compress(bytes(MAX_ERROR_BODY + 1))))
    assert wire.aborted


# Bodies that go out.


@virtual_time
async def test_a_long_request_body_waits_for_the_send_buffer() -> None:
    wire = MemoryWire()
    wire.full_after = 3 * PIECE
    body = b"x" * (20 * PIECE + 7)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(wire.connection.send(REQUEST, body, now() + 10))
        await asyncio.sleep(1)
        assert len(wire.written) < 5 * PIECE
        wire.drained()
        await asyncio.sleep(1)
        assert bytes(wire.written) == REQUEST + body
        wire.feed(EMPTY)
    assert asking.result().status == 200


@virtual_time
async def test_an_early_refusal_of_a_long_body_is_read() -> None:
    wire = MemoryWire()
    wire.full_after = PIECE
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(wire.connection.send(REQUEST, b"x" * (20 * PIECE), now() + 10))
        await asyncio.sleep(1)
        wire.feed(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
    assert asking.result().status == 413
    assert not wire.connection.finish(60.0)
    assert wire.aborted, "closing would wait until the server takes what it does not want"


@virtual_time
async def test_a_connection_with_a_half_sent_body_is_not_reused() -> None:
    wire = MemoryWire()
    wire.full_after = PIECE
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(wire.connection.send(REQUEST, b"x" * (20 * PIECE), now() + 10))
        await asyncio.sleep(1)
        wire.feed(EMPTY)
        asking.cancel()
    assert not wire.connection.finish(60.0)


@virtual_time
async def test_a_request_body_that_cannot_be_sent_times_out() -> None:
    wire = MemoryWire()
    wire.full_after = PIECE
    with pytest.raises(ReadTimeout):
        await wire.connection.send(REQUEST, b"x" * (20 * PIECE), 10.0)


@virtual_time
async def test_a_response_that_begins_before_the_request_is_sent_is_read() -> None:
    wire = MemoryWire()
    wire.full_after = PIECE
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(wire.connection.send(REQUEST, b"x" * (20 * PIECE), now() + 10))
        await asyncio.sleep(1)
        wire.feed(CHUNKS)
        for _ in range(20):
            wire.feed(chunk(b"y" * 65536))
        wire.drained()
        await asyncio.sleep(1)
        assert wire.reading
        wire.feed(b"0\r\n\r\n")
    assert asking.result().body == b"y" * 20 * 65536
