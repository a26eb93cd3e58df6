"""One client's connection: HTTP/1.1 with keep-alive, pipelining, chunked streams and bounded buffers.

A connection is an asyncio protocol. Bytes go to a RequestReader, which reports whole requests; these wait in a queue
and are answered in order, so a response is never taken for that of another request. A response that the handler
returns directly is written inside `data_received`, without a task; coroutines, streams and upgrades run in a task of
the server. Refusals (400, 408, 413, 431) wait in the same queue and are the last response of their connection.
A client that closes its sending side still gets the responses to its requests; a stream ends, because it may have
no end of its own and the client may be gone altogether.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from functools import partial
from typing import Any, Protocol, cast

from kubewright.http.server.handler import Handler
from kubewright.http.server.limits import Limits
from kubewright.http.server.reader import BodyBudget, RequestReader
from kubewright.http.server.requests import Request
from kubewright.http.server.responses import (
    HangUp,
    InvalidHeader,
    Response,
    ServerResponse,
    Stream,
    Upgrade,
    response_head,
    stream_head,
    switch_head,
    text,
)

# From this size on, copying a body behind its head costs more than a second write.
_LARGE = 65536

_log = logging.getLogger("kubewright.http")


class ConnectionHost(Protocol):
    """What a connection needs from the server that it belongs to: `HttpServer`, which imports this module."""

    limits: Limits
    body_budget: BodyBudget
    draining: bool

    @property
    def at_capacity(self) -> bool:
        """Return True while a new connection waits for a free one."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work in the server's task group."""
        ...

    def opened(self, connection: "ServerConnection") -> None:
        """Register a connection that can receive requests."""
        ...

    def closed(self, connection: "ServerConnection") -> None:
        """Remove a connection that has ended."""
        ...


class ServerConnection(asyncio.Protocol):
    """Read requests from one transport and write their responses in order."""

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
        self._secure = False
        self._streaming = False
        self._chunked = True
        self._ending = False
        self._used = False
        self._active: float = loop.time()
        self._begun: float = 0.0
        self._half_closed_since: float | None = None
        self.blocked_since: float | None = None
        self.established: bool = False
        """True once requests can arrive: after the TLS handshake, if there is one."""

    @property
    def buffered(self) -> int:
        """Return how many bytes wait for the client to read them."""
        return self._transport.get_write_buffer_size()

    @property
    def idle_since(self) -> float | None:
        """Return when the connection became idle, or None while a request is arriving or being answered."""
        busy = self._task is not None or self._pending or self._reader.receiving
        return None if busy else self._active

    @property
    def used(self) -> bool:
        """Return True if a request was answered."""
        return self._used

    @property
    def stalled_since(self) -> float | None:
        """Return since when the connection waits for its client to send or read, or None if it does not.

        A connection that waits for its next request after an answered one is idle, not stalled.
        """
        if self.blocked_since is not None:
            return self.blocked_since
        if self._task is not None or self._pending:
            return None
        if self._reader.receiving:
            return self._begun
        return None if self._used else self._active

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start reading."""
        self.established = True
        self._transport = cast(asyncio.Transport, transport)
        self._secure = transport.get_extra_info("ssl_object") is not None
        host, handler = self._host, self._handler
        self._reader = RequestReader(self, handler, host.limits, host.body_budget, handler.peer(transport))
        host.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the work for this client."""
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
        """Hold responses back: the client reads slowly."""
        self.blocked_since = self._loop.time()
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        """Go on with responses."""
        self.blocked_since = None
        self._wake()
        self._next()

    def _wake(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    def data_received(self, data: bytes) -> None:
        """Read requests, and answer those whose response is available immediately."""
        if self._switched is None:
            self._reader.feed(data)
        else:
            self.switched(data)

    def eof_received(self) -> bool:
        """Keep the connection open if the client closed only its sending side and waits for responses."""
        waiting = self._task is not None or bool(self._pending)
        # asyncio ends a TLS connection in both directions when the client ends its own.
        if not waiting or self._streaming or self._ending or self._secure or self._switched is not None:
            return False
        self._half_closed_since = self._loop.time()
        return True

    def begun(self) -> None:
        """Note when a request began to arrive."""
        self._begun = self._loop.time()

    def expected(self) -> None:
        """Send 100 Continue, unless other responses are due first: clients go on by themselves after a while."""
        if not self._pending:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def received(self, request: Request) -> None:
        """Queue a request, and answer it if it is the first."""
        self._pending.append(request)
        if self._ending:
            self._take_turn()
        elif len(self._pending) == 1:
            self._next()
        elif len(self._pending) >= self._host.limits.pipelined:
            self._pause()

    def refuse(self, response: Response, *, bodiless: bool) -> None:
        """Make a refusal the last response of the connection, in its turn."""
        self._refusal, self._bodiless = response, bodiless
        self._next()

    def refused(self) -> None:
        """Close after a refusal: no more bytes are on their way that could destroy the response."""
        if self._ending:
            self.close()

    def switched(self, rest: bytes) -> None:
        """Keep bytes for the next protocol until it starts."""
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
        # One read may bring thousands of requests: read again only when they are answered.
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
                response = self._handler.handle(request)
            except HangUp:
                self.abort()
                return
            except Exception:
                _log_failure(request)
                response = _failure()
            if isinstance(response, Response):
                self._done(response)
            else:
                self._task = self._host.spawn(self._respond_later(request, response))
                if not isinstance(response, Stream | Upgrade):
                    self._task.add_done_callback(partial(_close, response))

    async def _respond_later(
        self, request: Request, response: Stream | Upgrade | Coroutine[Any, Any, ServerResponse]
    ) -> None:
        try:
            resolved = response if isinstance(response, Stream | Upgrade) else await response
            if isinstance(resolved, Response):
                self._done(resolved)
            elif self._half_closed_since is not None:
                self.abort()
            elif isinstance(resolved, Upgrade):
                self._switch(resolved)
                if resolved.run is not None:
                    await resolved.run()
                return
            else:
                await self._stream(resolved)
        except HangUp:
            self.abort()
        except asyncio.CancelledError:
            # Whatever the reason, the client must not wait for a response that will not come.
            self.abort()
            raise
        except Exception:
            _log_failure(request)
            if self._pending and self._pending[0] is request:
                self._done(_failure())
            else:
                self.abort()
        self._task = None
        self._next()

    def _take_turn(self) -> Request:
        request = self._pending.popleft()
        self._host.body_budget.give(len(request.body))
        return request

    def _keeps_alive(self, request: Request) -> bool:
        if not request.keep_alive:
            return False
        if self._half_closed_since is not None:
            return bool(self._pending)
        more = self._pending or self._reader.receiving
        host = self._host
        return bool(more) or not (host.draining or host.at_capacity)

    def _done(self, response: Response) -> None:
        request = self._take_turn()
        keep_alive = self._keeps_alive(request)
        try:
            self._send(response, keep_alive=keep_alive, bodiless=request.method == "HEAD")
        except InvalidHeader:
            _log_failure(request)
            self._send(_failure(), keep_alive=keep_alive, bodiless=request.method == "HEAD")
        self._settle(keep_alive=keep_alive)

    def _settle(self, *, keep_alive: bool) -> None:
        """Go on after a response, or close."""
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
        if self._reader.receiving and self._half_closed_since is None:
            self._lingering = self._loop.call_later(self._host.limits.linger_seconds, self.abort)
        else:
            self.close()

    async def _stream(self, stream: Stream) -> None:
        request = self._take_turn()
        keep_alive = self._keeps_alive(request)
        self._chunked = request.chunks
        preamble = self._handler.preamble(stream.headers)
        try:
            head = stream_head(stream, preamble, keep_alive=keep_alive, chunked=request.chunks)
        except InvalidHeader:
            _log_failure(request)
            self._send(_failure(), keep_alive=keep_alive, bodiless=request.method == "HEAD")
            self._settle(keep_alive=keep_alive)
            return
        self._transport.write(head)
        if request.method != "HEAD":
            self._streaming = True
            await stream.run(self)
            self._streaming = False
            if request.chunks:
                self._transport.write(b"0\r\n\r\n")
        self._settle(keep_alive=keep_alive)

    async def write(self, data: bytes) -> None:
        """Send one piece of a stream, then wait while the client reads slowly."""
        if self._transport.is_closing():
            raise HangUp("the client has closed the connection")
        if not data:
            # An empty chunk would end the body.
            return
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
        if self._drained is not None:
            await self._drained

    def _switch(self, upgrade: Upgrade) -> None:
        head = switch_head(upgrade)
        self._take_turn()
        transport = self._transport
        transport.write(head)
        protocol = upgrade.start(transport)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        self._host.closed(self)
        if self._switched:
            protocol.data_received(bytes(self._switched))
        self._resume()

    def expire(self, now: float) -> None:
        """End what takes too long: unread responses, unfinished requests, idle and half-closed connections."""
        limits = self._host.limits
        idle = self.idle_since
        idle_limit = limits.idle_seconds if self._used else limits.receive_seconds
        if self.blocked_since is not None:
            if now - self.blocked_since > limits.blocked_seconds:
                self.abort()
        elif self._half_closed_since is not None:
            if now - self._half_closed_since > limits.half_closed_seconds:
                self.abort()
        elif idle is not None:
            if now - idle > idle_limit and self._ending:
                # It was closed, and the client does not read the last bytes.
                self.abort()
            elif now - idle > idle_limit:
                self.close()
        elif self._reader.receiving and not self._paused and now - self._begun > limits.receive_seconds:
            self._reader.give_up(text(408, "408 Request Timeout"))

    def evict(self) -> None:
        """End a stalled or idle connection because a new one needs its place."""
        if self._reader.receiving and self.blocked_since is None and not self._ending:
            self._reader.give_up(text(408, "408 Request Timeout"))
        else:
            self.abort()

    def close_when_idle(self) -> None:
        """Close after the requests that were admitted, immediately if there are none."""
        if self._task is None and not self._pending and not self._reader.admitted:
            self.close()

    def close(self) -> None:
        """End the connection; buffered bytes are still sent."""
        self._ending = True
        self._transport.close()

    def abort(self) -> None:
        """End the connection immediately."""
        self._ending = True
        self._transport.abort()


def _close(work: Coroutine[Any, Any, Any], _: object) -> None:
    """Close a coroutine whose task was cancelled before it started."""
    work.close()


def _failure() -> Response:
    return text(500, "500 Internal Server Error\n")


def _log_failure(request: Request) -> None:
    _log.exception("Handler failed for %s %s", request.method, request.path)
