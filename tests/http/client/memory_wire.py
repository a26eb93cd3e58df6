"""A wire in memory: what a connection writes is kept, what the test feeds arrives."""

import asyncio

from kubewright.http.client.connection import ClientConnection


class MemoryWire:
    """Stand at a connection's other end."""

    def __init__(self) -> None:
        self.connection = ClientConnection(asyncio.get_running_loop())
        self.connection.attach(self)
        self.written = bytearray()
        self.closing = False
        self.aborted = False
        self.reading = True
        self.full_after: int | None = None

    def write(self, data: bytes) -> None:
        self.written += data
        if self.full_after is not None and len(self.written) > self.full_after:
            self.connection.pause_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        raise AssertionError("no other protocol uses this wire")

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)

    def abort(self) -> None:
        self.aborted = True
        self.close()

    def drained(self) -> None:
        """Have sent all that was written."""
        self.full_after = None
        self.connection.resume_writing()

    def feed(self, *arrivals: bytes) -> None:
        """Deliver bytes while the connection is open."""
        for data in arrivals:
            if not self.closing:
                self.connection.data_received(data)

    def end(self, error: Exception | None = None) -> None:
        """Be closed by the other side."""
        if not self.closing:
            self.closing = True
            self.connection.connection_lost(error)
