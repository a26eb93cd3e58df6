"""What a server answers: whole answers, streams, and connections handed over to another protocol."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Protocol

from msgspec import Struct

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"

Fields = Sequence[tuple[str, str]]

_PHRASES: dict[int, str] = {status.value: status.phrase for status in HTTPStatus}
_BODILESS = frozenset({204, 304})
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class BodyWriter(Protocol):
    """Send the pieces of a streamed answer."""

    async def write(self, data: bytes) -> None:
        """Send a piece at once; wait while the reader is slow."""
        ...


class Response(Struct):
    """A whole answer."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: list[tuple[str, str]] = []


class Stream(Struct):
    """An answer whose body is made piece by piece until `run` returns."""

    run: Callable[[BodyWriter], Awaitable[None]]
    content_type: str = JSON
    status: int = 200
    headers: list[tuple[str, str]] = []


class Upgrade(Struct):
    """A switch to another protocol: `start` is given the transport after the 101 was sent.

    `run` serves it in a task of the server's; the protocol closes the connection when that ends.
    """

    start: Callable[[asyncio.Transport], asyncio.Protocol]
    headers: list[tuple[str, str]]
    run: Callable[[], Awaitable[None]] | None = None


Answer = Response | Stream | Upgrade


class HangUp(ConnectionResetError):
    """The end of a connection without an answer: raised by handlers who want it so, and where a client is gone."""


def text(status: int, message: str) -> Response:
    """Answer with plain text."""
    return Response(status, message.encode(), TEXT)


def response_head(response: Response, preamble: str, *, keep_alive: bool) -> bytes:
    """Write all of a whole answer that goes before its body."""
    lines = _head(response, preamble, keep_alive=keep_alive)
    length = "" if response.status in _BODILESS else f"Content-Length: {len(response.body)}\r\n"
    return f"{lines}{length}\r\n".encode("utf-8", "replace")


def stream_head(stream: Stream, preamble: str, *, keep_alive: bool, chunked: bool) -> bytes:
    """Write what goes before a streamed answer."""
    lines = _head(stream, preamble, keep_alive=keep_alive)
    encoding = "Transfer-Encoding: chunked\r\n" if chunked else ""
    return f"{lines}{encoding}\r\n".encode("utf-8", "replace")


def _head(answer: Response | Stream, preamble: str, *, keep_alive: bool) -> str:
    status, content_type = answer.status, answer.content_type
    lines = f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}\r\n{preamble}"
    if content_type:
        lines += f"Content-Type: {content_type}\r\n"
    for name, value in answer.headers:
        lines += f"{name}: {value}\r\n"
    return lines if keep_alive else f"{lines}Connection: close\r\n"


def switch_head(upgrade: Upgrade) -> bytes:
    """Write the 101 that goes before another protocol."""
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in upgrade.headers)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


class DateField:
    """The line that tells the time, written once a second."""

    def __init__(self, seconds: Callable[[], float] = time.time) -> None:
        self._seconds = seconds
        self._second, self._line = -1, ""

    def __str__(self) -> str:
        second = int(self._seconds())
        if second != self._second:
            self._second, self._line = second, f"Date: {_http_date(second)}\r\n"
        return self._line


def _http_date(second: int) -> str:
    """Write a moment as HTTP does; the standard library's way brings all of `email` into every start."""
    moment = time.gmtime(second)
    day, month = _DAYS[moment.tm_wday], _MONTHS[moment.tm_mon - 1]
    return f"{day}, {moment.tm_mday:02} {month} {moment.tm_year} {time.strftime('%H:%M:%S', moment)} GMT"
