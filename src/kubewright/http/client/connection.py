"""One connection to a server: a request is sent, its response is received whole or piece by piece.

A connection is an asyncio protocol, not a task. A request is one write; the response is assembled inside the event
loop's callbacks, and the caller is woken once, when its goal is reached: the head, a piece, or the whole. There is one
timer for each connection. A response counts as whole only by its length, its last chunk, or an orderly end of the
connection (for TLS: with close_notify); a connection is reused only after a whole response that was read to its end.
"""

import asyncio
import re
from collections.abc import Callable
from enum import Enum, auto
from typing import cast

import httptools

from kubewright.http.client.byte_transport import ARRIVAL, ByteTransport
from kubewright.http.client.exchange import ClientResponse
from kubewright.http.client.failures import (
    ConnectionBroken,
    ExchangeFailed,
    MalformedResponse,
    NotSent,
    ReadTimeout,
    ResponseTooLarge,
)
from kubewright.http.client.gzip_decoder import GzipDecoder
from kubewright.http.client.headers import HeaderField, Headers

MAX_HEAD = 1024 * 1024
MAX_BODY = 1024 * 1024 * 1024
"""Bytes of a whole response."""
MAX_ERROR_BODY = 8 * 1024 * 1024
"""Bytes of a whole response that reports an error: a Status may quote an object, which has 1.5 MiB at most."""
HIGH_WATER = 1024 * 1024
"""Unread bytes of a stream at which reading from the socket pauses; the server then waits."""
PIECE = 64 * 1024
"""A longer request body is sent in pieces, each when there is room for it."""
BREATH = 0.002
"""Seconds for which the events of a burst accumulate; FLOOD_READS reads that follow each other faster are a burst."""
FLOOD_READS = 16
FLOOD_BYTES = 8 * 1024
_ROUNDING = 0.002
_NO_HEADERS = Headers()
_VERSIONS = ("1.1", "1.0")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class _Goal(Enum):
    HEAD = auto()
    PIECE = auto()
    WHOLE = auto()
    ROOM = auto()


class ClientConnection(asyncio.BufferedProtocol):
    """Send one request after the other; the caller ensures that there is only one at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._wire: ByteTransport | None = None
        self._buffer = memoryview(b"")
        self._pieces: list[bytes] = []
        # The parser calls this for each chunk: a built-in function, so that chunks cost no Python frame.
        self.on_body: Callable[[bytes], None] = self._pieces.append
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._goal = _Goal.HEAD
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_deadline = 0.0
        self._asking = False
        self._sending = False
        self._served = False
        self._full = False
        self._paused = False
        self._flood = False
        self._hasty = 0
        self._last = 0
        self._read_at = 0.0
        self._idle_since = loop.time()
        self._failure: ExchangeFailed | None = None
        self._reset()

    def _reset(self) -> None:
        self._fields: list[HeaderField] = []
        self._headers = _NO_HEADERS
        self._reason = b""
        self._status = 0
        self._received = 0
        self._headed = False
        self._done = False
        self._lasting = False
        self._until_end = False
        self._decoder: GzipDecoder | None = None
        self._decoded = 0
        self._max_body = MAX_BODY

    @property
    def usable(self) -> bool:
        """Return True if a request can be sent, as far as is known."""
        return self._wire is not None and not self._wire.is_closing()

    @property
    def idle_seconds(self) -> float:
        """Return for how long no request was sent."""
        return self._loop.time() - self._idle_since

    # Called by the pool.

    async def send(self, head: bytes, body: bytes, deadline: float) -> ClientResponse:
        """Send a request and return its whole response."""
        await self._send(head, body, deadline)
        await self._reach(_Goal.WHOLE, deadline)
        return self._response(self._take())

    async def stream(self, head: bytes, body: bytes, deadline: float) -> ClientResponse:
        """Send a request and return its response once the headers have arrived."""
        await self._send(head, body, deadline)
        await self._reach(_Goal.HEAD, deadline)
        return self._response(b"")

    async def read_all(self, deadline: float) -> bytes:
        """Return the unread rest of the body."""
        self._resume()
        await self._reach(_Goal.WHOLE, deadline)
        return self._take()

    async def read(self, idle: float) -> bytes:
        """Return what has arrived of the body since the last call, waiting if nothing has; b"" is the end."""
        if self._flood and self._last < ARRIVAL // 2:
            await self._accumulate()
        if not self._pieces:
            await self._reach(_Goal.PIECE, self._loop.time() + idle)
        data = self._take()
        self._detect_flood(len(data))
        return data

    def finish(self, keep_for: float) -> bool:
        """End the exchange and return True if the connection can be reused, for so many seconds.

        A request may be cancelled at its last moment: unread bytes would become part of the next response, and the
        next request part of a half-sent body.
        """
        if self._pieces or self._sending or not (self._done and self._lasting and self.usable):
            self.close()
            return False
        self._asking = False
        self._served = True
        self._idle_since = self._loop.time()
        self._wait_until(self._loop.time() + keep_for)
        return True

    def close(self) -> None:
        """Close, immediately if a response or the rest of a request is outstanding."""
        self._deadline = None
        if self._wire is None:
            return
        if self._asking and (self._sending or not self._done):
            # Recorded first: a body that ends with the connection would otherwise pass for whole.
            self._fail(ConnectionBroken(begun=self._headed))
        else:
            self._wire.close()

    def detach(self) -> ByteTransport | None:
        """Detach the transport and return it, so that another protocol can use it."""
        wire, self._wire = self._wire, None
        self.connection_lost(None)
        return wire

    async def _send(self, head: bytes, body: bytes, deadline: float) -> None:
        wire = self._wire
        if wire is None or wire.is_closing():
            raise NotSent
        self._reset()
        self._asking = True
        if len(body) <= PIECE:
            wire.write(head + body)
            return
        self._sending = True
        wire.write(head)
        for start in range(0, len(body), PIECE):
            if self._full:
                await self._reach(_Goal.ROOM, deadline)
            if self._done:
                # The response precedes the end of the request: the server does not read the rest.
                return
            wire.write(body[start : start + PIECE])
        self._sending = False

    async def _reach(self, goal: _Goal, deadline: float) -> None:
        self._goal = goal
        while not self._reached():
            if self._failure is not None:
                raise self._failure
            self._wait_until(deadline)
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                # A cancelled caller has no deadline any more.
                self._deadline = None
                raise
        self._deadline = None

    def _reached(self) -> bool:
        if self._done:
            return True
        goal = self._goal
        if goal is _Goal.WHOLE:
            return False
        if goal is _Goal.PIECE:
            return bool(self._pieces)
        if goal is _Goal.HEAD:
            return self._headed
        return not self._full

    def _response(self, body: bytes) -> ClientResponse:
        return ClientResponse(self._status, self._reason.decode("latin-1"), self._headers, body)

    def _take(self) -> bytes:
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._decoded = 0
        self._received = 0
        self._resume()
        return data

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self._resume_reading()

    def _resume_reading(self) -> None:
        if self._wire is not None and not self._wire.is_closing():
            self._wire.resume_reading()

    # A flood: ten thousand events in a row, each sent by itself. Waking for each one costs more than reading it.

    def _detect_flood(self, size: int) -> None:
        now = self._loop.time()
        if self._flood:
            self._flood = size >= FLOOD_BYTES
        elif now - self._read_at < BREATH:
            self._hasty += 1
            self._flood = self._hasty >= FLOOD_READS
        else:
            self._hasty = 0
        self._read_at = now

    async def _accumulate(self) -> None:
        """Let arriving bytes accumulate in the kernel for a moment, where they cost nothing."""
        self._hasty = 0
        if self._paused or self._done or self._wire is None or self._wire.is_closing():
            return
        self._wire.pause_reading()
        try:
            await asyncio.sleep(BREATH)
        finally:
            if not self._paused:
                self._resume_reading()

    # Time: one timer for a connection, which is moved only to an earlier deadline.

    def _wait_until(self, deadline: float) -> None:
        self._deadline = deadline
        if self._timer is not None:
            if self._timer_deadline <= deadline:
                return
            self._timer.cancel()
        self._timer_deadline = deadline
        self._timer = self._loop.call_at(deadline, self._tick)

    def _tick(self) -> None:
        self._timer = None
        deadline = self._deadline
        if deadline is None:
            return
        if self._loop.time() < deadline - _ROUNDING:
            self._wait_until(deadline)
        elif self._asking:
            self._fail(ReadTimeout())
        else:
            self.close()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start on a transport of the event loop."""
        self.attach(cast("asyncio.Transport", transport))

    def attach(self, transport: ByteTransport) -> None:
        """Start: requests can be sent."""
        self._wire = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """End: nothing more arrives."""
        self._wire = None
        # Parser and connection refer to each other: without this only the garbage collector frees them.
        self._parser = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._asking and not self._done and self._failure is None:
            whole = self._decoder is None or self._decoder.complete
            if self._until_end and exc is None and whole:
                self._done = True
            else:
                self._failure = ConnectionBroken(begun=self._headed, stale=self._served, cause=exc)
        self._wake()

    def pause_writing(self) -> None:
        """Stop sending a long body."""
        self._full = True

    def resume_writing(self) -> None:
        """Go on sending a long body."""
        self._full = False
        if self._goal is _Goal.ROOM:
            self._wake()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer that is used for every arrival: allocating one each time could cost more than the rest."""
        if not self._buffer:
            self._buffer = memoryview(bytearray(ARRIVAL))
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes from the event loop."""
        self.data_received(self._buffer[:nbytes])

    def eof_received(self) -> bool:
        """Close when the server closes its sending side."""
        return False

    def data_received(self, data: bytes | memoryview) -> None:
        """Feed the parser, and wake the caller if its goal is reached."""
        self._last = len(data)
        if not self._asking or self._done or self._parser is None:
            # No request is outstanding: the server reports a timeout, or responds twice.
            self._lasting = False
            self.close()
            return
        error_found: MalformedResponse | None = None
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._lasting = False
            if not self._done:
                reason = error.__context__ if isinstance(error.__context__, MalformedResponse) else error
                error_found = MalformedResponse(str(reason), bytes(data[:40]))
        size = len(data)
        # Also before an error: what arrived before it can still be read.
        if self._decoder is not None:
            size = self._decompress(self._decoder)
            if size is None:
                return
        if error_found is not None:
            self._fail(error_found)
            return
        if not self._done:
            self._bound(size if self._headed else len(data))
        if self._waiter is not None and self._reached():
            self._wake()

    def _bound(self, size: int) -> None:
        """Bound what is held: endless headers and whole bodies are errors, a slow reader pauses the server."""
        self._received += size
        if not self._headed:
            if self._received > MAX_HEAD:
                self._fail(MalformedResponse(f"headers of more than {MAX_HEAD} bytes"))
        elif self._goal is _Goal.WHOLE or self._goal is _Goal.ROOM:
            # Not paused before the request is sent: a server that cannot send may not receive either.
            if self._received > self._max_body:
                self._fail(ResponseTooLarge(self._status, self._max_body))
        elif self._received > HIGH_WATER and not self._paused:
            self._paused = True
            if self._wire is not None:
                self._wire.pause_reading()

    def _decompress(self, decoder: GzipDecoder) -> int | None:
        """Replace the pieces that have just arrived by their content; return its size, or None after a failure."""
        compressed = b"".join(self._pieces[self._decoded :])
        del self._pieces[self._decoded :]
        try:
            data = decoder.feed(compressed)
        except MalformedResponse as failure:
            self._done = False
            self._fail(failure)
            return None
        if data:
            self._pieces.append(data)
        self._decoded = len(self._pieces)
        if self._done and not decoder.complete:
            self._done = False
            self._fail(ConnectionBroken(begun=True))
            return None
        return len(data)

    def _fail(self, failure: ExchangeFailed) -> None:
        if self._failure is None:
            self._failure = failure
        if self._wire is not None:
            self._wire.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        self._waiter = None

    # Called by the parser.

    def on_message_begin(self) -> None:
        """Start a response, or refuse a second one."""
        if self._done:
            raise MalformedResponse("bytes after the end of the response")
        self._fields = []
        self._reason = b""

    def on_status(self, reason: bytes) -> None:
        """Collect the reason phrase, which may arrive in pieces."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header; trailers are dropped."""
        if not self._headed:
            # The parser leaves white space behind a value, which is no part of it.
            self._fields.append((name, value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Determine how the body ends and how it is encoded."""
        assert self._parser is not None
        self._status = self._parser.get_status_code()
        if self._parser.get_http_version() not in _VERSIONS:
            raise MalformedResponse(f"HTTP version {self._parser.get_http_version()}")
        if _CONTROL.search(self._reason):
            raise MalformedResponse("the reason phrase contains control characters")
        if self._status < 200:
            return
        self._headed = True
        self._received = 0
        headers = self._headers = Headers(self._fields)
        chunked = False
        if "Transfer-Encoding" in headers:
            codings = headers.all("Transfer-Encoding")
            if len(codings) > 1 or codings[0].lower() != "chunked":
                # Further codings would have to be decoded, or the body would not be what the server meant.
                raise MalformedResponse(f"unsupported Transfer-Encoding {', '.join(codings)!r}")
            chunked = True
        self._until_end = not chunked and "Content-Length" not in headers
        if headers.get("Content-Encoding", "").lower() == "gzip":
            self._decoder = GzipDecoder()
        if self._status >= 300:
            self._max_body = MAX_ERROR_BODY

    def on_message_complete(self) -> None:
        """Note that the response is whole, and whether the server keeps the connection."""
        assert self._parser is not None
        if self._status >= 200:
            self._done = True
            self._lasting = self._parser.should_keep_alive()
