"""The way to a server: directly or through a proxy, plain or in TLS (pure)."""

import base64
import ssl
from urllib.parse import unquote, urlsplit

from msgspec import Struct

_PORTS = {"http": 80, "https": 443}


class Origin(Struct, frozen=True):
    """Where a URL leads, as far as connections are concerned."""

    secure: bool
    host: str
    port: int
    name: str
    """The host as URLs write it."""
    authority: str
    """Host and port as requests name them: without a port that goes without saying."""
    authorization: str = ""
    """Basic credentials that the URL carries."""

    @classmethod
    def of(cls, url: str) -> "Origin":
        """Read an http or https URL; anything else is a ValueError."""
        if " " in url or not url.isprintable():
            # urlsplit would drop line breaks and tabs silently.
            raise ValueError("the URL contains a line break, space or control character")
        parts = urlsplit(url)
        host = parts.hostname or ""
        if not host.isascii():
            # Only then: the codec brings tables that take longer to load than all of this.
            host = host.encode("idna").decode()
        if parts.scheme not in _PORTS or not host:
            raise ValueError("no http(s) URL")
        port = parts.port or _PORTS[parts.scheme]
        name = f"[{host}]" if ":" in host else host
        authority = name if port == _PORTS[parts.scheme] else f"{name}:{port}"
        return cls(
            parts.scheme == "https", host, port, name, authority, _basic(parts.username, parts.password)
        )


class Route(Struct, frozen=True):
    """How to reach a server; TLS with a proxy and TLS with the server trust the same authorities."""

    server: Origin
    proxy: Origin | None = None
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    """Whom the server's certificate must name, if not its host."""

    @property
    def needs_tls(self) -> bool:
        """Tell whether a context is needed to go this way."""
        return self.server.secure or (self.proxy is not None and self.proxy.secure)

    def target(self, path: str) -> str:
        """Return what a request line says: only a proxy that forwards in the clear is told the server."""
        if self.proxy is None or self.server.secure:
            return path
        return f"http://{self.server.authority}{path}"

    def head(self) -> tuple[tuple[str, str], ...]:
        """Return the headers that every request on this way carries."""
        named = ("Host", self.server.authority)
        if self.proxy is None or self.server.secure or not self.proxy.authorization:
            return (named,)
        return named, ("Proxy-Authorization", self.proxy.authorization)


def _basic(user: str | None, password: str | None) -> str:
    if user is None:
        return ""
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"
