"""The bound of the pool: at most so many requests at once, the others wait in order, and no slot is lost."""

import asyncio
import ssl
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubewright.http.client import (
    ConnectionBroken,
    ExchangeFailed,
    Origin,
    Pool,
    PoolTimeout,
    Route,
    encode_request,
)
from kubewright.testing import eventually
from kubewright.testing.virtual_time import virtual_time

from .http_servers import HELLO, Listener

CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def get(path: str) -> bytes:
    return encode_request("GET", path, b"Host: a\r\n", b"")


@dataclass
class HeldServer:
    """Notes requests by their path, and responds when the test says so."""

    received: list[str] = field(default_factory=list[str])
    held: dict[str, asyncio.Future[bytes]] = field(default_factory=dict[str, asyncio.Future[bytes]])
    most: int = 0

    async def __call__(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = head.split(b" ")[1].decode()
        self.received.append(path)
        released: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.held[path] = released
        self.most = max(self.most, sum(not it.done() for it in self.held.values()))
        gone = asyncio.ensure_future(reader.read(1))
        await asyncio.wait([gone, released], return_when=asyncio.FIRST_COMPLETED)
        if gone.done():
            released.cancel()
            writer.close()
            return
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone
        writer.write(released.result())
        if not released.result():
            writer.transport.abort()

    def respond(self, path: str, response: bytes = HELLO) -> None:
        """Respond to a request; without a response the connection is reset."""
        self.held[path].set_result(response)


async def test_400_requests_at_once_open_no_more_connections_than_allowed(
    server_tls: ssl.SSLContext, trust: ssl.SSLContext
) -> None:
    async with Listener(tls=server_tls) as server:
        pool = Pool(Route(Origin.of(server.url), tls=trust), max_connections=20)
        async with asyncio.TaskGroup() as group:
            requests = [group.create_task(pool.send(get("/"), b"", 60.0)) for _ in range(400)]
        assert {request.result().body for request in requests} == {b"hello"}
        assert len(server.writers) == 20
        assert pool.statistics()[:4] == (0, 0, 0, 20)
        await pool.close()


async def test_streams_take_no_slot_from_requests() -> None:
    async with Listener(held := HeldServer()) as server:
        pool = Pool(Route(Origin.of(server.url)), max_connections=1)
        async with asyncio.TaskGroup() as group:
            streams = [group.create_task(pool.stream(get(f"/{n}"), b"", 60.0)) for n in range(5)]
            await eventually(lambda: len(held.held) == 5, interval=0)
            for path in list(held.held):
                held.respond(path, CHUNKS)
        request = asyncio.ensure_future(pool.send(get("/request"), b"", 60.0))
        await eventually(lambda: "/request" in held.held, interval=0)
        assert pool.statistics()[:3] == (1, 5, 0)
        held.respond("/request")
        assert (await request).body == b"hello"
        for stream in streams:
            stream.result()[1].release()
        assert pool.statistics()[:3] == (0, 0, 0)
        await pool.close()


async def test_finished_streams_leave_no_more_idle_connections_than_allowed() -> None:
    async with Listener(held := HeldServer()) as server:
        pool = Pool(Route(Origin.of(server.url)), max_connections=2)
        async with asyncio.TaskGroup() as group:
            streams = [group.create_task(pool.stream(get(f"/{n}"), b"", 60.0)) for n in range(5)]
            await eventually(lambda: len(held.held) == 5, interval=0)
            for path in list(held.held):
                held.respond(path)
        for stream in streams:
            _, body = stream.result()
            assert await body.read(5.0) == b"hello"
            body.release()
            body.release()
        assert pool.statistics()[:4] == (0, 0, 0, 2)
        await pool.close()


@pytest.mark.parametrize("turns", range(16))
async def test_the_slot_of_a_cancelled_request_goes_to_the_next(turns: int) -> None:
    """One of these turns of the event loop is the one in which the slot is handed on."""
    async with Listener(held := HeldServer()) as server:
        pool = Pool(Route(Origin.of(server.url)), max_connections=1)
        requests = [asyncio.ensure_future(pool.send(get(f"/{n}"), b"", 60.0)) for n in range(3)]
        await eventually(lambda: held.held, interval=0)
        held.respond("/0")
        for _ in range(turns):
            await asyncio.sleep(0)
        requests[1].cancel()
        await eventually(lambda: "/2" in held.held, interval=0)
        held.respond("/2")
        assert (await requests[2]).body == b"hello"
        await asyncio.wait(requests)
        assert pool.statistics()[:3] == (0, 0, 0)
        await pool.close()


@virtual_time
async def test_a_request_without_a_slot_times_out_with_the_reason() -> None:
    async with Listener(held := HeldServer()) as server:
        pool = Pool(Route(Origin.of(server.url)), max_connections=1)
        first = asyncio.ensure_future(pool.send(get("/first"), b"", 60.0))
        await eventually(lambda: held.held, interval=0)
        with pytest.raises(PoolTimeout, match="all 1 connections are in use"):
            await pool.send(get("/second"), b"", 5.0)
        assert pool.statistics().waiting == 0
        held.respond("/first")
        assert (await first).body == b"hello"
        await pool.close()


async def test_closing_ends_requests_that_wait_for_a_slot() -> None:
    async with Listener(held := HeldServer()) as server:
        pool = Pool(Route(Origin.of(server.url)), max_connections=1)
        requests = [asyncio.ensure_future(pool.send(get(f"/{n}"), b"", 60.0)) for n in range(3)]
        await eventually(lambda: held.held, interval=0)
        await pool.close()
        for result in await asyncio.gather(*requests, return_exceptions=True):
            assert isinstance(result, ConnectionBroken)
        assert pool.statistics() == (0, 0, 0, 0, 0)


@dataclass(eq=False)
class Sent:
    """A request of the machine."""

    path: str
    task: asyncio.Task[Any]
    stream: bool
    body: Any = None


class PoolMachine(RuleBasedStateMachine):
    """Requests and streams begin, are answered, broken and cancelled in any order; the model is a queue."""

    @initialize(limit=st.integers(1, 3))
    def start(self, limit: int) -> None:
        self.runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
        self.runner.__enter__()
        self.limit = limit
        self.count = 0
        self.under_way: list[Sent] = []
        self.waiting: list[Sent] = []
        self.streams: list[Sent] = []
        self.order: list[str] = []

        async def begin() -> None:
            self.server = HeldServer()
            self.listener = await Listener(self.server).__aenter__()
            self.pool = Pool(Route(Origin.of(self.listener.url)), max_connections=limit)

        self.run(begin())

    def run(self, work: Awaitable[None]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(60.0):
                await work
                await self.settle()

        self.runner.run(bounded())

    async def settle(self) -> None:
        """Wait until the pool and the server are where the model says."""
        while self.waiting and len(self.under_way) < self.limit:
            self.under_way.append(self.waiting.pop(0))
        expected = {it.path for it in (*self.under_way, *(it for it in self.streams if it.body is None))}
        await eventually(
            lambda: {path for path, it in self.server.held.items() if not it.done()} == expected, interval=0
        )
        await eventually(
            lambda: self.pool.statistics()[:3] == (len(self.under_way), len(self.streams), len(self.waiting)),
            interval=0,
        )

    def send(self, stream: bool) -> Sent:
        path = f"/{self.count}"
        self.count += 1
        begin = self.pool.stream if stream else self.pool.send
        return Sent(path, asyncio.ensure_future(begin(get(path), b"", 60.0)), stream)

    @rule()
    def begin_request(self) -> None:
        async def step() -> None:
            self.waiting.append(sent := self.send(stream=False))
            self.order.append(sent.path)

        self.run(step())

    @precondition(lambda self: len(self.streams) < 4)
    @rule()
    def begin_stream(self) -> None:
        async def step() -> None:
            self.streams.append(self.send(stream=True))

        self.run(step())

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), broken=st.booleans())
    def end_request(self, data: st.DataObject, broken: bool) -> None:
        sent = data.draw(st.sampled_from(self.under_way))

        async def step() -> None:
            self.server.respond(sent.path, b"" if broken else HELLO)
            try:
                response = await sent.task
                assert not broken
                assert response.body == b"hello"
            except ExchangeFailed:
                assert broken
            self.under_way.remove(sent)

        self.run(step())

    @precondition(lambda self: self.under_way or self.waiting)
    @rule(data=st.data(), turns=st.integers(0, 12))
    def cancel_request(self, data: st.DataObject, turns: int) -> None:
        """Cancel a request, in the same turn of the loop as another one ends or a few turns after."""
        sent = data.draw(st.sampled_from([*self.under_way, *self.waiting]))
        others = [it for it in self.under_way if it is not sent]
        other = data.draw(st.sampled_from([None, *others]))

        async def step() -> None:
            if other is not None:
                self.server.respond(other.path)
                for _ in range(turns):
                    await asyncio.sleep(0)
            sent.task.cancel()
            await asyncio.wait([sent.task])
            (self.under_way if sent in self.under_way else self.waiting).remove(sent)
            if sent.path not in self.server.received:
                self.order.remove(sent.path)
            if other is not None:
                await other.task
                self.under_way.remove(other)

        self.run(step())

    @precondition(lambda self: self.streams)
    @rule(data=st.data(), how=st.sampled_from(["whole", "unread", "cancel"]))
    def end_stream(self, data: st.DataObject, how: str) -> None:
        sent = data.draw(st.sampled_from(self.streams))

        async def step() -> None:
            if how == "cancel":
                sent.task.cancel()
                await asyncio.wait([sent.task])
            else:
                self.server.respond(sent.path)
                _, body = await sent.task
                if how == "whole":
                    assert await body.read(60.0) == b"hello"
                body.release()
            self.streams.remove(sent)

        self.run(step())

    @rule()
    def reroute(self) -> None:
        async def step() -> None:
            self.pool.reroute(Route(Origin.of(self.listener.url)))

        self.run(step())

    @invariant()
    def bounded(self) -> None:
        if hasattr(self, "pool"):
            found = self.pool.statistics()
            assert found.active + found.idle <= self.limit

    @invariant()
    def fair(self) -> None:
        if hasattr(self, "order"):
            # Two that get their slots at once are sent over two connections: the server may read either of them first.
            requests = {path for path in self.server.received if path in self.order}
            assert requests == set(self.order[: len(requests)]), "no request is sent before an earlier one"

    def teardown(self) -> None:
        if not hasattr(self, "runner"):
            return

        async def finish() -> None:
            for sent in (*self.under_way, *self.waiting, *self.streams):
                sent.task.cancel()
            if left := [it.task for it in (*self.under_way, *self.waiting, *self.streams)]:
                await asyncio.wait(left)
            await self.pool.close()
            assert self.pool.statistics() == (0, 0, 0, 0, 0)
            await self.listener.__aexit__(None, None, None)

        self.runner.run(finish())
        self.runner.__exit__(None, None, None)


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=60, stateful_step_count=30, derandomize=True, deadline=None)
