"""Kubeconfigs are found, merged and refused by kubectl's rules."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubewright.client import (
    ClusterConfig,
    ConfigError,
    config_from_kubeconfig,
    in_cluster_config,
    load_config,
)

CANARY = "canary-7f3a"


def document(
    name: str = "one",
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    **context: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **context}}],
    }


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the tests from what this machine has configured."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_the_current_context_is_used(tmp_path: Path) -> None:
    config = load_config(write(tmp_path / "config", document("one", namespace="team")))
    assert (config.server, config.namespace) == ("https://one:6443", "team")


def test_another_context_can_be_named(tmp_path: Path) -> None:
    both = document("one")
    other = document("two")
    for key in ("clusters", "users", "contexts"):
        both[key] += other[key]
    assert load_config(write(tmp_path / "config", both), "two").server == "https://two:6443"


def test_the_kubeconfig_of_the_home_directory_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "home/.kube").mkdir(parents=True)
    write(tmp_path / "home/.kube/config", document("home"))
    assert load_config().server == "https://home:6443"


def test_the_first_file_to_name_something_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = document("one", user={"token": "first"})
    second = document("one", user={"token": "second"})
    second["current-context"] = "two"
    second["contexts"].append({"name": "two", "context": {"cluster": "one", "user": "one"}})
    files = [write(tmp_path / "a", first), tmp_path / "missing", write(tmp_path / "b", second)]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))
    assert load_config().token == "first"
    assert load_config(context="two").token == "first"


def test_parts_may_be_spread_over_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = document("one", user={"token": "t"})
    names = []
    for key in ("current-context", "clusters", "users", "contexts"):
        names.append(str(write(tmp_path / key, {key: whole[key]})))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(names))
    assert load_config().token == "t"


def test_paths_count_from_their_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "certs").mkdir()
    for name in ("ca", "crt", "key"):
        (tmp_path / "certs" / name).write_text(name)
    user = {"client-certificate": "certs/crt", "client-key": "certs/key", "tokenFile": "certs/token"}
    file = write(tmp_path / "config", document(cluster={"certificate-authority": "certs/ca"}, user=user))
    monkeypatch.chdir("/")
    config = load_config(file)
    assert config.ca_data == b"ca"
    assert config.client_cert_file == str(tmp_path / "certs/crt")
    assert config.token_file == str(tmp_path / "certs/token")


def test_inline_data_overrides_files() -> None:
    user = {
        "client-certificate-data": base64.b64encode(b"crt").decode(),
        "client-certificate": "/missing",
        "client-key-data": base64.b64encode(b"key").decode(),
    }
    config = config_from_kubeconfig(document(user=user))
    assert (config.client_cert_data, config.client_key_data, config.client_cert_file) == (b"crt", b"key", "")


def test_everything_about_a_cluster_and_a_user_is_read() -> None:
    user = {
        "username": "u",
        "password": "p",
        "as": "joe",
        "as-uid": "1",
        "as-groups": ["a", "b"],
        "as-user-extra": {"scopes": ["x"]},
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "login",
            "args": ["--now"],
            "env": [{"name": "A", "value": "1"}],
            "installHint": "get it",
            "provideClusterInfo": True,
        },
    }
    cluster = {
        "tls-server-name": "k8s.internal",
        "proxy-url": "http://proxy:1",
        "disable-compression": False,
        "insecure-skip-tls-verify": True,
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
    }
    config = config_from_kubeconfig(document(cluster=cluster, user=user))
    assert (config.username, config.password) == ("u", "p")
    assert (config.tls_server_name, config.proxy_url) == ("k8s.internal", "http://proxy:1")
    assert config.compression
    assert config.insecure
    assert config.impersonate is not None
    assert config.impersonate.groups == ("a", "b")
    assert config.impersonate.extra == {"scopes": ("x",)}
    assert config.exec is not None
    assert (config.exec.command, config.exec.args, config.exec.env) == ("login", ("--now",), (("A", "1"),))
    assert config.exec.interactive_mode == "IfAvailable"
    assert config.exec.cluster_extension == {"audience": "x"}


def test_a_plugin_beside_the_kubeconfig_is_found_there(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "bin/login",
        "interactiveMode": "Never",
    }
    config = load_config(write(tmp_path / "config", document(user={"exec": plugin})))
    assert config.exec is not None
    assert config.exec.command == str(tmp_path / "bin/login")


BAD: list[tuple[str, Any, str]] = [
    ("a list", "- a", "holds no mapping"),
    ("half a mapping", "a: {", r"not valid YAML \(line"),
    ("a tab", f"a:\n\t- {CANARY}", r"not valid YAML \(line 2"),
    ("too deep", "[" * 100_000, r"not valid YAML \(line 1, column 201\)"),
    (
        "aliases that expand too far",
        "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10))]),
        r"not valid YAML \(line 6",
    ),
    ("two documents", "a: 1\n---\nb: 2\n", "holds more than one YAML document"),
    ("bytes that are no text", "\0", "not valid YAML"),
    ("clusters that are no list", {"clusters": CANARY}, r"not a kubeconfig.*clusters"),
    ("a number for a server", document(cluster={"server": 5}), r"not a kubeconfig.*server"),
    ("no current context", {**document(), "current-context": ""}, "has no current-context: pass a context, one of one"),
    ("a missing context", {**document(), "current-context": "two"}, "context 'two' is not in .*: it has one"),
    ("a missing cluster", {**document(), "clusters": []}, "names the cluster 'one', which is not in .*: it has none"),
    ("a missing user", {**document(), "users": []}, "names the user 'one', which is not in"),
    ("no server", document(cluster={"server": ""}), "has no server"),
    ("a server that is no URL", document(cluster={"server": "ftp://x"}), r"not an http\(s\) URL"),
    ("a line break in the server", document(cluster={"server": f"https://x\r\nX-{CANARY}: y"}), "server contains a line break"),
    ("a space in the server", document(cluster={"server": "https://x y"}), "server contains a line break"),
    ("a line break in the proxy", document(cluster={"proxy-url": f"http://x\r\n{CANARY}"}), "proxy-url .* contains a line break"),
    ("a line break in the server name", document(cluster={"tls-server-name": "x\ny"}), "tls-server-name contains a line break"),
    ("a cluster twice", {**document(), "clusters": document()["clusters"] * 2}, "names the cluster 'one' twice"),
    ("broken base64", document(user={"client-key-data": f"!{CANARY}"}), "client-key-data .* is not valid base64"),
    ("a missing certificate", document(user={"client-certificate": "x"}), "client-certificate .* does not exist"),
    ("a missing authority", document(cluster={"certificate-authority": "x"}), "cannot be read: No such file"),
    ("a certificate without key", document(user={"client-certificate-data": "YQ=="}), "only one of client certificate"),
    ("insecure and with an authority", document(cluster={"insecure-skip-tls-verify": True, "certificate-authority-data": "YQ=="}), "keep one"),
    ("a proxy of another kind", document(cluster={"proxy-url": f"socks4://u:{CANARY}@p:1"}), "must be an http://, https:// or socks5:// URL"),
    ("groups without a user", document(user={"as-groups": ["a"]}), "without as"),
    ("a removed provider", document(user={"auth-provider": {"name": "gcp"}}), "use its exec plugin"),
    ("oidc without issuer", document(user={"auth-provider": {"name": "oidc"}}), "has no idp-issuer-url"),
    ("a plugin without command", document(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}), "no command"),
    ("a plugin of old", document(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}}), "supported are"),
    ("a plugin that says no mode", document(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}}), "interactiveMode"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_unusable_kubeconfigs_are_refused_in_one_line(tmp_path: Path, content: Any, message: str) -> None:
    file = write(tmp_path / "config", content)
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(file)
    assert "\n" not in str(caught.value)
    assert CANARY not in str(caught.value)
    assert str(file) in str(caught.value) or message == "SOCKS"


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"kubeconfig .*/none does not exist"):
        load_config(tmp_path / "none")


def test_a_missing_configuration_is_reported_with_a_fix() -> None:
    with pytest.raises(
        ConfigError, match=r"no cluster is configured.*Set KUBECONFIG.*`kubewright run --dev`"
    ):
        load_config()


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_kubeconfig_file_causes_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzzed"
    file.write_bytes(content)
    with pytest.raises(ConfigError):
        load_config(file)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("clusters", "users", "contexts", "current-context"), json_values)
    )
)
def test_no_kubeconfig_document_causes_a_traceback(content: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        config_from_kubeconfig(content)


def test_secrets_do_not_show_in_the_repr() -> None:
    config = ClusterConfig("https://x", token=CANARY, password=CANARY, client_key_data=CANARY.encode())
    assert CANARY not in repr(config)


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    for name, text in (("token", "t"), ("ca.crt", "ca"), ("namespace", "team\n")):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_pod_uses_its_service_account(pod: Path) -> None:
    config = in_cluster_config(pod)
    assert (config.server, config.namespace, config.ca_data) == ("https://10.0.0.1:443", "team", b"ca")
    assert config.token_file == str(pod / "token")


def test_a_pod_may_have_an_ipv6_server(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert in_cluster_config(pod).server == "https://[fd00::1]:443"


def test_a_process_pod_reads_its_service_account_from_its_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = tmp_path / "var/run/secrets/kubernetes.io/serviceaccount"
    account.mkdir(parents=True)
    (account / "token").write_text("t")
    (account / "ca.crt").write_text("c")
    for name, value in {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": "6443",
        "CONTAINER_SANDBOX_MOUNT_POINT": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    assert in_cluster_config().token_file == str(account / "token")


def test_explains_why_a_pod_has_no_token(pod: Path) -> None:
    (pod / "token").unlink()
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        in_cluster_config(pod)


def test_no_service_account_is_used_outside_a_pod(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not in a Pod"):
        in_cluster_config(tmp_path)
