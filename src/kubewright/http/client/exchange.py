"""What an exchange of requests for answers offers, over connections or otherwise."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from kubewright.http.client.headers import Headers

Fence = Callable[[], None]
"""Raises to keep a request from leaving."""


class ClientResponse(NamedTuple):
    """An answer; the body of one that is read piece by piece is empty."""

    status: int
    reason: str
    headers: Headers
    body: bytes


class Body(Protocol):
    """The rest of an answer whose head has come; what goes wrong is an ExchangeFailed."""

    async def read(self, idle: float) -> bytes:
        """Return all that has come since the last call; wait so many seconds if nothing has; nothing is the end."""
        ...

    async def read_all(self, deadline: float) -> bytes:
        """Return all that was not read yet, by a time on the event loop's clock."""
        ...

    def release(self) -> None:
        """Want no more of it, whether it was read to its end or not."""
        ...


class Exchange(Protocol):
    """Takes requests as bytes, the head with its empty line; what goes wrong is an ExchangeFailed."""

    async def send(
        self, head: bytes, body: bytes, timeout: float, fence: Fence | None = None
    ) -> ClientResponse:
        """Send a request and return its whole answer; the fence is met when the way is open, before it leaves."""
        ...

    async def stream(self, head: bytes, body: bytes, timeout: float) -> tuple[ClientResponse, Body]:
        """Send a request and return the head of its answer, and the body to be read."""
        ...

    async def close(self) -> None:
        """Receiver everything that is under way."""
        ...
