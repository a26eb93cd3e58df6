"""URLs as Go's net/url parses them, with its error messages."""

import ipaddress
import re
from dataclasses import dataclass

from kubewright.api import problems

# The ASCII characters that a host may contain.
_HOST_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!$&'()*+,;=:[]<>\""
)
_USER = r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*"
_CONTROL = r"[\x00-\x1f\x7f]"
_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]*):(.*)"


class GoUrlError(ValueError):
    """A string that is not a URL; the message is Go's."""


@dataclass(frozen=True, slots=True)
class GoUrl:
    """The parts of a URL, not unescaped."""

    scheme: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    query: str = ""
    fragment: str = ""


def parse_url(text: str) -> GoUrl:
    """Parse a URL like Go's url.Parse; raise GoUrlError with Go's message if it is invalid."""
    rest, _, fragment = text.partition("#")
    try:
        found = _parse(rest)
    except GoUrlError as error:
        raise GoUrlError(f"parse {problems.quoted(rest)}: {error}") from None
    try:
        _check_escapes(fragment)
    except GoUrlError as error:
        raise GoUrlError(f"parse {problems.quoted(text)}: {error}") from None
    return GoUrl(found.scheme, found.user, found.host, found.path, found.query, fragment)


def parse_request_uri(text: str) -> GoUrl:
    """Parse an absolute URL or an absolute path, like Go's url.ParseRequestURI: without a fragment."""
    try:
        return _parse(text, via_request=True)
    except GoUrlError as error:
        raise GoUrlError(f"parse {problems.quoted(text)}: {error}") from None


def is_request_uri(text: str) -> bool:
    """Return True for what Go's url.ParseRequestURI accepts: an absolute URL or an absolute path."""
    try:
        parse_request_uri(text)
    except GoUrlError:
        return False
    return True


def _parse(text: str, *, via_request: bool = False) -> GoUrl:
    if re.search(_CONTROL, text):
        raise GoUrlError("net/url: invalid control character in URL")
    if not text and via_request:
        raise GoUrlError("empty url")
    if text == "*":
        return GoUrl(path="*")
    if text.startswith(":"):
        raise GoUrlError("missing protocol scheme")
    match = re.fullmatch(_SCHEME, text, re.DOTALL)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return GoUrl(scheme, query=query)
        if via_request:
            raise GoUrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise GoUrlError("first path segment in URL cannot contain colon")
    user = host = ""
    if rest.startswith("//") and (scheme or not (via_request or rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        user, host = _authority(authority)
        rest = slash + path
    _check_escapes(rest)
    return GoUrl(scheme, user, host, rest, query)


def _authority(text: str) -> tuple[str, str]:
    user, _, host = text.rpartition("@")
    _check_host(host)
    if not re.fullmatch(_USER, user, re.ASCII):
        raise GoUrlError("net/url: invalid userinfo")
    _check_escapes(user)
    return user, host


def _check_host(host: str) -> None:
    if "[" in host[1:]:
        raise GoUrlError("invalid IP-literal")
    if host.startswith("["):
        inside, bracket, port = host[1:].rpartition("]")
        if not bracket:
            raise GoUrlError("missing ']' in host")
        _check_port(port)
        name, _, _ = inside.partition("%25")
        _check_host_characters(name)
        _check_literal(name)
        return
    name, colon, port = host.partition(":")
    _check_port(colon + port)
    _check_host_characters(name)


def _check_literal(name: str) -> None:
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        raise GoUrlError(f"invalid host: ParseAddr({problems.quoted(name)}): unable to parse IP") from None
    if found.version == 4:
        raise GoUrlError("invalid IP-literal")


def _check_port(text: str) -> None:
    if text and not re.fullmatch(":[0-9]*", text, re.ASCII):
        raise GoUrlError(f"invalid port {problems.quoted(text)} after host")


def _check_host_characters(name: str) -> None:
    _check_escapes(name, host=True)
    for char in re.sub("%..", "", name):
        if char.isascii() and char not in _HOST_CHARACTERS:
            raise GoUrlError(f"invalid character {problems.quoted(char)} in host name")


def _check_escapes(text: str, *, host: bool = False) -> None:
    """Validate percent escapes; in a host, only bytes beyond ASCII may be escaped."""
    for match in re.finditer("%.{0,2}", text, re.DOTALL):
        escape = match[0]
        known = re.fullmatch("%[0-9A-Fa-f]{2}", escape, re.ASCII)
        if not known or (host and int(escape[1], 16) < 8 and escape != "%25"):
            raise GoUrlError(f"invalid URL escape {problems.quoted(escape)}")
