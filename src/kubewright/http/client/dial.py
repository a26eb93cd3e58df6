"""Connect sockets: all addresses of a host are tried (RFC 8305), and every socket is counted until it closes."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from itertools import chain, zip_longest
from typing import Any

ATTEMPT_DELAY = 0.25
"""Seconds until the next address is tried in parallel with one that has not answered (RFC 8305)."""
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60_000))

SocketAddress = tuple[int, int, int, tuple[Any, ...]]


class _CountedSocket(socket.socket):
    """Report its close, which the event loop does some time after a connection was given up."""

    def __init__(self, family: int, type_: int, proto: int, on_close: Callable[[], None]) -> None:
        super().__init__(family, type_, proto)
        self._on_close = on_close

    def close(self) -> None:
        """Close and report it."""
        if self.fileno() != -1:
            self._on_close()
        super().close()

    def detach(self) -> int:
        """Detach the file descriptor, as uvloop does to close it, and report it."""
        self._on_close()
        return super().detach()


class SocketCounter:
    """Make the sockets of one client, and wait until all of them are closed."""

    def __init__(self) -> None:
        self.open: int = 0
        self._none_open = asyncio.Event()
        self._none_open.set()

    def make(self, family: int, type_: int, proto: int) -> socket.socket:
        """Return a non-blocking socket that notices within about a minute that its peer has vanished."""
        made = _CountedSocket(family, type_, proto, self._closed)
        self.open += 1
        self._none_open.clear()
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            if hasattr(socket, option):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        return made

    async def all_closed(self, timeout: float) -> None:
        """Wait until all sockets are closed, but not longer than the timeout for peers that do not respond."""
        try:
            async with asyncio.timeout(timeout):
                await self._none_open.wait()
        except TimeoutError:
            pass

    def _closed(self) -> None:
        self.open -= 1
        if not self.open:
            self._none_open.set()


async def dial(host: str, port: int, sockets: SocketCounter) -> socket.socket:
    """Return a connected socket, or raise the OSError of the first address."""
    addresses = _literal(host, port) or await _resolve(host, port)
    if len(addresses) == 1:
        return await _connect(addresses[0], sockets)
    return await _connect_first(addresses, sockets)


def _literal(host: str, port: int) -> list[SocketAddress]:
    """Return the address if the host is one: the resolver would use a thread for it."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return []
    if address.version == 4:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, (host, port))]
    if "%" in host:
        return []
    return [(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, (host, port, 0, 0))]


async def _resolve(host: str, port: int) -> list[SocketAddress]:
    """Return the host's addresses, families alternating, beginning with the one that the resolver prefers."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from None
    addresses: list[SocketAddress] = [
        (family, type_, proto, where) for family, type_, proto, _, where in found
    ]
    if not addresses:
        raise OSError("the host name has no address")
    preferred = [it for it in addresses if it[0] == addresses[0][0]]
    others = [it for it in addresses if it[0] != addresses[0][0]]
    return [it for it in chain.from_iterable(zip_longest(preferred, others)) if it is not None]


async def _connect(address: SocketAddress, sockets: SocketCounter) -> socket.socket:
    family, type_, proto, where = address
    made = sockets.make(family, type_, proto)
    try:
        await asyncio.get_running_loop().sock_connect(made, where)
    except BaseException:
        made.close()
        raise
    return made


async def _connect_first(addresses: list[SocketAddress], sockets: SocketCounter) -> socket.socket:
    connected: list[socket.socket] = []
    failures: list[OSError] = []
    failed = [asyncio.Event() for _ in addresses]
    attempts: list[asyncio.Task[None]] = []

    async def attempt(turn: int) -> None:
        if turn:
            try:
                async with asyncio.timeout(ATTEMPT_DELAY * turn):
                    await failed[turn - 1].wait()
            except TimeoutError:
                pass
        try:
            made = await _connect(addresses[turn], sockets)
        except OSError as error:
            failures.append(error)
            failed[turn].set()
            return
        connected.append(made)
        for other in attempts:
            if other is not attempts[turn]:
                other.cancel()

    try:
        async with asyncio.TaskGroup() as group:
            attempts += [group.create_task(attempt(turn)) for turn in range(len(addresses))]
    except BaseException:
        for made in connected:
            made.close()
        raise
    for made in connected[1:]:
        made.close()
    if not connected:
        raise failures[0]
    return connected[0]
