"""The sockets that a server listens on, one for each address of its host with the same port, and who comes there."""

import asyncio
import errno
import socket
from contextlib import ExitStack, suppress

# Whoever finds no place waits here, in the kernel, and costs the process nothing.
_BACKLOG = 1024
# A machine may name an address of a family that it has switched off.
_NOT_HERE = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}


async def listen(host: str, port: int) -> list[socket.socket]:
    """Open the sockets; an empty host means every interface, port 0 any port that is free on all of them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    with ExitStack() as opened:
        for family, address in dict.fromkeys((family, address) for family, *_, address in found):
            # The port that the first one found is that of all.
            bound = sockets[0].getsockname()[1] if sockets else port
            try:
                one = socket.create_server((address[0], bound, *address[2:]), family=family, backlog=_BACKLOG)
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                missing = error
                continue
            opened.enter_context(one)
            one.setblocking(False)
            sockets.append(one)
        opened.pop_all()
    if not sockets and missing is not None:
        raise missing
    return sockets


async def accept(listener: socket.socket) -> socket.socket:
    """Wait for the next one who comes.

    Nothing is awaited once it is there: `loop.sock_accept` loses whoever comes in the turn in which it is cancelled.
    """
    while True:
        with suppress(BlockingIOError):
            arrived, _ = listener.accept()
            arrived.setblocking(False)
            return arrived
        await _somebody_waits(listener)


async def _somebody_waits(listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    here: asyncio.Future[None] = loop.create_future()
    loop.add_reader(listener, lambda: here.done() or here.set_result(None))
    try:
        await here
    finally:
        loop.remove_reader(listener)
