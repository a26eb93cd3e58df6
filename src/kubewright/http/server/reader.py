"""Requests from bytes: RequestReader collects what the parser reports, within the limits."""

import logging
import re
from collections.abc import Mapping
from typing import Any, Protocol

import httptools

from kubewright.http.server.handler import Handler
from kubewright.http.server.limits import Limits
from kubewright.http.server.requests import Request, split_target
from kubewright.http.server.responses import Response, text

# Framing of a chunk of one byte: its size and two line ends.
_CHUNK_OVERHEAD = 6
_FIELD_OVERHEAD = 32
# The usual spellings, so that most names need not be converted to lower case.
_NAMES = {
    name: name.decode().lower()
    for name in (
        *(b"Accept", b"Accept-Encoding", b"Authorization", b"Connection", b"Content-Length"),
        *(b"Content-Type", b"Host", b"Kubectl-Command", b"Kubectl-Session", b"User-Agent"),
    )
}
_VERSIONS = ("1.1", "1.0")
_HOST = re.compile(r"[\w.~!$&'()*+,;=:%\[\]-]*", re.ASCII)

_log = logging.getLogger("kubewright.http")


class BodyBudget:
    """Bytes that the request bodies of all connections share."""

    def __init__(self, size: int) -> None:
        self.available: int = size

    def take(self, size: int) -> bool:
        """Take bytes and return True if enough are available."""
        if size > self.available:
            return False
        self.available -= size
        return True

    def give(self, size: int) -> None:
        """Return bytes that were taken."""
        self.available += size


class RequestSink(Protocol):
    """Receive the requests of one connection: `ServerConnection`, which imports this module, or a recorder in tests."""

    def begun(self) -> None:
        """Note that a request begins to arrive."""
        ...

    def expected(self) -> None:
        """Answer `Expect: 100-continue`, so that the client sends its body."""
        ...

    def received(self, request: Request) -> None:
        """Take a whole request; its body must be returned to the budget."""
        ...

    def refuse(self, response: Response, *, bodiless: bool) -> None:
        """Answer bytes that are not an acceptable request; nothing after them is read as one."""
        ...

    def refused(self) -> None:
        """Note that the refused request has ended."""
        ...

    def switched(self, rest: bytes) -> None:
        """Take the bytes that follow a request for another protocol."""
        ...

    def abort(self) -> None:
        """Close the connection immediately."""
        ...


class RequestReader:
    """Collect the requests of one connection; `receiving` is True while one is arriving."""

    def __init__(
        self,
        sink: RequestSink,
        handler: Handler,
        limits: Limits,
        budget: BodyBudget,
        peer: Mapping[str, Any] | None,
    ) -> None:
        self._sink = sink
        self._handler = handler
        self._limits = limits
        self._max_head = limits.head
        self._budget = budget
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
        self._max_body = 0
        self._body: bytes | bytearray = b""
        self._size = 0

    @property
    def admitted(self) -> bool:
        """Return True while the body of an admitted request is arriving."""
        return self.receiving and self._request is not None

    def feed(self, data: bytes) -> None:
        """Read on; after a refusal bytes are parsed only to find the end of the refused request."""
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
            _log.error("Dropped a connection: reading its request failed", exc_info=error.__context__)
            self._sink.abort()
        except httptools.HttpParserError:
            self.give_up(text(400, "400 Bad Request"))
        else:
            self._fed += self._piece
            # Beyond the body there are the head, chunk sizes and trailers, which the parser would buffer endlessly.
            if self.receiving and self._fed > self._max_head + _CHUNK_OVERHEAD * self._size:
                self._broken = True
                self._refuse_head()

    def give_up(self, response: Response) -> None:
        """Refuse the request that is arriving and parse no more."""
        self._broken = True
        bodiless = self._is_head_request
        self.receiving = False
        if self._refused:
            self._sink.refused()
        else:
            self._refuse(response, bodiless=bodiless)

    def release(self) -> None:
        """Return the body of an unfinished request to the budget."""
        self._budget.give(len(self._body))
        self._body = b""

    def on_message_begin(self) -> None:
        """Start a request."""
        self._begin()
        self.receiving = True
        self._sink.begun()

    def on_url(self, url: bytes) -> None:
        """Collect the target, which may arrive in pieces."""
        self._target += url
        self._head += len(url)
        if self._head > self._max_head:
            self._refuse_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header field; trailers after the body are counted and dropped."""
        self._head += _FIELD_OVERHEAD + len(name) + len(value)
        if self._head > self._max_head:
            self._refuse_head()
        if self._refused or self._request is not None:
            return
        key = _NAMES.get(name) or name.decode("latin-1").lower()
        # The parser leaves white space behind a value, which is no part of it.
        content = value.decode("latin-1").rstrip(" \t")
        self._fields.append((key, content))
        headers = self._headers
        headers[key] = f"{headers[key]}, {content}" if key in headers else content

    def _refuse_head(self) -> None:
        self._refuse(text(431, "431 Request Header Fields Too Large"))

    def on_headers_complete(self) -> None:
        """Decide about the request before its body arrives."""
        if self._refused:
            return
        parser = self._parser
        path, query = split_target(self._target.decode("latin-1"))
        method = parser.get_method().decode("latin-1")
        request = Request(
            method, path, query, self._headers, b"", self._peer, parser.should_upgrade(), self._fields
        )
        problem = self._problem(request)
        if problem is not None:
            self._refuse(problem)
            return
        self._request = request
        decision = self._handler.admit(request)
        if not isinstance(decision, int):
            self._refuse(decision)
            return
        self._max_body = decision
        length = self._headers.get("content-length", "0")
        if length.isdigit() and int(length) > decision:
            self._refuse(self._handler.too_large(request, decision))
        elif self._headers.get("expect", "").lower() == "100-continue":
            self._sink.expected()

    def _problem(self, request: Request) -> Response | None:
        """Return a refusal for a head that the parser accepts and RFC 9112 does not."""
        version = self._parser.get_http_version()
        if version not in _VERSIONS:
            return text(505, "505 HTTP Version Not Supported")
        coding = self._headers.get("transfer-encoding")
        if coding is not None and coding.lower() != "chunked":
            # Further codings would have to be decoded, or the handler would get something else than was sent.
            return text(501, "501 Not Implemented: unsupported transfer encoding")
        host = self._headers.get("host")
        if host is None:
            return text(400, "400 Bad Request: missing required Host header") if version == "1.1" else None
        # Two servers could be meant, and a proxy and we could disagree on which one.
        if "," in host and len(request.every("host")) > 1:
            return text(400, "400 Bad Request: too many Host headers")
        return None if _HOST.fullmatch(host) else text(400, "400 Bad Request: malformed Host header")

    def on_body(self, body: bytes) -> None:
        """Collect the body up to its limit; the rest is only counted."""
        size = len(body)
        self._size += size
        if self._refused:
            return
        if self._request is not None and self._size > self._max_body:
            self._refuse(self._handler.too_large(self._request, self._max_body))
        elif not self._budget.take(size):
            self._refuse(text(503, "503 too many large requests at once"))
        elif not self._body:
            self._body = body
        else:
            if isinstance(self._body, bytes):
                # One buffer: many small chunks would be as many objects.
                self._body = bytearray(self._body)
            self._body += body

    def on_message_complete(self) -> None:
        """Hand over the whole request."""
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
            # HTTP/1.0 clients may ask to keep the connection; closing is always allowed and simpler.
            request.chunks = parser.get_http_version() != "1.0"
            request.keep_alive = keep_alive and request.chunks
        self._sink.received(request)

    def _refuse(self, response: Response, *, bodiless: bool = False) -> None:
        if not self._refused:
            self._refused = True
            self.release()
            self._sink.refuse(response, bodiless=bodiless or self._is_head_request)

    @property
    def _is_head_request(self) -> bool:
        return self.receiving and self._parser.get_method() == b"HEAD"
