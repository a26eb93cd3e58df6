"""Each way to say who we are, on a real API server or the embedded one (--server)."""

import asyncio
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.client import (
    ApiRequest,
    Client,
    ClusterConfig,
    ConnectionFailed,
    ExecPlugin,
    Forbidden,
    Impersonation,
    Unauthorized,
    in_cluster_config,
)

from .conftest import ApiServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

REVIEW = ApiRequest(
    method="POST",
    path="/apis/authentication.k8s.io/v1/selfsubjectreviews",
    verb="create",
    body=b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}',
    content_type="application/json",
)


async def who(client: Client) -> tuple[str, set[str]]:
    info = msgspec.json.decode((await client.raw(REVIEW)).body)["status"]["userInfo"]
    return info["username"], set(info["groups"])


def anonymous(server: ApiServer) -> ClusterConfig:
    return ClusterConfig(server.config.server, ca_data=server.config.ca_data)


async def test_a_client_certificate_authenticates(client: Client) -> None:
    name, groups = await who(client)
    assert name
    assert "system:masters" in groups


async def test_certificate_files_authenticate(api_server: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "crt").write_bytes(api_server.config.client_cert_data)
    (tmp_path / "key").write_bytes(api_server.config.client_key_data)
    config = replace(
        anonymous(api_server), client_cert_file=str(tmp_path / "crt"), client_key_file=str(tmp_path / "key")
    )
    async with Client(config) as client:
        assert "system:masters" in (await who(client))[1]


async def test_a_token_authenticates(api_server: ApiServer) -> None:
    async with Client(replace(anonymous(api_server), token=api_server.tokens["jane"])) as client:
        name, groups = await who(client)
    assert name == "jane"
    assert "readers" in groups


async def test_a_token_file_is_followed_when_it_rotates(api_server: ApiServer, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("expired")
    async with Client(replace(anonymous(api_server), token_file=str(file))) as client:
        with pytest.raises(Unauthorized):
            await who(client)
        file.write_text(api_server.tokens["jane"])
        assert (await who(client))[0] == "jane"


def plugin(folder: Path, tokens: list[str], lifetime: timedelta) -> ExecPlugin:
    """Make a plugin that gives one token after the other, each for so long."""
    (folder / "tokens").write_text(json.dumps(tokens))
    program = folder / "plugin.py"
    program.write_text(
        f"""
import datetime, json, os, pathlib
file = pathlib.Path({str(folder / "tokens")!r})
tokens = json.loads(file.read_text())
token = tokens.pop(0)
file.write_text(json.dumps(tokens))
until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds={lifetime.total_seconds()})
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
print(json.dumps({{"apiVersion": info["apiVersion"], "kind": "ExecCredential",
                  "status": {{"token": token, "expirationTimestamp": until.strftime("%Y-%m-%dT%H:%M:%SZ")}}}}))
"""
    )
    return ExecPlugin(command=sys.executable, args=(str(program),), interactive_mode="Never")


async def test_an_exec_plugin_runs_again_when_its_token_expires(
    api_server: ApiServer, tmp_path: Path
) -> None:
    given = plugin(tmp_path, [api_server.tokens["jane"], api_server.tokens["bob"]], timedelta(seconds=-5))
    async with Client(replace(anonymous(api_server), exec=given)) as client:
        assert (await who(client))[0] == "jane"
        assert (await who(client))[0] == "bob"


async def test_an_exec_plugin_runs_again_when_its_token_is_refused(
    api_server: ApiServer, tmp_path: Path
) -> None:
    given = plugin(tmp_path, ["withdrawn", api_server.tokens["jane"]], timedelta(hours=1))
    async with Client(replace(anonymous(api_server), exec=given)) as client:
        assert (await who(client))[0] == "jane"
        assert (await who(client))[0] == "jane"


async def test_an_exec_plugin_may_give_a_certificate(api_server: ApiServer, tmp_path: Path) -> None:
    status = {
        "clientCertificateData": api_server.config.client_cert_data.decode(),
        "clientKeyData": api_server.config.client_key_data.decode(),
        "expirationTimestamp": (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    (tmp_path / "answer").write_text(json.dumps(answer))
    code = f"print(open({str(tmp_path / 'answer')!r}).read())"
    given = ExecPlugin(command=sys.executable, args=("-c", code), interactive_mode="Never")
    async with Client(replace(anonymous(api_server), exec=given)) as client:
        assert "system:masters" in (await who(client))[1]


async def test_a_service_account_token_authenticates(
    api_server: ApiServer, client: Client, namespace: str
) -> None:
    await client.create(core_v1.ServiceAccount(Meta("bot", namespace=namespace)))
    made = await client.token_request("bot", namespace)
    async with Client(replace(anonymous(api_server), token=made.token)) as bot:
        name, groups = await who(bot)
        with pytest.raises(Forbidden) as caught:
            await bot.list(core_v1.Pod, namespace=namespace)
    assert name == f"system:serviceaccount:{namespace}:bot"
    assert f"system:serviceaccounts:{namespace}" in groups
    assert caught.value.rule is not None
    assert (caught.value.rule.verb, caught.value.rule.resource, caught.value.rule.namespace) == (
        "list",
        "pods",
        namespace,
    )


async def test_a_pod_authenticates_as_its_service_account(
    api_server: ApiServer, client: Client, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.create(core_v1.ServiceAccount(Meta("pod", namespace=namespace)))
    made = await client.token_request("pod", namespace)
    server = urlsplit(api_server.config.server)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", server.hostname or "")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    (tmp_path / "ca.crt").write_bytes(api_server.config.ca_data)
    (tmp_path / "namespace").write_text(namespace)
    (tmp_path / "token").write_text(made.token)
    config = await asyncio.to_thread(in_cluster_config, tmp_path)
    async with Client(config) as pod:
        assert (await who(pod))[0] == f"system:serviceaccount:{namespace}:pod"
    assert config.namespace == namespace


async def test_tls_server_name_overrides_the_name_of_the_server(api_server: ApiServer) -> None:
    async with Client(replace(api_server.config, tls_server_name="localhost")) as client:
        assert "system:masters" in (await who(client))[1]
    async with Client(replace(api_server.config, tls_server_name="other.example.com")) as client:
        with pytest.raises(ConnectionFailed, match="certificate"):
            await who(client)


async def test_impersonation_acts_as_another_user(api_server: ApiServer) -> None:
    identity = Impersonation("joe", groups=("team-a", "team-b"), extra={"example.com/reason": ("test",)})
    async with Client(replace(api_server.config, impersonate=identity)) as client:
        name, groups = await who(client)
        with pytest.raises(Forbidden, match='verbs: \\["get"\\]} in a ClusterRole'):
            await client.get(core_v1.Node, "n1")
    assert name == "joe"
    assert {"team-a", "team-b"} <= groups


async def test_impersonation_needs_permission(api_server: ApiServer) -> None:
    config = replace(anonymous(api_server), token=api_server.tokens["bob"], impersonate=Impersonation("joe"))
    async with Client(config) as client:
        with pytest.raises(Forbidden) as caught:
            await who(client)
    assert caught.value.rule is not None
    assert caught.value.rule.verb.startswith("impersonate")  # since 1.36 the verb includes the mode


async def test_an_unknown_token_is_unauthorized(api_server: ApiServer) -> None:
    async with Client(replace(anonymous(api_server), token="canary-unknown")) as client:
        with pytest.raises(Unauthorized) as caught:
            await who(client)
    assert "canary" not in str(caught.value)


async def test_many_requests_at_once_share_one_renewal(api_server: ApiServer, tmp_path: Path) -> None:
    given = plugin(tmp_path, [api_server.tokens["jane"]], timedelta(hours=1))
    async with Client(replace(anonymous(api_server), exec=given)) as client:
        assert {name for name, _ in await asyncio.gather(*(who(client) for _ in range(20)))} == {"jane"}
