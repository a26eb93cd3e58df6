"""How a webhook is reached, and what cannot be a way to it; names that expressions can use."""

import pytest

from kubewright.schema import check_webhook_client
from kubewright.schema.cel import is_identifier


@pytest.mark.parametrize(
    ("url", "trouble"),
    [
        ("https://a.b/c", ""),
        ("https://[fe80::1%25en0]:443/", ""),
        ("HTTPS://a", ""),
        ("https://[::1", "missing ']' in host"),
        ("https://a b/", 'invalid character " " in host name'),
        ("https://a:port/", 'invalid port ":port" after host'),
        ("https://a/%zz", 'invalid URL escape "%zz"'),
        ("://x", "missing protocol scheme"),
        ("1https://a", "first path segment in URL cannot contain colon"),
        ("https://u:p@a/", "user information is not permitted"),
        ("http://a", "'https' is the only allowed URL scheme"),
    ],
)
def test_a_url_is_refused_in_the_words_of_the_real_server(url: str, trouble: str) -> None:
    found = " ".join(error.message for error in check_webhook_client({"url": url}, "clientConfig"))
    assert trouble in found if trouble else not found


@pytest.mark.parametrize(("confused", "field"), [(False, "c.service.name"), (True, "c.service.namespace")])
def test_a_missing_name_is_missed_where_the_real_server_misses_it(confused: bool, field: str) -> None:
    config = {"service": {"namespace": "n"}}
    assert [error.field for error in check_webhook_client(config, "c", confused=confused)] == [field]


@pytest.mark.parametrize("name", ["", "1a", "a-b", "in", "namespace"])
def test_expressions_cannot_name_this(name: str) -> None:
    assert not is_identifier(name)


def test_expressions_can_name_this() -> None:
    assert all(map(is_identifier, ("a", "_b", "c1", "Namespace")))
