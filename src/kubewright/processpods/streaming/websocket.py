"""The server's end of a WebSocket: messages in, messages out, and an end."""

import asyncio
import struct
from typing import cast

from kubewright.processpods.streaming.frames import FrameError, FrameReader, Message, Opcode, frame

NORMAL, PROTOCOL_ERROR = 1000, 1002


class WebSocket(asyncio.Protocol):
    """One connection; subclasses handle messages (`received`) and the end (`ended`)."""

    def __init__(self) -> None:
        self._transport = cast(asyncio.Transport, None)
        self._frames = FrameReader()
        self._writable = asyncio.Event()
        self._writable.set()
        self._held = False
        self.lost: asyncio.Event = asyncio.Event()

    def received(self, data: bytes) -> None:
        """Take a message."""
        raise NotImplementedError

    def ended(self) -> None:
        """Handle the loss of the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Cut what comes into messages."""
        try:
            for message in self._frames.feed(data):
                self._take(message)
        except FrameError as error:
            self.close(PROTOCOL_ERROR, str(error))
            self.lost.set()

    def eof_received(self) -> bool:
        """Close with the client."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.lost.set()
        self._writable.set()
        self.ended()

    def pause_writing(self) -> None:
        """Hold back writers, and the client too: every message, even a ping, needs a reply that it does not read."""
        self._writable.clear()
        self._listen()

    def resume_writing(self) -> None:
        """Let writers go on."""
        self._writable.set()
        self._listen()

    def _take(self, message: Message) -> None:
        if message.opcode is Opcode.PING:
            self._transport.write(frame(Opcode.PONG, message.data))
        elif message.opcode is Opcode.CLOSE:
            self.close(NORMAL)
            self.lost.set()
        elif message.opcode is not Opcode.PONG and message.data:
            self.received(message.data)

    def send(self, data: bytes) -> None:
        """Send a message; `writable` is set when there is room for more."""
        if not self.lost.is_set():
            self._transport.write(frame(Opcode.BINARY, data))

    async def writable(self) -> None:
        """Wait while the client reads slowly."""
        await self._writable.wait()

    def hold(self) -> None:
        """Read nothing more from the client until `go_on`."""
        self._held = True
        self._listen()

    def go_on(self) -> None:
        """Read from the client again, once it takes what it was sent."""
        self._held = False
        self._listen()

    def _listen(self) -> None:
        transport, wanted = self._transport, self._writable.is_set() and not self._held
        if transport.is_closing() or transport.is_reading() == wanted:
            return
        if wanted:
            transport.resume_reading()
        else:
            transport.pause_reading()

    def close(self, code: int, reason: str = "") -> None:
        """Close the connection with a reason."""
        self._transport.write(frame(Opcode.CLOSE, struct.pack("!H", code) + reason.encode()))
        self._transport.close()

    def abort(self) -> None:
        """Drop the connection unless it is closed already."""
        if not self._transport.is_closing():
            self._transport.abort()
