"""Validation of names, label keys and label values, with the messages of the API server."""

import re
from collections.abc import Callable
from functools import cache

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = rf"({_QUALIFIED})?"
_CONFIG_KEY = r"[-._a-zA-Z0-9]+"
_HEADER = r"[-A-Za-z0-9]+"

_ENDS = "and must start and end with an alphanumeric character"
_LABEL_TEXT = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}"
_SUBDOMAIN_TEXT = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}"
)
_CASELESS_SUBDOMAIN_TEXT = (
    f"an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', {_ENDS}"
)
_LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_WILDCARD_TEXT = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_QUALIFIED_TEXT = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_LABEL_VALUE_TEXT = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
)


def _pattern_text(text: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


@cache
def _matcher(pattern: str) -> Callable[[str], re.Match[str] | None]:
    """Return the compiled pattern, found faster than through `re`: the server checks dozens of names per object."""
    return re.compile(pattern, re.ASCII).fullmatch


def _is(pattern: str, value: str) -> bool:
    return _matcher(pattern)(value) is not None


def _length(value: str, limit: int, unit: str = "characters") -> list[str]:
    return [f"must be no more than {limit} {unit}"] if len(value.encode()) > limit else []


def dns1123_label(value: str) -> list[str]:
    """Return why a value is not an RFC 1123 label, or an empty list."""
    problems = _length(value, 63)
    if not _is(_LABEL, value):
        dotted = _is(_SUBDOMAIN, value)
        problems.append(
            "must not contain dots" if dotted else _pattern_text(_LABEL_TEXT, _LABEL, "my-name", "123-abc")
        )
    return problems


def dns1123_subdomain(value: str) -> list[str]:
    """Return why a value is not an RFC 1123 subdomain, as most object names are, or an empty list."""
    problems = _length(value, 253)
    if not _is(_SUBDOMAIN, value):
        problems.append(_pattern_text(_SUBDOMAIN_TEXT, _SUBDOMAIN, "example.com"))
    return problems


def dns1123_subdomain_caseless(value: str) -> list[str]:
    """Return why a value is not an RFC 1123 subdomain in any case, as the names of CSI drivers are, or an empty list."""
    problems = _length(value, 253)
    if not _is(_SUBDOMAIN, value.lower()):
        problems.append(_pattern_text(_CASELESS_SUBDOMAIN_TEXT, _SUBDOMAIN, "Example.com"))
    return problems


def wildcard_dns1123_subdomain(value: str) -> list[str]:
    """Return why a value is not a subdomain that starts with `*.`, or an empty list."""
    problems = _length(value, 253)
    if not _is(_WILDCARD, value):
        problems.append(_pattern_text(_WILDCARD_TEXT, _WILDCARD, "*.example.com"))
    return problems


def dns1035_label(value: str) -> list[str]:
    """Return why a value is not an RFC 1035 label, as the names of Services are, or an empty list."""
    problems = _length(value, 63)
    if not _is(_LABEL_1035, value):
        problems.append(_pattern_text(_LABEL_1035_TEXT, _LABEL_1035, "my-name", "abc-123"))
    return problems


def qualified_name(value: str) -> list[str]:
    """Return why a value is not a label key: a name with an optional DNS prefix, or an empty list."""
    examples = ("MyName", "my.name", "123-abc")
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        text = _pattern_text(_QUALIFIED_TEXT, _QUALIFIED, *examples)
        return [
            f"a valid label key {text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in _length(prefix, 253, "bytes")]
        if not _is(_SUBDOMAIN, prefix):
            problems.append(f"prefix part {_pattern_text(_SUBDOMAIN_TEXT, _SUBDOMAIN, 'example.com')}")
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _length(name, 63, "bytes")]
    if not _is(_QUALIFIED, name):
        problems.append(f"name part {_pattern_text(_QUALIFIED_TEXT, _QUALIFIED, *examples)}")
    return problems


def label_value(value: str) -> list[str]:
    """Return why a value is not the value of a label, or an empty list."""
    problems = _length(value, 63, "bytes")
    if not _is(_LABEL_VALUE, value):
        problems.append(_pattern_text(_LABEL_VALUE_TEXT, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return problems


def path_segment(value: str) -> list[str]:
    """Return why a value is not a path segment of a URL, the minimum for every name, or an empty list."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in value]


def config_key(value: str) -> list[str]:
    """Return why a value is not a key of a ConfigMap or a Secret, or an empty list."""
    problems = _length(value, 253)
    if not _is(_CONFIG_KEY, value):
        text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(_pattern_text(text, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    return problems + _upward(value)


def http_header_name(value: str) -> list[str]:
    """Return why a value is not the name of an HTTP header, or an empty list."""
    if _is(_HEADER, value):
        return []
    text = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [_pattern_text(text, _HEADER, "X-Header-Name")]


def port_name(value: str) -> list[str]:
    """Return why a value is not the name of a port (RFC 6335), or an empty list."""
    problems = _length(value, 15)
    if not _is("[-a-z0-9]+", value):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def generated(check: Callable[[str], list[str]], prefix: str) -> list[str]:
    """Check a `generateName`: it may end in a dash because a suffix follows."""
    # The server masks two characters, not one; the answers for the rest are the same.
    masked = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
    return check(masked)


def _upward(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []
