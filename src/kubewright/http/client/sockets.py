"""The sockets of one client: they notice a vanished peer, and are counted until the last is closed."""

import asyncio
import socket
from collections.abc import Callable

_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60_000))


class _CountedSocket(socket.socket):
    """Tell when it is closed, which the event loop does some time after a connection was given up."""

    def __init__(self, family: int, type_: int, proto: int, told: Callable[[], None]) -> None:
        super().__init__(family, type_, proto)
        self._told = told

    def close(self) -> None:
        """Close it, and tell so."""
        if self.fileno() != -1:
            self._told()
        super().close()

    def detach(self) -> int:
        """Give the descriptor away, which uvloop asks for when it closes it."""
        self._told()
        return super().detach()


class Sockets:
    """Make the sockets of one client, and wait until all of them are closed."""

    def __init__(self) -> None:
        self._open = 0
        self._none_open = asyncio.Event()
        self._none_open.set()

    def make(self, family: int, type_: int, proto: int) -> socket.socket:
        """Make a socket that does not block and notices within about a minute that its peer has vanished."""
        made = _CountedSocket(family, type_, proto, self._closed)
        self._open += 1
        self._none_open.clear()
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            if hasattr(socket, option):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        return made

    async def all_closed(self, timeout: float) -> None:
        """Wait for connections that still take leave of their peer, but not for a peer that does not answer."""
        try:
            async with asyncio.timeout(timeout):
                await self._none_open.wait()
        except TimeoutError:
            pass

    def _closed(self) -> None:
        self._open -= 1
        if not self._open:
            self._none_open.set()
