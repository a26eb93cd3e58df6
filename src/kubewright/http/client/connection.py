"""One connection to a server: a request goes out, its answer comes in whole or piece by piece."""

import asyncio
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
)
from kubewright.http.client.headers import Field, Headers
from kubewright.http.client.inflation import Inflater

MAX_HEAD = 1024 * 1024
HIGH_WATER = 1024 * 1024
"""A reader that is this many bytes behind is not read for; the server then waits."""
PIECE = 64 * 1024
"""A body longer than this goes out in pieces, each when there is room for it."""
BREATH = 0.002
"""Seconds for which a flood is left to gather; so many reads that follow each other faster than that are one."""
FLOOD_READS = 16
FLOOD_BYTES = 8 * 1024
_ROUNDING = 0.002
_NO_HEADERS = Headers()


class _Goal(Enum):
    HEAD = auto()
    PIECE = auto()
    WHOLE = auto()
    ROOM = auto()


class ClientConnection(asyncio.BufferedProtocol):
    """Ask one thing after the other; whoever asks sees to it that nobody else does meanwhile."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._wire: ByteTransport | None = None
        self._buffer = memoryview(b"")
        self._pieces: list[bytes] = []
        # The parser calls this for each chunk: a built-in, so that ten thousand chunks need no frame of Python.
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
        self._rests_since = loop.time()
        self._failure: ExchangeFailed | None = None
        self._reset()

    def _reset(self) -> None:
        self._fields: list[Field] = []
        self._headers = _NO_HEADERS
        self._reason = b""
        self._status = 0
        self._received = 0
        self._headed = False
        self._done = False
        self._lasting = False
        self._until_end = False
        self._inflater: Inflater | None = None
        self._unpacked = 0

    @property
    def usable(self) -> bool:
        """Tell whether a request can be sent, as far as is known."""
        return self._wire is not None and not self._wire.is_closing()

    @property
    def rested(self) -> float:
        """Tell for how many seconds it has not been asked anything."""
        return self._loop.time() - self._rests_since

    # The side that asks.

    async def send(self, head: bytes, body: bytes, deadline: float) -> ClientResponse:
        """Send a request and return its whole answer."""
        await self._send(head, body, deadline)
        await self._reach(_Goal.WHOLE, deadline)
        return self._answer(self._gathered())

    async def stream(self, head: bytes, body: bytes, deadline: float) -> ClientResponse:
        """Send a request and return once the answer's headers are there."""
        await self._send(head, body, deadline)
        await self._reach(_Goal.HEAD, deadline)
        return self._answer(b"")

    async def read_all(self, deadline: float) -> bytes:
        """Return all of the body that was not read yet."""
        self._go_on()
        await self._reach(_Goal.WHOLE, deadline)
        return self._gathered()

    async def read(self, idle: float) -> bytes:
        """Return what has come of the body since the last call; wait if nothing has; nothing is the end."""
        if self._flood and self._last < ARRIVAL // 2:
            await self._breathe()
        if not self._pieces:
            await self._reach(_Goal.PIECE, self._loop.time() + idle)
        data = self._gathered()
        self._look_for_flood(len(data))
        return data

    def finish(self, keep_for: float) -> bool:
        """Receiver the exchange; tell whether the connection can serve another one within so many seconds."""
        # A request may be cancelled at its last moment: what nobody has read would become part of the next answer,
        # and the next request part of a body that is only half out.
        if self._pieces or self._sending or not (self._done and self._lasting and self.usable):
            self.close()
            return False
        self._asking = False
        self._served = True
        self._rests_since = self._loop.time()
        self._wait_until(self._loop.time() + keep_for)
        return True

    def close(self) -> None:
        """Take leave of the server, at once if it still has something to say or does not want to hear the rest."""
        self._deadline = None
        if self._wire is None:
            return
        if self._asking and (self._sending or not self._done):
            # Said before it ends: a body that lasts as long as the connection would pass for whole.
            self._fail(ConnectionBroken(begun=self._headed))
        else:
            self._wire.close()

    def detach(self) -> ByteTransport | None:
        """Give the wire away, for something else to be spoken on it."""
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
                # The answer is there before the request is out: the server does not want the rest.
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

    def _answer(self, body: bytes) -> ClientResponse:
        return ClientResponse(self._status, self._reason.decode("latin-1"), self._headers, body)

    def _gathered(self) -> bytes:
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._unpacked = 0
        self._received = 0
        self._go_on()
        return data

    def _go_on(self) -> None:
        if self._paused:
            self._paused = False
            self._let_in()

    def _let_in(self) -> None:
        if self._wire is not None and not self._wire.is_closing():
            self._wire.resume_reading()

    # A flood: ten thousand events at once, each sent by itself. To be woken for each costs more than to read it.

    def _look_for_flood(self, size: int) -> None:
        now = self._loop.time()
        if self._flood:
            self._flood = size >= FLOOD_BYTES
        elif now - self._read_at < BREATH:
            self._hasty += 1
            self._flood = self._hasty >= FLOOD_READS
        else:
            self._hasty = 0
        self._read_at = now

    async def _breathe(self) -> None:
        """Let a moment's arrivals gather where they cost nothing: in the kernel."""
        self._hasty = 0
        if self._paused or self._done or self._wire is None or self._wire.is_closing():
            return
        self._wire.pause_reading()
        try:
            await asyncio.sleep(BREATH)
        finally:
            if not self._paused:
                self._let_in()

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

    # The event loop's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin on a transport of the event loop."""
        self.attach(cast("asyncio.Transport", transport))

    def attach(self, wire: ByteTransport) -> None:
        """Begin: requests can go out."""
        self._wire = wire

    def connection_lost(self, exc: Exception | None) -> None:
        """Receiver: whatever is still waited for will not come."""
        self._wire = None
        # The parser holds our methods, and we the parser: without this only the garbage collector parts them.
        self._parser = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._asking and not self._done and self._failure is None:
            whole = self._inflater is None or self._inflater.complete
            if self._until_end and exc is None and whole:
                self._done = True
            else:
                self._failure = ConnectionBroken(begun=self._headed, stale=self._served, cause=exc)
        self._wake()

    def pause_writing(self) -> None:
        """Hold a long body back."""
        self._full = True

    def resume_writing(self) -> None:
        """Let a long body go on."""
        self._full = False
        if self._goal is _Goal.ROOM:
            self._wake()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Offer room that is used again: a new piece of memory for each arrival may cost more than all else."""
        if not self._buffer:
            self._buffer = memoryview(bytearray(ARRIVAL))
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take in what has come from the event loop."""
        self.data_received(self._buffer[:nbytes])

    def eof_received(self) -> bool:
        """Close when the server has nothing more to say."""
        return False

    def data_received(self, data: bytes | memoryview) -> None:
        """Feed the parser, and wake who waits for what is there now."""
        self._last = len(data)
        if not self._asking or self._done or self._parser is None:
            # Nobody asked: a server that says good-bye, or answers twice.
            self._lasting = False
            self.close()
            return
        trouble: MalformedResponse | None = None
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._lasting = False
            if not self._done:
                trouble = MalformedResponse(str(error), bytes(data[:40]))
        # Also before trouble: what came before it is still read, and not as it was packed.
        if self._inflater is not None and not self._unpack(self._inflater):
            return
        if trouble is not None:
            self._fail(trouble)
            return
        if not self._done and (self._goal is not _Goal.WHOLE or not self._headed):
            self._count(len(data))
        if self._waiter is not None and self._reached():
            self._wake()

    def _count(self, size: int) -> None:
        """Bound what is held for a reader that is slow, or for headers that do not end."""
        self._received += size
        if not self._headed:
            if self._received > MAX_HEAD:
                self._fail(MalformedResponse(f"headers of more than {MAX_HEAD} bytes"))
        elif self._goal is not _Goal.ROOM and self._received > HIGH_WATER and not self._paused:
            # Not before the request is out: a server that is not listened to may not listen either.
            self._paused = True
            if self._wire is not None:
                self._wire.pause_reading()

    def _unpack(self, inflater: Inflater) -> bool:
        """Replace the packed pieces that have just come by what they hold."""
        packed = b"".join(self._pieces[self._unpacked :])
        del self._pieces[self._unpacked :]
        try:
            if data := inflater.feed(packed):
                self._pieces.append(data)
        except MalformedResponse as failure:
            self._done = False
            self._fail(failure)
            return False
        self._unpacked = len(self._pieces)
        if self._done and not inflater.complete:
            self._done = False
            self._fail(ConnectionBroken(begun=True))
            return False
        return True

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

    # The parser's side.

    def on_message_begin(self) -> None:
        """Start an answer, or refuse one that nobody asked for."""
        if self._done:
            raise MalformedResponse("more came than the answer")
        self._fields = []
        self._reason = b""

    def on_status(self, reason: bytes) -> None:
        """Collect the text beside the status, which may come in pieces."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header; what trails the body is none."""
        if not self._headed:
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """Learn what kind of body comes."""
        assert self._parser is not None
        self._status = self._parser.get_status_code()
        if self._status < 200:
            return
        self._headed = True
        self._received = 0
        headers = self._headers = Headers(self._fields)
        self._until_end = "Content-Length" not in headers and not any(
            "chunked" in coding.lower() for coding in headers.all("Transfer-Encoding")
        )
        if headers.get("Content-Encoding", "").lower() == "gzip":
            self._inflater = Inflater()

    def on_message_complete(self) -> None:
        """Note that the answer is whole, and whether the server goes on listening."""
        assert self._parser is not None
        if self._status >= 200:
            self._done = True
            self._lasting = self._parser.should_keep_alive()
