"""A connection before it may ask: its TLS does not stand yet, but that it takes a place is known."""

import asyncio
import socket
from contextlib import suppress


class Arrival:
    """Somebody who was let in, and the task in which the connection is made."""

    def __init__(self, arrived: socket.socket, opening: asyncio.Task[None], since: float) -> None:
        self._socket = arrived
        self._opening = opening
        self.since: float = since
        """Since when nothing is heard of it that we would have to hear."""

    def hang_up(self) -> None:
        """Let it go, however far it has come."""
        # A handshake goes on though nobody waits for it any more: let it meet an end.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._opening.cancel()
