"""The server side of a WebSocket connection: flow control, control frames and closing."""

import asyncio
import struct
from typing import cast

from kubewright.http.websocket import (
    NORMAL,
    PROTOCOL_ERROR,
    FrameError,
    FrameReader,
    Opcode,
    WebSocketMessage,
    accept_key,
    frame,
)


def accept_headers(key: str, protocol: str = "") -> list[tuple[str, str]]:
    """Return the headers of the 101 response that accepts a WebSocket, with the chosen subprotocol."""
    headers = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", accept_key(key)),
    ]
    return [*headers, ("Sec-WebSocket-Protocol", protocol)] if protocol else headers


class WebSocket(asyncio.Protocol):
    """A WebSocket connection; subclasses implement `received` and may override `ended`."""

    def __init__(self) -> None:
        self._transport = cast(asyncio.Transport, None)
        self._frames = FrameReader()
        self._writable = asyncio.Event()
        self._writable.set()
        self._paused = False
        self.lost: asyncio.Event = asyncio.Event()

    def received(self, data: bytes) -> None:
        """Handle a message."""
        raise NotImplementedError

    def ended(self) -> None:
        """Handle the end of the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Decode data into messages and handle them."""
        try:
            for message in self._frames.feed(data):
                self._take(message)
        except FrameError as error:
            self.close(PROTOCOL_ERROR, str(error))
            self.lost.set()

    def eof_received(self) -> bool:
        """Close the connection when the client closes its side."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Mark the connection as lost and release waiting writers."""
        self.lost.set()
        self._writable.set()
        self.ended()

    def pause_writing(self) -> None:
        """Block writers, and stop reading too: even pings cause responses, which the client does not read."""
        self._writable.clear()
        self._update_reading()

    def resume_writing(self) -> None:
        """Release writers and read again."""
        self._writable.set()
        self._update_reading()

    def _take(self, message: WebSocketMessage) -> None:
        if message.opcode is Opcode.PING:
            self._transport.write(frame(Opcode.PONG, message.data))
        elif message.opcode is Opcode.CLOSE:
            self.close(NORMAL)
            self.lost.set()
        elif message.opcode is not Opcode.PONG and message.data:
            self.received(message.data)

    def send(self, data: bytes, opcode: Opcode = Opcode.BINARY) -> None:
        """Send a message; await `writable` before sending more."""
        if not self.lost.is_set():
            self._transport.write(frame(opcode, data))

    async def writable(self) -> None:
        """Wait while the client reads slowly."""
        await self._writable.wait()

    def pause_reading(self) -> None:
        """Stop reading from the client until `resume_reading`."""
        self._paused = True
        self._update_reading()

    def resume_reading(self) -> None:
        """Read from the client again, unless writing is blocked."""
        self._paused = False
        self._update_reading()

    def _update_reading(self) -> None:
        transport, reading = self._transport, self._writable.is_set() and not self._paused
        if transport.is_closing() or transport.is_reading() == reading:
            return
        if reading:
            transport.resume_reading()
        else:
            transport.pause_reading()

    def close(self, code: int, reason: str = "") -> None:
        """Close the connection with a status code and a reason."""
        self._transport.write(frame(Opcode.CLOSE, struct.pack("!H", code) + reason.encode()))
        self._transport.close()

    def abort(self) -> None:
        """Close the connection immediately unless it is closing."""
        if not self._transport.is_closing():
            self._transport.abort()
