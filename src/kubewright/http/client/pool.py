"""The connections to one server: reused, bounded, and shared fairly.

A request needs a slot while it is under way; there are `max_connections` of them, and requests that find none wait
in order of arrival. A released slot goes to the first request in line, never to a new one, and a waiter that is
cancelled or times out just when it gets its slot passes it on: no slot is lost. Streams (watches, logs)
last for minutes and hours; their number is decided by the program, and if they took slots, an operator with many
watches could not send a request any more. So they have a connection each beyond the bound.

Invariant: the connections of requests, used, being opened or idle, are never more than `max_connections`. Connections are reused last in,
first out, so that superfluous ones become old and are closed after a minute.
"""

import asyncio
from collections import deque
from typing import NamedTuple

from kubewright.http.client.connect import connect
from kubewright.http.client.connection import ClientConnection
from kubewright.http.client.dial import SocketCounter
from kubewright.http.client.exchange import ClientResponse, Fence
from kubewright.http.client.failures import ConnectionBroken, PoolTimeout
from kubewright.http.client.route import Route
from kubewright.http.client.tls import Sessions
from kubewright.http.client.websocket import ClientWebSocket

MAX_CONNECTIONS = 100
"""As many as an API server lets a Go client have streams of HTTP/2, and the default of httpx and aiohttp."""
IDLE_TIMEOUT = 60.0
"""Seconds after which an idle connection is closed."""
CLOSE_TIMEOUT = 1.0
CHECK_AFTER = 1.0
"""Seconds after which an idle connection is checked before it is used again."""


class PoolStatistics(NamedTuple):
    """Counts of a pool's requests and connections."""

    active: int
    """Requests in progress."""
    streaming: int
    """Streams in progress."""
    waiting: int
    """Requests that wait for a slot."""
    idle: int
    """Connections that can be reused."""
    sockets: int
    """Open sockets, including those being opened or closed."""


class _PooledBody:
    """The body of a streamed response; releasing it returns its connection to the pool."""

    def __init__(self, pool: "Pool", connection: ClientConnection) -> None:
        self._pool = pool
        self.read = connection.read
        self.read_all = connection.read_all
        self._connection: ClientConnection | None = connection

    def release(self) -> None:
        """Return the connection, once."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.end_stream(connection)


class Pool:
    """Send requests over a bounded number of connections, and streams over a connection each."""

    def __init__(self, route: Route, max_connections: int = MAX_CONNECTIONS) -> None:
        if max_connections < 1:
            raise ValueError(f"max_connections must be at least 1, got {max_connections}")
        self.route: Route = route
        self._max = max_connections
        self._sockets = SocketCounter()
        self._sessions = Sessions()
        self._idle: list[ClientConnection] = []
        self._busy: dict[ClientConnection, Route] = {}
        self._active = 0
        # Requests that have taken or are opening a connection: a slot that was just handed on is not among them.
        self._started = 0
        self._streaming = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def statistics(self) -> PoolStatistics:
        """Return counts of requests and connections."""
        idle = sum(connection.usable for connection in self._idle)
        return PoolStatistics(self._active, self._streaming, len(self._waiters), idle, self._sockets.open)

    async def send(
        self, head: bytes, body: bytes, timeout: float, fence: Fence | None = None
    ) -> ClientResponse:
        """Send a request and return its whole response; `fence` is called when the connection is ready."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        if self._active < self._max and not self._waiters:
            self._active += 1
        else:
            await self._wait_for_slot(deadline)
        self._started += 1
        connection = None
        try:
            connection = await self._reuse() or await self._open(deadline - loop.time())
            if fence is not None:
                fence()
            return await connection.send(head, body, deadline)
        finally:
            self._started -= 1
            if connection is not None:
                self._release(connection)
            self._free_slot()

    async def stream(self, head: bytes, body: bytes, timeout: float) -> tuple[ClientResponse, _PooledBody]:
        """Send a request and return its response without the body, and the body to read."""
        deadline = asyncio.get_running_loop().time() + timeout
        self._streaming += 1
        try:
            connection = await self._reuse() or await self._open(timeout)
        except BaseException:
            self._streaming -= 1
            raise
        try:
            return await connection.stream(head, body, deadline), _PooledBody(self, connection)
        except BaseException:
            self.end_stream(connection)
            raise

    async def open_websocket(self, head: bytes, timeout: float) -> tuple[ClientResponse, ClientWebSocket]:
        """Send the handshake of a WebSocket on a connection of its own, and return the response to it.

        The caller closes the connection, whatever the response is.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        connection = await self._open(timeout)
        self._busy.pop(connection)
        transport = connection.detach()
        if transport is None:
            raise ConnectionBroken(begun=False)
        websocket = ClientWebSocket(transport)
        try:
            return await websocket.open(head, deadline - loop.time()), websocket
        except BaseException:
            transport.abort()
            raise

    def end_stream(self, connection: ClientConnection) -> None:
        """Take back the connection of a stream."""
        self._streaming -= 1
        self._release(connection)

    def reroute(self, route: Route) -> None:
        """Use another route, or the same one with other credentials, for new requests."""
        self.route = route
        self._sessions = Sessions()
        while self._idle:
            self._idle.pop().close()

    async def close(self) -> None:
        """Close all connections, and wait until they are closed, but not for a server that does not respond."""
        self._closed = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(ConnectionBroken(begun=False))
        for connection in (*self._idle, *self._busy):
            connection.close()
        self._idle.clear()
        await self._sockets.all_closed(CLOSE_TIMEOUT)

    async def _wait_for_slot(self, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        timer = loop.call_at(deadline, self._expire, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif waiter.done() and not waiter.cancelled():
                # The slot was assigned in the same iteration of the event loop as the cancellation.
                self._free_slot()
            raise
        except BaseException:
            self._waiters.remove(waiter)
            raise
        finally:
            timer.cancel()

    def _expire(self, waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_exception(PoolTimeout(self._max))

    def _free_slot(self) -> None:
        """Hand a slot to the request that has waited longest, if there is one."""
        for waiter in self._waiters:
            if not waiter.done():
                self._waiters.remove(waiter)
                waiter.set_result(None)
                return
        self._active -= 1

    def _release(self, connection: ClientConnection) -> None:
        """Keep a connection whose response was read to its end, unless there are enough; close any other."""
        enough = len(self._idle) + self._started >= self._max
        if self._busy.pop(connection, None) is not self.route or enough:
            connection.close()
        elif connection.finish(IDLE_TIMEOUT):
            self._idle.append(connection)

    async def _reuse(self) -> ClientConnection | None:
        while self._idle:
            connection, route = self._idle.pop(), self.route
            if connection.idle_seconds > CHECK_AFTER:
                await self._check(connection)
            if self._closed:
                connection.close()
                raise ConnectionBroken(begun=False)
            if route is not self.route:
                connection.close()
            elif connection.usable:
                self._busy[connection] = route
                return connection
        return None

    async def _check(self, connection: ClientConnection) -> None:
        """Let the event loop process a close by the server that came while the process or machine was suspended."""
        try:
            for _ in range(3):
                await asyncio.sleep(0)
        except BaseException:
            connection.close()
            raise

    async def _open(self, timeout: float) -> ClientConnection:
        if self._closed:
            raise ConnectionBroken(begun=False)
        route = self.route
        connection = await connect(route, self._sessions, self._sockets, timeout)
        if self._closed:
            connection.close()
            raise ConnectionBroken(begun=False)
        self._busy[connection] = route
        return connection
