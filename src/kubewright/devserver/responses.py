"""What the server answers: whole answers, streams, and connections handed over to another protocol."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol

JSON = "application/json"
YAML = "application/yaml"
TEXT = "text/plain; charset=utf-8"

Headers = Sequence[tuple[str, str]]


class Writer(Protocol):
    """Send the pieces of a streamed answer."""

    async def write(self, data: bytes) -> None:
        """Send a piece at once; wait while the reader is slow."""
        ...


@dataclass(slots=True)
class Response:
    """A whole answer."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


@dataclass(slots=True)
class Stream:
    """An answer whose body is made piece by piece until `run` returns."""

    run: Callable[[Writer], Awaitable[None]]
    content_type: str = JSON
    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


@dataclass(slots=True)
class Upgrade:
    """A switch to another protocol: `start` is given the transport after the 101 was sent.

    `run` serves it in a task of the server's; the protocol closes the connection when that ends.
    """

    start: Callable[[asyncio.Transport], asyncio.Protocol]
    headers: list[tuple[str, str]]
    run: Callable[[], Awaitable[None]] | None = None


Answer = Response | Stream | Upgrade


def text(status: int, message: str) -> Response:
    """Answer with plain text."""
    return Response(status, message.encode(), TEXT)


def phrase(status: int) -> str:
    """Give the words that go with a status code."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def warning_header(message: str) -> tuple[str, str]:
    """Make a Warning header as kubectl prints it."""
    clean = "".join(char for char in message if char >= " " and char != "\x7f")
    quoted = clean.replace("\\", "\\\\").replace('"', '\\"')
    return ("Warning", f'299 - "{quoted}"')
