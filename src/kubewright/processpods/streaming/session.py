"""Exec and attach over a WebSocket: channels for the streams, the terminal size and the exit status."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

from kubewright.devserver.objects import JsonObject, encode
from kubewright.http.server.websocket import WebSocket
from kubewright.http.websocket import NORMAL
from kubewright.processpods.streaming.requests import OutputStream, Size

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_INPUT_HIGH_WATER = 256 * 1024
_MESSAGE_COST = 64
"""Memory that a message takes besides its data, so that many small messages count too."""
_OUTPUT: dict[OutputStream, int] = {"stdout": STDOUT, "stderr": STDERR}


class _TerminalSize(msgspec.Struct):
    Width: int = 0
    Height: int = 0


class Session(WebSocket):
    """The server side of an exec or attach connection: the terminal of a command."""

    def __init__(self) -> None:
        super().__init__()
        self._input: deque[bytes] = deque()
        self._waiting = 0
        # Only the latest size matters: resizing a window sends many.
        self._sizes: deque[Size] = deque(maxlen=1)
        self._input_ended = False
        self._changed = asyncio.Event()

    def received(self, data: bytes) -> None:
        """Handle a message of a channel."""
        self._dispatch(data[0], data[1:])

    def ended(self) -> None:
        """End standard input when the connection is lost."""
        self._end_input()

    def _dispatch(self, channel: int, data: bytes) -> None:
        if channel == STDIN and data and not self._input_ended:
            self._input.append(data)
            self._waiting += len(data) + _MESSAGE_COST
            self._changed.set()
            if self._waiting > _INPUT_HIGH_WATER:
                self.pause_reading()
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
            self._changed.set()

    def _end_input(self) -> None:
        self._input_ended = True
        self._changed.set()

    async def read(self) -> bytes:
        """Return data for standard input, waiting for it; empty at the end."""
        while not self._input:
            if self._input_ended:
                return b""
            await self._wait()
        found = b"".join(self._input)
        self._input.clear()
        self._waiting = 0
        self.resume_reading()
        return found

    async def resized(self) -> Size:
        """Wait until the client's terminal has a new size."""
        while not self._sizes:
            await self._wait()
        return self._sizes.popleft()

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def write(self, stream: OutputStream, data: bytes) -> None:
        """Send output; wait while the client reads slowly."""
        self.send(bytes([_OUTPUT[stream]]) + data)
        await self.writable()

    async def serve(self, run: Callable[["Session"], Awaitable[JsonObject]]) -> None:
        """Run a command until it ends or the client disconnects, and send its status."""
        # kubectl waits for a first message before it treats the command as started.
        self.send(bytes([STDOUT]))
        try:
            async with asyncio.TaskGroup() as group:
                work = group.create_task(_awaited(run(self)))
                gone = group.create_task(self.lost.wait())
                await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
                gone.cancel()
                if not work.done():
                    work.cancel()
            if not work.cancelled() and not self.lost.is_set():
                self.send(bytes([ERROR]) + encode(work.result()))
                self.close(NORMAL)
        finally:
            self.abort()


async def _awaited(work: Awaitable[JsonObject]) -> JsonObject:
    return await work


Run = Callable[[Session], Awaitable[int]]
"""Serve a client until the command ends; return its exit code."""
