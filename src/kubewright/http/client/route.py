"""The way to a server: its origin, the proxy before it, and TLS (pure)."""

import base64
import ssl
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from msgspec import Struct

_PORTS: Mapping[str, int] = MappingProxyType({"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080})
SOCKS = ("socks5", "socks5h")


class Origin(Struct, frozen=True):
    """Scheme, host and port of a server or proxy, and the credentials of its URL."""

    scheme: str
    host: str
    port: int
    username: str | None = None
    password: str = ""

    @classmethod
    def of(cls, url: str) -> "Origin":
        """Parse an http, https or socks5 URL; raise ValueError for anything else."""
        if " " in url or not url.isprintable():
            # urlsplit would drop line breaks and tabs silently.
            raise ValueError("the URL contains a line break, space or control character")
        parts = urlsplit(url)
        host = parts.hostname or ""
        if not host.isascii():
            # Only then: loading the codec's tables takes longer than everything else here.
            host = host.encode("idna").decode()
        if parts.scheme not in _PORTS or not host:
            raise ValueError("not an http, https or socks5 URL with a host")
        username = None if parts.username is None else unquote(parts.username)
        return cls(
            parts.scheme, host, parts.port or _PORTS[parts.scheme], username, unquote(parts.password or "")
        )

    def __repr__(self) -> str:
        return f"Origin({self.scheme}://{self.authority})"

    @property
    def secure(self) -> bool:
        """Return True if connections use TLS."""
        return self.scheme == "https"

    @property
    def name(self) -> str:
        """Return the host as URLs write it: IPv6 addresses in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def authority(self) -> str:
        """Return host and port as the Host header has them: without the default port."""
        return self.name if self.port == _PORTS[self.scheme] else f"{self.name}:{self.port}"

    @property
    def authorization(self) -> str:
        """Return the credentials as an Authorization header of the Basic scheme, or an empty string."""
        if self.username is None:
            return ""
        return f"Basic {base64.b64encode(f'{self.username}:{self.password}'.encode()).decode()}"


class Route(Struct, frozen=True):
    """How to reach a server; TLS with a proxy and TLS with the server trust the same authorities."""

    server: Origin
    proxy: Origin | None = None
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    """The name that the server's certificate must have, if not its host."""

    @property
    def needs_tls(self) -> bool:
        """Return True if the route needs a TLS context."""
        return self.server.secure or (self.proxy is not None and self.proxy.secure)

    @property
    def _forwards(self) -> bool:
        """Whether an HTTP proxy forwards requests, instead of tunnelling bytes."""
        return self.proxy is not None and self.proxy.scheme not in SOCKS and not self.server.secure

    def target(self, path: str) -> str:
        """Return the target of a request line: with the server in it for a proxy that forwards."""
        return f"http://{self.server.authority}{path}" if self._forwards else path

    def head(self) -> tuple[tuple[str, str], ...]:
        """Return the headers of every request on this route."""
        host = ("Host", self.server.authority)
        if self.proxy is None or not self._forwards or not self.proxy.authorization:
            return (host,)
        return host, ("Proxy-Authorization", self.proxy.authorization)
