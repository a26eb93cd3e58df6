"""Paths and who answers them."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from msgspec import Struct

from kubewright.http.server.answers import Answer, Response, text
from kubewright.http.server.handler import Handler
from kubewright.http.server.requests import Request


class Endpoint(Struct, frozen=True):
    """One path that is read with GET and HEAD; with `/*` at its end, all that are one step below."""

    path: str
    answer: Callable[[Request], Answer | Coroutine[Any, Any, Answer]]


class Router(Handler):
    """Answers by path; what nobody answers is refused."""

    def __init__(self, routes: Iterable[Endpoint]) -> None:
        self._routes = {route.path: route for route in routes}

    def admit(self, request: Request) -> int | Response:
        """Refuse unknown paths, other methods, and any body."""
        if self._find(request.path) is None:
            return text(404, "404 page not found\n")
        if request.method not in ("GET", "HEAD"):
            return Response(405, b"405 method not allowed\n", "text/plain", [("Allow", "GET, HEAD")])
        return 0

    def handle(self, request: Request) -> Answer | Coroutine[Any, Any, Answer]:
        """Answer what was admitted."""
        route = self._find(request.path)
        return text(404, "404 page not found\n") if route is None else route.answer(request)

    def _find(self, path: str) -> Endpoint | None:
        return self._routes.get(path) or self._routes.get(f"{path.rpartition('/')[0]}/*")
