"""A small HTTP server on one address."""

import os
import ssl
from typing import NamedTuple, Self

from kubewright.api import KubewrightError
from kubewright.http import server
from kubewright.http.server import Handler, Limits

GRACE = 5.0


class BindError(KubewrightError):
    """An address that cannot be listened on."""


class Address(NamedTuple):
    """Where to listen; an empty host means every interface."""

    host: str
    port: int


def parse_address(text: str) -> Address | None:
    """Read a bind address as controller-runtime takes it: `:8080`, `127.0.0.1:0`, `[::1]:9443`; `0` is off."""
    if text in ("", "0"):
        return None
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise BindError(f'bind address {text!r}: write it as ":8080", "127.0.0.1:8080", or "0" for off')
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


class BoundHttpServer(server.HttpServer):
    """Serve on one address, from `async with` to its end."""

    def __init__(
        self,
        address: Address,
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
    """Say why, without the address again, which is in Python's own words; a resolver's errors are no system's."""
    if error.errno is None or error.errno <= 0:
        return error.strerror or str(error)
    return os.strerror(error.errno).lower()
