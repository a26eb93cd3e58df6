"""The output of a process: recent lines in memory with timestamps, for logs and for attached clients."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from kubewright.processpods.streaming.requests import LogRequest, OutputStream

KEPT_BYTES = 4 * 1024 * 1024
KEPT_LINES = 100_000
"""Limit of lines: each takes about a hundred bytes besides its text."""
LONGEST_LINE = 16 * 1024
_PIECE = 64 * 1024


class Line(NamedTuple):
    """A line, or a part of a very long line."""

    nanoseconds: int
    stream: OutputStream
    data: bytes


class _Listener:
    """An attached client's queue; a slow client loses the oldest data."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._pieces: deque[tuple[OutputStream, bytes]] = deque()
        self._bytes = 0
        self._ended = False
        self._changed = asyncio.Event()

    def put(self, stream: OutputStream, data: bytes) -> None:
        self._pieces.append((stream, data))
        self._bytes += len(data)
        while self._bytes > self._kept and len(self._pieces) > 1:
            self._bytes -= len(self._pieces.popleft()[1])
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def get(self) -> tuple[OutputStream, bytes] | None:
        """Return the next data, or None at the end."""
        while not self._pieces:
            if self._ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        piece = self._pieces.popleft()
        self._bytes -= len(piece[1])
        return piece


class Output:
    """The output of one run of a container; old lines are dropped as new ones arrive."""

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self._kept = kept
        self._lines: deque[Line] = deque()
        self._first = 0
        self._bytes = 0
        self._partial: dict[OutputStream, bytes] = {"stdout": b"", "stderr": b""}
        self._ended = False
        self._waiting: set[asyncio.Event] = set()
        self._listeners: set[_Listener] = set()

    async def feed(self, stream: OutputStream, data: bytes) -> None:
        """Add output of the process."""
        for listener in self._listeners:
            listener.put(stream, data)
        *whole, rest = (self._partial[stream] + data).split(b"\n")
        for line in whole:
            self._add(stream, line + b"\n")
        while len(rest) > LONGEST_LINE:
            self._add(stream, rest[:LONGEST_LINE])
            rest = rest[LONGEST_LINE:]
        self._partial[stream] = rest
        self._notify()

    def end(self) -> None:
        """Mark the end of the output."""
        for stream, rest in self._partial.items():
            if rest:
                self._add(stream, rest)
        self._ended = True
        for listener in self._listeners:
            listener.end()
        self._notify()

    def last(self, lines: int, size: int) -> str:
        """Return the end of the output as text."""
        found = islice(reversed(self._lines), lines)
        return b"".join(reversed([line.data for line in found]))[-size:].decode(errors="replace")

    def _add(self, stream: OutputStream, data: bytes) -> None:
        self._lines.append(Line(time.time_ns(), stream, data))
        self._bytes += len(data)
        while len(self._lines) > (KEPT_LINES if self._bytes <= self._kept else 1):
            self._bytes -= len(self._lines.popleft().data)
            self._first += 1

    def _notify(self) -> None:
        for event in self._waiting:
            event.set()

    async def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        """Yield the lines that a log request selects, in chunks."""
        left = request.limit_bytes
        position, changed = self._begin(request), asyncio.Event()
        self._waiting.add(changed)
        try:
            while True:
                changed.clear()
                piece, position = self._piece(position, request)
                if left is not None:
                    piece = piece[:left]
                    left -= len(piece)
                if piece:
                    yield piece
                elif left == 0 or not request.follow or self._ended:
                    return
                else:
                    await changed.wait()
        finally:
            self._waiting.discard(changed)

    def _begin(self, request: LogRequest) -> int:
        """Return the number of the first line to return."""
        if request.tail is None:
            return self._first
        position, remaining = self._first + len(self._lines), request.tail
        for line in reversed(self._lines):
            if remaining == 0:
                break
            position -= 1
            remaining -= _matches(line, request)
        return position

    def _piece(self, position: int, request: LogRequest) -> tuple[bytes, int]:
        parts = bytearray()
        for line in self._after(position):
            position += 1
            if _matches(line, request):
                parts += _stamp(line.nanoseconds) if request.timestamps else b""
                parts += line.data
                if len(parts) > _PIECE:
                    break
        return bytes(parts), position

    def _after(self, position: int) -> Iterator[Line]:
        return islice(self._lines, max(position - self._first, 0), None)

    async def listen(self) -> AsyncGenerator[tuple[OutputStream, bytes], None]:
        """Yield new output as it arrives."""
        if self._ended:
            return
        listener = _Listener(self._kept)
        self._listeners.add(listener)
        try:
            while (found := await listener.get()) is not None:
                yield found
        finally:
            self._listeners.discard(listener)


def _matches(line: Line, request: LogRequest) -> bool:
    if request.stream is not None and line.stream != request.stream:
        return False
    return request.since is None or line.nanoseconds >= request.since.timestamp() * 1e9


def _stamp(nanoseconds: int) -> bytes:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z ".encode()
