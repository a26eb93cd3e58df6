"""The proxy is chosen as other tools choose it."""

import pytest

from kubewright.client import ConfigError
from kubewright.client.proxies import proxy_for

PROXY = "http://proxy:3128"


def test_no_proxy_is_used_without_variables() -> None:
    assert proxy_for("https://k8s.example.com:6443", "", {}) == ""


def test_the_scheme_chooses_the_variable() -> None:
    environ = {"HTTPS_PROXY": "http://secure:1", "HTTP_PROXY": "http://plain:1"}
    assert proxy_for("https://k8s.example.com", "", environ) == "http://secure:1"
    assert proxy_for("http://k8s.example.com", "", environ) == "http://plain:1"


def test_lower_case_variables_count_too() -> None:
    assert proxy_for("https://k8s.example.com", "", {"https_proxy": PROXY}) == PROXY


def test_a_proxy_without_a_scheme_is_http() -> None:
    assert proxy_for("https://k8s.example.com", "", {"HTTPS_PROXY": "proxy:3128"}) == PROXY


@pytest.mark.parametrize(
    ("server", "exceptions", "direct"),
    [
        ("https://k8s.example.com", "k8s.example.com", True),
        ("https://k8s.example.com", "example.com", True),
        ("https://k8s.example.com", ".example.com", True),
        ("https://k8s.example.com", "*.example.com", True),
        ("https://example.com", ".example.com", False),
        ("https://notexample.com", "example.com", False),
        ("https://k8s.example.com:6443", "example.com:6443", True),
        ("https://k8s.example.com:6443", "example.com:443", False),
        ("https://k8s.example.com", "example.com:443", True),
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://11.1.2.3:6443", "10.0.0.0/8", False),
        ("https://10.1.2.3:6443", "10.1.2.3", True),
        ("https://10.1.2.3:6443", "10.0.0.0/99", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://k8s.example.com", "*", True),
        ("https://k8s.example.com", "other.com, example.com", True),
        ("https://127.0.0.1:6443", "", True),
        ("https://localhost:6443", "", True),
        ("https://[::1]:6443", "", True),
    ],
)
def test_the_no_proxy_variable_makes_exceptions(server: str, exceptions: str, direct: bool) -> None:
    assert (proxy_for(server, "", {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions}) == "") is direct


def test_the_no_proxy_variable_does_not_apply_to_the_proxy_of_the_kubeconfig() -> None:
    assert proxy_for("https://k8s.example.com", PROXY, {"NO_PROXY": "*"}) == PROXY


@pytest.mark.parametrize("url", ["socks5://user:sesame@proxy:1080", "socks5h://proxy:1080"])
def test_a_socks_proxy_is_used_from_the_kubeconfig_and_from_the_environment(url: str) -> None:
    assert proxy_for("https://k8s.example.com", url, {}) == url
    assert proxy_for("https://k8s.example.com", "", {"HTTPS_PROXY": url}) == url


def test_another_kind_of_proxy_is_refused_in_one_line_without_the_password() -> None:
    with pytest.raises(ConfigError, match="must be an http://, https:// or socks5:// URL") as caught:
        proxy_for("https://k8s.example.com", "socks4://user:sesame@proxy:1080", {})
    assert "\n" not in str(caught.value)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://proxy", "http://", "http://[half"])
def test_invalid_proxies_are_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="proxy-url"):
        proxy_for("https://k8s.example.com", url, {})
