"""The proxy for a server, if any: proxy-url, HTTP(S)_PROXY and NO_PROXY, by Go's rules."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from kubewright.api import ConfigError
from kubewright.http.client import SOCKS

_DEFAULT_PORTS = {"http": 80, "https": 443}
_SCHEMES = (*_DEFAULT_PORTS, *SOCKS)

_IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def proxy_for(server: str, proxy_url: str, environ: Mapping[str, str]) -> str:
    """Return the URL of the proxy for a server, or "" for a direct connection."""
    if proxy_url:
        return check_proxy(proxy_url, "proxy-url")
    url = urlsplit(server)
    names = ("HTTPS_PROXY", "https_proxy") if url.scheme == "https" else ("HTTP_PROXY", "http_proxy")
    name = next((name for name in names if environ.get(name)), "")
    if not name or _bypassed(url.hostname or "", url.port or _DEFAULT_PORTS.get(url.scheme, 0), environ):
        return ""
    given = environ[name]
    return check_proxy(given if "://" in given else f"http://{given}", name)


def check_proxy(url: str, what: str) -> str:
    """Return the URL if it is a valid proxy URL; otherwise raise ConfigError without its password."""
    if has_spaces(url):
        raise ConfigError(f"{what} contains a line break, space or control character")
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise ConfigError(f"{what} is not a URL") from None
    if parts.scheme not in _SCHEMES or not host:
        raise ConfigError(f"{what} must be an http://, https:// or socks5:// URL with a host")
    return url


def has_spaces(text: str) -> bool:
    """Return True if a text contains line breaks, spaces or control characters, which `urlsplit` drops or keeps silently."""
    return " " in text or not text.isprintable()


def _bypassed(host: str, port: int, environ: Mapping[str, str]) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    listed = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    return any(_matches(entry.strip().lower(), host.lower(), port, address) for entry in listed.split(","))


def _matches(entry: str, host: str, port: int, address: _IPAddress | None) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    if address is not None and "/" in entry:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, wanted_port = _split_port(entry)
    if wanted_port and wanted_port != port:
        return False
    if address is not None:
        return _address(name) == address
    suffix = name.removeprefix("*")
    if suffix.startswith("."):
        return host.endswith(suffix)
    return host == suffix or host.endswith(f".{suffix}")


def _split_port(entry: str) -> tuple[str, int]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        port = rest.removeprefix(":")
    elif entry.count(":") == 1:
        name, _, port = entry.partition(":")
    else:
        return entry, 0
    return name, int(port) if port.isdecimal() else 0


def _address(host: str) -> _IPAddress | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
