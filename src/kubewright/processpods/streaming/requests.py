"""The options of log, exec, attach and port-forward requests."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

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


Dial = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connect to a port of a Pod; raise OSError if nothing listens."""
