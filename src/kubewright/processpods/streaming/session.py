"""A client and a command on one WebSocket: channels for the streams, for the terminal's size and for the end."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

from kubewright.devserver.objects import JsonObject, encode
from kubewright.processpods.streaming.requests import OutputStream, Size
from kubewright.processpods.streaming.websocket import NORMAL, WebSocket

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_MUCH_INPUT = 256 * 1024
_MESSAGE_COST = 64
"""What a message takes up besides its bytes: many small ones are much, too."""
_OUTPUT: dict[OutputStream, int] = {"stdout": STDOUT, "stderr": STDERR}


class _TerminalSize(msgspec.Struct):
    Width: int = 0
    Height: int = 0


class Session(WebSocket):
    """The server's end of the connection, and the command's `Terminal`."""

    def __init__(self) -> None:
        super().__init__()
        self._input: deque[bytes] = deque()
        self._waiting = 0
        # Only the newest size counts: dragging a window sends many.
        self._sizes: deque[Size] = deque(maxlen=1)
        self._input_ended = False
        self._news = asyncio.Event()

    def received(self, data: bytes) -> None:
        """Dispatch messages to their channels."""
        self._sort(data[0], data[1:])

    def ended(self) -> None:
        """End the input of waiting readers."""
        self._end_input()

    def _sort(self, channel: int, data: bytes) -> None:
        if channel == STDIN and data and not self._input_ended:
            self._input.append(data)
            self._waiting += len(data) + _MESSAGE_COST
            self._news.set()
            if self._waiting > _MUCH_INPUT:
                self.hold()
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
        """Return what comes for standard input; nothing when it has ended."""
        while not self._input:
            if self._input_ended:
                return b""
            await self._wait()
        found = b"".join(self._input)
        self._input.clear()
        self._waiting = 0
        self.go_on()
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
        self.send(bytes([_OUTPUT[stream]]) + data)
        await self.writable()

    async def serve(self, run: Callable[["Session"], Awaitable[JsonObject]]) -> None:
        """Run a command until it ends or the client is gone, then send its Status."""
        # kubectl waits for a first message to know that the command is under way.
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
