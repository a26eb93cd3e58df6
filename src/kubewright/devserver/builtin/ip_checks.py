"""Checks of IP addresses and networks, with the error messages of the real server."""

import ipaddress
import re

from kubewright.api import FieldError, problems

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_ADDRESS_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NETWORK_TEXT = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_LOCAL_MULTICAST = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}
_LEADING_ZEROS = r"(^|[.:])0+(?=[0-9]+(\.|$))"


def is_address(text: str) -> bool:
    """Return True if a text is an IP address."""
    return _address(text) is not None


def address(path: str, value: str) -> list[FieldError]:
    """Check an IP address in a field that must accept older forms when it does not change."""
    found = _address(value)
    if found is None:
        return [problems.invalid(path, value, _ADDRESS_TEXT)]
    if _plain(value) != value:
        return [problems.invalid(path, value, "must not have leading 0s")]
    if _is_mapped(found):
        return [problems.invalid(path, value, "must not be an IPv4-mapped IPv6 address")]
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
        text = "must not have leading 0s in IP or prefix length"
    elif _is_mapped(ipaddress.ip_address(host)):
        text = "must not have an IPv4-mapped IPv6 address"
    elif ipaddress.ip_address(host) != found.network_address:
        text = "must not have bits set beyond the prefix length"
    return [problems.invalid(path, value, text)] if text else []


def canonical_network(path: str, value: str) -> list[FieldError]:
    """Check a CIDR that must be in canonical form."""
    errors, found = network(path, value), parse_network(value)
    if not errors and value != str(found):
        text = f"must be in canonical form ({problems.quoted(str(found))})"
        errors = [problems.invalid(path, value, text)]
    return errors


def form_warnings(path: str, value: str) -> list[str]:
    """Warn about an IPv6 address or network that is not in canonical form."""
    title, found = ("CIDR value", parse_network(value)) if "/" in value else ("address", _address(value))
    if found is None or found.version == 4 or str(found) == value:
        return []
    quoted = problems.quoted(value), problems.quoted(str(found))
    return [f"{path}: IPv6 {title} {quoted[0]} should be in RFC 5952 canonical format ({quoted[1]})"]


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
