"""Ports of a Pod on one WebSocket: each connection is two SPDY streams, one for data, one for what goes wrong."""

import asyncio
import contextlib
from dataclasses import dataclass, field

from kubewright.processpods.streaming.requests import Dial
from kubewright.processpods.streaming.spdy import Data, Opened, Ping, Reset, SpdyError, SpdyReader, SpdyWriter
from kubewright.processpods.streaming.websocket import PROTOCOL_ERROR, WebSocket

PROTOCOL = "SPDY/3.1+portforward.k8s.io"
_PIECE = 64 * 1024
_MUCH_INPUT = 1024 * 1024


@dataclass(eq=False)
class _Forward:
    """One connection to a port: its streams, and the data not yet sent to the port."""

    port: int
    error: int = 0
    data: int = 0
    given: "asyncio.Queue[bytes]" = field(default_factory=asyncio.Queue[bytes])
    """An empty piece is the end."""
    task: "asyncio.Task[None] | None" = None


class Tunnel(WebSocket):
    """The server's end of `kubectl port-forward`."""

    def __init__(self, pod: str, dial: Dial) -> None:
        super().__init__()
        self._pod = pod
        self._dial = dial
        self._reader = SpdyReader()
        self._writer = SpdyWriter()
        self._arrived: asyncio.Queue[Opened | Data | Reset | Ping] = asyncio.Queue()
        self._forwards: dict[str, _Forward] = {}
        self._streams: dict[int, _Forward] = {}
        self._waiting = 0

    def received(self, data: bytes) -> None:
        """Take frames, or parts of them."""
        try:
            for frame in self._reader.feed(data):
                if isinstance(frame, Data):
                    self._waiting += len(frame.data)
                self._arrived.put_nowait(frame)
        except SpdyError as error:
            self.close(PROTOCOL_ERROR, str(error))
            self.lost.set()
        if self._waiting > _MUCH_INPUT:
            self.hold()

    async def serve(self) -> None:
        """Connect the client with ports until it is gone."""
        try:
            async with asyncio.TaskGroup() as group:
                sorting = group.create_task(self._sort_all(group))
                await self.lost.wait()
                sorting.cancel()
                for forward in self._forwards.values():
                    if forward.task is not None:
                        forward.task.cancel()
        finally:
            self.abort()

    async def _sort_all(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._sort(await self._arrived.get(), group)

    def _sort(self, frame: Opened | Data | Reset | Ping, group: asyncio.TaskGroup) -> None:
        if isinstance(frame, Opened):
            self._open(frame, group)
        elif isinstance(frame, Ping):
            self.send(self._writer.ping(frame.number))
        elif (forward := self._streams.get(frame.stream)) is None or frame.stream == forward.error:
            # The client sends nothing on the error stream; late data has no stream any more.
            self._passed(len(frame.data) if isinstance(frame, Data) else 0)
        elif isinstance(frame, Reset):
            if forward.task is not None:
                forward.task.cancel()
        else:
            if frame.data:
                forward.given.put_nowait(frame.data)
            if frame.last:
                forward.given.put_nowait(b"")

    def _open(self, frame: Opened, group: asyncio.TaskGroup) -> None:
        sort, port = frame.headers.get("streamtype", ""), frame.headers.get("port", "")
        if sort not in ("error", "data") or not port.isdecimal() or not 0 < int(port) < 65536:
            self.send(self._writer.reset(frame.stream))
            return
        request = frame.headers.get("requestid", "")
        forward = self._forwards.get(request) or _Forward(int(port))
        if frame.stream in self._streams or getattr(forward, sort):
            self.send(self._writer.reset(frame.stream))
            return
        self.send(self._writer.reply(frame.stream))
        self._forwards[request] = self._streams[frame.stream] = forward
        setattr(forward, sort, frame.stream)
        if forward.error and forward.data:
            forward.task = group.create_task(self._run(forward))
            # Not by the task itself: one that is reset at once never begins.
            forward.task.add_done_callback(lambda _: self._forget(request, forward))

    async def _run(self, forward: _Forward) -> None:
        try:
            await self._connect(forward)
        except OSError as error:
            told = f"error forwarding port {forward.port} to pod {self._pod}: {error}"
            self.send(self._writer.data(forward.error, told.encode()))

    def _forget(self, request: str, forward: _Forward) -> None:
        for stream in (forward.data, forward.error):
            self.send(self._writer.data(stream, b"", last=True))
            del self._streams[stream]
        del self._forwards[request]
        while not forward.given.empty():
            self._passed(len(forward.given.get_nowait()))

    async def _connect(self, forward: _Forward) -> None:
        reader, writer = await self._dial(forward.port)
        try:
            async with asyncio.TaskGroup() as group:
                feeding = group.create_task(self._feed(forward, writer))
                while piece := await reader.read(_PIECE):
                    self.send(self._writer.data(forward.data, piece))
                    await self.writable()
                feeding.cancel()
        except* OSError as errors:
            raise OSError(str(errors.exceptions[0])) from None
        finally:
            writer.transport.abort()

    async def _feed(self, forward: _Forward, writer: asyncio.StreamWriter) -> None:
        while piece := await forward.given.get():
            writer.write(piece)
            self._passed(len(piece))
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()

    def _passed(self, size: int) -> None:
        self._waiting -= size
        if self._waiting <= _MUCH_INPUT:
            self.go_on()
