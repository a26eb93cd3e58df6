"""Addresses: `url`, `ip`, `cidr` and what can be asked of them."""

import ipaddress
from collections.abc import Callable
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from kubewright.api import problems
from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.overloads import Library
from kubewright.schema.cel.types import BOOL, INT, STRING, list_of, map_of, opaque, struct
from kubewright.schema.cel.values import OpaqueValue
from kubewright.schema.formats import is_request_uri

URL, IP, CIDR = struct("kubernetes.URL"), opaque("net.IP"), opaque("net.CIDR")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface


class Url(OpaqueValue):
    """A URL as a value."""

    type_name = "kubernetes.URL"

    def __init__(self, text: str) -> None:
        self.parts: SplitResult = urlsplit(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    @property
    def host(self) -> str:
        """Return host and port without the user."""
        return self.parts.netloc.rpartition("@")[2]


class Ip(OpaqueValue):
    """An IP address as a value."""

    type_name = "net.IP"

    def __init__(self, address: _Address) -> None:
        self.address = address

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ip) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def size(self) -> int:
        """Return the number of bytes."""
        return self.address.max_prefixlen // 8


class Cidr(OpaqueValue):
    """An address range as a value, with the address it was written with."""

    type_name = "net.CIDR"

    def __init__(self, interface: _Network) -> None:
        self.interface = interface

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cidr) and self.interface == other.interface

    def __hash__(self) -> int:
        return hash(self.interface)

    def size(self) -> int:
        """Return the number of bytes of the prefix."""
        return -(-self.interface.network.prefixlen // 8)


def network_library() -> Library:
    """Return the functions on URLs, IP addresses and address ranges."""
    library = Library()
    _urls(library)
    _ips(library)
    _cidrs(library)
    return library


def _urls(library: Library) -> None:
    method = library.method
    library.add("url", "string_to_url", (STRING,), URL, _url)
    library.add("isURL", "is_url_string", (STRING,), BOOL, is_request_uri)
    method("getScheme", "url_get_scheme", (URL,), STRING, lambda url: url.parts.scheme)
    method("getHost", "url_get_host", (URL,), STRING, lambda url: url.host)
    method("getHostname", "url_get_hostname", (URL,), STRING, _hostname)
    method("getPort", "url_get_port", (URL,), STRING, _port)
    method("getEscapedPath", "url_get_escaped_path", (URL,), STRING, _escaped_path)
    method("getQuery", "url_get_query", (URL,), map_of(STRING, list_of(STRING)), _query)


def _url(text: str) -> Url:
    if not is_request_uri(text):
        problem = "empty url" if not text else "invalid URI for request"
        raise EvaluationError(
            f"URL parse error during conversion from string: parse {problems.quoted(text)}: {problem}"
        )
    return Url(text)


def _hostname(url: Url) -> str:
    host = url.host
    return host[1 : host.index("]")] if host.startswith("[") else host.partition(":")[0]


def _port(url: Url) -> str:
    return url.host.rpartition("]")[2].partition(":")[2]


def _escaped_path(url: Url) -> str:
    path = url.parts.path
    return path if unquote(path) != path else quote(path, safe="/:@!$&'()*+,;=~-._")


def _query(url: Url) -> dict[str, list[str]]:
    return parse_qs(url.parts.query, keep_blank_values=True)


def _parse_ip(text: str) -> _Address:
    if "%" in text:
        raise EvaluationError(f"IP address {problems.quoted(text)} with zone value is not allowed")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        reason = f"ParseAddr({problems.quoted(text)}): {_ip_problem(text)}"
        raise EvaluationError(
            f"IP Address {problems.quoted(text)} parse error during conversion from string: {reason}"
        ) from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        raise EvaluationError(f"IPv4-mapped IPv6 address {problems.quoted(text)} is not allowed")
    return address


def _ip_problem(text: str) -> str:
    if "." not in text and ":" not in text:
        return "unable to parse IP"
    if ":" in text:
        return (
            "address string too short" if text.count(":") < 7 and "::" not in text else "unexpected character"
        )
    fields = text.split(".")
    if any(len(part) > 1 and part.startswith("0") for part in fields):
        return "IPv4 field has octet with leading zero"
    if any(part.isdigit() and int(part) > 255 for part in fields):
        return "IPv4 field has value >255"
    if any(not part for part in fields):
        return "IPv4 field must have at least one digit"
    return "IPv4 address too long" if len(fields) > 4 else "IPv4 address too short"


def _parse_cidr(text: str) -> _Network:
    address, slash, bits = text.partition("/")
    try:
        if (
            not slash
            or not (bits.isascii() and bits.isdigit())
            or (bits != "0" and bits.startswith("0"))
            or "%" in address
        ):
            raise ValueError("no prefix")
        interface = ipaddress.ip_interface(text)
    except ValueError:
        problem = "bad prefix" if slash else "no '/'"
        reason = f"netip.ParsePrefix({problems.quoted(text)}): {problem}"
        raise EvaluationError(
            f"network address parse error during conversion from string: {reason}"
        ) from None
    if isinstance(interface, ipaddress.IPv6Interface) and interface.ip.ipv4_mapped:
        raise EvaluationError(f"IPv4-mapped IPv6 address {problems.quoted(text)} is not allowed")
    return interface


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except EvaluationError:
        return False
    return True


def _ips(library: Library) -> None:
    library.add("ip", "string_to_ip", (STRING,), IP, lambda text: Ip(_parse_ip(text)))
    library.add("isIP", "is_ip", (STRING,), BOOL, lambda text: _parses(_parse_ip, text))
    library.add(
        "ip.isCanonical", "ip_is_canonical", (STRING,), BOOL, lambda text: str(_parse_ip(text)) == text
    )
    library.add("string", "ip_to_string", (IP,), STRING, lambda ip: str(ip.address))
    library.method("family", "ip_family", (IP,), INT, lambda ip: ip.address.version)
    tests: dict[str, tuple[str, Callable[[_Address], bool]]] = {
        "isUnspecified": ("is_unspecified", lambda address: address.is_unspecified),
        "isLoopback": ("is_loopback", lambda address: address.is_loopback),
        "isLinkLocalMulticast": ("is_link_local_multicast", _link_local_multicast),
        "isLinkLocalUnicast": ("is_link_local_unicast", lambda address: address.is_link_local),
        "isGlobalUnicast": ("is_global_unicast", _global_unicast),
    }
    for name, (form, test) in tests.items():
        library.method(name, f"ip_{form}", (IP,), BOOL, _address_test(test))


def _address_test(test: Callable[[_Address], bool]) -> Callable[[Ip], bool]:
    return lambda ip: test(ip.address)


def _link_local_multicast(address: _Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.ip_network("224.0.0.0/24")
    return int(address) >> 112 & 0xFF0F == 0xFF02


def _global_unicast(address: _Address) -> bool:
    broadcast = isinstance(address, ipaddress.IPv4Address) and int(address) == 0xFFFFFFFF
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (broadcast or special)


def _cidrs(library: Library) -> None:
    method = library.method
    library.add("cidr", "string_to_cidr", (STRING,), CIDR, _cidr)
    library.add("isCIDR", "is_cidr", (STRING,), BOOL, lambda text: _parses(_parse_cidr, text))
    library.add("string", "cidr_to_string", (CIDR,), STRING, lambda cidr: cidr.interface.with_prefixlen)
    method(
        "containsIP", "cidr_contains_ip_string", (CIDR, STRING), BOOL,
        lambda cidr, text: _contains_ip(cidr, _parse_ip(text)),
    )  # fmt: skip
    method(
        "containsIP", "cidr_contains_ip_ip", (CIDR, IP), BOOL, lambda cidr, ip: _contains_ip(cidr, ip.address)
    )
    method(
        "containsCIDR", "cidr_contains_cidr_string", (CIDR, STRING), BOOL,
        lambda cidr, text: _contains_cidr(cidr, Cidr(_parse_cidr(text))),
    )  # fmt: skip
    method("containsCIDR", "cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr)
    method("ip", "cidr_ip", (CIDR,), IP, lambda cidr: Ip(cidr.interface.ip))
    method("prefixLength", "cidr_prefix_length", (CIDR,), INT, lambda cidr: cidr.interface.network.prefixlen)
    method("masked", "cidr_masked", (CIDR,), CIDR, _masked)


def _cidr(text: str) -> Cidr:
    try:
        return Cidr(_parse_cidr(text))
    except EvaluationError as error:
        # The server says it twice.
        raise EvaluationError(f"network address parse error during conversion from string: {error}") from None


def _contains_ip(cidr: Cidr, address: _Address) -> bool:
    return address.version == cidr.interface.version and address in cidr.interface.network


def _contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    network, inner = cidr.interface.network, other.interface.network
    return (
        network.version == inner.version
        and network.prefixlen <= inner.prefixlen
        and inner.network_address in network
    )


def _masked(cidr: Cidr) -> Cidr:
    return Cidr(ipaddress.ip_interface(str(cidr.interface.network)))
