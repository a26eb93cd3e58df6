"""Both servers accept the same URLs: `format: uri` and the CEL function isURL use Go's url.ParseRequestURI."""

from typing import Annotated

import pytest

import kubewright as kw
from kubewright import api
from kubewright.schema.go_urls import GoUrlError, is_request_uri, parse_request_uri, parse_url
from kubewright.testing import Cluster

ACCEPTED = (
    "/path",
    "*",
    "https://example.com",
    "https://user:secret@example.com:8080/a%20b?c=d",
    "https://[::1]:443/",
    "https://[fe80::1%25eth0]/",
    "mailto:someone@example.com",
    "//host/path",
    "https://example.com/#fragment",
    "https://",
)
REJECTED = {
    "": 'parse "": empty url',
    "path": 'parse "path": invalid URI for request',
    "../path": 'parse "../path": invalid URI for request',
    ":colon": 'parse ":colon": missing protocol scheme',
    "https://[::1": """parse "https://[::1": missing ']' in host""",
    "https://host:port/": """parse "https://host:port/": invalid port ":port" after host""",
    "https://ex ample.com": """parse "https://ex ample.com": invalid character " " in host name""",
    "https://example.com/%zz": """parse "https://example.com/%zz": invalid URL escape "%zz\"""",
    "https://ho%2fst/": """parse "https://ho%2fst/": invalid URL escape "%2f\"""",
}


class AddressSpec(kw.Model):
    by_format: Annotated[str, kw.Field(format="uri")] = "/"
    by_rule: Annotated[str, kw.Field(rules=[kw.Rule("isURL(self)")], max_length=100)] = "/"


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepts_urls_that_go_accepts(text: str) -> None:
    assert is_request_uri(text)


@pytest.mark.parametrize(("text", "message"), REJECTED.items())
def test_rejects_urls_with_the_message_of_go(text: str, message: str) -> None:
    with pytest.raises(GoUrlError) as raised:
        parse_request_uri(text)
    assert str(raised.value) == message


def test_request_urls_have_no_fragment() -> None:
    assert parse_url("https://example.com/a#b").fragment == "b"
    assert parse_request_uri("https://example.com/a#b").path == "/a#b"


async def test_a_server_accepts_the_same(cluster: Cluster) -> None:
    group = f"{cluster.namespace}.example.com"

    class Address(kw.Object, group=group, version="v1"):
        spec: AddressSpec = AddressSpec()

    await cluster.install(Address)
    for field in ("by_format", "by_rule"):
        for text in (*ACCEPTED, *REJECTED):
            address = Address(kw.Meta(generate_name="a-"), spec=AddressSpec(**{field: text}))
            try:
                await cluster.create(address)
            except api.Invalid:
                assert text in REJECTED, (field, text)
            else:
                assert text in ACCEPTED, (field, text)
