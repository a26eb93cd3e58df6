"""Functions that Kubernetes adds: quantities, versions, formats, URLs, IP addresses, authorization."""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from kubewright.api import Quantity, QuantityError, names, problems
from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.types import (
    BOOL,
    DOUBLE,
    INT,
    STRING,
    Library,
    list_of,
    map_of,
    opaque,
    optional_of,
    struct,
)
from kubewright.schema.cel.values import NONE, OpaqueValue, Optional
from kubewright.schema.formats import string_format
from kubewright.schema.go_urls import GoUrlError, is_request_uri, parse_request_uri
from kubewright.schema.json_tree import INT64_MAX, INT64_MIN

QUANTITY, SEMVER, FORMAT = (
    struct("kubernetes.Quantity"),
    struct("kubernetes.Semver"),
    struct("kubernetes.NamedFormat"),
)
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
URL, IP, CIDR = struct("kubernetes.URL"), opaque("net.IP"), opaque("net.CIDR")
AUTHORIZER = struct("kubernetes.authorization.Authorizer")
PATH_CHECK = struct("kubernetes.authorization.PathCheck")
GROUP_CHECK = struct("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK = struct("kubernetes.authorization.ResourceCheck")
DECISION = struct("kubernetes.authorization.Decision")


@dataclass(frozen=True)
class QuantityValue(OpaqueValue):
    """A resource quantity as a value."""

    type_name: ClassVar[str] = QUANTITY.name

    quantity: Quantity


@dataclass(frozen=True)
class Semver(OpaqueValue):
    """A semantic version as a value; the build does not count in comparisons."""

    type_name: ClassVar[str] = SEMVER.name

    numbers: tuple[int, int, int]
    prerelease: tuple[str, ...]
    build: str

    def order(self) -> tuple[Any, ...]:
        """Return a key that sorts versions."""
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.prerelease)
        return (self.numbers, not self.prerelease, parts)


@dataclass(frozen=True)
class NamedFormat(OpaqueValue):
    """A named format as a value."""

    type_name: ClassVar[str] = FORMAT.name

    name: str
    check: Callable[[str], list[str]]
    regex_size: int


def kubernetes_library() -> Library:
    """Return the functions on quantities, versions and formats."""
    library = Library()
    _quantities(library)
    _versions(library)
    _formats(library)
    return library


def _quantity(text: str) -> QuantityValue:
    try:
        return QuantityValue(Quantity(text))
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity(text)
    except QuantityError:
        return False
    return True


def _quantities(library: Library) -> None:
    method = library.method
    library.add("quantity", "string_to_quantity", (STRING,), QUANTITY, _quantity)
    library.add("isQuantity", "is_quantity_string", (STRING,), BOOL, _is_quantity)
    # The server declares sign() as a function, not as a method.
    library.add("sign", "quantity_sign", (QUANTITY,), INT, lambda value: _sign(value.quantity.value))
    method(
        "isGreaterThan", "quantity_is_greater_than", (QUANTITY, QUANTITY), BOOL, lambda a, b: _order(a, b) > 0
    )
    method("isLessThan", "quantity_is_less_than", (QUANTITY, QUANTITY), BOOL, lambda a, b: _order(a, b) < 0)
    method("compareTo", "quantity_compare_to", (QUANTITY, QUANTITY), INT, _order)
    method(
        "asApproximateFloat",
        "quantity_get_float",
        (QUANTITY,),
        DOUBLE,
        lambda value: float(value.quantity.value),
    )
    method("asInteger", "quantity_get_int", (QUANTITY,), INT, _integer)
    method("isInteger", "quantity_is_integer", (QUANTITY,), BOOL, lambda value: _whole(value) is not None)
    for name, sign in (("add", 1), ("sub", -1)):
        method(name, f"quantity_{name}", (QUANTITY, QUANTITY), QUANTITY, _sum(sign))
        method(name, f"quantity_{name}_int", (QUANTITY, INT), QUANTITY, _sum(sign))


def _sign(value: Any) -> int:
    return (value > 0) - (value < 0)


def _order(left: QuantityValue, right: QuantityValue) -> int:
    return _sign(left.quantity.value - right.quantity.value)


def _whole(value: QuantityValue) -> int | None:
    number = value.quantity.value
    return int(number) if number == int(number) and INT64_MIN <= number <= INT64_MAX else None


def _integer(value: QuantityValue) -> int:
    whole = _whole(value)
    if whole is None:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _sum(sign: int) -> Callable[[QuantityValue, QuantityValue | int], QuantityValue]:
    def add(left: QuantityValue, right: QuantityValue | int) -> QuantityValue:
        other = right.quantity if isinstance(right, QuantityValue) else Quantity(right)
        return QuantityValue(left.quantity + other if sign > 0 else left.quantity - other)

    return add


def _semver(text: str, normalize: bool = False) -> Semver:
    source = _normalized(text) if normalize else text
    match = _SEMVER.fullmatch(source)
    if match is None:
        raise EvaluationError(_semver_problem(source))
    numbers = (int(match[1]), int(match[2]), int(match[3]))
    return Semver(numbers, tuple(match[4].split(".")) if match[4] else (), match[5] or "")


def _semver_problem(text: str) -> str:
    if not text:
        return "Version string empty"
    if text.count(".") < 2:
        return "No Major.Minor.Patch elements found"
    for part in text.split(".", 2)[:2]:
        if not part.isdigit():
            return f"Invalid character(s) found in {'major' if part == text.split('.', maxsplit=1)[0] else 'minor'} number {problems.quoted(part)}"
        if len(part) > 1 and part.startswith("0"):
            return f"Major number must not contain leading zeroes {problems.quoted(part)}"
    return f"Invalid character(s) found in patch number {problems.quoted(text.split('.', 2)[2])}"


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for position, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[position] = stripped if stripped[:1].isdigit() else f"0{stripped}"
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3])


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except EvaluationError:
        return False
    return True


def _versions(library: Library) -> None:
    method = library.method
    library.add("semver", "string_to_semver", (STRING,), SEMVER, _semver)
    library.add("semver", "string_bool_to_semver", (STRING, BOOL), SEMVER, _semver)
    library.add("isSemver", "is_semver_string", (STRING,), BOOL, _is_semver)
    library.add("isSemver", "is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver)
    method(
        "isGreaterThan", "semver_is_greater_than", (SEMVER, SEMVER), BOOL, lambda a, b: a.order() > b.order()
    )
    method("isLessThan", "semver_is_less_than", (SEMVER, SEMVER), BOOL, lambda a, b: a.order() < b.order())
    method(
        "compareTo", "semver_compare_to", (SEMVER, SEMVER), INT,
        lambda a, b: (a.order() > b.order()) - (a.order() < b.order()),
    )  # fmt: skip
    for position, name in enumerate(("major", "minor", "patch")):
        method(name, f"semver_{name}", (SEMVER,), INT, _number(position))


def _number(position: int) -> Callable[[Semver], int]:
    return lambda version: version.numbers[position]


def _strict(name: str, problem: str) -> Callable[[str], list[str]]:
    accepts = string_format(name)
    assert accepts is not None
    return lambda text: [] if accepts(text) else [problem]


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except GoUrlError as error:
        return [str(error)]
    return []


_FORMATS: dict[str, NamedFormat] = {
    "dns1123Label": NamedFormat("DNS1123Label", names.dns1123_label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", names.dns1123_subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", names.dns1035_label, 30),
    "qualifiedName": NamedFormat("QualifiedName", names.qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat(
        "DNS1123LabelPrefix", lambda text: names.generated(names.dns1123_label, text), 30
    ),
    "dns1123SubdomainPrefix": NamedFormat(
        "DNS1123SubdomainPrefix", lambda text: names.generated(names.dns1123_subdomain, text), 60
    ),
    "dns1035LabelPrefix": NamedFormat(
        "DNS1035LabelPrefix", lambda text: names.generated(names.dns1035_label, text), 30
    ),
    "labelValue": NamedFormat("LabelValue", names.label_value, 40),
    "uri": NamedFormat("URI", _uri, 1150),
    "uuid": NamedFormat("uuid", _strict("uuid", "does not match the UUID format"), 80),
    "byte": NamedFormat("byte", _strict("byte", "invalid base64"), 84),
    "date": NamedFormat("date", _strict("date", "invalid date"), 84),
    "datetime": NamedFormat("datetime", _strict("datetime", "invalid datetime"), 84),
}


def _formats(library: Library) -> None:
    for name, value in _FORMATS.items():
        library.add(f"format.{name}", f"format.{name}", (), FORMAT, _constant(value))
    library.add(
        "format.named", "format-named", (STRING,), optional_of(FORMAT),
        lambda name: Optional(_FORMATS[name]) if name in _FORMATS else NONE,
    )  # fmt: skip
    library.method("validate", "format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validate)


def _constant(value: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: value


def _validate(named: NamedFormat, text: str) -> Optional:
    reasons = named.check(text)
    return Optional(reasons) if reasons else NONE


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
    try:
        parse_request_uri(text)
    except GoUrlError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None
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
        # The server repeats the error.
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


@dataclass(frozen=True)
class AuthorizationDecision(OpaqueValue):
    """The decision of an authorizer."""

    type_name: ClassVar[str] = DECISION.name
    allowed: bool
    reason: str = ""
    error: str = ""


@dataclass(frozen=True)
class AuthorizationCheck:
    """The attributes of an authorization check that an expression has set."""

    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    service_account: tuple[str, str] | None = None


Authorize = Callable[[AuthorizationCheck], AuthorizationDecision]
"""Decide about the user of the request, or about the service account that the question names."""


@dataclass(frozen=True)
class Authorizer(OpaqueValue):
    """The variable `authorizer`."""

    type_name: ClassVar[str] = AUTHORIZER.name
    authorize: Authorize
    question: AuthorizationCheck = field(default_factory=AuthorizationCheck)


class PathCheck(Authorizer):
    """A check of a URL path."""

    type_name: ClassVar[str] = PATH_CHECK.name


class GroupCheck(Authorizer):
    """A check of an API group, still without a resource."""

    type_name: ClassVar[str] = GROUP_CHECK.name


class ResourceCheck(Authorizer):
    """A check of a resource; the variable `authorizer.requestResource` is one."""

    type_name: ClassVar[str] = RESOURCE_CHECK.name


def authorization_library() -> Library:
    """Return the functions on authorizers, for an Environment that has the variable `authorizer`."""
    library = Library()
    method = library.method
    method("path", "authorizer_path", (AUTHORIZER, STRING), PATH_CHECK, _narrowed(PathCheck, "path"))
    method("group", "authorizer_group", (AUTHORIZER, STRING), GROUP_CHECK, _narrowed(GroupCheck, "group"))
    method(
        "serviceAccount", "authorizer_serviceaccount", (AUTHORIZER, STRING, STRING), AUTHORIZER,
        lambda value, namespace, name: _with(Authorizer, value, service_account=(namespace, name)),
    )  # fmt: skip
    method(
        "resource",
        "groupcheck_resource",
        (GROUP_CHECK, STRING),
        RESOURCE_CHECK,
        _narrowed(ResourceCheck, "resource"),
    )
    for function, attribute in (
        ("subresource", "subresource"),
        ("namespace", "namespace"),
        ("name", "name"),
        ("fieldSelector", "field_selector"),
        ("labelSelector", "label_selector"),
    ):
        name = f"resourcecheck_{function.lower()}"
        method(function, name, (RESOURCE_CHECK, STRING), RESOURCE_CHECK, _narrowed(ResourceCheck, attribute))
    method("check", "pathcheck_check", (PATH_CHECK, STRING), DECISION, _check)
    method("check", "resourcecheck_check", (RESOURCE_CHECK, STRING), DECISION, _check)
    method("allowed", "decision_allowed", (DECISION,), BOOL, lambda decision: decision.allowed)
    method("reason", "decision_reason", (DECISION,), STRING, lambda decision: decision.reason)
    method("errored", "decision_errored", (DECISION,), BOOL, lambda decision: bool(decision.error))
    method("error", "decision_error", (DECISION,), STRING, lambda decision: decision.error)
    return library


def _with(kind: type[Authorizer], value: Authorizer, **change: Any) -> Authorizer:
    return kind(value.authorize, replace(value.question, **change))


def _narrowed(kind: type[Authorizer], attribute: str) -> Callable[[Authorizer, str], Authorizer]:
    return lambda value, text: _with(kind, value, **{attribute: text})


def _check(value: Authorizer, verb: str) -> AuthorizationDecision:
    return value.authorize(replace(value.question, verb=verb))
