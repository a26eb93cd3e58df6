"""The end of a server: what was taken on is answered, everything else goes at once."""

import asyncio
import socket
from contextlib import suppress

import pytest
from http_wire import connected

from kubewright.http.server import HttpServer
from kubewright.testing import eventually
from kubewright.testing.virtual_time import virtual_time

from .serving import Paths, serving


async def test_an_open_request_is_answered_with_connection_close() -> None:
    async with serving() as (server, handler), connected(server.port) as wire, connected(server.port) as idle:
        wire.send("GET", "/later")
        await eventually(lambda: handler.asked, interval=0.001)
        async with asyncio.TaskGroup() as group:
            group.create_task(server.__aexit__(None, None, None))
            assert await idle.ended()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", server.port)
            handler.let.set()
            reply = await wire.reply()
            assert (reply.status, reply.headers["connection"]) == (200, "close")
            assert await wire.ended()


async def test_a_stopping_server_reads_a_body_to_its_end() -> None:
    async with serving() as (server, handler), connected(server.port) as wire:
        wire.writer.write(b"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nbo")
        (connection,) = server.connections
        await eventually(lambda: connection.idle_since is None, interval=0.001)
        async with asyncio.TaskGroup() as group:
            group.create_task(server.__aexit__(None, None, None))
            await eventually(lambda: server.draining, interval=0.001)
            wire.writer.write(b"dy")
            assert (await wire.reply()).text == "body"
        assert len(handler.asked) == 1


async def test_a_stopping_server_does_not_wait_for_incomplete_headers() -> None:
    async with serving(grace=3600) as (server, _), connected(server.port) as wire:
        wire.writer.write(b"GET / HTT")
        (connection,) = server.connections
        await eventually(lambda: connection.idle_since is None, interval=0.001)
        await server.__aexit__(None, None, None)
        assert await wire.ended()


async def test_a_stopping_server_answers_a_whole_pipeline() -> None:
    async with serving() as (server, handler), connected(server.port) as wire:
        for number in range(3):
            wire.send("GET", f"/later/{number}")
        await eventually(lambda: handler.asked, interval=0.001)
        async with asyncio.TaskGroup() as group:
            group.create_task(server.__aexit__(None, None, None))
            await eventually(lambda: server.draining, interval=0.001)
            handler.let.set()
            assert [(await wire.reply()).text for _ in range(3)] == ["/later/0", "/later/1", "/later/2"]
            assert await wire.ended()


@virtual_time
async def test_unanswered_requests_are_cut_off_after_the_grace_period() -> None:
    async with serving(grace=20) as (server, handler), connected(server.port) as wire:
        wire.send("GET", "/never")
        await eventually(lambda: handler.asked, interval=0.001)
        begun = asyncio.get_running_loop().time()
        await server.__aexit__(None, None, None)
        assert asyncio.get_running_loop().time() - begun == pytest.approx(20, abs=1)
        assert handler.cancelled == ["/never"]
        assert await wire.ended()


async def test_a_draining_server_serves_with_connection_close() -> None:
    async with serving() as (server, _):
        server.drain()
        for _ in range(2):
            async with connected(server.port) as wire:
                reply = await wire.ask("GET", "/")
                assert (reply.status, reply.headers["connection"]) == (200, "close")
                assert await wire.ended()


async def test_an_address_in_use_is_reported() -> None:
    async with serving() as (server, _):
        with pytest.raises(OSError, match="in use"):
            async with HttpServer(Paths(), "127.0.0.1", server.port):
                pass


async def test_no_host_means_every_interface() -> None:
    async with HttpServer(Paths(), "", 0) as server:
        hosts = ["127.0.0.1", "::1"] if socket.has_dualstack_ipv6() else ["127.0.0.1"]
        for host in hosts:
            async with connected(server.port, host=host) as wire:
                assert (await wire.ask("GET", "/here")).text == "/here"


async def test_addresses_that_the_machine_does_not_have_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::1", 0, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
        ]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    async with HttpServer(Paths(), "", 0) as server, connected(server.port) as wire:
        assert (await wire.ask("GET", "/fine")).text == "/fine"


async def test_an_address_that_does_not_exist_is_reported() -> None:
    with pytest.raises(OSError, match="address"):
        async with HttpServer(Paths(), "192.0.2.1", 0):
            pass


@pytest.mark.parametrize("began", [0, 3])
@pytest.mark.parametrize("turns", range(6))
async def test_connections_accepted_during_the_stop_are_closed(began: int, turns: int) -> None:
    """Each turn of the event loop takes the newcomer one step further in; none of them may leave its socket open."""
    async with serving() as (server, _):
        for _ in range(began):
            await asyncio.sleep(0)
        with socket.create_connection(("127.0.0.1", server.port)) as newcomer:
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.__aexit__(None, None, None)
            newcomer.setblocking(False)
            with suppress(ConnectionResetError):  # the kernel resets connections that were never accepted
                assert await asyncio.get_running_loop().sock_recv(newcomer, 1) == b""
