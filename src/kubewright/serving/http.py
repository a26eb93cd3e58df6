"""The HTTP server of an operator: one address, and errors that name it."""

import os
import ssl
from typing import NamedTuple, Self

from kubewright.api import KubewrightError
from kubewright.http import server
from kubewright.http.server import Handler, Limits

GRACE = 5.0
PROBE_LIMITS = Limits(eviction_seconds=0.25, receive_seconds=5.0, idle_seconds=30.0)
"""Limits of the server for probes, which shares no connection with metrics or webhooks.

A probe is one small packet and kubelet waits a second for its response, so slow clients are evicted early.
"""


class BindError(KubewrightError):
    """The server cannot listen on an address."""


class BindAddress(NamedTuple):
    """A bind address; an empty host means every interface."""

    host: str
    port: int


def parse_address(text: str) -> BindAddress | None:
    """Parse a bind address as controller-runtime does: `:8080`, `127.0.0.1:0`, `[::1]:9443`; return None for `0` (off)."""
    if text in ("", "0"):
        return None
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise BindError(f'bind address {text!r}: write it as ":8080", "127.0.0.1:8080", or "0" for off')
    return BindAddress(host.removeprefix("[").removesuffix("]"), int(port))


class BoundHttpServer(server.HttpServer):
    """Serve a handler on one address inside `async with`; raise BindError if that is not possible."""

    def __init__(
        self,
        address: BindAddress,
        handler: Handler,
        *,
        tls: ssl.SSLContext | None = None,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        grace: float = GRACE,
    ) -> None:
        super().__init__(handler, address.host, address.port, tls=tls, limits=limits, grace=grace)
        self._address = address

    async def __aenter__(self) -> Self:
        try:
            return await super().__aenter__()
        except OSError as error:
            host, port = self._address
            raise BindError(f"cannot listen on {host}:{port}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    """Return the reason alone: Python's own text repeats the address. Resolver errors have no system error number."""
    if error.errno is None or error.errno <= 0:
        return error.strerror or str(error)
    return os.strerror(error.errno).lower()
