"""A network in place of sockets, for simulations in which several programs share one process.

While a context has a network, HTTP servers that start in it listen there and not on a socket, and the embedded API
server calls webhooks through it.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol


class Network(Protocol):
    """Connect clients with the servers that listen here: `SimulatedNetwork` of `kubewright.testing`, a higher layer."""

    def listen(self, host: str, port: int, handler: Any) -> tuple[int, Callable[[], None]]:
        """Serve a `Handler` on an address; return the port, chosen if it is 0, and a function that ends it."""
        ...

    def connect(self, host: str, port: int) -> Any:
        """Return an `Exchange` with whatever listens there when a request is sent."""
        ...

    def listens(self, host: str, port: int) -> bool:
        """Return True if a server listens on the address."""
        ...


NETWORK: ContextVar[Network | None] = ContextVar("kubewright_network", default=None)
