"""The layers below a connection: transports that carry bytes, and receivers that get what happens on them."""

import asyncio
from typing import Protocol

ARRIVAL = 64 * 1024
"""How many bytes are read from the event loop at once."""


class ByteTransport(Protocol):
    """Carry bytes: a transport of the event loop, or TLS on another transport."""

    def write(self, data: bytes, /) -> None:
        """Send bytes, or buffer them until there is room."""
        ...

    def pause_reading(self) -> None:
        """Stop delivering bytes."""
        ...

    def resume_reading(self) -> None:
        """Deliver bytes again."""
        ...

    def set_protocol(self, protocol: asyncio.BaseProtocol, /) -> None:
        """Replace the receiver."""
        ...

    def is_closing(self) -> bool:
        """Return True if the transport is closed or being closed."""
        ...

    def close(self) -> None:
        """Send what is buffered, then close."""
        ...

    def abort(self) -> None:
        """Close immediately."""
        ...


class Receiver(Protocol):
    """Get what happens on a transport."""

    def attach(self, transport: ByteTransport) -> None:
        """Start: bytes can be written."""
        ...

    def data_received(self, data: bytes, /) -> None:
        """Take bytes."""
        ...

    def pause_writing(self) -> None:
        """Stop writing: the peer reads slowly."""
        ...

    def resume_writing(self) -> None:
        """Write again."""
        ...

    def connection_lost(self, exc: Exception | None, /) -> None:
        """End: nothing more arrives."""
        ...
