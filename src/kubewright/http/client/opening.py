"""Open connections: dial, shake hands, and have a proxy let us through."""

import asyncio
import errno
import os
import ssl

from kubewright.http.client.connection import Connection
from kubewright.http.client.dialling import dial
from kubewright.http.client.failures import (
    Broken,
    ConnectTimedOut,
    HandshakeFailed,
    ProxyRefused,
    Unreachable,
)
from kubewright.http.client.heads import head_of
from kubewright.http.client.route import Place, Route
from kubewright.http.client.sockets import Sockets
from kubewright.http.client.tls import Sessions, TlsWire

CONNECT_TIMEOUT = 10.0


async def connect(route: Route, sessions: Sessions, sockets: Sockets, patience: float) -> Connection:
    """Return a connection on which requests to the server can be sent."""
    patience = min(CONNECT_TIMEOUT, patience)
    try:
        async with asyncio.timeout(patience):
            if route.proxy is None:
                return await _reach(route.server, route.tls, route.server_name, sessions, sockets)
            return await _through(route.proxy, route, sessions, sockets, patience)
    except ssl.SSLError as error:
        raise HandshakeFailed(error) from None
    except TimeoutError as error:
        if error.errno is not None:
            raise Unreachable(error, proxy=route.proxy is not None) from None
        raise ConnectTimedOut from None
    except OSError as error:
        raise Unreachable(error, proxy=route.proxy is not None) from None


async def _reach(
    place: Place, tls: ssl.SSLContext | None, name: str, sessions: Sessions, sockets: Sockets
) -> Connection:
    loop = asyncio.get_running_loop()
    connection = Connection(loop)
    wire = _tls_wire(tls, name or place.host, sessions, connection) if place.secure else None
    sock = await dial(place.host, place.port, sockets)
    try:
        await loop.create_connection(lambda: wire or connection, sock=sock)
    except BaseException:
        sock.close()
        if wire is not None:
            # Nobody will ask how the handshake ended.
            wire.ready.cancel()
        raise
    return connection if wire is None else await _shaken(wire, connection)


async def _through(
    proxy: Place, route: Route, sessions: Sessions, sockets: Sockets, patience: float
) -> Connection:
    connection = await _reach(proxy, route.tls, "", sessions, sockets)
    if not route.server.secure:
        return connection
    try:
        await _ask_for_way(connection, proxy, route.server, patience)
    except BaseException:
        connection.close()
        raise
    below = connection.detach()
    if below is None:
        raise _reset()
    connection = Connection(asyncio.get_running_loop())
    wire = _tls_wire(route.tls, route.server_name or route.server.host, sessions, connection)
    below.set_protocol(wire)
    wire.attach(below)
    return await _shaken(wire, connection)


async def _ask_for_way(connection: Connection, proxy: Place, server: Place, patience: float) -> None:
    where = f"{server.name}:{server.port}"
    fields = [("Host", where)]
    if proxy.authorization:
        fields.append(("Proxy-Authorization", proxy.authorization))
    due = asyncio.get_running_loop().time() + patience
    try:
        answer = await connection.begin(
            b"CONNECT %b HTTP/1.1\r\n%b\r\n" % (where.encode(), head_of(fields)), b"", due
        )
    except Broken:
        raise _reset() from None
    if not 200 <= answer.status < 300:
        raise ProxyRefused(answer.status)


def _tls_wire(tls: ssl.SSLContext | None, name: str, sessions: Sessions, connection: Connection) -> TlsWire:
    if tls is None:
        raise ValueError("a secure route needs a TLS context")
    return TlsWire(tls, name, sessions, connection)


def _reset() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))


async def _shaken(wire: TlsWire, connection: Connection) -> Connection:
    try:
        await wire.ready
    except BaseException:
        wire.abort()
        raise
    return connection
