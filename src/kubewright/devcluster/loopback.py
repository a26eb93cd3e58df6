"""A client transport to the API server in the same process, without a network.

The server handles these requests like any others, with authentication, authorization and injected faults. Only
connections, TLS and HTTP parsing are left out.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import lru_cache
from typing import Any

from kubewright.http.client import (
    ClientResponse,
    ConnectionBroken,
    Fence,
    Headers,
    MalformedResponse,
    ReadTimeout,
)
from kubewright.http.server import Request, Response, Stream, Upgrade, split_target
from kubewright.http.server import ServerResponse as Served

HIGH_WATER = 1024 * 1024
"""A writer waits while this many bytes are unread."""

Handle = Callable[[Request], Served | Coroutine[Any, Any, Served]]
Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]

_log = logging.getLogger("kubewright.devserver")


class Pipe:
    """A response body between the server that writes it and the client that reads it."""

    def __init__(self, data: bytes = b"", *, ended: bool = False) -> None:
        self._pieces = [data] if data else []
        self._held = len(data)
        self._ended = ended
        self._broken = False
        self._readable: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None

    async def write(self, data: bytes) -> None:
        """Append data; wait while too much is unread."""
        self.put(data)
        if self._held > HIGH_WATER:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable

    def put(self, data: bytes) -> None:
        """Append data without waiting."""
        if not data:
            # A reader takes empty data for the end of the body.
            return
        self._pieces.append(data)
        self._held += len(data)
        self._notify()

    def end(self, *, broken: bool) -> None:
        """End the body; `broken` means that it may be incomplete. Only the first call counts."""
        if not self._ended:
            self._ended, self._broken = True, broken
            self._notify()

    async def read(self, idle: float) -> bytes:
        """Return unread data, waiting if there is none; empty at the end."""
        return await self._take(asyncio.get_running_loop().time() + idle)

    async def read_all(self, deadline: float) -> bytes:
        """Return all unread data up to the end."""
        found: list[bytes] = []
        while piece := await self._take(deadline):
            found.append(piece)
        return b"".join(found)

    def release(self) -> None:
        """Stop reading and cancel the writer."""
        if self.task is not None:
            self.task.cancel()

    async def _take(self, deadline: float) -> bytes:
        while not self._pieces:
            if self._broken:
                raise ConnectionBroken(begun=True)
            if self._ended:
                return b""
            self._readable = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._readable
            except TimeoutError:
                raise ReadTimeout from None
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        return data

    def _notify(self) -> None:
        if self._readable is not None and not self._readable.done():
            self._readable.set_result(None)


class Loopback:
    """Send requests to a server in this process; streams run as tasks started by `spawn`."""

    def __init__(self, handle: Handle, spawn: Spawn) -> None:
        self._handle = handle
        self._spawn = spawn
        self._open: dict[asyncio.Task[None], Pipe] = {}

    async def send(
        self, head: bytes, body: bytes, timeout: float, fence: Fence | None = None
    ) -> ClientResponse:
        """Send a request and return the complete response."""
        if fence is not None:
            fence()
        served = await self._served(head, body, timeout)
        if not isinstance(served, Response):
            raise MalformedResponse("expected a complete response, got a stream")
        return client_response(served, served.body)

    async def stream(self, head: bytes, body: bytes, timeout: float) -> tuple[ClientResponse, Pipe]:
        """Return the response head, and the body as a stream."""
        served = await self._served(head, body, timeout)
        if isinstance(served, Response):
            return client_response(served, b""), Pipe(served.body, ended=True)
        pipe = Pipe()
        pipe.task = self._spawn(_feed(served, pipe))
        self._open[pipe.task] = pipe
        pipe.task.add_done_callback(self._ended)
        return client_response(served, b""), pipe

    async def close(self) -> None:
        """Cancel all streams."""
        tasks = list(self._open)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        # A task that is cancelled before its first step cannot end the pipe itself.
        self._open.pop(task).end(broken=task.cancelled())

    async def _served(self, head: bytes, body: bytes, timeout: float) -> Response | Stream:
        request = read_request(head, body)
        # Other tasks run between a request and its response, as with a real connection.
        await asyncio.sleep(0)
        served = self._handle(request)
        if isinstance(served, Coroutine):
            served = await self._await_response(served, request, timeout)
        if isinstance(served, Upgrade):
            raise MalformedResponse("expected a response, got a protocol upgrade")
        return served

    async def _await_response(
        self, pending: Coroutine[Any, Any, Served], request: Request, timeout: float
    ) -> Served:
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await pending
        except TimeoutError:
            if limit.expired():
                raise ReadTimeout from None
            raise ConnectionBroken(begun=False) from None
        except ConnectionError:
            raise ConnectionBroken(begun=False) from None
        except Exception:
            _log.exception("Request failed: %s %s", request.method, request.path)
            raise ConnectionBroken(begun=False) from None


async def _feed(stream: Stream, pipe: Pipe) -> None:
    try:
        await stream.run(pipe)
    except ConnectionError:
        # An injected fault.
        pipe.end(broken=True)
    except Exception:
        _log.exception("Stream failed")
        pipe.end(broken=True)


def read_request(head: bytes, body: bytes) -> Request:
    """Parse a request as `Transport` encodes it."""
    line, _, block = head.partition(b"\r\n")
    method, target, _ = line.decode("latin-1").split(" ")
    path, query = split_target(target)
    # The headers before Content-Length are the same for many requests, and are cached.
    headers, fields = _fields(block.partition(b"Content-Length: ")[0])
    return Request(method, path, query, headers, body, fields=fields)


@lru_cache(maxsize=256)
def _fields(block: bytes) -> tuple[dict[str, str], list[tuple[str, str]]]:
    headers: dict[str, str] = {}
    fields: list[tuple[str, str]] = []
    for line in block.decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(": ")
        if not colon:
            continue
        name = name.lower()
        fields.append((name, value))
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers, fields


def client_response(served: Response | Stream, body: bytes) -> ClientResponse:
    """Convert a server response to a client response."""
    fields = [(b"Content-Type", served.content_type.encode())]
    fields += [(name.encode(), value.encode()) for name, value in served.headers]
    return ClientResponse(served.status, "", Headers(fields), body)
