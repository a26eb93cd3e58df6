"""URLs as Go reads them, and its words where it does not."""

import ipaddress
import re
from dataclasses import dataclass

from kubewright.api import problems

# What may stand in a host as it is; anything else of ASCII may not stand there at all.
_HOST_SIGNS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!$&'()*+,;=:[]<>\""
)
_USER = r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*"
_CONTROL = r"[\x00-\x1f\x7f]"
_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]*):(.*)"


class UrlError(ValueError):
    """A text that is no URL; the message says why."""


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL, as they were written."""

    scheme: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    query: str = ""
    fragment: str = ""


def parse_url(text: str) -> Url:
    """Read a URL; raise UrlError with the text of Go's error where it is none."""
    rest, _, fragment = text.partition("#")
    try:
        found = _parse(rest)
    except UrlError as error:
        raise UrlError(f"parse {problems.quoted(rest)}: {error}") from None
    try:
        _check_escapes(fragment)
    except UrlError as error:
        raise UrlError(f"parse {problems.quoted(text)}: {error}") from None
    return Url(found.scheme, found.user, found.host, found.path, found.query, fragment)


def _parse(text: str) -> Url:
    if re.search(_CONTROL, text):
        raise UrlError("net/url: invalid control character in URL")
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = re.fullmatch(_SCHEME, text, re.DOTALL)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, query=query)
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    user = host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        user, host = _authority(authority)
        rest = slash + path
    _check_escapes(rest)
    return Url(scheme, user, host, rest, query)


def _authority(text: str) -> tuple[str, str]:
    user, _, host = text.rpartition("@")
    _check_host(host)
    if not re.fullmatch(_USER, user, re.ASCII):
        raise UrlError("net/url: invalid userinfo")
    _check_escapes(user)
    return user, host


def _check_host(host: str) -> None:
    if "[" in host[1:]:
        raise UrlError("invalid IP-literal")
    if host.startswith("["):
        inside, bracket, port = host[1:].rpartition("]")
        if not bracket:
            raise UrlError("missing ']' in host")
        _check_port(port)
        name, _, _ = inside.partition("%25")
        _check_host_signs(name)
        _check_literal(name)
        return
    name, colon, port = host.partition(":")
    _check_port(colon + port)
    _check_host_signs(name)


def _check_literal(name: str) -> None:
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        raise UrlError(f"invalid host: ParseAddr({problems.quoted(name)}): unable to parse IP") from None
    if found.version == 4:
        raise UrlError("invalid IP-literal")


def _check_port(text: str) -> None:
    if text and not re.fullmatch(":[0-9]*", text, re.ASCII):
        raise UrlError(f"invalid port {problems.quoted(text)} after host")


def _check_host_signs(name: str) -> None:
    _check_escapes(name, host=True)
    for sign in re.sub("%..", "", name):
        if sign.isascii() and sign not in _HOST_SIGNS:
            raise UrlError(f"invalid character {problems.quoted(sign)} in host name")


def _check_escapes(text: str, *, host: bool = False) -> None:
    """Check what follows percent signs; in a host, only bytes beyond ASCII may be written so."""
    for match in re.finditer("%.{0,2}", text, re.DOTALL):
        escape = match[0]
        known = re.fullmatch("%[0-9A-Fa-f]{2}", escape, re.ASCII)
        if not known or (host and int(escape[1], 16) < 8 and escape != "%25"):
            raise UrlError(f"invalid URL escape {problems.quoted(escape)}")
