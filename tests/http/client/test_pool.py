"""Connections are kept between requests, never used when they may be dead, and all closed in the end."""

import asyncio
import gc
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from kubewright.http.client import ConnectionBroken, Origin, Pool, Route, Unreachable, encode_request
from kubewright.testing import eventually

from .http_servers import HELLO, Listener, hello

REQUEST = encode_request("GET", "/", b"Host: a\r\n", b"")

Loop = Callable[[], asyncio.AbstractEventLoop]


def loops() -> list[Loop]:
    """Both event loops that kubewright runs on, where there is the second."""
    made: list[Loop] = [asyncio.SelectorEventLoop]
    try:
        import uvloop
    except ImportError:
        return made
    return [*made, uvloop.new_event_loop]


def route_to(server: Listener) -> Route:
    return Route(Origin.of(server.url))


async def test_a_connection_serves_many_requests() -> None:
    async with Listener() as server:
        pool = Pool(route_to(server))
        for _ in range(5):
            assert (await pool.send(REQUEST, b"", 5.0)).body == b"hello"
        assert len(server.writers) == 1
        await pool.close()


async def test_requests_at_once_have_a_connection_each_and_the_last_one_used_is_used_next() -> None:
    async with Listener() as server:
        pool = Pool(route_to(server))
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(pool.send(REQUEST, b"", 5.0))
        assert len(server.writers) == 4
        for _ in range(3):
            await pool.send(REQUEST, b"", 5.0)
        assert len(server.writers) == 4
        await pool.close()


async def test_an_idle_connection_closed_by_the_server_is_not_reused() -> None:
    closed = asyncio.Event()

    async def hello_and_goodbye(
        head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await hello(head, reader, writer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        closed.set()

    async with Listener(hello_and_goodbye) as server:
        pool = Pool(route_to(server))
        for _ in range(3):
            closed.clear()
            assert (await pool.send(REQUEST, b"", 5.0)).status == 200
            await closed.wait()
            await eventually(lambda: not pool.statistics().idle, interval=0)
        assert len(server.writers) == 3
        await pool.close()


async def test_a_new_route_is_used_by_new_requests_only() -> None:
    async with Listener() as old, Listener() as new:
        pool = Pool(route_to(old))
        answer, body = await pool.stream(REQUEST, b"", 5.0)
        await pool.send(REQUEST, b"", 5.0)
        pool.reroute(route_to(new))
        assert (await body.read(5.0), answer.status) == (b"hello", 200)
        body.release()
        for _ in range(3):
            await pool.send(REQUEST, b"", 5.0)
        assert (len(old.writers), len(new.writers)) == (2, 1)
        await pool.close()


async def test_a_stopped_server_is_unreachable() -> None:
    async with Listener() as server:
        pass
    with pytest.raises(Unreachable) as caught:
        await Pool(route_to(server)).send(REQUEST, b"", 5.0)
    assert isinstance(caught.value.cause, ConnectionRefusedError)
    assert not caught.value.proxy


async def test_an_unknown_host_name_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        await Pool(Route(Origin.of("http://.."))).send(REQUEST, b"", 5.0)


async def test_closing_a_pool_ends_open_requests() -> None:
    asked = asyncio.Event()

    async def silent(*_: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with Listener(silent) as server:
        pool = Pool(route_to(server))

        async def asking() -> None:
            with pytest.raises(ConnectionBroken):
                await pool.send(REQUEST, b"", 50.0)

        async with asyncio.TaskGroup() as group:
            group.create_task(asking())
            await asked.wait()
            await pool.close()


async def test_a_connection_opened_after_closing_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unattended:
        pool = Pool(Route(Origin.of(f"http://127.0.0.1:{unattended.getsockname()[1]}")))

        async def asking() -> None:
            with pytest.raises(ConnectionBroken):
                await pool.send(REQUEST, b"", 50.0)

        async with asyncio.TaskGroup() as group:
            group.create_task(asking())
            await eventually(lambda: pool.statistics().sockets, interval=0)
            await pool.close()
        assert pool.statistics().sockets == 0


@pytest.mark.parametrize("loop", loops(), ids=lambda loop: loop.__module__.split(".")[0])
def test_closing_a_pool_leaves_no_open_connection(loop: Loop) -> None:
    async def scenario() -> list[socket.socket]:
        async with Listener() as server:
            pool = Pool(route_to(server))
            await pool.send(REQUEST, b"", 5.0)
            await pool.close()
            assert pool.statistics().sockets == 0
            return [
                it for it in gc.get_objects() if isinstance(it, socket.socket) and peer(it) == server.port
            ]

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(scenario()) == []


def peer(it: socket.socket) -> int:
    try:
        return it.getpeername()[1] if it.family == socket.AF_INET else 0
    except OSError:
        return 0


@pytest.mark.parametrize("turns", range(12))
async def test_bytes_of_a_cancelled_request_are_not_part_of_the_next_response(turns: int) -> None:
    """Each turn of the event loop takes the request a step further, until its response has arrived unread."""
    async with Listener() as server:
        pool = Pool(route_to(server))
        await pool.send(REQUEST, b"", 5.0)
        request = asyncio.create_task(pool.send(REQUEST, b"", 5.0))
        for _ in range(turns):
            await asyncio.sleep(0)
        request.cancel()
        with suppress(asyncio.CancelledError):
            await request
        assert (await pool.send(REQUEST, b"", 5.0)).body == b"hello"
        await pool.close()


async def test_an_unread_body_is_not_part_of_the_next_response() -> None:
    async with Listener() as server:
        pool = Pool(route_to(server))
        _, body = await pool.stream(REQUEST, b"", 5.0)
        body.release()
        assert (await pool.send(REQUEST, b"", 5.0)).body == b"hello"
        assert len(server.writers) == 2
        await pool.close()


async def test_a_connection_closed_while_the_loop_was_blocked_is_not_reused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubewright.http.client.pool.CHECK_AFTER", 0.0)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(10.0)

    def serve_once() -> None:
        accepted, _ = listening.accept()
        with accepted:
            accepted.recv(4096)
            accepted.sendall(HELLO)

    with listening:
        pool = Pool(Route(Origin.of(f"http://127.0.0.1:{listening.getsockname()[1]}")))
        for _ in range(3):
            server = threading.Thread(target=serve_once, daemon=True)
            server.start()
            assert (await pool.send(REQUEST, b"", 5.0)).body == b"hello"
            # The loop stands still, as that of a process that was suspended, until the server has gone.
            server.join()
        await pool.close()


async def test_an_idle_connection_of_the_old_route_under_check_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubewright.http.client.pool.CHECK_AFTER", 0.0)
    async with Listener() as old, Listener() as new, asyncio.TaskGroup() as group:
        pool = Pool(route_to(old))
        await pool.send(REQUEST, b"", 5.0)
        asked = group.create_task(pool.send(REQUEST, b"", 5.0))
        await asyncio.sleep(0)
        pool.reroute(route_to(new))
        assert (await asked).body == b"hello"
        assert (len(old.heads), len(new.heads)) == (1, 1)
        await pool.close()


async def test_an_idle_connection_under_check_is_closed_with_the_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubewright.http.client.pool.CHECK_AFTER", 0.0)
    async with Listener() as server:
        pool = Pool(route_to(server))
        await pool.send(REQUEST, b"", 5.0)
        asked = asyncio.ensure_future(pool.send(REQUEST, b"", 5.0))
        await asyncio.sleep(0)
        await pool.close()
        with pytest.raises(ConnectionBroken):
            await asked
        assert len(server.heads) == 1
