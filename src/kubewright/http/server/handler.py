"""What stands behind a server: it judges heads, answers requests, and knows who is connected."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from typing import Any

from kubewright.http.server.answers import Answer, DateField, Fields, Response, text
from kubewright.http.server.requests import Request


class Handler(ABC):
    """Answers the requests of a server; all but `handle` have a plain way of their own."""

    _date = DateField()

    @abstractmethod
    def handle(self, request: Request) -> Answer | Coroutine[Any, Any, Answer]:
        """Answer a whole request, at once or later; whoever hangs up has the later answer cancelled."""

    def admit(self, request: Request) -> int | Response:
        """Say from its head how large a request's body may be, or refuse it unread."""
        return 0

    def too_large(self, request: Request, largest: int) -> Response:
        """Answer to a body that is larger than `admit` allowed."""
        return text(413, f"the body is larger than {largest} bytes\n")

    def preamble(self, headers: Fields) -> str:
        """Give the lines that go with every answer; `headers` are those of this one."""
        return str(self._date)

    def peer(self, transport: asyncio.BaseTransport) -> Mapping[str, Any] | None:
        """Tell what requests of a new connection know of their sender."""
        return None
