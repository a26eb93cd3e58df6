"""The connections to one server: kept between requests, the warmest first, closed when nobody wants them."""

import asyncio

from kubewright.http.client.connection import ClientConnection
from kubewright.http.client.exchange import ClientResponse, Fence
from kubewright.http.client.failures import ConnectionBroken
from kubewright.http.client.opening import connect
from kubewright.http.client.route import Route
from kubewright.http.client.sockets import Sockets
from kubewright.http.client.tls import Sessions

KEPT_FOR = 60.0
"""Seconds that a connection waits for its next request."""
GOODBYE_TIMEOUT = 1.0
RESTED = 1.0
"""Seconds after which a kept connection is looked at before it is used again."""


class _KeptBody:
    """The rest of an answer, whose connection goes back to the pool."""

    def __init__(self, pool: "Pool", connection: ClientConnection) -> None:
        self._pool = pool
        self.read = connection.read
        self.read_all = connection.read_all
        self._connection = connection

    def release(self) -> None:
        """Give the connection back."""
        self._pool.give_back(self._connection)


class Pool:
    """Exchange requests for answers, over as many connections as there are requests at a time."""

    def __init__(self, route: Route) -> None:
        self.route: Route = route
        self._sockets = Sockets()
        self._sessions = Sessions()
        self._idle: list[ClientConnection] = []
        self._busy: dict[ClientConnection, Route] = {}
        self._closed = False

    async def send(
        self, head: bytes, body: bytes, timeout: float, fence: Fence | None = None
    ) -> ClientResponse:
        """Send a request and return its whole answer; the fence is met when the way is open, before it leaves."""
        deadline = asyncio.get_running_loop().time() + timeout
        connection = await self._kept() or await self._opened(timeout)
        try:
            if fence is not None:
                fence()
            return await connection.send(head, body, deadline)
        finally:
            self.give_back(connection)

    async def stream(self, head: bytes, body: bytes, timeout: float) -> tuple[ClientResponse, _KeptBody]:
        """Send a request and return the head of its answer, and the body to be read."""
        deadline = asyncio.get_running_loop().time() + timeout
        connection = await self._kept() or await self._opened(timeout)
        try:
            return await connection.stream(head, body, deadline), _KeptBody(self, connection)
        except BaseException:
            self.give_back(connection)
            raise

    def give_back(self, connection: ClientConnection) -> None:
        """Keep a connection whose answer was read to its end for the next request, close any other."""
        if self._busy.pop(connection, None) is not self.route:
            connection.close()
        elif connection.finish(KEPT_FOR):
            self._idle.append(connection)

    def reroute(self, route: Route) -> None:
        """Go another way from now on, or the same with other credentials; what is under way ends on the old one."""
        self.route = route
        self._sessions = Sessions()
        while self._idle:
            self._idle.pop().close()

    async def close(self) -> None:
        """Close all connections, and wait until they are closed, but not for a server that does not answer."""
        self._closed = True
        for connection in (*self._idle, *self._busy):
            connection.close()
        self._idle.clear()
        await self._sockets.all_closed(GOODBYE_TIMEOUT)

    async def _kept(self) -> ClientConnection | None:
        while self._idle:
            connection, route = self._idle.pop(), self.route
            if connection.rested > RESTED:
                await self._look_at(connection)
            if self._closed:
                connection.close()
                raise ConnectionBroken(begun=False)
            if route is not self.route:
                connection.close()
            elif connection.usable:
                self._busy[connection] = route
                return connection
        return None

    async def _look_at(self, connection: ClientConnection) -> None:
        """Let the event loop see the server's goodbye first, if it came while the loop or the machine slept."""
        try:
            for _ in range(3):
                await asyncio.sleep(0)
        except BaseException:
            connection.close()
            raise

    async def _opened(self, timeout: float) -> ClientConnection:
        route = self.route
        connection = await connect(route, self._sessions, self._sockets, timeout)
        if self._closed:
            connection.close()
            raise ConnectionBroken(begun=False)
        self._busy[connection] = route
        return connection
