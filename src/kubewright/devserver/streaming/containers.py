"""Who runs containers, as the API sees them: their output, commands beside them, their standard input."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from kubewright.devserver.objects import JsonObject

OutputStream = Literal["stdout", "stderr"]


class Size(NamedTuple):
    """How large a client's terminal is."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Which part of a container's output is asked for."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: datetime | None = None
    tail: int | None = None
    limit_bytes: int | None = None
    stream: OutputStream | None = None
    """One of the streams; None: both."""


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """What to run, and which of its streams are wanted; without a command the container itself is meant."""

    command: tuple[str, ...] = ()
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class Terminal(Protocol):
    """The client's end of a command."""

    async def read(self) -> bytes:
        """Give what comes for standard input; nothing when it has ended."""
        ...

    async def write(self, stream: OutputStream, data: bytes) -> None:
        """Send output; wait while the client reads slowly."""
        ...

    async def resized(self) -> Size:
        """Wait until the client's terminal has a new size."""
        ...


Run = Callable[[Terminal], Awaitable[int]]
"""Serve a client until the command ends; gives its exit code."""


Dial = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connect to a port of a Pod; raises OSError where nobody listens."""


class Containers(Protocol):
    """Run containers. Each of these raises `StatusError` where it cannot do what is asked."""

    def logs(self, pod: JsonObject, container: str, request: LogRequest) -> AsyncIterator[bytes]:
        """Give a container's output in pieces."""
        ...

    def execute(self, pod: JsonObject, container: str, request: CommandRequest) -> Run:
        """Prepare a command beside a container."""
        ...

    def attach(self, pod: JsonObject, container: str, request: CommandRequest) -> Run:
        """Prepare a connection to a container's own streams."""
        ...

    def forward(self, pod: JsonObject) -> Dial:
        """Prepare connections to a Pod's ports."""
        ...
