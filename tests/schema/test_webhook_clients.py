"""Webhook client configurations, and names that expressions can use."""

import pytest

from kubewright.schema import check_webhook_client
from kubewright.schema.cel import is_identifier


@pytest.mark.parametrize(
    ("url", "message"),
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
def test_rejects_a_url_with_the_message_of_the_real_server(url: str, message: str) -> None:
    found = " ".join(error.message for error in check_webhook_client({"url": url}, "clientConfig"))
    assert message in found if message else not found


@pytest.mark.parametrize(("given", "reported"), [("namespace", "namespace"), ("name", "name")])
def test_reports_a_missing_service_name_as_namespace_and_the_reverse(given: str, reported: str) -> None:
    errors = check_webhook_client({"service": {given: "n"}}, "c")
    assert [error.field for error in errors] == [f"c.service.{reported}"]


@pytest.mark.parametrize("name", ["", "1a", "a-b", "in", "namespace"])
def test_rejects_names_that_expressions_cannot_use(name: str) -> None:
    assert not is_identifier(name)


def test_accepts_names_that_expressions_can_use() -> None:
    assert all(map(is_identifier, ("a", "_b", "c1", "Namespace")))
