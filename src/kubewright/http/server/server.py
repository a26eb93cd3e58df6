"""A listening server: it accepts connections, evicts stalled and idle ones at the limit, and stops gracefully.

A connection counts from its accept, not from the end of its TLS handshake. At the limit the next connection waits,
and all others behind it in the kernel's backlog, until a place is free. A place becomes free when a connection ends,
or by eviction: first the connection that has waited longest for its client (a handshake, a request or a response
that does not proceed, or no request at all) and has done so for `eviction_seconds`; else the one that is idle for
longest. So neither silent clients nor ones that send a byte a second keep others out. Idle connections of clients
that were answered before are kept while at least half of the places are held by younger unfinished requests: these
are evicted soon, and a flood of them does not cost well-behaved clients their connections.
"""

import asyncio
import socket
import ssl
from collections.abc import Coroutine
from contextlib import AsyncExitStack, ExitStack, suppress
from functools import partial
from typing import Any, Self

from kubewright.http.network import NETWORK
from kubewright.http.server.connection import ServerConnection
from kubewright.http.server.handler import Handler
from kubewright.http.server.limits import Limits
from kubewright.http.server.listening import accept, listen
from kubewright.http.server.reader import BodyBudget

SWEEP_SECONDS = 5.0
# How long a stop waits for a client's close_notify.
_SHUTDOWN_SECONDS = 1.0
_ACCEPT_PAUSE = 0.1


class _Handshake:
    """An accepted socket whose connection is not established yet, and the task that establishes it."""

    def __init__(self, accepted: socket.socket, task: asyncio.Task[None], since: float) -> None:
        self._socket = accepted
        self._task = task
        self.since: float = since

    def abort(self) -> None:
        """Abort the handshake at any stage."""
        # asyncio continues a handshake whose task was cancelled: let it read an end of file.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._task.cancel()


class HttpServer:
    """Serve a handler on one address inside `async with`; an empty host means every interface.

    On exit it accepts no more connections, responds to requests under way for `grace` seconds with `Connection: close`,
    then aborts what is left.
    """

    def __init__(
        self,
        handler: Handler,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        grace: float = 5.0,
    ) -> None:
        self._handler = handler
        self._host = host
        self._tls = tls
        self._grace = grace
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()
        self._handshakes: dict[ServerConnection, _Handshake] = {}
        self._waiting = 0
        self._freed = asyncio.Event()
        self._none_left = asyncio.Event()
        self._stopping = False
        self.limits: Limits = limits
        self.body_budget: BodyBudget = BodyBudget(limits.held)
        self.draining: bool = False
        self.connections: set[ServerConnection] = set()
        self.port: int = port

    @property
    def at_capacity(self) -> bool:
        """Return True while a new connection waits for a free one: responses then close their connection."""
        return self._waiting > 0

    @property
    def tasks(self) -> int:
        """Return how many requests are being answered in tasks."""
        return len(self._tasks)

    async def __aenter__(self) -> Self:
        network = NETWORK.get()
        listeners: list[socket.socket] = []
        if network is not None:
            self.port, close = network.listen(self._host, self.port, self._handler)
            self._stack.callback(close)
        else:
            listeners += await listen(self._host, self.port)
            self.port = listeners[0].getsockname()[1]
        self._group = asyncio.TaskGroup()
        # Entered after listening, so that an address in use is not reported as an exception group.
        await self._stack.enter_async_context(self._group)
        sweeper = self._group.create_task(self._sweep())
        self._stack.callback(sweeper.cancel)
        self._stack.callback(self._abort_all)
        self._stack.push_async_callback(self._finish)
        for listener in listeners:
            accepting = self._group.create_task(self._accept(listener))
            # Not closed by the task itself: one that is cancelled immediately never starts.
            accepting.add_done_callback(lambda _, listener=listener: listener.close())
            self._stack.callback(accepting.cancel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def drain(self) -> None:
        """Ask clients, with each response, to send no more requests on their connections."""
        self.draining = True

    async def _finish(self) -> None:
        self.drain()
        self._stopping = True
        self._abort_handshakes()
        for connection in list(self.connections):
            connection.close_when_idle()
        try:
            async with asyncio.timeout(self._grace):
                while self.connections:
                    self._none_left.clear()
                    await self._none_left.wait()
        except TimeoutError:
            pass

    def _abort_all(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._abort_handshakes()
        for connection in list(self.connections):
            connection.abort()

    def _abort_handshakes(self) -> None:
        for handshake in self._handshakes.values():
            handshake.abort()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work until it ends or the server stops."""
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listener: socket.socket) -> None:
        """Accept connections one after the other; at the limit the next one waits for a place.

        API servers open a connection for each request under way, and a write whose webhook connection is refused
        fails: so a burst waits in the kernel's backlog and is not turned away.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted = await accept(listener)
            except OSError:
                # The process has no file descriptor left, or the client is gone again.
                await asyncio.sleep(_ACCEPT_PAUSE)
                continue
            with ExitStack() as held:
                held.enter_context(accepted)
                await self._wait_for_place()
                held.pop_all()
            connection = ServerConnection(self._handler, self, loop)
            task = self._group.create_task(self._establish(connection, accepted))
            task.add_done_callback(partial(self._handshake_ended, connection, accepted))
            self._handshakes[connection] = _Handshake(accepted, task, loop.time())

    async def _wait_for_place(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiting += 1
        try:
            while len(self.connections) + len(self._handshakes) >= self.limits.connections:
                next_attempt = self._evict(loop.time())
                if next_attempt is None:
                    return
                self._freed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(next_attempt):
                        await self._freed.wait()
        finally:
            self._waiting -= 1

    def _evict(self, now: float) -> float | None:
        """Free a place and return None, or return the time at which to try again."""
        limits = self.limits
        stalled = [(handshake.since, item) for item, handshake in self._handshakes.items()]
        idle: list[tuple[float, ServerConnection]] = []
        for item in self.connections:
            since = item.stalled_since
            if since is not None:
                stalled.append((since, item))
            elif (since := item.idle_since) is not None:
                idle.append((since, item))
        oldest = min(stalled, key=lambda found: found[0], default=None)
        if oldest is not None and now - oldest[0] >= limits.eviction_seconds:
            self._end(oldest[1])
            return None
        if idle and 2 * len(stalled) < limits.connections:
            self._end(min(idle, key=lambda found: found[0])[1])
            return None
        # Others stall later than the oldest; an idle connection may become stalled at any time.
        return (oldest[0] if oldest is not None else now) + limits.eviction_seconds

    def _end(self, connection: ServerConnection) -> None:
        # Removed here: the connection ends a moment later, and until then it must not be counted.
        handshake = self._handshakes.pop(connection, None)
        self.connections.discard(connection)
        if handshake is not None:
            handshake.abort()
        else:
            connection.evict()

    async def _establish(self, connection: ServerConnection, accepted: socket.socket) -> None:
        secure = self._tls is not None
        # Failed handshakes and vanished clients are not errors of this server, and the client knows.
        with suppress(OSError):
            # Responses are written in pieces: none must wait for the acknowledgement of the one before.
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=self.limits.receive_seconds if secure else None,
                ssl_shutdown_timeout=_SHUTDOWN_SECONDS if secure else None,
            )

    def _handshake_ended(
        self, connection: ServerConnection, accepted: socket.socket, _: asyncio.Task[None]
    ) -> None:
        self._handshakes.pop(connection, None)
        if not connection.established:
            accepted.close()
            self._freed.set()

    def opened(self, connection: ServerConnection) -> None:
        """Register a connection that can receive requests."""
        self._handshakes.pop(connection, None)
        self.connections.add(connection)
        if self._stopping:
            connection.close()

    def closed(self, connection: ServerConnection) -> None:
        """Remove a connection that has ended."""
        self.connections.discard(connection)
        self._freed.set()
        if not self.connections:
            self._none_left.set()

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for connection in list(self.connections):
                connection.expire(loop.time())
