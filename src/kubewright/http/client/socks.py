"""SOCKS5 (RFC 1928) with user name and password (RFC 1929), as Go's client speaks it.

The proxy resolves host names, for `socks5://` and `socks5h://` alike: names of a cluster are often known only there.
"""

import asyncio
import errno
import ipaddress
import os
import socket

from kubewright.http.client.failures import ProxyRefused
from kubewright.http.client.route import Origin

_VERSION = 5
_NO_AUTHENTICATION, _PASSWORD, _NONE_ACCEPTABLE = 0, 2, 0xFF
_CONNECT = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_MAX_STRING = 255
_REPLIES = {
    1: "general SOCKS server failure",
    2: "connection not allowed by ruleset",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "address type not supported",
}


async def connect_through(sock: socket.socket, proxy: Origin, server: Origin) -> None:
    """Have the proxy at the other end of a connected socket connect it to a server."""
    await _authenticate(sock, proxy)
    await _send(sock, bytes([_VERSION, _CONNECT, 0]) + _address(server.host) + server.port.to_bytes(2))
    version, reply, _, kind = await _read(sock, 4)
    _check_version(version)
    if reply:
        raise ProxyRefused(_REPLIES.get(reply, f"SOCKS5 reply {reply}"))
    if kind not in (_IPV4, _NAME, _IPV6):
        raise ProxyRefused(f"SOCKS5 reply with unknown address type {kind}")
    # The proxy's own address must be read, but is ignored.
    length = {_IPV4: 4, _IPV6: 16}.get(kind) or (await _read(sock, 1))[0]
    await _read(sock, length + 2)


async def _authenticate(sock: socket.socket, proxy: Origin) -> None:
    methods = [_NO_AUTHENTICATION] if proxy.username is None else [_NO_AUTHENTICATION, _PASSWORD]
    await _send(sock, bytes([_VERSION, len(methods), *methods]))
    version, method = await _read(sock, 2)
    _check_version(version)
    if method == _NO_AUTHENTICATION:
        return
    if method == _PASSWORD and proxy.username is not None:
        await _send(
            sock, bytes([1]) + _string(proxy.username, "user name") + _string(proxy.password, "password")
        )
        _, status = await _read(sock, 2)
        if status:
            raise ProxyRefused("user name or password not accepted")
        return
    if method == _NONE_ACCEPTABLE and proxy.username is None:
        raise ProxyRefused("it requires authentication: put user name and password into the proxy URL")
    raise ProxyRefused("no acceptable authentication method")


def _address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return bytes([_NAME]) + _string(host, "host name")
    return bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed


def _string(text: str, what: str) -> bytes:
    data = text.encode()
    if not 1 <= len(data) <= _MAX_STRING:
        raise ProxyRefused(f"SOCKS5 needs a {what} of 1 to {_MAX_STRING} bytes, got {len(data)}")
    return bytes([len(data)]) + data


def _check_version(version: int) -> None:
    if version != _VERSION:
        raise ProxyRefused(f"not a SOCKS5 proxy: its response begins with byte {version:#04x}")


async def _send(sock: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(sock, data)


async def _read(sock: socket.socket, size: int) -> bytes:
    """Read exactly so many bytes: what follows belongs to the server."""
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < size:
        piece = await loop.sock_recv(sock, size - len(data))
        if not piece:
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        data += piece
    return data
