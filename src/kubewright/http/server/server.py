"""A listening server: it takes connections in, sweeps out those that take too long, and stops gracefully."""

import asyncio
import ssl
from collections import deque
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
        self._waiting: deque[Arrival] = deque()
        self._later: asyncio.TimerHandle | None = None
        self._gone = asyncio.Event()
        self._leaving = False
        self.limits: Limits = limits
        self.room: Room = Room(limits.held)
        self.draining: bool = False
        self.connections: set[Connection] = set()
        self.port: int = port

    @property
    def crowded(self) -> bool:
        """Tell whether others wait for a place: whoever was answered shall leave."""
        return bool(self._waiting)

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
        # Entered after an address was found, so that one in use is told as it is and not in a group; and before
        # anybody is let in, who may need a task at once.
        await self._stack.enter_async_context(self._group)
        try:
            await listener.start_serving()
        except OSError:
            listener.close()
            await self._stack.aclose()
            raise
        sweeper = self._group.create_task(self._sweep())
        self._stack.callback(sweeper.cancel)
        self._stack.callback(self._cut_off)
        self._stack.push_async_callback(self._finish)
        self._stack.callback(listener.close)
        return self

    async def _listen(self, port: int) -> asyncio.Server:
        loop = asyncio.get_running_loop()

        def accept() -> asyncio.Protocol:
            secure = self._tls is not None
            return Arrival(self._arrived, loop) if secure else Connection(self._handler, self, loop)

        return await loop.create_server(accept, self._host or None, port, backlog=1024, start_serving=False)

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
        for arrival in (*self._arriving.values(), *self._waiting):
            arrival.abort()
        self._waiting.clear()
        if self._later is not None:
            self._later.cancel()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work until it ends or the server does."""
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _arrived(self, arrival: Arrival) -> None:
        """Take a connection in whose TLS does not stand yet, or let it wait.

        API servers open a connection for each request that they have under way: a crowd is no attack, and who
        is turned away cannot write. What waits costs next to nothing.
        """
        if self._leaving:
            arrival.abort()
            return
        self._waiting.append(arrival)
        if len(self._waiting) > self.limits.waiting:
            self._waiting.popleft().abort()
        self._admit()

    def _admit(self) -> None:
        """Let in who waits, as far as there is room or can be made."""
        loop = asyncio.get_running_loop()
        while self._waiting and (
            self._has_room or self._make_room(loop.time() - self.limits.newcomer_seconds)
        ):
            arrival = self._waiting.popleft()
            connection = Connection(self._handler, self, loop)
            self._arriving[connection] = arrival
            arrival.begin(self._group.create_task(self._secure(connection, arrival)), loop.time())
        if self._later is not None:
            self._later.cancel()
        # The silent have their time; when it is over, it is looked at again.
        self._later = loop.call_later(self.limits.newcomer_seconds, self._admit) if self._waiting else None

    @property
    def _has_room(self) -> bool:
        return len(self.connections) + len(self._arriving) < self.limits.connections

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
            if self._waiting:
                self._admit()

    def opened(self, connection: Connection) -> None:
        """Take a connection in that may ask from now on; one without TLS takes the place of another, or none."""
        known = self._arriving.pop(connection, None) is not None
        if self._leaving:
            self.connections.add(connection)
            connection.close()
            return
        if not known and not self._has_room and not self._make_room(asyncio.get_running_loop().time()):
            connection.abort()
        self.connections.add(connection)

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
            arrival.abort()
        else:
            longest.abort()
        return True

    def closed(self, connection: Connection) -> None:
        """Learn that a connection is gone."""
        self.connections.discard(connection)
        if not self.connections:
            self._gone.set()
        if self._waiting:
            self._admit()

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for connection in list(self.connections):
                connection.expire(loop.time())
