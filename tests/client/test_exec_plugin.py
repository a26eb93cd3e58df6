"""Exec plugins are run as client.authentication.k8s.io says."""

import asyncio
import json
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kubewright.client import ClusterConfig, CredentialError, ExecPlugin
from kubewright.client.credentials import Authenticator
from kubewright.client.exec_plugin import ExecSource

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def plugin(code: str, **options: Any) -> ExecPlugin:
    options = {"interactive_mode": "Never", **options}
    return ExecPlugin(command=sys.executable, args=("-c", code), **options)


def printing(status: dict[str, Any], version: str = V1, **options: Any) -> ExecPlugin:
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    return plugin(f"print({json.dumps(json.dumps(answer))})", api_version=version, **options)


def source(given: ExecPlugin, **config: Any) -> ExecSource:
    return ExecSource(ClusterConfig("https://x", exec=given, **config), given)


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_plugin_gives_a_token(version: str) -> None:
    credential = await source(printing({"token": "t"}, version)).obtain(refused=False)
    assert credential.authorization == "Bearer t"


async def test_a_plugin_gives_a_certificate() -> None:
    status = {"clientCertificateData": "crt", "clientKeyData": "key"}
    credential = await source(printing(status)).obtain(refused=False)
    assert (credential.certificate, credential.key, credential.authorization) == (b"crt", b"key", "")


async def test_a_credential_is_used_until_it_expires(tmp_path: Path) -> None:
    count = tmp_path / "count"
    expiry = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    code = (
        f"import json; open({str(count)!r}, 'a').write('x'); print(json.dumps({{'apiVersion': {V1!r}, "
        f"'kind': 'ExecCredential', 'status': {{'token': 't', 'expirationTimestamp': {expiry!r}}}}}))"
    )
    subject = Authenticator(source(plugin(code)))
    credential = await subject.renew()
    await subject.renew()
    assert count.read_text() == "x"
    left = credential.valid_until - asyncio.get_running_loop().time()
    assert 3500 < left <= 3600


async def test_an_expired_credential_runs_the_plugin_again() -> None:
    subject = Authenticator(source(printing({"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"})))
    await subject.renew()
    assert subject.current() is None


async def test_a_plugin_gets_the_exec_info() -> None:
    code = (
        "import json, os; info = json.loads(os.environ['KUBERNETES_EXEC_INFO']); print(json.dumps({**info, 'status': "
        "{'token': '.'.join([info['spec']['cluster']['server'], info['spec']['cluster']['config']['audience'], "
        "str(info['spec']['interactive']), os.environ['MINE']])}}))"
    )
    given = plugin(
        code, provide_cluster_info=True, cluster_extension={"audience": "aud"}, env=(("MINE", "yes"),)
    )
    credential = await source(given, ca_data=b"ca").obtain(refused=False)
    assert credential.authorization == "Bearer https://x.aud.False.yes"


async def test_a_plugin_gets_no_cluster_info_unless_configured() -> None:
    code = (
        "import json, os; info = json.loads(os.environ['KUBERNETES_EXEC_INFO']); "
        "print(json.dumps({**info, 'status': {'token': ','.join(info['spec'])}}))"
    )
    assert (await source(plugin(code)).obtain(refused=False)).authorization == "Bearer interactive"


BAD = [
    (plugin("raise SystemExit(3)"), "exit code 3"),
    (plugin("print('canary-token')"), "did not print an ExecCredential"),
    (plugin("print('[]')"), "did not print an ExecCredential"),
    (printing({}), "neither a token nor a client certificate"),
    (printing({"clientCertificateData": "x"}), "only one of client certificate and key"),
    (printing({"token": "a b"}), "characters that no token has"),
    (ExecPlugin(command="/does/not/exist", interactive_mode="Never"), "cannot be run: No such file"),
    (plugin("print('{}')", interactive_mode="Always"), "requires a terminal"),
]


@pytest.mark.parametrize(("given", "message"), BAD, ids=[message for _, message in BAD])
async def test_a_plugin_that_fails_is_named(given: ExecPlugin, message: str) -> None:
    with pytest.raises(CredentialError, match=message) as caught:
        await source(given).obtain(refused=False)
    assert "canary" not in str(caught.value)
    assert given.command in str(caught.value)


async def test_a_plugin_of_another_version_is_refused() -> None:
    given = printing({"token": "t"}, V1BETA1)
    other = ExecPlugin(command=given.command, args=given.args, api_version=V1, interactive_mode="Never")
    with pytest.raises(
        CredentialError, match=f"printed {V1BETA1} ExecCredential where {V1} ExecCredential is configured"
    ):
        await source(other).obtain(refused=False)


async def test_a_plugin_with_endless_output_is_stopped() -> None:
    endless = plugin("import sys\nwhile True: sys.stdout.write('canary' * 100_000)")
    with pytest.raises(CredentialError, match="printed more than 1 MiB") as caught:
        await source(endless).obtain(refused=False)
    assert "canary" not in str(caught.value)


async def test_a_plugin_with_endless_output_is_stopped_if_a_child_of_it_holds_its_output_open(
    tmp_path: Path,
) -> None:
    child = tmp_path / "child"
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"
        f"open({str(child)!r}, 'w').write(str(child.pid))\n"
        "while True: sys.stdout.write('canary' * 100_000)"
    )
    try:
        with pytest.raises(CredentialError, match="printed more than 1 MiB"):
            await source(plugin(code)).obtain(refused=False)
    finally:
        os.kill(int(child.read_text()), signal.SIGKILL)


async def test_the_install_hint_of_a_missing_plugin_is_shown() -> None:
    given = ExecPlugin(command="/does/not/exist", interactive_mode="Never", install_hint="brew install it")
    with pytest.raises(CredentialError, match="brew install it"):
        await source(given).obtain(refused=False)


async def test_a_plugin_is_stopped_when_its_caller_is_cancelled() -> None:
    task = asyncio.ensure_future(source(plugin("import time; time.sleep(1000)")).obtain(refused=False))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
