"""The way from the cluster's own controllers to the server in their process: the same requests, and no network.

What a request means, who may make it and what trouble a test wants for it is decided by the server as for any
other; only connections, TLS and the writing and reading of HTTP are left out.
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
from kubewright.http.server import Answer as Served
from kubewright.http.server import Request, Response, Stream, Upgrade, split_target

HIGH_WATER = 1024 * 1024
"""A reader that is this many bytes behind is waited for."""

Handle = Callable[[Request], Served | Coroutine[Any, Any, Served]]
Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]

_log = logging.getLogger("kubewright.devserver")


class Pipe:
    """The body of an answer between who makes it and who reads it."""

    def __init__(self, data: bytes = b"", *, ended: bool = False) -> None:
        self._pieces = [data] if data else []
        self._held = len(data)
        self._ended = ended
        self._broken = False
        self._news: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None

    async def write(self, data: bytes) -> None:
        """Add a piece; wait while the reader is far behind."""
        self.put(data)
        if self._held > HIGH_WATER:
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def put(self, data: bytes) -> None:
        """Add a piece, however far the reader is behind."""
        if not data:
            # Read, nothing would be the end; a connection leaves it out as well.
            return
        self._pieces.append(data)
        self._held += len(data)
        self._tell()

    def end(self, *, broken: bool) -> None:
        """Add nothing more; `broken`: what there is may not be all. The first end holds."""
        if not self._ended:
            self._ended, self._broken = True, broken
            self._tell()

    async def read(self, idle: float) -> bytes:
        """Return what has come since the last call; wait if nothing has; nothing is the end."""
        return await self._take(asyncio.get_running_loop().time() + idle)

    async def read_all(self, deadline: float) -> bytes:
        """Return all that was not read yet."""
        found: list[bytes] = []
        while piece := await self._take(deadline):
            found.append(piece)
        return b"".join(found)

    def release(self) -> None:
        """Want no more of it."""
        if self.task is not None:
            self.task.cancel()

    async def _take(self, deadline: float) -> bytes:
        while not self._pieces:
            if self._broken:
                raise ConnectionBroken(begun=True)
            if self._ended:
                return b""
            self._news = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._news
            except TimeoutError:
                raise ReadTimeout from None
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        return data

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


class Loopback:
    """Exchange requests for answers with a server in this process; streams run as tasks of `spawn`."""

    def __init__(self, handle: Handle, spawn: Spawn) -> None:
        self._handle = handle
        self._spawn = spawn
        self._open: dict[asyncio.Task[None], Pipe] = {}

    async def send(
        self, head: bytes, body: bytes, timeout: float, fence: Fence | None = None
    ) -> ClientResponse:
        """Send a request and return its whole answer."""
        if fence is not None:
            fence()
        served = await self._served(head, body, timeout)
        if not isinstance(served, Response):
            raise MalformedResponse("a stream where a whole answer was asked for")
        return answer_of(served, served.body)

    async def stream(self, head: bytes, body: bytes, timeout: float) -> tuple[ClientResponse, Pipe]:
        """Return the head of an answer, and its body to be read."""
        served = await self._served(head, body, timeout)
        if isinstance(served, Response):
            return answer_of(served, b""), Pipe(served.body, ended=True)
        pipe = Pipe()
        pipe.task = self._spawn(_feed(served, pipe))
        self._open[pipe.task] = pipe
        pipe.task.add_done_callback(self._ended)
        return answer_of(served, b""), pipe

    async def close(self) -> None:
        """End all streams."""
        tasks = list(self._open)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        # A task that is cancelled before its first step runs nothing of its own.
        self._open.pop(task).end(broken=task.cancelled())

    async def _served(self, head: bytes, body: bytes, timeout: float) -> Response | Stream:
        request = read_request(head, body)
        # As on a connection, others get their turn between a request and its answer.
        await asyncio.sleep(0)
        served = self._handle(request)
        if isinstance(served, Coroutine):
            served = await self._awaited(served, request, timeout)
        if isinstance(served, Upgrade):
            raise MalformedResponse("another protocol where an answer was asked for")
        return served

    async def _awaited(
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
            _log.exception("answering %s %s failed", request.method, request.path)
            raise ConnectionBroken(begun=False) from None


async def _feed(stream: Stream, pipe: Pipe) -> None:
    try:
        await stream.run(pipe)
    except ConnectionError:
        # A test asked for this.
        pipe.end(broken=True)
    except Exception:
        _log.exception("a stream failed")
        pipe.end(broken=True)


def read_request(head: bytes, body: bytes) -> Request:
    """Parse the bytes of a request as `Transport` writes them."""
    line, _, block = head.partition(b"\r\n")
    method, target, _ = line.decode("latin-1").split(" ")
    path, query = split_target(target)
    # The length is the only field that differs from request to request.
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


def answer_of(served: Response | Stream, body: bytes) -> ClientResponse:
    """Return what a client sees of a server's answer."""
    fields = [(b"Content-Type", served.content_type.encode())]
    fields += [(name.encode(), value.encode()) for name, value in served.headers]
    return ClientResponse(served.status, "", Headers(fields), body)
