"""The client side of a WebSocket connection: the handshake, then messages in both directions with flow control."""

import asyncio
import base64
import os
import struct
from collections import deque
from typing import cast

import httptools

from kubewright.http.client.byte_transport import ByteTransport
from kubewright.http.client.exchange import ClientResponse
from kubewright.http.client.failures import ConnectionBroken, MalformedResponse, ReadTimeout
from kubewright.http.client.headers import HeaderField, Headers
from kubewright.http.websocket import (
    NORMAL,
    VERSION,
    FrameError,
    FrameReader,
    Opcode,
    WebSocketMessage,
    accept_key,
    frame,
)

HIGH_WATER = 1024 * 1024
"""Unread bytes at which reading from the socket pauses."""
MAX_HANDSHAKE = 64 * 1024
"""Bytes of a response to the handshake, with the body of an error."""
SWITCHING_PROTOCOLS = 101


def handshake_headers(protocol: str) -> tuple[tuple[str, str], ...]:
    """Return the headers of a request for a WebSocket with a subprotocol, with a new key."""
    return (
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Key", base64.b64encode(os.urandom(16)).decode()),
        ("Sec-WebSocket-Version", VERSION),
        ("Sec-WebSocket-Protocol", protocol),
    )


class ClientWebSocket(asyncio.Protocol):
    """One connection; `open` sends the handshake, then `send` and `receive` exchange messages until `close`."""

    def __init__(self, transport: ByteTransport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._frames = FrameReader(masked=False)
        self._fields: list[HeaderField] = []
        self._reason = b""
        self._body = b""
        self._head_size = 0
        self._complete = False
        self._responded: asyncio.Future[None] = self._loop.create_future()
        self._messages: deque[bytes] = deque()
        self._unread = 0
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost = False
        self.status: int = 0
        """The status of the response to the handshake."""

    async def open(self, head: bytes, timeout: float) -> ClientResponse:
        """Send the handshake and return the response: with status 101 messages can be exchanged, else it has a body."""
        self._transport.set_protocol(self)
        self._transport.write(head)
        try:
            async with asyncio.timeout(timeout):
                await self._responded
        except TimeoutError:
            raise ReadTimeout from None
        return ClientResponse(self.status, self._reason.decode("latin-1"), Headers(self._fields), self._body)

    async def receive(self) -> bytes | None:
        """Return the next message, waiting for it; None is the end."""
        while not self._messages and not self._lost:
            self._arrived.clear()
            await self._arrived.wait()
        if not self._messages:
            return None
        data = self._messages.popleft()
        self._unread -= len(data)
        if self._unread < HIGH_WATER <= self._unread + len(data) and not self._transport.is_closing():
            self._transport.resume_reading()
        return data

    async def send(self, data: bytes) -> None:
        """Send a message, after waiting while the server reads slowly; what is sent after the end is dropped."""
        await self._writable.wait()
        if not self._lost:
            self._transport.write(frame(Opcode.BINARY, data, os.urandom(4)))

    def close(self) -> None:
        """Close the connection."""
        if self._transport.is_closing():
            return
        if self.status == SWITCHING_PROTOCOLS:
            self._transport.write(frame(Opcode.CLOSE, struct.pack("!H", NORMAL), os.urandom(4)))
        self._transport.close()

    # Called by the transport.

    def attach(self, transport: ByteTransport) -> None:
        """Take the transport that is already set."""

    def data_received(self, data: bytes) -> None:
        """Decode the response to the handshake, then frames."""
        if self._parser is not None:
            data = self._handshake(self._parser, data)
        if not data or self._lost:
            return
        try:
            for message in self._frames.feed(data):
                self._take(message)
        except FrameError:
            self._end()

    def pause_writing(self) -> None:
        """Block `send`."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Release `send`."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """End: nothing more arrives."""
        self._parser = None  # it refers to this object
        self._lost = True
        self._arrived.set()
        self._writable.set()
        if not self._responded.done():
            self._responded.set_exception(ConnectionBroken(begun=bool(self.status), cause=exc))

    def _handshake(self, parser: httptools.HttpResponseParser, data: bytes) -> bytes:
        """Return the bytes that follow the response."""
        rest = b""
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = bytes(data[cast("int", upgrade.args[0]) :])
            self._complete = True
        except httptools.HttpParserError as error:
            self._refuse(MalformedResponse(str(error), bytes(data[:40])))
            return b""
        self._head_size += len(data) - len(rest)
        if self._head_size > MAX_HANDSHAKE:
            self._refuse(MalformedResponse(f"a response of more than {MAX_HANDSHAKE} bytes"))
        elif self._complete and not self._responded.done():
            self._parser = None
            self._responded.set_result(None)
        return rest

    def _refuse(self, failure: Exception) -> None:
        self._parser = None
        if not self._responded.done():
            self._responded.set_exception(failure)
        self._transport.abort()

    def _take(self, message: WebSocketMessage) -> None:
        if message.opcode is Opcode.PING:
            self._transport.write(frame(Opcode.PONG, message.data, os.urandom(4)))
        elif message.opcode is Opcode.CLOSE:
            self._end()
        elif message.opcode is not Opcode.PONG and message.data:
            self._messages.append(message.data)
            self._arrived.set()
            below = self._unread < HIGH_WATER
            self._unread += len(message.data)
            if below and self._unread >= HIGH_WATER:
                self._transport.pause_reading()

    def _end(self) -> None:
        self.close()
        self._lost = True
        self._arrived.set()
        self._writable.set()

    # Called by the parser.

    def on_status(self, reason: bytes) -> None:
        """Collect the reason phrase."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header."""
        self._fields.append((name, value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Note the status."""
        if self._parser is not None:
            self.status = self._parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        """Collect the body of an error."""
        self._body += data

    def on_message_complete(self) -> None:
        """Note that the response is whole; an informational one precedes it."""
        if self.status == SWITCHING_PROTOCOLS or self.status >= 200:
            self._complete = True


def check_accepted(response: ClientResponse, headers: tuple[tuple[str, str], ...]) -> None:
    """Raise MalformedResponse unless a response with status 101 accepts the handshake of these headers."""
    asked = dict(headers)
    if response.headers.get("Sec-WebSocket-Accept") != accept_key(asked["Sec-WebSocket-Key"]):
        raise MalformedResponse("the response does not accept the WebSocket")
    if response.headers.get("Sec-WebSocket-Protocol") != asked["Sec-WebSocket-Protocol"]:
        raise MalformedResponse(f"the subprotocol {asked['Sec-WebSocket-Protocol']} is not accepted")
