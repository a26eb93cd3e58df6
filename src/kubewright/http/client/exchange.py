"""The interface between the client and HTTP: an `Exchange` sends requests and returns responses.

kubewright uses `Pool`. `ClusterConfig(exchange=...)` replaces it by another implementation, such as one for another
HTTP library (`kubewright.client.aiohttp_exchange`) or a server in the same process. An implementation must:

- raise the subclass of ExchangeFailed for how far the request got: retries of writes depend on it;
- send a request once, follow no redirects, and decompress bodies that it asked to be compressed;
- bound the bodies of error responses: a faulty server may send them forever.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

from kubewright.http.client.headers import Headers
from kubewright.http.client.route import Route

Fence = Callable[[], None]
"""Called right before a request is sent; raises to prevent that."""


class ClientResponse(NamedTuple):
    """A response; the body of a streamed one is empty."""

    status: int
    reason: str
    headers: Headers
    body: bytes


class Body(Protocol):
    """The body of a streamed response; its methods raise ExchangeFailed."""

    async def read(self, idle: float) -> bytes:
        """Return what has arrived since the last call, waiting up to `idle` seconds; b"" is the end."""
        ...

    async def read_all(self, deadline: float) -> bytes:
        """Return the unread rest; `deadline` is a time of the event loop's clock."""
        ...

    def release(self) -> None:
        """Close the connection or return it to the pool, whether the body was read to its end or not."""
        ...


class Exchange(Protocol):
    """Send requests and return responses; its methods raise ExchangeFailed.

    `head` is everything of the request before its body, as bytes; `decode_request` returns its parts.
    """

    async def send(
        self, head: bytes, body: bytes, timeout: float, fence: Fence | None = None
    ) -> ClientResponse:
        """Send a request and return its whole response; `fence` is called when the connection is ready."""
        ...

    async def stream(self, head: bytes, body: bytes, timeout: float) -> tuple[ClientResponse, Body]:
        """Send a request and return its response without the body, and the body to read."""
        ...

    async def close(self) -> None:
        """Abort all requests in progress."""
        ...


@runtime_checkable
class RoutedExchange(Exchange, Protocol):
    """An exchange that opens connections itself, so it needs the address, the proxy and the TLS context."""

    def reroute(self, route: Route) -> None:
        """Use a route for new requests: called before the first one and when the client certificate changes.

        Requests under way end on the old route; idle connections of it must not be used again.
        """
        ...
