"""Names as the server checks them."""

from collections.abc import Callable

import pytest

from kubewright.api import names

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (names.dns1123_label, "a-1"),
        (names.dns1123_subdomain, "a.b-c.d"),
        (names.dns1035_label, "a1"),
        (names.wildcard_dns1123_subdomain, "*.example.com"),
        (names.qualified_name, "example.com/My_Name.1"),
        (names.label_value, ""),
        (names.label_value, "a_B.c"),
        (names.path_segment, "a:b"),
        (names.config_key, "a.b"),
        (names.http_header_name, "X-A"),
        (names.port_name, "http-1"),
    ],
)
def test_accepts_valid_names(check: Callable[[str], list[str]], value: str) -> None:
    assert check(value) == []


@pytest.mark.parametrize(
    ("check", "value", "messages"),
    [
        (names.dns1123_label, "A", [LABEL]),
        (names.dns1123_label, "a.b", ["must not contain dots"]),
        (names.dns1123_label, "a" * 64, ["must be no more than 63 characters"]),
        (names.label_value, "a" * 64, ["must be no more than 63 bytes"]),
        (names.path_segment, "a/b%", ["may not contain '/'", "may not contain '%'"]),
        (names.path_segment, "..", ["may not be '..'"]),
        (names.config_key, "..a", ["must not start with '..'"]),
        (
            names.port_name,
            "-1",
            ["must contain at least one letter (a-z)", "must not begin or end with a hyphen"],
        ),
    ],
)
def test_reports_why_a_name_is_invalid(
    check: Callable[[str], list[str]], value: str, messages: list[str]
) -> None:
    assert check(value) == messages


@pytest.mark.parametrize(
    "check",
    [
        names.dns1123_label,
        names.dns1123_subdomain,
        names.dns1035_label,
        names.wildcard_dns1123_subdomain,
        names.qualified_name,
        names.config_key,
        names.http_header_name,
        names.port_name,
    ],
)
@pytest.mark.parametrize("value", ["", "a b", "é", "a\n", "/", "a/b/c"])
def test_refuses_invalid_names(check: Callable[[str], list[str]], value: str) -> None:
    assert check(value)


def test_a_prefix_for_generated_names_may_end_in_a_dash() -> None:
    assert names.generated(names.dns1123_subdomain, "web-") == []
    assert names.generated(names.dns1123_subdomain, "-") != []
