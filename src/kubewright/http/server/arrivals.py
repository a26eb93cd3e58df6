"""A connection before its TLS stands: nobody knows yet who comes, but that it takes a place is known."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import cast


class Arrival(asyncio.Protocol):
    """Takes the socket of a connection before a byte of it is read.

    A loop that serves TLS by itself tells of connections only when their handshake is done: those who never
    end it would be counted by nobody. So the socket is given to the loop once more, by whoever counts.
    """

    def __init__(self, arrived: Callable[["Arrival"], None], loop: asyncio.AbstractEventLoop) -> None:
        self._arrived = arrived
        self._handshake: asyncio.Task[None] | None = None
        self._taken = False
        self.socket: socket.socket = cast(socket.socket, None)
        self.since: float = loop.time()
        """Since when nothing is heard of it that we would have to hear."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask to be let in."""
        try:
            self.socket = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        except OSError:
            # There are as many open files as may be: who comes now cannot stay.
            return
        finally:
            cast(asyncio.Transport, transport).abort()
        self._arrived(self)

    def begin(self, handshake: asyncio.Task[None], now: float) -> None:
        """Learn of the task in which the handshake is done."""
        self.since = now
        self._handshake = handshake
        handshake.add_done_callback(lambda _: self._release())

    def take(self) -> socket.socket:
        """Give the socket to whoever closes it from now on."""
        self._taken = True
        return self.socket

    def abort(self) -> None:
        """Hang up."""
        # A handshake that began a moment ago goes on though nobody waits for it: let it meet an end.
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        if self._handshake is None:
            self._release()
        else:
            self._handshake.cancel()

    def _release(self) -> None:
        if not self._taken:
            self.socket.close()
