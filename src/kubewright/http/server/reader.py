"""Requests out of bytes: what the parser tells is put together, within limits."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol

import httptools

from kubewright.http.server.answers import Response, text
from kubewright.http.server.handler import Handler
from kubewright.http.server.limits import Limits
from kubewright.http.server.requests import Request, split_target

# What a chunk of one byte brings along: its size, and two line ends.
_CHUNKING = 6
_FIELD = 32
# Spelled as clients do, and at hand in small letters.
_NAMES = {
    name: name.decode().lower()
    for name in (
        *(b"Accept", b"Accept-Encoding", b"Authorization", b"Connection", b"Content-Length"),
        *(b"Content-Type", b"Host", b"Kubectl-Command", b"Kubectl-Session", b"User-Agent"),
    )
}

_log = logging.getLogger("kubewright.http")


class Room:
    """Bytes that the bodies of all connections share."""

    def __init__(self, size: int) -> None:
        self.left: int = size

    def take(self, size: int) -> bool:
        """Take some, if there is as much."""
        if size > self.left:
            return False
        self.left -= size
        return True

    def give(self, size: int) -> None:
        """Give back what was taken."""
        self.left += size


class Sink(Protocol):
    """Where requests go."""

    def begun(self) -> None:
        """Learn that a request has begun to come in."""
        ...

    def expected(self) -> None:
        """Tell the client to go on: it waits with the body until its head was found good."""
        ...

    def received(self, request: Request) -> None:
        """Take a whole request; its body is to be given back to the room."""
        ...

    def refuse(self, answer: Response, *, bodiless: bool) -> None:
        """Answer to what is no request that can be taken; nothing after it is."""
        ...

    def refused(self) -> None:
        """Learn that nothing of the refused request is awaited any more."""
        ...

    def switched(self, rest: bytes) -> None:
        """Take what came after a request for another protocol."""
        ...

    def abort(self) -> None:
        """Hang up."""
        ...


class RequestReader:
    """Puts together the requests of one connection; `receiving` while one is under way."""

    def __init__(
        self, sink: Sink, handler: Handler, limits: Limits, room: Room, peer: Mapping[str, Any] | None
    ) -> None:
        self._sink = sink
        self._handler = handler
        self._limits = limits
        self._most = limits.head
        self._room = room
        self._peer = peer
        self._parser = httptools.HttpRequestParser(self)
        self._piece = 0
        self._discarded = 0
        self._refused = False
        self._broken = False
        self.receiving: bool = False
        self._begin()

    def _begin(self) -> None:
        self._fed = -self._piece
        self._target = b""
        self._headers: dict[str, str] = {}
        self._fields: list[tuple[str, str]] = []
        self._head = 0
        self._request: Request | None = None
        self._largest = 0
        self._body: bytes | bytearray = b""
        self._size = 0

    @property
    def admitted(self) -> bool:
        """Tell whether a request is coming in whose head was found good."""
        return self.receiving and self._request is not None

    def feed(self, data: bytes) -> None:
        """Read on; what comes after a refusal is thrown away, and read only to find out where it ends."""
        self._piece = len(data)
        if self._refused:
            self._discarded += self._piece
            if self._discarded > self._limits.discarded:
                self._sink.abort()
            if self._broken:
                return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as found:
            self._sink.switched(data[found.args[0] :])
        except httptools.HttpParserCallbackError as error:
            _log.error("a connection was dropped", exc_info=error.__context__)
            self._sink.abort()
        except httptools.HttpParserError:
            self.give_up(text(400, "400 Bad Request"))
        else:
            self._fed += self._piece
            # Beyond the body there are the head, sizes of chunks and trailers; the parser gathers without an end.
            if self.receiving and self._fed > self._most + _CHUNKING * self._size:
                self._broken = True
                self._refuse_head()

    def give_up(self, answer: Response) -> None:
        """Refuse what is coming in and read no more of it."""
        self._broken = True
        bodiless = self._asks_for_head
        self.receiving = False
        if self._refused:
            self._sink.refused()
        else:
            self._refuse(answer, bodiless=bodiless)

    def release(self) -> None:
        """Give back what is kept of a request that never came in whole."""
        self._room.give(len(self._body))
        self._body = b""

    def on_message_begin(self) -> None:
        """Start a request."""
        self._begin()
        self.receiving = True
        self._sink.begun()

    def on_url(self, url: bytes) -> None:
        """Collect the target, which may come in pieces."""
        self._target += url
        self._head += len(url)
        if self._head > self._most:
            self._refuse_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a field; what comes after the head are trailers, which nobody asked for."""
        self._head += _FIELD + len(name) + len(value)
        if self._head > self._most:
            self._refuse_head()
        if self._refused or self._request is not None:
            return
        key = _NAMES.get(name) or name.decode("latin-1").lower()
        content = value.decode("latin-1")
        self._fields.append((key, content))
        headers = self._headers
        headers[key] = f"{headers[key]}, {content}" if key in headers else content

    def _refuse_head(self) -> None:
        self._refuse(text(431, "431 Request Header Fields Too Large"))

    def on_headers_complete(self) -> None:
        """Decide about the body before it comes."""
        if self._refused:
            return
        parser = self._parser
        path, query = split_target(self._target.decode("latin-1"))
        method = parser.get_method().decode("latin-1")
        self._request = request = Request(
            method, path, query, self._headers, b"", self._peer, parser.should_upgrade(), self._fields
        )
        verdict = self._handler.admit(request)
        if not isinstance(verdict, int):
            self._refuse(verdict)
            return
        self._largest = verdict
        length = self._headers.get("content-length", "0")
        if length.isdigit() and int(length) > verdict:
            self._refuse(self._handler.too_large(request, verdict))
        elif self._headers.get("expect", "").lower() == "100-continue":
            self._sink.expected()

    def on_body(self, body: bytes) -> None:
        """Collect the body up to the limit, then only count it."""
        size = len(body)
        self._size += size
        if self._refused:
            return
        if self._request is not None and self._size > self._largest:
            self._refuse(self._handler.too_large(self._request, self._largest))
        elif not self._room.take(size):
            self._refuse(text(503, "503 too many large requests at once"))
        elif not self._body:
            self._body = body
        else:
            if isinstance(self._body, bytes):
                # One buffer: many small chunks would be as many objects.
                self._body = bytearray(self._body)
            self._body += body

    def on_message_complete(self) -> None:
        """Hand over the request that has come in whole."""
        self.receiving = False
        request = self._request
        if self._refused or request is None:
            self._sink.refused()
            return
        parser = self._parser
        request.body = bytes(self._body)
        self._body = b""
        keep_alive = parser.should_keep_alive() and not request.upgrade
        if not keep_alive or "connection" in self._headers:
            # Only clients of HTTP/1.0 say that they wish to stay; what they are told is simpler without.
            request.chunks = parser.get_http_version() != "1.0"
            request.keep_alive = keep_alive and request.chunks
        self._sink.received(request)

    def _refuse(self, answer: Response, *, bodiless: bool = False) -> None:
        if not self._refused:
            self._refused = True
            self.release()
            self._sink.refuse(answer, bodiless=bodiless or self._asks_for_head)

    @property
    def _asks_for_head(self) -> bool:
        return self.receiving and self._parser.get_method() == b"HEAD"
