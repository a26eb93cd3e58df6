"""Where URLs lead, and what requests say on the way."""

import base64

import pytest

from kubewright.http.client import Origin, Route, encode_headers, encode_request


@pytest.mark.parametrize(
    ("url", "host", "port", "authority"),
    [
        ("http://a", "a", 80, "a"),
        ("https://a", "a", 443, "a"),
        ("https://a:443/x", "a", 443, "a"),
        ("https://a:6443/x?y", "a", 6443, "a:6443"),
        ("http://[::1]:8080", "::1", 8080, "[::1]:8080"),
        ("https://[fe80::1]", "fe80::1", 443, "[fe80::1]"),
        ("https://b\u00fccher.example", "xn--bcher-kva.example", 443, "xn--bcher-kva.example"),
    ],
)
def test_an_origin_is_parsed_from_a_url(url: str, host: str, port: int, authority: str) -> None:
    place = Origin.of(url)
    assert (place.host, place.port, place.authority) == (host, port, authority)
    assert place.secure == url.startswith("https")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a",
        "ftp://a",
        "http://",
        "http://[half",
        "http://a:port",
        "http://a:99999",
        "http://\u00fc..",
        "http://a\r\nX: y",
        "http://a b",
        "http://a\tb",
        "http://a/\0",
    ],
)
def test_invalid_origins_raise_value_error(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  (its text is not shown: the caller names the URL)
        Origin.of(url)


def test_credentials_in_a_url_are_basic_ones() -> None:
    given = Origin.of("http://us%40er:p%3Ass@a").authorization
    assert base64.b64decode(given.removeprefix("Basic ")) == b"us@er:p:ss"


def test_only_a_forwarding_proxy_gets_the_server_and_its_credentials() -> None:
    proxy = Origin.of("http://u:p@proxy:3128")
    plain, secure = Origin.of("http://server:8080"), Origin.of("https://server")
    assert Route(plain).target("/a?b") == "/a?b"
    assert Route(plain, proxy).target("/a?b") == "http://server:8080/a?b"
    assert Route(secure, proxy).target("/a?b") == "/a?b"
    assert dict(Route(plain, proxy).head()).keys() == {"Host", "Proxy-Authorization"}
    assert dict(Route(secure, proxy).head()) == {"Host": "server"}


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\0b"])
def test_no_header_value_contains_a_line_break(value: str) -> None:
    with pytest.raises(ValueError, match="header X-A contains a line break"):
        encode_headers([("X-A", value)])


@pytest.mark.parametrize("target", ["/a b", "/a\r\nX: y", "/\u00e4", "/a\0"])
def test_no_request_target_contains_a_line_break(target: str) -> None:
    with pytest.raises(ValueError, match="not percent-encoded"):
        encode_request("GET", target, b"", b"")


def test_a_request_has_the_length_of_its_body() -> None:
    assert encode_request("GET", "/a", b"X: y\r\n", b"") == b"GET /a HTTP/1.1\r\nX: y\r\n\r\n"
    assert encode_request("POST", "/a", b"", b"") == b"POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
    assert encode_request("DELETE", "/a", b"", b"{}") == b"DELETE /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n"
