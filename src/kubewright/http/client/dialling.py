"""Connect a socket to a host: each of its addresses gets its chance, and a slow one does not delay the rest."""

import asyncio
import ipaddress
import socket
from itertools import chain, zip_longest
from typing import Any

from kubewright.http.client.sockets import Sockets

STAGGER = 0.25
"""Seconds until the next address is tried beside one that has not answered (RFC 8305)."""

Address = tuple[int, int, int, tuple[Any, ...]]


async def dial(host: str, port: int, sockets: Sockets) -> socket.socket:
    """Return a connected socket, or raise the OSError of the first address."""
    addresses = _literal(host, port) or await _looked_up(host, port)
    if len(addresses) == 1:
        return await _connected(addresses[0], sockets)
    return await _first_of(addresses, sockets)


def _literal(host: str, port: int) -> list[Address]:
    """Return the address that the host itself is: asking the resolver for it would take a thread."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return []
    if address.version == 4:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, (host, port))]
    if "%" in host:
        return []
    return [(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, (host, port, 0, 0))]


async def _looked_up(host: str, port: int) -> list[Address]:
    """Return the host's addresses, families in turn, beginning with the one that the resolver prefers."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise socket.gaierror(socket.EAI_NONAME, "no name of a host") from None
    addresses: list[Address] = [(family, type_, proto, where) for family, type_, proto, _, where in found]
    if not addresses:
        raise OSError("the name has no address")
    preferred = [it for it in addresses if it[0] == addresses[0][0]]
    others = [it for it in addresses if it[0] != addresses[0][0]]
    return [it for it in chain.from_iterable(zip_longest(preferred, others)) if it is not None]


async def _connected(address: Address, sockets: Sockets) -> socket.socket:
    family, type_, proto, where = address
    made = sockets.make(family, type_, proto)
    try:
        await asyncio.get_running_loop().sock_connect(made, where)
    except BaseException:
        made.close()
        raise
    return made


async def _first_of(addresses: list[Address], sockets: Sockets) -> socket.socket:
    winners: list[socket.socket] = []
    failures: list[OSError] = []
    failed = [asyncio.Event() for _ in addresses]
    attempts: list[asyncio.Task[None]] = []

    async def attempt(turn: int) -> None:
        if turn:
            try:
                async with asyncio.timeout(STAGGER * turn):
                    await failed[turn - 1].wait()
            except TimeoutError:
                pass
        try:
            made = await _connected(addresses[turn], sockets)
        except OSError as error:
            failures.append(error)
            failed[turn].set()
            return
        winners.append(made)
        for other in attempts:
            if other is not attempts[turn]:
                other.cancel()

    try:
        async with asyncio.TaskGroup() as group:
            attempts += [group.create_task(attempt(turn)) for turn in range(len(addresses))]
    except BaseException:
        for made in winners:
            made.close()
        raise
    for made in winners[1:]:
        made.close()
    if not winners:
        raise failures[0]
    return winners[0]
