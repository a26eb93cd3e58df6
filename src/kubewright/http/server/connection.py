"""One client's connection: HTTP/1.1 with keep-alive, pipelines, chunked streams and bounded buffers."""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from functools import partial
from typing import Any, Protocol, cast

from kubewright.http.server.answers import (
    Answer,
    HangUp,
    Response,
    Stream,
    Upgrade,
    response_head,
    stream_head,
    switch_head,
    text,
)
from kubewright.http.server.handler import Handler
from kubewright.http.server.limits import Limits
from kubewright.http.server.reader import RequestReader, Room
from kubewright.http.server.requests import Request

# From here on a body is not worth being copied behind its head.
_LARGE = 65536

_log = logging.getLogger("kubewright.http")


class ConnectionHost(Protocol):
    """What a connection needs from the server that it belongs to."""

    limits: Limits
    room: Room
    draining: bool

    @property
    def crowded(self) -> bool:
        """Tell whether others wait for a place."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work in the server's task group."""
        ...

    def opened(self, connection: "ServerConnection") -> None:
        """Learn of a new connection."""
        ...

    def closed(self, connection: "ServerConnection") -> None:
        """Learn that a connection is gone."""
        ...


class ServerConnection(asyncio.Protocol):
    """Read requests from one transport and write their answers in order."""

    def __init__(self, handler: Handler, host: ConnectionHost, loop: asyncio.AbstractEventLoop) -> None:
        self._handler = handler
        self._host = host
        self._loop = loop
        self._transport = cast(asyncio.Transport, None)
        self._reader = cast(RequestReader, None)
        self._pending: deque[Request] = deque()
        self._paused = False
        self._refusal: Response | None = None
        self._bodiless = False
        self._lingering: asyncio.TimerHandle | None = None
        self._switched: bytearray | None = None
        self._task: asyncio.Task[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._chunked = True
        self._ending = False
        self._used = False
        self._active: float = loop.time()
        self._begun: float = 0.0
        self.blocked_since: float | None = None
        self.made: bool = False
        """Whether it ever came so far that it could ask."""

    @property
    def buffered(self) -> int:
        """Tell how many bytes wait to be read by the client."""
        return self._transport.get_write_buffer_size()

    @property
    def used(self) -> bool:
        """Tell whether a request was answered."""
        return self._used

    @property
    def idle_since(self) -> float | None:
        """Tell since when nothing was asked; None while something is."""
        busy = self._task is not None or self._pending or self._reader.receiving
        return None if busy else self._active

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start reading."""
        self.made = True
        self._transport = cast(asyncio.Transport, transport)
        host, handler = self._host, self._handler
        self._reader = RequestReader(self, handler, host.limits, host.room, handler.peer(transport))
        host.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop what was being done for this client."""
        self._ending = True
        self._host.closed(self)
        self._reader.release()
        while self._pending:
            self._take_turn()
        if self._task is not None:
            self._task.cancel()
        if self._lingering is not None:
            self._lingering.cancel()
        self._wake()

    def pause_writing(self) -> None:
        """Hold answers back: the client reads slowly."""
        self.blocked_since = self._loop.time()
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let answers go on."""
        self.blocked_since = None
        self._wake()
        self._next()

    def _wake(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    def data_received(self, data: bytes) -> None:
        """Read requests; those whose answer is at hand are answered here and now."""
        if self._switched is None:
            self._reader.feed(data)
        else:
            self.switched(data)

    def eof_received(self) -> bool:
        """Close when the client has nothing more to say."""
        return False

    def begun(self) -> None:
        """Note when the request began."""
        self._begun = self._loop.time()

    def expected(self) -> None:
        """Let the body come, unless other answers go first: those who are not told to go on do so after a while."""
        if not self._pending:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def received(self, request: Request) -> None:
        """Queue a request; answer it when it is the first."""
        self._pending.append(request)
        if self._ending:
            self._take_turn()
        elif len(self._pending) == 1:
            self._next()
        elif len(self._pending) >= self._host.limits.pipelined:
            self._pause()

    def refuse(self, answer: Response, *, bodiless: bool) -> None:
        """Let a refusal be the last answer, in its turn."""
        self._refusal, self._bodiless = answer, bodiless
        self._next()

    def refused(self) -> None:
        """Close after a refusal: nothing is on its way any more that could destroy it."""
        if self._ending:
            self.close()

    def switched(self, rest: bytes) -> None:
        """Keep what is for the next protocol until it is there."""
        if self._switched is None:
            self._switched = bytearray()
        self._switched += rest
        if len(self._switched) > self._host.limits.head:
            self._pause()

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        # One read may bring thousands of requests: there is another only when they are answered.
        if self._paused and len(self._pending) < self._host.limits.pipelined:
            self._paused = False
            self._transport.resume_reading()

    def _next(self) -> None:
        while self._task is None and self.blocked_since is None and not self._ending:
            if not self._pending:
                if self._refusal is not None:
                    self._send_refusal(self._refusal)
                return
            request = self._pending[0]
            try:
                answer = self._handler.handle(request)
            except HangUp:
                self.abort()
                return
            except Exception:
                _log.exception("answering %s %s failed", request.method, request.path)
                answer = _failure()
            if isinstance(answer, Response):
                self._done(answer)
            else:
                self._task = self._host.spawn(self._answer_later(request, answer))
                if not isinstance(answer, Stream | Upgrade):
                    self._task.add_done_callback(partial(_close, answer))

    async def _answer_later(
        self, request: Request, answer: Stream | Upgrade | Coroutine[Any, Any, Answer]
    ) -> None:
        try:
            resolved = answer if isinstance(answer, Stream | Upgrade) else await answer
            if isinstance(resolved, Upgrade):
                self._switch(resolved)
                if resolved.run is not None:
                    await resolved.run()
                return
            if isinstance(resolved, Stream):
                await self._stream(resolved)
            else:
                self._done(resolved)
        except HangUp:
            self.abort()
        except asyncio.CancelledError:
            # By whomever: nobody is to wait for an answer that will not come.
            self.abort()
            raise
        except Exception:
            _log.exception("answering %s %s failed", request.method, request.path)
            if self._pending and self._pending[0] is request:
                self._done(_failure())
            else:
                self.abort()
        self._task = None
        self._next()

    def _take_turn(self) -> Request:
        request = self._pending.popleft()
        self._host.room.give(len(request.body))
        return request

    def _stays(self, request: Request) -> bool:
        more = self._pending or self._reader.receiving
        host = self._host
        return request.keep_alive and (bool(more) or not (host.draining or host.crowded))

    def _done(self, response: Response) -> None:
        request = self._take_turn()
        keep_alive = self._stays(request)
        self._send(response, keep_alive=keep_alive, bodiless=request.method == "HEAD")
        self._settle(keep_alive=keep_alive)

    def _settle(self, *, keep_alive: bool) -> None:
        """Go on after an answer, or end."""
        self._used = True
        self._active = self._loop.time()
        if not keep_alive:
            self.close()
        else:
            self._resume()

    def _send(self, response: Response, *, keep_alive: bool, bodiless: bool = False) -> None:
        preamble = self._handler.preamble(response.headers)
        head = response_head(response, preamble, keep_alive=keep_alive)
        body = b"" if bodiless else response.body
        if len(body) < _LARGE:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)

    def _send_refusal(self, refusal: Response) -> None:
        self._ending = True
        self._send(refusal, keep_alive=False, bodiless=self._bodiless)
        if self._reader.receiving:
            self._lingering = self._loop.call_later(self._host.limits.linger_seconds, self.abort)
        else:
            self.close()

    async def _stream(self, stream: Stream) -> None:
        request = self._take_turn()
        keep_alive = self._stays(request)
        self._chunked = request.chunks
        preamble = self._handler.preamble(stream.headers)
        self._transport.write(stream_head(stream, preamble, keep_alive=keep_alive, chunked=request.chunks))
        if request.method != "HEAD":
            await stream.run(self)
            if request.chunks:
                self._transport.write(b"0\r\n\r\n")
        self._settle(keep_alive=keep_alive)

    async def write(self, data: bytes) -> None:
        """Send one piece of a stream; wait while the client reads slowly."""
        if self._transport.is_closing():
            raise HangUp("the client went away")
        if not data:
            # An empty chunk would be the end.
            return
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
        if self._drained is not None:
            await self._drained

    def _switch(self, upgrade: Upgrade) -> None:
        self._take_turn()
        transport = self._transport
        transport.write(switch_head(upgrade))
        protocol = upgrade.start(transport)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        self._host.closed(self)
        if self._switched:
            protocol.data_received(bytes(self._switched))
        self._resume()

    def expire(self, now: float) -> None:
        """End what takes too long: a client that does not read, a request that does not come, silence."""
        limits = self._host.limits
        idle = self.idle_since
        patience = limits.idle_seconds if self._used else limits.receive_seconds
        if self.blocked_since is not None:
            if now - self.blocked_since > limits.blocked_seconds:
                self.abort()
        elif idle is not None:
            if now - idle > patience and self._ending:
                # It was closed, and its client does not take the last bytes.
                self.abort()
            elif now - idle > patience:
                self.close()
        elif self._reader.receiving and not self._paused and now - self._begun > limits.receive_seconds:
            self._reader.give_up(text(408, "408 Request Timeout"))

    def leave(self) -> None:
        """Close, unless a request was taken on; then its answer is the last."""
        if self._task is None and not self._pending and not self._reader.admitted:
            self.close()

    def close(self) -> None:
        """End the connection; buffered bytes are still sent."""
        self._ending = True
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._ending = True
        self._transport.abort()


def _close(work: Coroutine[Any, Any, Any], _: object) -> None:
    """End work that a task was cancelled before it began with."""
    work.close()


def _failure() -> Response:
    return text(500, "500 Internal Server Error\n")
