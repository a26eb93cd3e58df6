"""A listening server: it takes connections in, sweeps out those that take too long, and stops gracefully."""

import asyncio
import socket
import ssl
from collections.abc import Coroutine
from contextlib import AsyncExitStack, ExitStack, suppress
from functools import partial
from typing import Any, Self

from kubewright.http.network import NETWORK
from kubewright.http.server.arrivals import Arrival
from kubewright.http.server.connection import ServerConnection
from kubewright.http.server.handler import Handler
from kubewright.http.server.limits import Limits
from kubewright.http.server.listening import accept, listen
from kubewright.http.server.reader import Room

SWEEP_SECONDS = 5.0
# A peer that does not answer to the end of TLS is not worth a longer wait.
_GOODBYE_SECONDS = 1.0
_ACCEPT_PAUSE = 0.1


class HttpServer:
    """Serve a handler on one address, from `async with` to its end; an empty host means every interface.

    On leaving no more connections are taken, requests under way are answered for `grace` seconds with the
    wish that their clients leave, and what is then left is cut off.
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
        self._arriving: dict[ServerConnection, Arrival] = {}
        self._waiting = 0
        self._freed = asyncio.Event()
        self._gone = asyncio.Event()
        self._leaving = False
        self.limits: Limits = limits
        self.room: Room = Room(limits.held)
        self.draining: bool = False
        self.connections: set[ServerConnection] = set()
        self.port: int = port

    @property
    def crowded(self) -> bool:
        """Tell whether others wait for a place: whoever was answered shall leave."""
        return self._waiting > 0

    @property
    def tasks(self) -> int:
        """Count the requests that are being answered in tasks."""
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
        # Entered after the listening, so that an address in use is told as it is and not in a group.
        await self._stack.enter_async_context(self._group)
        sweeper = self._group.create_task(self._sweep())
        self._stack.callback(sweeper.cancel)
        self._stack.callback(self._cut_off)
        self._stack.push_async_callback(self._finish)
        for listener in listeners:
            accepting = self._group.create_task(self._accept(listener))
            # Not closed by the task itself: one that is cancelled at once never begins.
            accepting.add_done_callback(lambda _, listener=listener: listener.close())
            self._stack.callback(accepting.cancel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def drain(self) -> None:
        """Ask clients, with each answer, to open no more requests on the connections they hold."""
        self.draining = True

    async def _finish(self) -> None:
        self.drain()
        self._leaving = True
        self._turn_away()
        for connection in list(self.connections):
            connection.leave()
        try:
            async with asyncio.timeout(self._grace):
                while self.connections:
                    self._gone.clear()
                    await self._gone.wait()
        except TimeoutError:
            pass

    def _cut_off(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._turn_away()
        for connection in list(self.connections):
            connection.abort()

    def _turn_away(self) -> None:
        for arrival in self._arriving.values():
            arrival.hang_up()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work until it ends or the server does."""
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listener: socket.socket) -> None:
        """Let in whoever comes, one after the other.

        API servers open a connection for each request that they have under way: a crowd is no attack, and who
        is turned away cannot write. So the next one waits until there is room, and all others behind it in
        the kernel.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                arrived = await accept(listener)
            except OSError:
                # As many files are open as may be, or who came is gone again.
                await asyncio.sleep(_ACCEPT_PAUSE)
                continue
            with ExitStack() as held:
                held.enter_context(arrived)
                await self._find_room()
                held.pop_all()
            connection = ServerConnection(self._handler, self, loop)
            opening = self._group.create_task(self._open(connection, arrived))
            opening.add_done_callback(partial(self._opened, connection, arrived))
            self._arriving[connection] = Arrival(arrived, opening, loop.time())

    async def _find_room(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiting += 1
        try:
            while not self._has_room and not self._make_room(loop.time() - self.limits.newcomer_seconds):
                self._freed.clear()
                # The silent have their time; when it is over, it is looked at again.
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.limits.newcomer_seconds):
                        await self._freed.wait()
        finally:
            self._waiting -= 1

    @property
    def _has_room(self) -> bool:
        return len(self.connections) + len(self._arriving) < self.limits.connections

    async def _open(self, connection: ServerConnection, arrived: socket.socket) -> None:
        secure = self._tls is not None
        # No TLS, none that we speak, too slow, or gone: the client's trouble, and it knows.
        with suppress(OSError):
            # Answers come in pieces: none shall wait until the client has acknowledged the one before.
            arrived.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                arrived,
                ssl=self._tls,
                ssl_handshake_timeout=self.limits.receive_seconds if secure else None,
                ssl_shutdown_timeout=_GOODBYE_SECONDS if secure else None,
            )

    def _opened(
        self, connection: ServerConnection, arrived: socket.socket, opening: asyncio.Task[None]
    ) -> None:
        self._arriving.pop(connection, None)
        if not connection.made:
            arrived.close()
            self._freed.set()

    def opened(self, connection: ServerConnection) -> None:
        """Take a connection in that may ask from now on."""
        self._arriving.pop(connection, None)
        self.connections.add(connection)
        if self._leaving:
            connection.close()

    def _make_room(self, before: float) -> bool:
        """Hang up on who is silent for longest, first on those who never asked, if that is since some time before.

        As long as there are such, they are waited for: mere silence drives out nobody who did ask.
        """
        silent = [(arrival.since, item) for item, arrival in self._arriving.items()]
        idle = [(item.used, item.idle_since, item) for item in self.connections]
        silent += [(since, item) for used, since, item in idle if since is not None and not used]
        resting = [(since, item) for used, since, item in idle if since is not None and used]
        since, longest = min(silent or resting, key=lambda found: found[0], default=(before, None))
        if longest is None or (silent and since > before):
            return False
        # Taken out at once: it is gone a moment later, and until then the next newcomer would count it.
        arrival = self._arriving.pop(longest, None)
        self.connections.discard(longest)
        if arrival is not None:
            arrival.hang_up()
        else:
            longest.abort()
        return True

    def closed(self, connection: ServerConnection) -> None:
        """Learn that a connection is gone."""
        self.connections.discard(connection)
        self._freed.set()
        if not self.connections:
            self._gone.set()

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for connection in list(self.connections):
                connection.expire(loop.time())
