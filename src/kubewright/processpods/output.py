"""The output of a process: the last lines with their times, in memory, for logs and followers."""

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
"""Each line takes some hundred bytes beside its text."""
LONGEST_LINE = 16 * 1024
_PIECE = 64 * 1024


class Line(NamedTuple):
    """One line, or a part of a very long one."""

    nanoseconds: int
    stream: OutputStream
    data: bytes


class _Listener:
    """A follower of new output; one that does not keep up misses the oldest of it."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._pieces: deque[tuple[OutputStream, bytes]] = deque()
        self._bytes = 0
        self._ended = False
        self._news = asyncio.Event()

    def put(self, stream: OutputStream, data: bytes) -> None:
        self._pieces.append((stream, data))
        self._bytes += len(data)
        while self._bytes > self._kept and len(self._pieces) > 1:
            self._bytes -= len(self._pieces.popleft()[1])
        self._news.set()

    def end(self) -> None:
        self._ended = True
        self._news.set()

    async def get(self) -> tuple[OutputStream, bytes] | None:
        """Return the next piece; None when there will be no more."""
        while not self._pieces:
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
        piece = self._pieces.popleft()
        self._bytes -= len(piece[1])
        return piece


class Output:
    """The output of one start of a container; older lines make room for newer ones."""

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self._kept = kept
        self._lines: deque[Line] = deque()
        self._first = 0
        self._bytes = 0
        self._begun: dict[OutputStream, bytes] = {"stdout": b"", "stderr": b""}
        self._ended = False
        self._waiting: set[asyncio.Event] = set()
        self._listeners: set[_Listener] = set()

    async def feed(self, stream: OutputStream, data: bytes) -> None:
        """Take what the process printed."""
        for listener in self._listeners:
            listener.put(stream, data)
        *whole, rest = (self._begun[stream] + data).split(b"\n")
        for line in whole:
            self._add(stream, line + b"\n")
        while len(rest) > LONGEST_LINE:
            self._add(stream, rest[:LONGEST_LINE])
            rest = rest[LONGEST_LINE:]
        self._begun[stream] = rest
        self._tell()

    def end(self) -> None:
        """Mark the end of the output."""
        for stream, rest in self._begun.items():
            if rest:
                self._add(stream, rest)
        self._ended = True
        for listener in self._listeners:
            listener.end()
        self._tell()

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

    def _tell(self) -> None:
        for event in self._waiting:
            event.set()

    async def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a log request, in pieces."""
        left = request.limit_bytes
        position, news = self._begin(request), asyncio.Event()
        self._waiting.add(news)
        try:
            while True:
                news.clear()
                piece, position = self._piece(position, request)
                if left is not None:
                    piece = piece[:left]
                    left -= len(piece)
                if piece:
                    yield piece
                elif left == 0 or not request.follow or self._ended:
                    return
                else:
                    await news.wait()
        finally:
            self._waiting.discard(news)

    def _begin(self, request: LogRequest) -> int:
        """Return the number of the first requested line."""
        if request.tail is None:
            return self._first
        position, wanted = self._first + len(self._lines), request.tail
        for line in reversed(self._lines):
            if wanted == 0:
                break
            position -= 1
            wanted -= _asked(line, request)
        return position

    def _piece(self, position: int, request: LogRequest) -> tuple[bytes, int]:
        parts = bytearray()
        for line in self._after(position):
            position += 1
            if _asked(line, request):
                parts += _stamp(line.nanoseconds) if request.timestamps else b""
                parts += line.data
                if len(parts) > _PIECE:
                    break
        return bytes(parts), position

    def _after(self, position: int) -> Iterator[Line]:
        return islice(self._lines, max(position - self._first, 0), None)

    async def listen(self) -> AsyncGenerator[tuple[OutputStream, bytes], None]:
        """Yield new output as it comes."""
        if self._ended:
            return
        listener = _Listener(self._kept)
        self._listeners.add(listener)
        try:
            while (found := await listener.get()) is not None:
                yield found
        finally:
            self._listeners.discard(listener)


def _asked(line: Line, request: LogRequest) -> bool:
    if request.stream is not None and line.stream != request.stream:
        return False
    return request.since is None or line.nanoseconds >= request.since.timestamp() * 1e9


def _stamp(nanoseconds: int) -> bytes:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z ".encode()
