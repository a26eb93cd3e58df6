"""One client's connection: HTTP/1.1 on httptools, keep-alive, chunked streams, bounded bodies and buffers."""

import asyncio
import hashlib
import logging
import os
import ssl
from collections import deque
from collections.abc import Coroutine
from typing import Any, Protocol, cast

import httptools

from .objects import encode
from .request import FINGERPRINT, Request, split_target
from .responses import JSON, Answer, Headers, Response, Stream, Upgrade, phrase, text
from .status import StatusError

MAX_BODY = 3 * 1024 * 1024
MAX_HEADERS = 1024 * 1024
MAX_DISCARDED = 64 * 1024 * 1024
MAX_PIPELINED = 16

_log = logging.getLogger("kubewright.devserver")


class Host(Protocol):
    """What a connection needs from the server behind it."""

    def handle(self, request: Request) -> Answer | Coroutine[Any, Any, Answer]:
        """Answer a request, at once or later."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work in the server's task group."""
        ...

    def date(self) -> str:
        """Give the text of the Date header."""
        ...

    def opened(self, connection: "Connection") -> None:
        """Learn of a new connection."""
        ...

    def closed(self, connection: "Connection") -> None:
        """Learn that a connection is gone."""
        ...


class Connection(asyncio.Protocol):
    """Read requests from one transport and write their answers in order."""

    def __init__(self, host: Host, loop: asyncio.AbstractEventLoop) -> None:
        self._host = host
        self._loop = loop
        self._parser = httptools.HttpRequestParser(self)
        self._transport = cast(asyncio.Transport, None)
        self._peer: dict[str, Any] | None = None
        self._pending: deque[Request] = deque()
        self._keep_alive: deque[bool] = deque()
        self._task: asyncio.Task[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._ending = False
        self._reset_message()
        self.last_active: float = loop.time()
        self.blocked_since: float | None = None

    def _reset_message(self) -> None:
        self._target = b""
        self._headers: dict[str, str] = {}
        self._fields: list[tuple[str, str]] = []
        self._header_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._refused: Response | None = None

    @property
    def buffered(self) -> int:
        """Tell how many bytes wait to be read by the client."""
        return self._transport.get_write_buffer_size()

    @property
    def idle(self) -> bool:
        """Tell whether no request is being answered."""
        return self._task is None and not self._pending

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start reading."""
        self._transport = cast(asyncio.Transport, transport)
        self._peer = _peer_certificate(transport)
        self._host.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop what was being done for this client."""
        self._host.closed(self)
        self._pending.clear()
        if self._task is not None:
            self._task.cancel()
        self._wake()

    def pause_writing(self) -> None:
        """Hold writers back: the client reads slowly."""
        self.blocked_since = self._loop.time()
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let writers go on."""
        self.blocked_since = None
        self._wake()

    def _wake(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    def data_received(self, data: bytes) -> None:
        """Feed the parser; its callbacks make requests."""
        self.last_active = self._loop.time()
        if self._ending:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return
        except httptools.HttpParserCallbackError as error:
            _log.warning("dropped a connection: %s", error)
            self._transport.abort()
        except httptools.HttpParserError:
            self._send(text(400, "400 Bad Request"), keep_alive=False)
            self.close()

    def eof_received(self) -> bool:
        """Close when the client has nothing more to say."""
        return False

    def on_message_begin(self) -> None:
        """Start a request."""
        self._reset_message()

    def on_url(self, url: bytes) -> None:
        """Collect the target, which may come in pieces."""
        self._target += url
        self._count_header(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header; repeated ones are joined as HTTP allows."""
        self._count_header(len(name) + len(value))
        key = name.decode("latin-1").lower()
        content = value.decode("latin-1")
        self._fields.append((key, content))
        if key in self._headers:
            content = f"{self._headers[key]}, {content}"
        self._headers[key] = content

    def _count_header(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > MAX_HEADERS and self._refused is None:
            self._refused = text(431, "431 Request Header Fields Too Large")

    def on_headers_complete(self) -> None:
        """Decide about the body before it comes."""
        length = self._headers.get("content-length", "0")
        if self._refused is None and length.isdigit() and int(length) > MAX_BODY:
            self._refused = _too_large()
        if self._refused is not None:
            # The rest is still read: closing on unread data could destroy the answer on its way.
            self._send(self._refused, keep_alive=False)
        elif self._headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Collect the body up to the limit, then only count it."""
        self._body_bytes += len(body)
        if self._refused is None:
            if self._body_bytes <= MAX_BODY:
                self._body.append(body)
                return
            self._refused = _too_large()
            self._send(self._refused, keep_alive=False)
        if self._body_bytes > MAX_DISCARDED:
            self.abort()

    def on_message_complete(self) -> None:
        """Queue the request that has come in whole."""
        if self._refused is not None:
            self.close()
        if self._ending:
            return
        path, query = split_target(self._target.decode("latin-1"))
        upgrade = self._parser.should_upgrade()
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        method = self._parser.get_method().decode("latin-1")
        self._pending.append(
            Request(method, path, query, self._headers, body, self._peer, upgrade, self._fields)
        )
        self._keep_alive.append(self._parser.should_keep_alive() and not upgrade)
        if self._task is None and len(self._pending) == 1:
            self._next()
        elif len(self._pending) >= MAX_PIPELINED:
            self._transport.pause_reading()

    def _next(self) -> None:
        while self._pending and self._task is None and not self._ending:
            request = self._pending[0]
            answer = self._host.handle(request)
            if isinstance(answer, Response):
                self._done(answer)
            else:
                self._task = self._host.spawn(self._answer_later(request, answer))

    async def _answer_later(
        self, request: Request, answer: Stream | Upgrade | Coroutine[Any, Any, Answer]
    ) -> None:
        try:
            resolved = answer if isinstance(answer, Stream | Upgrade) else await answer
            if isinstance(resolved, Upgrade):
                self._upgrade(resolved)
                if resolved.run is not None:
                    await resolved.run()
                return
            if isinstance(resolved, Stream):
                await self._stream(resolved)
            else:
                self._done(resolved)
        except ConnectionError:
            self.abort()
        except Exception:
            _log.exception("answering %s %s failed", request.method, request.path)
            self.abort()
        self._task = None
        self._next()

    def _done(self, response: Response) -> None:
        self._pending.popleft()
        keep_alive = self._keep_alive.popleft()
        self._send(response, keep_alive=keep_alive)
        if not keep_alive:
            self.close()
        elif len(self._pending) < MAX_PIPELINED and not self._transport.is_reading():
            self._transport.resume_reading()

    def _send(self, response: Response, *, keep_alive: bool) -> None:
        head = self._head(response.status, response.content_type, response.headers, keep_alive=keep_alive)
        head += b"Content-Length: %d\r\n\r\n" % len(response.body)
        if len(response.body) < 65536:
            self._transport.write(head + response.body)
        else:
            self._transport.write(head)
            self._transport.write(response.body)

    def _head(self, status: int, content_type: str, headers: Headers, *, keep_alive: bool) -> bytes:
        audit = os.urandom(16).hex()
        lines = [
            f"HTTP/1.1 {status} {phrase(status)}",
            f"Audit-Id: {audit[:8]}-{audit[8:12]}-{audit[12:16]}-{audit[16:20]}-{audit[20:]}",
            f"Date: {self._host.date()}",
        ]
        if content_type:
            lines.append(f"Content-Type: {content_type}")
        if not any(name == "Cache-Control" for name, _ in headers):
            lines.append("Cache-Control: no-cache, private")
        lines += [f"{name}: {value}" for name, value in headers]
        if not keep_alive:
            lines.append("Connection: close")
        return "\r\n".join(lines).encode("utf-8", "replace") + b"\r\n"

    async def _stream(self, stream: Stream) -> None:
        self._pending.popleft()
        keep_alive = self._keep_alive.popleft()
        head = self._head(stream.status, stream.content_type, stream.headers, keep_alive=keep_alive)
        self._transport.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
        await stream.run(self)
        self._transport.write(b"0\r\n\r\n")
        if not keep_alive:
            self.close()

    async def write(self, data: bytes) -> None:
        """Send one chunk of a stream; wait while the client reads slowly."""
        if self._transport.is_closing():
            raise ConnectionResetError("the client went away")
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        if self._drained is not None:
            await self._drained

    def _upgrade(self, upgrade: Upgrade) -> None:
        lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in upgrade.headers)]
        self._transport.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        protocol = upgrade.start(self._transport)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        self._host.closed(self)

    def close(self) -> None:
        """End the connection; buffered bytes are still sent."""
        self._ending = True
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._ending = True
        self._transport.abort()


def _too_large() -> Response:
    return Response(413, encode(StatusError.too_large(f"limit is {MAX_BODY}").wire()), JSON)


def _peer_certificate(transport: asyncio.BaseTransport) -> dict[str, Any] | None:
    """Give the client's verified certificate with its fingerprint, by which audits tell credentials apart."""
    certificate: dict[str, Any] | None = transport.get_extra_info("peercert")
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    encoded = tls.getpeercert(binary_form=True) if certificate and tls else None
    if certificate is None or encoded is None:
        return certificate or None
    return {**certificate, FINGERPRINT: hashlib.sha256(encoded).hexdigest()}
