"""What carries bytes, and who sits at its end: transports of the event loop, TLS on them, connections."""

import asyncio
from typing import Protocol

ARRIVAL = 64 * 1024
"""How much is taken from the event loop at once."""


class ByteTransport(Protocol):
    """What carries the bytes: a transport of the event loop, or TLS on another wire."""

    def write(self, data: bytes, /) -> None:
        """Send bytes, now or as soon as there is room."""
        ...

    def pause_reading(self) -> None:
        """Let no more bytes come in."""
        ...

    def resume_reading(self) -> None:
        """Let bytes come in again."""
        ...

    def set_protocol(self, protocol: asyncio.BaseProtocol, /) -> None:
        """Put another end on it."""
        ...

    def is_closing(self) -> bool:
        """Tell whether it is closed or being closed."""
        ...

    def close(self) -> None:
        """Send what is buffered, then close."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...


class Receiver(Protocol):
    """Who is told of what happens on a wire."""

    def attach(self, wire: ByteTransport) -> None:
        """Begin: bytes can be written."""
        ...

    def data_received(self, data: bytes, /) -> None:
        """Take bytes in."""
        ...

    def pause_writing(self) -> None:
        """Hold back: the other side reads slowly."""
        ...

    def resume_writing(self) -> None:
        """Go on writing."""
        ...

    def connection_lost(self, exc: Exception | None, /) -> None:
        """Receiver: nothing comes any more."""
        ...
