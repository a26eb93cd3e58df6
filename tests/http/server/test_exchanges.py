"""Requests and answers as clients may ask for them."""

import asyncio

import pytest
from http_wire import connected

from kubewright.http.server import Limits
from kubewright.testing import eventually
from kubewright.testing.virtual_time import virtual_time

from .serving import LARGEST, serving, talking


async def test_a_connection_serves_many_requests_and_bodies() -> None:
    async with talking() as (_, _, wire):
        for body in (b"one", b"two", b"x" * LARGEST):
            assert (await wire.ask("POST", "/echo", body)).body == body


async def test_paths_and_queries_are_decoded_and_fields_joined() -> None:
    async with talking() as (_, handler, wire):
        wire.writer.write(b"GET /a%20b?c=1&c=%3D&d HTTP/1.1\r\nHost: t\r\nX-Y: 1\r\nx-y: 2\r\n\r\n")
        assert (await wire.reply()).status == 200
        (request,) = handler.asked
        assert (request.path, request.query) == ("/a b", {"c": ["1", "="], "d": [""]})
        assert (request.headers["x-y"], request.every("x-y")) == ("1, 2", ["1", "2"])


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("http://t/a%20b?c=d", "/a b"),
        ("HTTPS://t:443/a//b", "/a//b"),
        ("http://t", "/"),
        ("http://t?c=d", "/"),
        ("//t/a", "//t/a"),
        ("/http://t/a", "/http://t/a"),
        ("*", "*"),
    ],
)
async def test_a_target_may_name_the_server_as_proxies_do(target: str, path: str) -> None:
    async with talking() as (_, handler, wire):
        await wire.ask("OPTIONS", target)
        assert handler.asked[0].path == path


async def test_pipelined_requests_are_answered_in_order_whatever_they_wait_for() -> None:
    async with talking() as (_, handler, wire):
        for path in ("/later/1", "/2", "/stream", "/later/4", "/5"):
            wire.send("GET", path)
        await eventually(lambda: handler.asked, interval=0.001)
        handler.let.set()
        assert [(await wire.reply()).text for _ in range(5)] == ["/later/1", "/2", "onetwo", "/later/4", "/5"]


async def test_a_pipeline_pauses_while_its_responses_are_not_read() -> None:
    async with talking(Limits(pipelined=4)) as (server, handler, wire):
        for _ in range(100):
            wire.send("GET", "/large")
        (connection,) = server.connections
        await eventually(lambda: connection.blocked_since is not None, interval=0.001)
        assert len(handler.asked) < 100
        for _ in range(100):
            assert len((await wire.reply()).body) == 300_000
            assert connection.buffered < 1_000_000


async def test_a_head_is_answered_like_a_get_without_the_body() -> None:
    async with talking() as (_, _, wire):
        wire.send("HEAD", "/path")
        status, headers = await wire.head()
        assert (status, headers["content-length"]) == (200, "5")
        wire.send("HEAD", "/stream")
        assert (await wire.head())[0] == 200
        assert (await wire.ask("GET", "/next")).text == "/next"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HEAD /missing HTTP/1.1\r\nHost: t\r\n\r\n", 404),
        (b"HEAD /x HTTP/1.1\r\nHost: t\r\nContent-Length: 900000\r\n\r\n", 413),
        (b"HEAD /x HTTP/1.1\r\nHost : t\r\n\r\n", 400),
        (b"HEAD /x HTTP/1.1\r\nA: " + b"a" * 70_000 + b"\r\n\r\n", 431),
    ],
)
async def test_a_head_that_is_refused_gets_no_body_either(head: bytes, status: int) -> None:
    async with talking() as (_, _, wire):
        wire.writer.write(head)
        found, headers = await wire.head()
        assert found == status
        assert int(headers["content-length"]) > 0
        wire.writer.write_eof()
        assert await wire.reader.read() == b""


async def test_a_response_without_a_body_has_no_content_length() -> None:
    async with talking() as (_, _, wire):
        wire.send("GET", "/empty")
        status, headers = await wire.head()
        assert status == 204
        assert "content-length" not in headers
        assert (await wire.ask("GET", "/next")).text == "/next"


async def test_responses_have_a_date() -> None:
    async with talking() as (_, _, wire):
        date = (await wire.ask("GET", "/")).headers["date"]
        assert len(date.split()) == 6
        assert date.endswith(" GMT")


async def test_http_1_0_clients_get_unchunked_streams_and_a_closed_connection() -> None:
    async with talking() as (_, _, wire):
        wire.writer.write(b"GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        _, headers = await wire.head()
        assert "transfer-encoding" not in headers
        assert headers["connection"] == "close"
        assert await wire.reader.read() == b"onetwo"


async def test_a_connection_closes_when_the_client_requests_it() -> None:
    async with talking() as (_, _, wire):
        reply = await wire.ask("GET", "/last", headers={"Connection": "close"})
        assert (reply.text, reply.headers["connection"]) == ("/last", "close")
        assert await wire.ended()


async def test_a_client_may_expect_100_continue() -> None:
    async with talking() as (_, _, wire):
        wire.writer.write(
            b"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        assert (await wire.head())[0] == 100
        wire.writer.write(b"ok")
        assert (await wire.reply()).body == b"ok"


@pytest.mark.parametrize("path", ["/broken", "/broken-later"])
async def test_a_handler_that_fails_is_an_error_without_details(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with talking() as (_, _, wire):
        reply = await wire.ask("GET", path)
        assert (reply.status, reply.text) == (500, "500 Internal Server Error\n")
        assert (await wire.ask("GET", "/next")).text == "/next"
    assert f"Handler failed for GET {path}" in caplog.text


async def test_an_abandoned_response_leaves_no_waiter() -> None:
    async with talking() as (server, _, wire):
        wire.send("GET", "/cancelled")
        async with asyncio.timeout(60):
            assert await wire.ended()
        await eventually(lambda: not server.connections, interval=0.001)


async def test_a_failed_stream_is_not_complete(caplog: pytest.LogCaptureFixture) -> None:
    async with talking() as (_, _, wire):
        wire.send("GET", "/broken-stream")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError, ValueError)):
            await wire.reply()
    assert "Handler failed for GET /broken-stream" in caplog.text


async def test_a_handler_may_close_the_connection() -> None:
    async with talking() as (_, _, wire):
        wire.send("GET", "/gone")
        assert await wire.ended()


async def test_a_reset_by_the_client_cancels_its_request() -> None:
    async with serving() as (server, handler):
        async with connected(server.port) as wire:
            wire.send("POST", "/never", b"x" * 1000)
            await eventually(lambda: handler.asked, interval=0.001)
            assert server.body_budget.available == server.limits.held - 1000
            wire.reset()
        await eventually(lambda: handler.cancelled, interval=0.001)
        assert (server.tasks, server.body_budget.available) == (0, server.limits.held)
        assert not server.connections


async def test_white_space_around_a_header_value_is_removed() -> None:
    async with talking() as (_, handler, wire):
        wire.writer.write(b"GET / HTTP/1.1\r\nHost: t \r\nX-A:\t a b \t \r\n\r\n")
        assert (await wire.reply()).status == 200
        assert handler.asked[0].headers == {"host": "t", "x-a": "a b"}


@pytest.mark.parametrize(
    "coding", [b"gzip, chunked", b"chunked, chunked", b"chunked\r\nTransfer-Encoding: chunked"]
)
async def test_a_transfer_encoding_that_is_not_decoded_is_refused(coding: bytes) -> None:
    async with talking() as (_, handler, wire):
        wire.writer.write(b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: %b\r\n\r\n0\r\n\r\n" % coding)
        assert (await wire.reply()).status in (400, 501)
        assert handler.asked == []


async def test_a_client_that_half_closes_gets_every_response_it_asked_for() -> None:
    async with talking() as (server, handler, wire):
        for path in ("/later/1", "/2", "/later/3"):
            wire.send("GET", path)
        wire.writer.write_eof()
        await eventually(lambda: handler.asked, interval=0.001)
        handler.let.set()
        replies = [await wire.reply() for _ in range(3)]
        assert [reply.text for reply in replies] == ["/later/1", "/2", "/later/3"]
        assert [reply.headers.get("connection") for reply in replies] == [None, None, "close"]
        assert await wire.ended()
        await eventually(lambda: not server.connections, interval=0.001)


async def test_half_a_request_of_a_client_that_half_closes_is_dropped_and_the_ones_before_answered() -> None:
    async with talking() as (server, handler, wire):
        wire.send("GET", "/later")
        wire.writer.write(b"GET /half HTTP/1.1\r\nHo")
        wire.writer.write_eof()
        await eventually(lambda: handler.asked, interval=0.001)
        handler.let.set()
        assert (await wire.reply()).text == "/later"
        assert await wire.ended()
        await eventually(lambda: not server.connections, interval=0.001)


async def test_bad_bytes_before_a_half_close_are_still_refused() -> None:
    async with talking() as (_, _, wire):
        wire.writer.write(b"nonsense\r\n\r\n")
        wire.writer.write_eof()
        assert (await wire.reply()).status == 400
        assert await wire.ended()


async def test_a_stream_ends_when_its_client_half_closes() -> None:
    async with serving() as (server, handler), connected(server.port) as wire:
        wire.send("GET", "/endless")
        assert (await wire.head())[0] == 200
        wire.writer.write_eof()
        await eventually(lambda: handler.cancelled, interval=0.001)
        await eventually(lambda: not server.connections, interval=0.001)


@virtual_time
async def test_a_handler_that_takes_too_long_is_cancelled_when_its_client_has_half_closed() -> None:
    async with serving() as (server, handler), connected(server.port) as wire:
        wire.send("GET", "/never")
        wire.writer.write_eof()
        assert await wire.ended()
        assert handler.cancelled == ["/never"]
        await eventually(lambda: not server.connections, interval=0.001)


@pytest.mark.parametrize("note", ["a%0d%0aX-Evil:%20yes", "a%0ab", "a%0db", "a%00b"])
@pytest.mark.parametrize("path", ["/split", "/split-type", "/split-stream"])
async def test_a_header_value_with_a_line_break_is_a_server_error_and_not_sent(
    path: str, note: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with talking() as (_, _, wire):
        wire.send("GET", f"{path}?note={note}")
        assert "x-evil" not in (reply := await wire.reply()).headers
        assert (reply.status, reply.text) == (500, "500 Internal Server Error\n")
        assert (await wire.ask("GET", "/next")).text == "/next"
    assert "line break" in caplog.text


async def test_a_client_that_disconnects_at_once_leaves_no_unawaited_coroutine() -> None:
    async with serving() as (server, handler):
        for _ in range(20):
            async with connected(server.port) as wire:
                wire.send("GET", "/never")
                wire.reset()
                await wire.ended()
        await eventually(lambda: not server.connections, interval=0.001)
        assert server.tasks == 0
        assert len(handler.cancelled) <= 20
