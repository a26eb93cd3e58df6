"""The options of log, exec, attach and port-forward requests, and the interfaces to a client."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

OutputStream = Literal["stdout", "stderr"]


class Size(NamedTuple):
    """The size of a client's terminal in characters."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class LogRequest:
    """The options of a log request."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: datetime | None = None
    tail: int | None = None
    limit_bytes: int | None = None
    stream: OutputStream | None = None
    """Only one stream, or both if None."""


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """The options of exec and attach; attach has no command."""

    command: tuple[str, ...] = ()
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class Terminal(Protocol):
    """The client of a command."""

    async def read(self) -> bytes:
        """Return data for standard input; empty at its end."""
        ...

    async def write(self, stream: OutputStream, data: bytes) -> None:
        """Send output; wait while the client reads slowly."""
        ...

    async def resized(self) -> Size:
        """Wait until the client's terminal has a new size."""
        ...


Run = Callable[[Terminal], Awaitable[int]]
"""Serve a client until the command ends; return its exit code."""


Dial = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connect to a port of a Pod; raise OSError if nothing listens."""
