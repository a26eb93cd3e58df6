"""Forward a local port to a port of a Pod, each connection over a WebSocket of its own to the API server.

The subprotocol is the kubelet's `v4.channel.k8s.io`: the first byte of a message is its channel, 0 for data and 1 for
errors, and the first message of each channel is the port, as two bytes in little-endian order. `kubectl port-forward`
tunnels SPDY instead, which it needs to carry several connections at once.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from kubewright.api import ApiError, ConnectionFailed
from kubewright.http.client import ClientWebSocket

PORT_FORWARD_PROTOCOL = "v4.channel.k8s.io"
_PIECE = 32 * 1024
_DATA, _ERROR = 0, 1
_LINGER = 5.0
"""Seconds for which the Pod's side stays open after the local one has ended."""

Connect = Callable[[], Awaitable[ClientWebSocket]]


class PortForward:
    """A forwarded port: `port` is the local one."""

    def __init__(self, connect: Connect, remote_port: int) -> None:
        self.port: int = 0
        self.error: str = ""
        """Why the latest connection that failed was not forwarded."""
        self._connect = connect
        self._prefix = remote_port.to_bytes(2, "little")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until one side ends it."""
        try:
            websocket = await self._connect()
        except (ApiError, ConnectionFailed) as error:
            self.error = str(error)
            writer.transport.abort()
            return
        try:
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(_send(reader, websocket))
                await self._receive(websocket, writer)
                sending.cancel()
        except* OSError:
            pass  # the local side has closed the connection
        finally:
            websocket.close()
            writer.close()

    async def _receive(self, websocket: ClientWebSocket, writer: asyncio.StreamWriter) -> None:
        started: set[int] = set()
        while (message := await websocket.receive()) is not None:
            channel, data = message[0], message[1:]
            if channel not in started:
                started.add(channel)
                if data == self._prefix:
                    continue
            if channel == _DATA:
                writer.write(data)
                await writer.drain()
            elif channel == _ERROR and data:
                self.error = data.decode(errors="replace").strip()
                return


async def _send(reader: asyncio.StreamReader, websocket: ClientWebSocket) -> None:
    while piece := await reader.read(_PIECE):
        await websocket.send(bytes([_DATA]) + piece)
    # The protocol cannot say that one side has ended: what the Pod still sends has some time to arrive.
    await asyncio.sleep(_LINGER)
    websocket.close()


@asynccontextmanager
async def forwarded(connect: Connect, remote_port: int) -> AsyncGenerator[PortForward, None]:
    """Listen on a free port of the loopback interface and forward its connections until the end of the block."""
    forward = PortForward(connect, remote_port)
    async with asyncio.TaskGroup() as group:
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = group.create_task(forward.serve(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        forward.port = server.sockets[0].getsockname()[1]
        try:
            yield forward
        finally:
            server.close()
            for task in tasks:
                task.cancel()
