"""The handlers of a server: `Handler` responds to requests, `Router` is one that responds by path."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from kubewright.http.server.requests import Request
from kubewright.http.server.responses import (
    DateField,
    HeaderFields,
    PendingResponse,
    Response,
    text,
)


class Handler(ABC):
    """Respond to the requests of a server; every method but `handle` has a default."""

    _date = DateField()

    @abstractmethod
    def handle(self, request: Request) -> PendingResponse:
        """Return the response to a whole request, or a coroutine of it, which is cancelled if the client is gone."""

    def admit(self, request: Request) -> int | Response:
        """Return the largest body to accept for a request head, or a response that refuses the request unread."""
        return 0

    def too_large(self, request: Request, largest: int) -> Response:
        """Return the response to a body that is larger than `admit` allowed."""
        return text(413, f"the body is larger than {largest} bytes\n")

    def preamble(self, headers: HeaderFields) -> str:
        """Return the header lines of every response; `headers` are those of this one."""
        return str(self._date)

    def peer(self, transport: asyncio.BaseTransport) -> Mapping[str, Any] | None:
        """Return what requests of a new connection carry about their client, such as its certificate."""
        return None


class PathEndpoint(Struct, frozen=True):
    """One path that is read with GET and HEAD; a path that ends in `/*` matches everything one step below."""

    path: str
    respond: Callable[[Request], PendingResponse]


class Router(Handler):
    """Respond by path, and refuse unknown paths."""

    def __init__(self, endpoints: Iterable[PathEndpoint]) -> None:
        self._endpoints = {endpoint.path: endpoint for endpoint in endpoints}

    def admit(self, request: Request) -> int | Response:
        """Refuse unknown paths, other methods, and any body."""
        if self._find(request.path) is None:
            return text(404, "404 page not found\n")
        if request.method not in ("GET", "HEAD"):
            return Response(405, b"405 method not allowed\n", "text/plain", [("Allow", "GET, HEAD")])
        return 0

    def handle(self, request: Request) -> PendingResponse:
        """Respond to an admitted request."""
        endpoint = self._find(request.path)
        return text(404, "404 page not found\n") if endpoint is None else endpoint.respond(request)

    def _find(self, path: str) -> PathEndpoint | None:
        return self._endpoints.get(path) or self._endpoints.get(f"{path.rpartition('/')[0]}/*")
