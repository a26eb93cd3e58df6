"""A handler for tests: paths that answer at once, later, in pieces, or never."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from http_wire import HttpConnection, connected

from kubewright.http.server import (
    BodyWriter,
    Handler,
    HangUp,
    HttpServer,
    Limits,
    Request,
    Response,
    ServerResponse,
    Stream,
    text,
)

LARGEST = 100_000


class Paths(Handler):
    """Answers by the first step of the path."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.admitted = 0
        self.asked: list[Request] = []
        self.cancelled: list[str] = []

    def admit(self, request: Request) -> int | Response:
        self.admitted += 1
        return text(404, "not found") if request.path == "/missing" else LARGEST

    def handle(self, request: Request) -> ServerResponse | Coroutine[Any, Any, ServerResponse]:
        self.asked.append(request)
        match request.path.split("/")[1]:
            case "later" | "never":
                return self._later(request)
            case "stream":
                return Stream(self._stream, "text/plain")
            case "large":
                return Response(200, b"x" * 300_000, "text/plain")
            case "empty":
                return Response(204, b"", "")
            case "split":
                return Response(200, b"", "text/plain", [("X-Note", request.one("note"))])
            case "split-type":
                return Response(200, b"", request.one("note"))
            case "split-stream":
                return Stream(self._stream, "text/plain", 200, [("X-Note", request.one("note"))])
            case "endless":
                return Stream(self._endless, "text/plain")
            case "broken":
                raise KeyError("secret")
            case "broken-later":
                return self._fail(KeyError("secret"))
            case "cancelled":
                return self._fail(asyncio.CancelledError())
            case "gone":
                return self._fail(HangUp("not today"))
            case "broken-stream":
                return Stream(self._break, "text/plain")
            case _:
                return Response(200, request.body or request.path.encode(), "text/plain")

    async def _later(self, request: Request) -> ServerResponse:
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.cancelled.append(request.path)
            raise
        return text(200, request.path)

    async def _fail(self, error: BaseException) -> ServerResponse:
        raise error

    async def _stream(self, writer: BodyWriter) -> None:
        for piece in (b"one", b"", b"two"):
            await writer.write(piece)

    async def _endless(self, writer: BodyWriter) -> None:
        await writer.write(b"one")
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.cancelled.append("/endless")
            raise

    async def _break(self, writer: BodyWriter) -> None:
        await writer.write(b"one")
        raise KeyError("secret")


@asynccontextmanager
async def serving(limits: Limits = Limits(), grace: float = 5.0) -> AsyncIterator[tuple[HttpServer, Paths]]:  # noqa: B008 (frozen)
    handler = Paths()
    async with HttpServer(handler, "127.0.0.1", 0, limits=limits, grace=grace) as server:
        yield server, handler


@asynccontextmanager
async def talking(limits: Limits = Limits()) -> AsyncIterator[tuple[HttpServer, Paths, HttpConnection]]:  # noqa: B008 (frozen)
    async with serving(limits) as (server, handler), connected(server.port) as wire:
        yield server, handler, wire
