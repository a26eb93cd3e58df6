"""Port-forward over a WebSocket of channels, as clients without SPDY use it: two channels for each port of the request.

The ports are fixed by the request. Port number i has channel 2i for data and 2i+1 for errors; the first message of each
channel is its port, as two bytes in little-endian order. Each port is one connection, which is opened at once.
"""

import asyncio
from collections.abc import Sequence

from kubewright.http.server.websocket import WebSocket
from kubewright.http.websocket import NORMAL
from kubewright.processpods.streaming.requests import Dial

PROTOCOL = "v4.channel.k8s.io"
MAX_PORTS = 128
"""A channel is one byte."""
_PIECE = 64 * 1024
_INPUT_HIGH_WATER = 1024 * 1024


class PortChannels(WebSocket):
    """The server side of a port-forward with channels."""

    def __init__(self, pod: str, ports: Sequence[int], dial: Dial) -> None:
        super().__init__()
        self._pod = pod
        self._ports = ports
        self._dial = dial
        self._pending: list[asyncio.Queue[bytes]] = [asyncio.Queue() for _ in ports]
        self._waiting = 0

    def received(self, data: bytes) -> None:
        """Pass data on to the connection of its channel; other channels and empty messages mean nothing."""
        number, is_error = divmod(data[0], 2)
        if is_error or number >= len(self._ports) or len(data) == 1:
            return
        self._pending[number].put_nowait(data[1:])
        self._waiting += len(data) - 1
        if self._waiting > _INPUT_HIGH_WATER:
            self.pause_reading()

    async def serve(self) -> None:
        """Forward until the client disconnects or all connections have ended."""
        for number, port in enumerate(self._ports):
            for channel in (2 * number, 2 * number + 1):
                self.send(bytes([channel]) + port.to_bytes(2, "little"))
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._forward(number)) for number in range(len(self._ports))]
                ended = group.create_task(asyncio.wait(tasks))
                lost = group.create_task(self.lost.wait())
                await asyncio.wait((ended, lost), return_when=asyncio.FIRST_COMPLETED)
                for task in (*tasks, ended, lost):
                    task.cancel()
            self.close(NORMAL)
        finally:
            self.abort()

    async def _forward(self, number: int) -> None:
        port = self._ports[number]
        try:
            await self._connect(number, port)
        except OSError as error:
            message = f"error forwarding port {port} to pod {self._pod}: {error}"
            self.send(bytes([2 * number + 1]) + message.encode())

    async def _connect(self, number: int, port: int) -> None:
        reader, writer = await self._dial(port)
        try:
            async with asyncio.TaskGroup() as group:
                feeding = group.create_task(self._feed(number, writer))
                while piece := await reader.read(_PIECE):
                    self.send(bytes([2 * number]) + piece)
                    await self.writable()
                feeding.cancel()
        except* OSError as errors:
            raise OSError(str(errors.exceptions[0])) from None
        finally:
            writer.transport.abort()

    async def _feed(self, number: int, writer: asyncio.StreamWriter) -> None:
        while True:
            piece = await self._pending[number].get()
            writer.write(piece)
            self._waiting -= len(piece)
            if self._waiting <= _INPUT_HIGH_WATER:
                self.resume_reading()
            await writer.drain()
