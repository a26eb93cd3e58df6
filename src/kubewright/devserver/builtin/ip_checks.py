"""Checks of IP addresses and networks, with the error messages of the real server."""

import ipaddress
import re

from kubewright.api import FieldError, problems
from kubewright.devserver.objects import JsonObject, items, section

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_ADDRESS_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NETWORK_TEXT = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_LEADING, _MAPPED = "must not have leading 0s", "must not be an IPv4-mapped IPv6 address"
_NETWORK_LEADING = "must not have leading 0s in IP or prefix length"
_NETWORK_MAPPED = "must not have an IPv4-mapped IPv6 address"
_NETWORK_BITS = "must not have bits set beyond the prefix length"
OLDER_FORMS = frozenset({_LEADING, _MAPPED, _NETWORK_LEADING, _NETWORK_MAPPED, _NETWORK_BITS})
"""The details of errors about forms that Kubernetes accepted before 1.36."""
_LOCAL_MULTICAST = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}
_FORM_WARNING = re.compile(
    r": (non-standard (IP address|CIDR value) .* is invalid|CIDR value .* is ambiguous|IPv6 .* should be in RFC 5952)"
)
_LEADING_ZEROS = r"(^|[.:])0+(?=[0-9]+(\.|$))"


def is_address(text: str) -> bool:
    """Return True if a text is an IP address."""
    return _address(text) is not None


def parse_address(text: str) -> IPAddress:
    """Return an address that is valid, in any form; an IPv4 address that is mapped to IPv6 is an IPv4 address."""
    found = _address(text)
    assert found is not None, text
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def family(text: str) -> int | None:
    """Return 4 or 6, or None if a text is not an IP address."""
    found = _address(text)
    return None if found is None else 4 if _is_mapped(found) else found.version


def address(path: str, value: str) -> list[FieldError]:
    """Check an IP address in a field that must accept older forms when it does not change."""
    found = _address(value)
    if found is None:
        return [problems.invalid(path, value, _ADDRESS_TEXT)]
    if _plain(value) != value:
        return [problems.invalid(path, value, _LEADING)]
    if _is_mapped(found):
        return [problems.invalid(path, value, _MAPPED)]
    return []


def canonical_address(path: str, value: str) -> list[FieldError]:
    """Check an IP address that must be in canonical form."""
    errors = address(path, value)
    if not errors and value != (shown := str(ipaddress.ip_address(value))):
        errors = [problems.invalid(path, value, f"must be in canonical form ({problems.quoted(shown)})")]
    return errors


def endpoint_address(path: str, value: str, *, allow_loopback: bool = False) -> list[FieldError]:
    """Check that an address is not unspecified, loopback, link-local or link-local multicast."""
    found = _address(value)
    if found is None:
        return []
    texts = (
        (found.is_unspecified, f"may not be unspecified ({value})"),
        (found.is_loopback and not allow_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (found.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (
            found.is_multicast and found in _LOCAL_MULTICAST[found.version],
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    )
    return [problems.invalid(path, value, text) for wrong, text in texts if wrong]


def parse_network(text: str) -> IPNetwork | None:
    """Parse a network as leniently as the server does; return None if it is invalid."""
    host, slash, length = text.partition("/")
    found = _address(host)
    if found is None or not slash or not re.fullmatch("[0-9]+", length, re.ASCII):
        return None
    if int(length) > found.max_prefixlen:
        return None
    return ipaddress.ip_network(f"{found}/{int(length)}", strict=False)


def network(path: str, value: str) -> list[FieldError]:
    """Check a CIDR in a field that must accept older forms when it does not change."""
    found = parse_network(value)
    if found is None:
        return [problems.invalid(path, value, _NETWORK_TEXT)]
    host, _, length = value.partition("/")
    text = ""
    if _plain(host) != host or str(int(length)) != length:
        text = _NETWORK_LEADING
    elif _is_mapped(ipaddress.ip_address(host)):
        text = _NETWORK_MAPPED
    elif ipaddress.ip_address(host) != found.network_address:
        text = _NETWORK_BITS
    return [problems.invalid(path, value, text)] if text else []


def canonical_network(path: str, value: str) -> list[FieldError]:
    """Check a CIDR that must be in canonical form."""
    errors, found = network(path, value), parse_network(value)
    if not errors and value != str(found):
        text = f"must be in canonical form ({problems.quoted(str(found))})"
        errors = [problems.invalid(path, value, text)]
    return errors


def form_warnings(path: str, value: str) -> list[str]:
    """Warn about an address or network that is in an older form, or not in canonical form."""
    host, slash, length = value.partition("/")
    address = _address(host)
    found = parse_network(value) if slash else address
    if address is None or found is None:
        return []
    shown, title = problems.quoted(value), "CIDR value" if slash else "IP address"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    warnings: list[str] = []
    if (
        not isinstance(found, ipaddress.IPv4Address | ipaddress.IPv6Address)
        and address != found.network_address
    ):
        choices = problems.quoted(str(found)), problems.quoted(f"{address}/{address.max_prefixlen}")
        warnings.append(
            f"{path}: CIDR value {shown} is ambiguous in this context (should be {choices[0]} or {choices[1]}?)"
        )
    if mapped is not None or _plain(host) != host or (slash and str(int(length)) != length):
        usual = problems.quoted(str(mapped if mapped is not None and not slash else found))
        warnings.append(f"{path}: non-standard {title} {shown} is invalid: use {usual}")
    if not warnings and found.version == 6 and str(found) != value:
        title, usual = "CIDR value" if slash else "address", problems.quoted(str(found))
        warnings.append(f"{path}: IPv6 {title} {shown} should be in RFC 5952 canonical format ({usual})")
    return warnings


def older_form_warnings(path: str, value: str) -> list[str]:
    """Warn about an address or network of a Service as before Kubernetes 1.33, also if it is none at all."""
    host, slash, length = value.partition("/")
    title = "prefix" if slash else "address"
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        found = None
    is_length = re.fullmatch("0|[1-9][0-9]*", length, re.ASCII) is not None
    if found is None or (slash and not (is_length and int(length) <= found.max_prefixlen)):
        return [f"{path}: IP {title} was accepted, but will be invalid in a future Kubernetes release"]
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    shown = f"{found if mapped is None else f'::ffff:{mapped}'}{slash}{length}"
    if found.version == 4 or shown == value:
        return []
    canonical = problems.quoted(shown)
    return [
        f"{path}: IPv6 {title} {problems.quoted(value)} is not in RFC 5952 canonical format ({canonical})"
    ]


def is_form_warning(text: str) -> bool:
    """Return True if a warning is one of `form_warnings`."""
    return _FORM_WARNING.search(text) is not None


def warn_about_load_balancer(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Warn about the addresses in the status of a Service or an Ingress."""
    points = items(section(new, "status", "loadBalancer"), "ingress")
    return [
        warning
        for index, point in enumerate(points)
        for warning in form_warnings(f"status.loadBalancer.ingress[{index}]", point.get("ip", ""))
    ]


def _plain(text: str) -> str:
    """Remove leading zeros of decimal parts, which some parsers read as octal."""
    return re.sub(_LEADING_ZEROS, r"\1", text) if "." in text else text


def _address(text: str) -> IPAddress | None:
    if "%" in text:
        return None
    try:
        return ipaddress.ip_address(_plain(text))
    except ValueError:
        return None


def _is_mapped(found: IPAddress) -> bool:
    return isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None
