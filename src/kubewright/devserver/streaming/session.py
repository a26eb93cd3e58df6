"""A client and a command on one WebSocket: channels for the streams, for the terminal's size and for the end."""

import asyncio
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from typing import cast

import msgspec

from kubewright.devserver.objects import Wire, encode

from .containers import OutputStream, Size
from .frames import FrameError, FrameReader, Message, Opcode, frame

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_NORMAL, _PROTOCOL_ERROR = 1000, 1002
_MUCH_INPUT = 256 * 1024
_OUTPUT: dict[OutputStream, int] = {"stdout": STDOUT, "stderr": STDERR}


class _TerminalSize(msgspec.Struct):
    Width: int = 0
    Height: int = 0


class Session(asyncio.Protocol):
    """The server's end of the connection, and the command's `Terminal`."""

    def __init__(self) -> None:
        self._transport = cast(asyncio.Transport, None)
        self._frames = FrameReader()
        self._input: deque[bytes] = deque()
        self._sizes: deque[Size] = deque()
        self._input_ended = False
        self._news = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Sort what comes into channels."""
        try:
            for message in self._frames.feed(data):
                self._take(message)
        except FrameError as error:
            self._close(_PROTOCOL_ERROR, str(error))
            self._lost.set()

    def eof_received(self) -> bool:
        """Close with the client."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End: nobody listens any more."""
        self._lost.set()
        self._writable.set()
        self._end_input()

    def pause_writing(self) -> None:
        """Hold the command back: the client reads slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let the command go on."""
        self._writable.set()

    def _take(self, message: Message) -> None:
        if message.opcode is Opcode.PING:
            self._transport.write(frame(Opcode.PONG, message.data))
        elif message.opcode is Opcode.CLOSE:
            self._close(_NORMAL)
            self._lost.set()
        elif message.opcode is not Opcode.PONG and message.data:
            self._sort(message.data[0], message.data[1:])

    def _sort(self, channel: int, data: bytes) -> None:
        if channel == STDIN and data and not self._input_ended:
            self._input.append(data)
            self._news.set()
            if sum(map(len, self._input)) > _MUCH_INPUT:
                self._transport.pause_reading()
        elif channel == CLOSE and data[:1] == bytes([STDIN]):
            self._end_input()
        elif channel == RESIZE:
            self._resize(data)

    def _resize(self, data: bytes) -> None:
        try:
            size = msgspec.json.decode(data, type=_TerminalSize)
        except msgspec.MsgspecError:
            return
        if 0 < size.Width < 65536 and 0 < size.Height < 65536:
            self._sizes.append(Size(size.Width, size.Height))
            self._news.set()

    def _end_input(self) -> None:
        self._input_ended = True
        self._news.set()

    async def read(self) -> bytes:
        """Give what comes for standard input; nothing when it has ended."""
        while not self._input:
            if self._input_ended:
                return b""
            await self._wait()
        found = self._input.popleft()
        if not self._input and not self._transport.is_closing() and not self._transport.is_reading():
            self._transport.resume_reading()
        return found

    async def resized(self) -> Size:
        """Wait until the client's terminal has a new size."""
        while not self._sizes:
            await self._wait()
        return self._sizes.popleft()

    async def _wait(self) -> None:
        self._news.clear()
        await self._news.wait()

    async def write(self, stream: OutputStream, data: bytes) -> None:
        """Send output; wait while the client reads slowly."""
        self._send(_OUTPUT[stream], data)
        await self._writable.wait()

    def _send(self, channel: int, data: bytes) -> None:
        if not self._lost.is_set():
            self._transport.write(frame(Opcode.BINARY, bytes([channel]) + data))

    def _close(self, code: int, reason: str = "") -> None:
        self._transport.write(frame(Opcode.CLOSE, struct.pack("!H", code) + reason.encode()))
        self._transport.close()

    async def serve(self, run: Callable[["Session"], Awaitable[Wire]]) -> None:
        """Run a command until it ends or the client is gone, and tell the client how it ended."""
        # kubectl waits for a first message to know that the command is under way.
        self._send(STDOUT, b"")
        try:
            async with asyncio.TaskGroup() as group:
                work = group.create_task(_awaited(run(self)))
                gone = group.create_task(self._lost.wait())
                await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
                gone.cancel()
                if not work.done():
                    work.cancel()
            if not work.cancelled() and not self._lost.is_set():
                self._send(ERROR, encode(work.result()))
                self._close(_NORMAL)
        finally:
            if not self._transport.is_closing():
                self._transport.abort()


async def _awaited(work: Awaitable[Wire]) -> Wire:
    return await work
