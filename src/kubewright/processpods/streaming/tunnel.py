"""Port-forward over a WebSocket: each connection to a port has two SPDY streams, one for data and one for errors."""

import asyncio
import contextlib
from dataclasses import dataclass, field

from kubewright.http.server.websocket import WebSocket
from kubewright.http.websocket import PROTOCOL_ERROR
from kubewright.processpods.streaming.requests import Dial
from kubewright.processpods.streaming.spdy import Data, Opened, Ping, Reset, SpdyError, SpdyReader, SpdyWriter

PROTOCOL = "SPDY/3.1+portforward.k8s.io"
_PIECE = 64 * 1024
_INPUT_HIGH_WATER = 1024 * 1024


@dataclass(eq=False)
class _Forward:
    """A forwarded connection: its streams, and the data to send to the port."""

    port: int
    error: int = 0
    data: int = 0
    pending: "asyncio.Queue[bytes]" = field(default_factory=asyncio.Queue[bytes])
    """An empty item is the end."""
    task: "asyncio.Task[None] | None" = None


class Tunnel(WebSocket):
    """The server side of `kubectl port-forward`."""

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
        """Decode frames, which may be split across messages."""
        try:
            for frame in self._reader.feed(data):
                if isinstance(frame, Data):
                    self._waiting += len(frame.data)
                self._arrived.put_nowait(frame)
        except SpdyError as error:
            self.close(PROTOCOL_ERROR, str(error))
            self.lost.set()
        if self._waiting > _INPUT_HIGH_WATER:
            self.pause_reading()

    async def serve(self) -> None:
        """Forward connections until the client disconnects."""
        try:
            async with asyncio.TaskGroup() as group:
                dispatcher = group.create_task(self._dispatch_all(group))
                await self.lost.wait()
                dispatcher.cancel()
                for forward in self._forwards.values():
                    if forward.task is not None:
                        forward.task.cancel()
        finally:
            self.abort()

    async def _dispatch_all(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._dispatch(await self._arrived.get(), group)

    def _dispatch(self, frame: Opened | Data | Reset | Ping, group: asyncio.TaskGroup) -> None:
        if isinstance(frame, Opened):
            self._open(frame, group)
        elif isinstance(frame, Ping):
            self.send(self._writer.ping(frame.number))
        elif (forward := self._streams.get(frame.stream)) is None or frame.stream == forward.error:
            # The client sends nothing on the error stream, and late data of closed streams is discarded.
            self._consumed(len(frame.data) if isinstance(frame, Data) else 0)
        elif isinstance(frame, Reset):
            if forward.task is not None:
                forward.task.cancel()
        else:
            if frame.data:
                forward.pending.put_nowait(frame.data)
            if frame.last:
                forward.pending.put_nowait(b"")

    def _open(self, frame: Opened, group: asyncio.TaskGroup) -> None:
        kind, port = frame.headers.get("streamtype", ""), frame.headers.get("port", "")
        if kind not in ("error", "data") or not port.isdecimal() or not 0 < int(port) < 65536:
            self.send(self._writer.reset(frame.stream))
            return
        request = frame.headers.get("requestid", "")
        forward = self._forwards.get(request) or _Forward(int(port))
        if frame.stream in self._streams or getattr(forward, kind):
            self.send(self._writer.reset(frame.stream))
            return
        self.send(self._writer.reply(frame.stream))
        self._forwards[request] = self._streams[frame.stream] = forward
        setattr(forward, kind, frame.stream)
        if forward.error and forward.data:
            forward.task = group.create_task(self._run(forward))
            # A callback, not the task itself: a task that is cancelled at once never runs.
            forward.task.add_done_callback(lambda _: self._forget(request, forward))

    async def _run(self, forward: _Forward) -> None:
        try:
            await self._connect(forward)
        except OSError as error:
            message = f"error forwarding port {forward.port} to pod {self._pod}: {error}"
            self.send(self._writer.data(forward.error, message.encode()))

    def _forget(self, request: str, forward: _Forward) -> None:
        for stream in (forward.data, forward.error):
            self.send(self._writer.data(stream, b"", last=True))
            del self._streams[stream]
        del self._forwards[request]
        while not forward.pending.empty():
            self._consumed(len(forward.pending.get_nowait()))

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
        while piece := await forward.pending.get():
            writer.write(piece)
            self._consumed(len(piece))
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()

    def _consumed(self, size: int) -> None:
        self._waiting -= size
        if self._waiting <= _INPUT_HIGH_WATER:
            self.resume_reading()
