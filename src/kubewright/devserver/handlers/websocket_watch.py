"""Watches over WebSocket: each event of the stream is one message, as fabric8's Java client reads them."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

from kubewright.devserver.request.context import RequestContext
from kubewright.http.server import (
    JSON,
    BodyWriter,
    HangUp,
    Request,
    Response,
    ServerResponse,
    Stream,
    Upgrade,
)
from kubewright.http.server.websocket import WebSocket, accept_headers
from kubewright.http.websocket import NORMAL, VERSION, Opcode

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")


def is_websocket_watch(context: RequestContext) -> bool:
    """Return True if the client requests the events of a watch over a WebSocket."""
    request = context.request
    return (
        context.info.verb == "watch"
        and request.upgrade
        and request.headers.get("upgrade", "").lower() == "websocket"
    )


def over_websocket(
    request: Request, response: ServerResponse | Coroutine[Any, Any, ServerResponse]
) -> ServerResponse | Coroutine[Any, Any, ServerResponse]:
    """Respond with the messages of a WebSocket instead of a stream; errors before it are plain responses."""
    if isinstance(response, Stream):
        return _accept(request, response)
    return _accept_later(request, response) if isinstance(response, Coroutine) else response


async def _accept_later(request: Request, response: Coroutine[Any, Any, ServerResponse]) -> ServerResponse:
    found = await response
    return _accept(request, found) if isinstance(found, Stream) else found


def _accept(request: Request, stream: Stream) -> Upgrade | Response:
    """Accept the WebSocket of a request, or reject what Go's WebSocket library rejects."""
    headers = request.headers
    key = headers.get("sec-websocket-key", "")
    protocol = headers.get("sec-websocket-protocol", "").strip()
    origin = headers.get("origin", "")
    if not key:
        return _reject(400, "mismatch challenge/response")
    if headers.get("sec-websocket-version") != VERSION:
        return _reject(400, "missing or bad WebSocket Version", ("Sec-WebSocket-Version", VERSION))
    if origin == "null" or not _ABSOLUTE.match(origin):
        return _reject(403)
    if "," in protocol:
        return _reject(400)
    socket = WatchSocket(binary=stream.content_type != JSON)
    return Upgrade(lambda _: socket, accept_headers(key, protocol), lambda: socket.serve(stream.run))


def _reject(status: int, message: str = "", *headers: tuple[str, str]) -> Response:
    return Response(status, message.encode(), "", list(headers))


class WatchSocket(WebSocket):
    """A WebSocket that receives the events of one watch."""

    def __init__(self, *, binary: bool) -> None:
        super().__init__()
        self._binary = binary

    def received(self, data: bytes) -> None:
        """Ignore messages: a watch takes none."""

    async def write(self, data: bytes) -> None:
        """Send each event of a piece of the stream as a message, then wait while the client reads slowly."""
        if self.lost.is_set():
            raise HangUp("the client has closed the connection")
        if self._binary:
            for event in _delimited(data):
                self.send(event, Opcode.BINARY)
        else:
            for line in data.splitlines(keepends=True):
                self.send(line, Opcode.TEXT)
        await self.writable()

    async def serve(self, run: Callable[[BodyWriter], Awaitable[None]]) -> None:
        """Send events until the watch ends or the client leaves."""
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch(run))
                await self.lost.wait()
                watching.cancel()
        finally:
            self.abort()

    async def _watch(self, run: Callable[[BodyWriter], Awaitable[None]]) -> None:
        # A stream that hangs up ends without a closing frame, as a broken connection does.
        with contextlib.suppress(HangUp):
            await run(self)
            self.close(NORMAL)
        self.lost.set()


def _delimited(data: bytes) -> Iterator[bytes]:
    """Yield the protobuf messages of a stream, each of which follows its length."""
    start = 0
    while start < len(data):
        end = start + 4 + int.from_bytes(data[start : start + 4], "big")
        yield data[start + 4 : end]
        start = end
