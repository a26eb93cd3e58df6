"""Establish connections: dial, pass the proxy, and do the TLS handshakes."""

import asyncio
import errno
import os
import ssl

from kubewright.http.client.connection import ClientConnection
from kubewright.http.client.dial import SocketCounter, dial
from kubewright.http.client.failures import (
    ConnectionBroken,
    ConnectTimeout,
    HandshakeFailed,
    ProxyRefused,
    Unreachable,
)
from kubewright.http.client.headers import encode_headers
from kubewright.http.client.route import SOCKS, Origin, Route
from kubewright.http.client.socks import connect_through
from kubewright.http.client.tls import Sessions, TlsTransport

CONNECT_TIMEOUT = 10.0


async def connect(
    route: Route, sessions: Sessions, sockets: SocketCounter, timeout: float
) -> ClientConnection:
    """Return a connection on which requests to the server can be sent."""
    timeout = min(CONNECT_TIMEOUT, timeout)
    try:
        async with asyncio.timeout(timeout):
            proxy = route.proxy
            if proxy is None or proxy.scheme in SOCKS:
                return await _open(route.server, proxy, route.tls, route.server_name, sessions, sockets)
            return await _through(proxy, route, sessions, sockets, timeout)
    except ssl.SSLError as error:
        raise HandshakeFailed(error) from None
    except TimeoutError as error:
        if error.errno is not None:
            raise Unreachable(error, proxy=route.proxy is not None) from None
        raise ConnectTimeout from None
    except OSError as error:
        raise Unreachable(error, proxy=route.proxy is not None) from None


async def _open(
    origin: Origin,
    socks: Origin | None,
    tls: ssl.SSLContext | None,
    name: str,
    sessions: Sessions,
    sockets: SocketCounter,
) -> ClientConnection:
    """Connect to an origin, through a SOCKS proxy if there is one, with TLS if the origin has it."""
    loop = asyncio.get_running_loop()
    connection = ClientConnection(loop)
    transport = _tls(tls, name or origin.host, sessions, connection) if origin.secure else None
    first = socks or origin
    try:
        sock = await dial(first.host, first.port, sockets)
        try:
            if socks is not None:
                await connect_through(sock, socks, origin)
            await loop.create_connection(lambda: transport or connection, sock=sock)
        except BaseException:
            sock.close()
            raise
    except BaseException:
        if transport is not None:
            # No one awaits the end of the handshake.
            transport.ready.cancel()
        raise
    return connection if transport is None else await _handshake(transport, connection)


async def _through(
    proxy: Origin, route: Route, sessions: Sessions, sockets: SocketCounter, timeout: float
) -> ClientConnection:
    """Connect through an HTTP proxy, which forwards plain requests and tunnels TLS."""
    connection = await _open(proxy, None, route.tls, "", sessions, sockets)
    if not route.server.secure:
        return connection
    try:
        await _request_tunnel(connection, proxy, route.server, timeout)
    except BaseException:
        connection.close()
        raise
    below = connection.detach()
    if below is None:
        raise _reset()
    connection = ClientConnection(asyncio.get_running_loop())
    transport = _tls(route.tls, route.server_name or route.server.host, sessions, connection)
    below.set_protocol(transport)
    transport.attach(below)
    return await _handshake(transport, connection)


async def _request_tunnel(
    connection: ClientConnection, proxy: Origin, server: Origin, timeout: float
) -> None:
    address = f"{server.name}:{server.port}"
    fields = [("Host", address)]
    if proxy.authorization:
        fields.append(("Proxy-Authorization", proxy.authorization))
    deadline = asyncio.get_running_loop().time() + timeout
    try:
        response = await connection.stream(
            b"CONNECT %b HTTP/1.1\r\n%b\r\n" % (address.encode(), encode_headers(fields)), b"", deadline
        )
    except ConnectionBroken:
        raise _reset() from None
    if not 200 <= response.status < 300:
        raise ProxyRefused(f"HTTP {response.status}")


def _tls(
    tls: ssl.SSLContext | None, name: str, sessions: Sessions, connection: ClientConnection
) -> TlsTransport:
    if tls is None:
        raise ValueError("a route with TLS needs a TLS context")
    return TlsTransport(tls, name, sessions, connection)


def _reset() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))


async def _handshake(transport: TlsTransport, connection: ClientConnection) -> ClientConnection:
    try:
        await transport.ready
    except BaseException:
        transport.abort()
        raise
    return connection
