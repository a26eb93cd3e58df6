"""The sockets that a server listens on: one for each address of its host, all with the same port."""

import asyncio
import errno
import socket
from contextlib import ExitStack, suppress

# Connections beyond the limit wait in the kernel, where they cost the process nothing.
_BACKLOG = 1024
# A host name may have addresses of a family that is disabled on this machine.
_UNAVAILABLE = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}


async def listen(host: str, port: int) -> list[socket.socket]:
    """Open listening sockets; an empty host means every interface, port 0 one that is free on all of them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    unavailable: OSError | None = None
    with ExitStack() as opened:
        for family, address in dict.fromkeys((family, address) for family, *_, address in found):
            # All sockets use the port that the first one was given.
            bound = sockets[0].getsockname()[1] if sockets else port
            try:
                one = socket.create_server((address[0], bound, *address[2:]), family=family, backlog=_BACKLOG)
            except OSError as error:
                if error.errno not in _UNAVAILABLE:
                    raise
                unavailable = error
                continue
            opened.enter_context(one)
            one.setblocking(False)
            sockets.append(one)
        opened.pop_all()
    if not sockets and unavailable is not None:
        raise unavailable
    return sockets


async def accept(listener: socket.socket) -> socket.socket:
    """Wait for the next connection and return its socket.

    Nothing is awaited after the socket exists: `loop.sock_accept` loses a connection that arrives in the turn of
    the event loop in which it is cancelled.
    """
    while True:
        with suppress(BlockingIOError):
            accepted, _ = listener.accept()
            accepted.setblocking(False)
            return accepted
        await _readable(listener)


async def _readable(listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(listener, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(listener)
