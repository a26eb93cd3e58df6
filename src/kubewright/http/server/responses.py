"""What a handler returns: a whole response, a streamed one, or a switch to another protocol."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from http import HTTPStatus
from typing import Any, Protocol

from msgspec import Struct

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"

HeaderFields = Sequence[tuple[str, str]]

_PHRASES: dict[int, str] = {status.value: status.phrase for status in HTTPStatus}
_BODILESS = frozenset({204, 304})
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class BodyWriter(Protocol):
    """Send the pieces of a streamed response."""

    async def write(self, data: bytes) -> None:
        """Send a piece immediately, then wait while the client reads slowly."""
        ...


class Response(Struct):
    """A whole response."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: list[tuple[str, str]] = []


class Stream(Struct):
    """A response whose body is written piece by piece until `run` returns."""

    run: Callable[[BodyWriter], Awaitable[None]]
    content_type: str = JSON
    status: int = 200
    headers: list[tuple[str, str]] = []


class Upgrade(Struct):
    """A switch to another protocol: `start` receives the transport after the 101 response was sent.

    `run` serves the protocol in a task of the server; the protocol closes the connection when it ends.
    """

    start: Callable[[asyncio.Transport], asyncio.Protocol]
    headers: list[tuple[str, str]]
    run: Callable[[], Awaitable[None]] | None = None


ServerResponse = Response | Stream | Upgrade
PendingResponse = ServerResponse | Coroutine[Any, Any, ServerResponse]
"""A response, or a coroutine that returns it: a response that needs no waiting is sent without a task."""


class HangUp(ConnectionResetError):
    """Close the connection without a response; also raised to a stream whose client is gone."""


class InvalidHeader(ValueError):
    """A response header that would break the response apart."""


def text(status: int, message: str) -> Response:
    """Return a plain text response."""
    return Response(status, message.encode(), TEXT)


def response_head(response: Response, preamble: str, *, keep_alive: bool) -> bytes:
    """Encode everything of a whole response that precedes its body."""
    lines = _head(response, preamble, keep_alive=keep_alive)
    length = "" if response.status in _BODILESS else f"Content-Length: {len(response.body)}\r\n"
    return f"{lines}{length}\r\n".encode("utf-8", "replace")


def stream_head(stream: Stream, preamble: str, *, keep_alive: bool, chunked: bool) -> bytes:
    """Encode what precedes a streamed body."""
    lines = _head(stream, preamble, keep_alive=keep_alive)
    encoding = "Transfer-Encoding: chunked\r\n" if chunked else ""
    return f"{lines}{encoding}\r\n".encode("utf-8", "replace")


def _head(response: Response | Stream, preamble: str, *, keep_alive: bool) -> str:
    status, content_type = response.status, response.content_type
    lines = f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}\r\n{preamble}"
    if content_type:
        lines += _field("Content-Type", content_type)
    for name, value in response.headers:
        lines += _field(name, value)
    return lines if keep_alive else f"{lines}Connection: close\r\n"


def switch_head(upgrade: Upgrade) -> bytes:
    """Encode the 101 response that precedes another protocol."""
    lines = "".join(_field(name, value) for name, value in upgrade.headers)
    return f"HTTP/1.1 101 Switching Protocols\r\n{lines}\r\n".encode()


def _field(name: str, value: str) -> str:
    line = f"{name}: {value}"
    # A value that an application copied from a request must not begin another header or response.
    if "\r" in line or "\n" in line or "\0" in line:
        raise InvalidHeader(f"response header {name!r} contains a line break or NUL: {value!r}")
    return line + "\r\n"


class DateField:
    """The Date header, formatted once a second."""

    def __init__(self, seconds: Callable[[], float] = time.time) -> None:
        self._seconds = seconds
        self._second, self._line = -1, ""

    def __str__(self) -> str:
        second = int(self._seconds())
        if second != self._second:
            self._second, self._line = second, f"Date: {_http_date(second)}\r\n"
        return self._line


def _http_date(second: int) -> str:
    """Format a time as HTTP does; the standard library's function would import all of `email` at every start."""
    moment = time.gmtime(second)
    day, month = _DAYS[moment.tm_wday], _MONTHS[moment.tm_mon - 1]
    return f"{day}, {moment.tm_mday:02} {month} {moment.tm_year} {time.strftime('%H:%M:%S', moment)} GMT"
