"""A listening server: it takes connections in, sweeps out those that take too long, and stops gracefully."""

import asyncio
import ssl
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, Self

from .arrivals import Arrival
from .connection import Connection
from .handler import Handler
from .limits import Limits
from .reader import Room

SWEEP_SECONDS = 5.0
# A peer that does not answer to the end of TLS is not worth a longer wait.
_GOODBYE_SECONDS = 1.0


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
        self._arriving: dict[Connection, Arrival] = {}
        self._gone = asyncio.Event()
        self._leaving = False
        self.limits: Limits = limits
        self.room: Room = Room(limits.held)
        self.draining: bool = False
        self.connections: set[Connection] = set()
        self.port: int = port

    @property
    def tasks(self) -> int:
        """Count the requests that are being answered in tasks."""
        return len(self._tasks)

    async def __aenter__(self) -> Self:
        listener = await self._listen(self.port)
        ports = [bound.getsockname()[1] for bound in listener.sockets]
        if len(set(ports)) > 1:
            # Any port was asked for, and each interface found its own; clients are told of one.
            listener.close()
            listener = await self._listen(ports[0])
        self.port = ports[0]
        self._group = asyncio.TaskGroup()
        # Entered after the listening, so that an address in use is told as it is and not in a group.
        await self._stack.enter_async_context(self._group)
        sweeper = self._group.create_task(self._sweep())
        self._stack.callback(sweeper.cancel)
        self._stack.callback(self._cut_off)
        self._stack.push_async_callback(self._finish)
        self._stack.callback(listener.close)
        return self

    async def _listen(self, port: int) -> asyncio.Server:
        loop = asyncio.get_running_loop()

        def accept() -> asyncio.Protocol:
            return (
                Connection(self._handler, self, loop) if self._tls is None else Arrival(self._arrived, loop)
            )

        return await loop.create_server(accept, self._host or None, port, backlog=1024)

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
            arrival.abort()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work until it ends or the server does."""
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _arrived(self, arrival: Arrival) -> None:
        """Take a connection in whose TLS does not stand yet."""
        if self._leaving:
            arrival.abort()
            return
        connection = Connection(self._handler, self, asyncio.get_running_loop())
        self._arriving[connection] = arrival
        arrival.begin(self._group.create_task(self._secure(connection, arrival)))
        self._make_room(connection)

    async def _secure(self, connection: Connection, arrival: Arrival) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                arrival.take(),
                ssl=self._tls,
                ssl_handshake_timeout=self.limits.receive_seconds,
                ssl_shutdown_timeout=_GOODBYE_SECONDS,
            )
        except OSError:
            # No TLS, none that we speak, too slow, or gone: the client's trouble, and it knows.
            return
        finally:
            self._arriving.pop(connection, None)

    def opened(self, connection: Connection) -> None:
        """Take a connection in that may ask from now on."""
        arriving = self._arriving.pop(connection, None) is not None
        self.connections.add(connection)
        if self._leaving:
            connection.close()
        elif not arriving:
            self._make_room(connection)

    def _make_room(self, newcomer: Connection) -> None:
        """Where there are too many, the one that was silent for longest goes, or else the newcomer.

        Those go first who never asked for anything, so that mere silence drives out nobody who did.
        """
        if len(self.connections) + len(self._arriving) <= self.limits.connections:
            return
        silent = [(False, arrival.since, item) for item, arrival in self._arriving.items()]
        idle = [(item.used, item.idle_since, item) for item in self.connections]
        others = [(used, since, item) for used, since, item in (*silent, *idle) if item is not newcomer]
        waiting = [(used, since, item) for used, since, item in others if since is not None]
        longest = min(waiting, key=lambda found: found[:2], default=(False, 0.0, newcomer))[2]
        # Taken out at once: its task ends a moment later, and until then the next newcomer would count it.
        arrival = self._arriving.pop(longest, None)
        if arrival is not None:
            arrival.abort()
        else:
            longest.abort()

    def closed(self, connection: Connection) -> None:
        """Learn that a connection is gone."""
        self.connections.discard(connection)
        if not self.connections:
            self._gone.set()

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for connection in list(self.connections):
                connection.expire(loop.time())
