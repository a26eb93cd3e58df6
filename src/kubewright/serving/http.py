"""A small HTTP server on one address."""

import ssl
from collections.abc import Iterable
from typing import NamedTuple, Self

from aiohttp import web

from kubewright.api import KubewrightError

SHUTDOWN_TIMEOUT = 5.0


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


class HttpServer:
    """Serve some paths on one address, from `async with` to its end."""

    def __init__(
        self, address: Address, routes: Iterable[web.RouteDef], *, tls: ssl.SSLContext | None = None
    ) -> None:
        self._address = address
        self._tls = tls
        self._app = web.Application()
        self._app.add_routes(routes)
        self._runner = web.AppRunner(
            self._app,
            access_log=None,
            handle_signals=False,
            keepalive_timeout=90.0,
            shutdown_timeout=SHUTDOWN_TIMEOUT,
        )
        self.port: int = address.port

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        host, port = self._address
        site = web.TCPSite(self._runner, host or None, port, ssl_context=self._tls)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise BindError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
