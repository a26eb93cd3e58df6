"""TLS: long bodies both ways, goodbyes of every kind, and a proxy that is itself spoken to in TLS."""

import asyncio
import contextlib
import errno
import gc
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from kubewright.http.client import (
    ConnectionBroken,
    ConnectTimeout,
    Origin,
    Pool,
    ProxyRefused,
    Route,
    Unreachable,
    encode_request,
)
from kubewright.testing import eventually
from kubewright.testing.virtual_time import VirtualTimeLoop

from .http_servers import Listener, hello, tunnelled

LONG = bytes(range(256)) * 8192


async def mirrored(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with what was sent."""
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length")), 0
    )
    body = await reader.readexactly(length)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


async def test_long_bodies_are_sent_and_received(server_tls: ssl.SSLContext, trust: ssl.SSLContext) -> None:
    async with Listener(mirrored, server_tls) as server:
        pool = Pool(Route(Origin.of(server.url), tls=trust))
        for _ in range(2):
            assert (await pool.send(encode_request("POST", "/", b"", LONG), LONG, 30.0)).body == LONG
        assert len(server.writers) == 1
        await pool.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_tls_1_2_and_1_3_are_supported(
    server_tls: ssl.SSLContext, trust: ssl.SSLContext, version: ssl.TLSVersion
) -> None:
    server_tls.maximum_version = version
    async with Listener(tls=server_tls) as server:
        pool = Pool(Route(Origin.of(server.url), tls=trust))
        assert (await pool.send(encode_request("GET", "/", b"", b""), b"", 5.0)).body == b"hello"
        await pool.close()


class Resumptions:
    """Answer each request on a connection of its own, and note whether that took up a session again."""

    def __init__(self) -> None:
        self.noted: list[bool] = []

    async def __call__(self, _: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.noted.append(writer.get_extra_info("ssl_object").session_reused)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_the_next_connection_resumes_the_tls_session(
    server_tls: ssl.SSLContext, trust: ssl.SSLContext, version: ssl.TLSVersion
) -> None:
    server_tls.maximum_version = version
    async with Listener(sessions := Resumptions(), server_tls) as server:
        pool = Pool(Route(Origin.of(server.url), tls=trust))
        for _ in range(3):
            assert (await pool.send(encode_request("GET", "/", b"", b""), b"", 5.0)).body == b"hello"
        await pool.close()
    assert sessions.noted == [False, True, True]


async def test_another_route_begins_a_new_tls_session(
    server_tls: ssl.SSLContext, trust: ssl.SSLContext
) -> None:
    async with Listener(sessions := Resumptions(), server_tls) as server:
        route = Route(Origin.of(server.url), tls=trust)
        pool = Pool(route)
        await pool.send(encode_request("GET", "/", b"", b""), b"", 5.0)
        # As with a new certificate of ours: what the server knows of the old one must not live on.
        pool.reroute(replace(route))
        await pool.send(encode_request("GET", "/", b"", b""), b"", 5.0)
        await pool.close()
    assert sessions.noted == [False, False]


UNTIL_END = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it"
DELIMITED = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nall of it"


@asynccontextmanager
async def raw_tls_server(
    tls: ssl.SSLContext, response: bytes, *, close_notify: bool
) -> AsyncIterator[Origin]:
    """Answer one request and end the TCP connection, with or without ending TLS first."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        talk = tls.wrap_bio(incoming, outgoing, server_side=True)
        received = b""
        while not received.endswith(b"\r\n\r\n"):
            try:
                received += talk.read()
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await reader.read(65536))
        talk.write(response)
        if close_notify:
            with contextlib.suppress(ssl.SSLWantReadError):
                talk.unwrap()
        writer.write(outgoing.read())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield Origin("https", "127.0.0.1", server.sockets[0].getsockname()[1])


@pytest.mark.parametrize("response", [UNTIL_END, DELIMITED])
async def test_a_body_is_whole_when_the_server_ends_tls(
    server_tls: ssl.SSLContext, trust: ssl.SSLContext, response: bytes
) -> None:
    async with raw_tls_server(server_tls, response, close_notify=True) as origin:
        pool = Pool(Route(origin, tls=trust))
        assert (await pool.send(encode_request("GET", "/", b"", b""), b"", 5.0)).body == b"all of it"
        await pool.close()


async def test_a_body_that_ends_with_the_connection_is_cut_off_without_close_notify(
    server_tls: ssl.SSLContext, trust: ssl.SSLContext
) -> None:
    async with raw_tls_server(server_tls, UNTIL_END, close_notify=False) as origin:
        pool = Pool(Route(origin, tls=trust))
        with pytest.raises(ConnectionBroken) as caught:
            await pool.send(encode_request("GET", "/", b"", b""), b"", 5.0)
        assert caught.value.begun
        assert "close_notify" in str(caught.value.cause)
        response, body = await pool.stream(encode_request("GET", "/", b"", b""), b"", 5.0)
        assert (response.status, await body.read(5.0)) == (200, b"all of it")
        with pytest.raises(ConnectionBroken):
            await body.read(5.0)
        body.release()
        await pool.close()


async def test_a_body_with_a_length_is_whole_without_close_notify(
    server_tls: ssl.SSLContext, trust: ssl.SSLContext
) -> None:
    async with raw_tls_server(server_tls, DELIMITED, close_notify=False) as origin:
        pool = Pool(Route(origin, tls=trust))
        assert (await pool.send(encode_request("GET", "/", b"", b""), b"", 5.0)).body == b"all of it"
        await pool.close()


@pytest.mark.parametrize("polite", [True, False])
async def test_a_connection_closed_by_the_server_is_not_reused(
    server_tls: ssl.SSLContext, trust: ssl.SSLContext, polite: bool
) -> None:
    async def hello_and_goodbye(
        head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await hello(head, reader, writer)
        await writer.drain()
        if polite:
            writer.close()
        else:
            writer.transport.abort()

    async with Listener(hello_and_goodbye, server_tls) as server:
        pool = Pool(Route(Origin.of(server.url), tls=trust))
        for _ in range(3):
            assert (await pool.send(encode_request("GET", "/", b"", b""), b"", 5.0)).body == b"hello"
            await eventually(lambda: not pool.statistics().idle, interval=0)
        assert len(server.writers) == 3
        await pool.close()


async def test_tls_alerts_after_the_handshake_explain_a_broken_connection(
    server_tls: ssl.SSLContext, trust: ssl.SSLContext
) -> None:
    server_tls.verify_mode = ssl.CERT_REQUIRED

    async def particular(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = server_tls.wrap_bio(incoming, outgoing, server_side=True)
        while data := await reader.read(65536):
            incoming.write(data)
            with contextlib.suppress(ssl.SSLError):
                tls.do_handshake()
            writer.write(outgoing.read())
        writer.close()

    server = await asyncio.start_server(particular, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        pool = Pool(Route(Origin.of(f"https://127.0.0.1:{port}"), tls=trust))
        with pytest.raises(ConnectionBroken) as caught:
            await pool.send(encode_request("GET", "/", b"", b""), b"", 5.0)
        assert caught.value.cause is not None
        assert caught.value.cause.reason == "TLSV13_ALERT_CERTIFICATE_REQUIRED"
        await pool.close()


async def test_a_server_that_hangs_up_in_the_handshake_is_unreachable(trust: ssl.SSLContext) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.transport.abort()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        pool = Pool(Route(Origin.of(f"https://127.0.0.1:{port}"), tls=trust))
        with pytest.raises(Unreachable) as caught:
            await pool.send(b"", b"", 5.0)
        assert isinstance(caught.value.cause, ConnectionResetError)
        await pool.close()


def test_a_handshake_that_is_not_answered_runs_out_of_time(trust: ssl.SSLContext) -> None:
    async def scenario() -> float:
        stopped = asyncio.Event()

        async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await stopped.wait()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            pool = Pool(Route(Origin.of(f"https://127.0.0.1:{port}"), tls=trust))
            with pytest.raises(ConnectTimeout):
                await pool.send(b"", b"", 60.0)
            stopped.set()
            await pool.close()
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert 9.5 <= runner.run(scenario()) <= 11


async def test_a_connection_that_is_abandoned_while_it_opens_is_not_reported(
    trust: ssl.SSLContext,
) -> None:
    received: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: received.append(context))
    with socket.create_server(("127.0.0.1", 0)) as unattended:
        port = unattended.getsockname()[1]
        for turns in range(10):
            pool = Pool(Route(Origin.of(f"https://127.0.0.1:{port}"), tls=trust))
            asking = asyncio.create_task(pool.send(b"", b"", 50.0))
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await pool.close()
            assert pool.statistics().sockets == 0
    gc.collect()
    assert received == []


async def test_a_proxy_may_use_tls(server_tls: ssl.SSLContext, trust: ssl.SSLContext) -> None:
    async with Listener(mirrored, server_tls) as server, Listener(tunnelled, server_tls) as proxy:
        route = Route(Origin.of(server.url), Origin.of(proxy.url.replace("//", "//u:p@")), trust)
        pool = Pool(route)
        for _ in range(2):
            assert (await pool.send(encode_request("POST", "/", b"", LONG), LONG, 30.0)).body == LONG
        assert proxy.heads[0].startswith(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n".encode())
        assert b"Proxy-Authorization: Basic dTpw\r\n" in proxy.heads[0]
        assert len(proxy.heads) == 1
        await pool.close()


async def test_a_proxy_that_refuses_is_not_asked_again(trust: ssl.SSLContext) -> None:
    async def no(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")

    async with Listener(no) as proxy:
        pool = Pool(Route(Origin.of("https://server.example"), Origin.of(proxy.url), trust))
        with pytest.raises(ProxyRefused) as caught:
            await pool.send(b"", b"", 5.0)
        assert caught.value.reason == "HTTP 407"
        await pool.close()


async def test_a_proxy_that_hangs_up_is_called_unreachable(trust: ssl.SSLContext) -> None:
    async def gone(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with Listener(gone) as proxy:
        pool = Pool(Route(Origin.of("https://server.example"), Origin.of(proxy.url), trust))
        with pytest.raises(Unreachable) as caught:
            await pool.send(b"", b"", 5.0)
        assert caught.value.proxy
        assert caught.value.cause.errno == errno.ECONNRESET
        await pool.close()
