"""Open connections: dial, shake hands, and have a proxy let us through."""

import asyncio
import errno
import os
import ssl

from kubewright.http.client.connection import ClientConnection
from kubewright.http.client.dialling import dial
from kubewright.http.client.failures import (
    ConnectionBroken,
    ConnectTimeout,
    HandshakeFailed,
    ProxyRefused,
    Unreachable,
)
from kubewright.http.client.heads import encode_headers
from kubewright.http.client.route import Origin, Route
from kubewright.http.client.sockets import Sockets
from kubewright.http.client.tls import Sessions, TlsTransport

CONNECT_TIMEOUT = 10.0


async def connect(route: Route, sessions: Sessions, sockets: Sockets, timeout: float) -> ClientConnection:
    """Return a connection on which requests to the server can be sent."""
    timeout = min(CONNECT_TIMEOUT, timeout)
    try:
        async with asyncio.timeout(timeout):
            if route.proxy is None:
                return await _reach(route.server, route.tls, route.server_name, sessions, sockets)
            return await _through(route.proxy, route, sessions, sockets, timeout)
    except ssl.SSLError as error:
        raise HandshakeFailed(error) from None
    except TimeoutError as error:
        if error.errno is not None:
            raise Unreachable(error, proxy=route.proxy is not None) from None
        raise ConnectTimeout from None
    except OSError as error:
        raise Unreachable(error, proxy=route.proxy is not None) from None


async def _reach(
    place: Origin, tls: ssl.SSLContext | None, name: str, sessions: Sessions, sockets: Sockets
) -> ClientConnection:
    loop = asyncio.get_running_loop()
    connection = ClientConnection(loop)
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
    proxy: Origin, route: Route, sessions: Sessions, sockets: Sockets, timeout: float
) -> ClientConnection:
    connection = await _reach(proxy, route.tls, "", sessions, sockets)
    if not route.server.secure:
        return connection
    try:
        await _ask_for_way(connection, proxy, route.server, timeout)
    except BaseException:
        connection.close()
        raise
    below = connection.detach()
    if below is None:
        raise _reset()
    connection = ClientConnection(asyncio.get_running_loop())
    wire = _tls_wire(route.tls, route.server_name or route.server.host, sessions, connection)
    below.set_protocol(wire)
    wire.attach(below)
    return await _shaken(wire, connection)


async def _ask_for_way(connection: ClientConnection, proxy: Origin, server: Origin, timeout: float) -> None:
    where = f"{server.name}:{server.port}"
    fields = [("Host", where)]
    if proxy.authorization:
        fields.append(("Proxy-Authorization", proxy.authorization))
    deadline = asyncio.get_running_loop().time() + timeout
    try:
        answer = await connection.stream(
            b"CONNECT %b HTTP/1.1\r\n%b\r\n" % (where.encode(), encode_headers(fields)), b"", deadline
        )
    except ConnectionBroken:
        raise _reset() from None
    if not 200 <= answer.status < 300:
        raise ProxyRefused(answer.status)


def _tls_wire(
    tls: ssl.SSLContext | None, name: str, sessions: Sessions, connection: ClientConnection
) -> TlsTransport:
    if tls is None:
        raise ValueError("a secure route needs a TLS context")
    return TlsTransport(tls, name, sessions, connection)


def _reset() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))


async def _shaken(wire: TlsTransport, connection: ClientConnection) -> ClientConnection:
    try:
        await wire.ready
    except BaseException:
        wire.abort()
        raise
    return connection
