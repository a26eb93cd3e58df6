"""However an answer is cut on its way, it is the same answer; what is not one is never taken for one."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.http.client import ClientResponse, ConnectionBroken, ExchangeFailed, MalformedResponse
from kubewright.testing.virtual_time import VirtualTimeLoop

from .http_texts import Written, answers, split
from .memory_wire import MemoryWire

REQUEST = b"GET / HTTP/1.1\r\n\r\n"


def asked(arrivals: list[bytes], *, ended: bool = False) -> tuple[ClientResponse, bool]:
    """Return what a connection makes of these arrivals, and whether it would be used again."""

    async def scenario() -> tuple[ClientResponse, bool]:
        wire = MemoryWire()
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(wire.connection.send(REQUEST, b"", 10.0))
            await asyncio.sleep(0)
            wire.feed(*arrivals)
            if ended:
                wire.end()
        return asking.result(), wire.connection.finish(60.0)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        try:
            return runner.run(scenario())
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None


def streamed(arrivals: list[bytes]) -> tuple[int, bytes]:
    """Return the pieces that a reader gets until the end."""

    async def scenario() -> tuple[int, bytes]:
        wire = MemoryWire()

        async def reading() -> tuple[int, bytes]:
            answer = await wire.connection.stream(REQUEST, b"", 10.0)
            body = b""
            while piece := await wire.connection.read(10.0):
                body += piece
            return answer.status, body

        async with asyncio.TaskGroup() as group:
            asking = group.create_task(reading())
            for data in arrivals:
                await asyncio.sleep(0)
                wire.feed(data)
            wire.end()
        return asking.result()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(scenario())


@given(st.data(), answers())
def test_any_split_of_the_bytes_gives_the_same_response(data: st.DataObject, written: Written) -> None:
    answer, kept = asked(data.draw(split(written.wire)), ended=written.until_end)
    assert (answer.status, answer.reason, answer.body) == (written.status, written.reason, written.body)
    for name, _ in written.fields:
        assert answer.headers.all(name) == [
            value for other, value in written.fields if other.lower() == name.lower()
        ]
    assert kept == written.lasting


@given(st.data(), answers())
def test_any_split_of_the_bytes_gives_the_same_stream(data: st.DataObject, written: Written) -> None:
    assert streamed(data.draw(split(written.wire))) == (written.status, written.body)


# Line breaks between messages are no message: the parser passes over them, and the next answer is still read right.
@given(
    st.data(),
    answers(delimited=True),
    st.binary(min_size=1, max_size=40).filter(lambda more: more.strip(b"\r\n")),
)
def test_bytes_after_the_response_close_the_connection(
    data: st.DataObject, written: Written, more: bytes
) -> None:
    answer, kept = asked(data.draw(split(written.wire + more)))
    assert (answer.status, answer.body) == (written.status, written.body)
    assert not kept


@given(st.data(), answers(delimited=True))
def test_a_truncated_response_is_never_complete(data: st.DataObject, written: Written) -> None:
    end = data.draw(st.integers(0, len(written.wire) - 1))
    with pytest.raises(ConnectionBroken) as caught:
        asked(data.draw(split(written.wire[:end])), ended=True)
    headed = b"\r\n\r\n" in written.wire[written.wire.rindex(b"HTTP/1.1") : end]
    assert caught.value.begun == headed


@given(st.data(), st.binary(max_size=200))
def test_garbage_is_an_error(data: st.DataObject, garbage: bytes) -> None:
    with pytest.raises(ExchangeFailed):
        asked(data.draw(split(garbage)), ended=True)


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 O\0K\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhello",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    ],
)
def test_bytes_that_are_not_http_are_malformed(garbage: bytes) -> None:
    with pytest.raises(MalformedResponse):
        asked([garbage])
