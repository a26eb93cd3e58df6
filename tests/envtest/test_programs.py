"""The replacements of kube-apiserver and etcd, started with envtest's flags."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from programs import SECONDS, Program, TestPlane, free_port, healthy

import kubewright as kw
from kubewright.api import Forbidden, NotFound
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.certificates import private_key
from kubewright.client import Client
from kubewright.envtest.assets import create_folder
from kubewright.testing import eventually

MASTERS = "system:masters"


def config_map(name: str) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(metadata=kw.Meta(name=name, namespace="default"))


async def test_a_client_with_a_certificate_of_the_client_ca_reads_and_writes(plane: TestPlane) -> None:
    async with plane.running(), Client(plane.config("admin", MASTERS)) as client:
        await client.create(config_map("written"))
        assert (await client.get(core_v1.ConfigMap, "written", "default")).metadata.name == "written"


async def test_a_user_without_roles_is_forbidden(plane: TestPlane) -> None:
    async with plane.running(), Client(plane.config("ann")) as client:
        with pytest.raises(Forbidden, match="ann"):
            await client.get(core_v1.ConfigMap, "written", "default")


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_objects_survive_a_restart_of_the_api_server(plane: TestPlane, how: str) -> None:
    async with plane.running() as server, Client(plane.config("admin", MASTERS)) as client:
        await client.create(config_map("kept"))
        await (server.kill() if how == "kill" else server.stop())
        async with plane.server() as again:
            await healthy(plane.port, "/readyz", again)
            assert (await client.get(core_v1.ConfigMap, "kept", "default")).metadata.name == "kept"


async def test_a_new_data_directory_is_an_empty_cluster(plane: TestPlane) -> None:
    async with plane.running(), Client(plane.config("admin", MASTERS)) as client:
        await client.create(config_map("first"))
    plane.data = plane.folder / "other"
    async with plane.etcd(), plane.server() as server, Client(plane.config("admin", MASTERS)) as client:
        await healthy(plane.port, "/healthz", server)
        with pytest.raises(NotFound):
            await client.get(core_v1.ConfigMap, "first", "default")


async def test_several_pairs_run_at_once(assets: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = TestPlane(assets, tmp_path / "one"), TestPlane(assets, tmp_path / "two")
    async with one.running(), two.running():
        async with Client(one.config("admin", MASTERS)) as client:
            await client.create(config_map("one"))
        async with Client(two.config("admin", MASTERS)) as client:
            with pytest.raises(NotFound):
                await client.get(core_v1.ConfigMap, "one", "default")


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--bogus"], "Error: unknown flag: --bogus"),
        (["--controllers", "--nodes=0"], "Error: nodes must be between 1 and 250, got 0"),
        (["--secure-port=abc"], '.*invalid argument "abc" for "--secure-port" flag.*'),
        (["--secure-port=0"], "Error: --secure-port 0 must be between 1 and 65535.*"),
        (["--client-ca-file=/nope"], "Error: --client-ca-file: open /nope: no such file or directory"),
        (["--tls-cert-file=/nope"], "Error: --tls-cert-file: open /nope: no such file or directory"),
        (["--token-auth-file=/nope"], "Error: open /nope: no such file or directory"),
        (["--authorization-mode=Foo"], 'Error: authorization-mode "Foo" is not a valid mode'),
        (["--disable-admission-plugins=Foo"], 'Error: disable-admission-plugins plugin "Foo" is unknown'),
        (["stray"], '.*"kube-apiserver" does not take any arguments, got \\["stray"\\]'),
        (["--etcd-servers"], "Error: flag needs an argument: --etcd-servers"),
    ],
)
async def test_a_mistake_in_the_flags_is_one_line_and_a_failure(
    plane: TestPlane, flags: list[str], line: str
) -> None:
    await asyncio.to_thread(plane.write_certificates)
    async with plane.etcd(), plane.server(*flags) as server:
        ended = await server.ended()
    assert ended.code == 1
    assert re.fullmatch(line, ended.errors.rstrip("\n"))


@pytest.mark.parametrize(
    ("name", "flag", "why"),
    [
        (
            "client-cert-auth-ca.crt",
            "client-ca-file",
            "data does not contain any valid RSA or ECDSA certificates",
        ),
        (
            "sa-signer.key",
            "service-account-signing-key-file",
            "data does not contain a valid RSA or ECDSA private key",
        ),
        ("apiserver.crt", "cert-dir", "not a certificate and a private key in PEM"),
    ],
)
async def test_a_file_without_a_certificate_or_key_is_named_in_one_line(
    plane: TestPlane, name: str, flag: str, why: str
) -> None:
    await asyncio.to_thread(plane.write_certificates)
    file = plane.certificates / name
    await asyncio.to_thread(file.write_text, "garbage")
    async with plane.etcd(), plane.server() as server:
        ended = await server.ended()
    assert (ended.code, ended.errors) == (1, f"Error: --{flag}: {file}: {why}\n")


async def test_a_key_of_another_certificate_is_one_line(plane: TestPlane) -> None:
    await asyncio.to_thread(plane.write_certificates)
    await asyncio.to_thread((plane.certificates / "apiserver.key").write_bytes, private_key())
    async with plane.etcd(), plane.server() as server:
        ended = await server.ended()
    assert ended.code == 1
    assert ended.errors.endswith("apiserver.crt: private key does not match public key\n")


async def test_a_port_in_use_is_one_line_and_a_failure(plane: TestPlane) -> None:
    await asyncio.to_thread(plane.write_certificates)
    with socket.create_server(("127.0.0.1", plane.port)):
        async with plane.etcd(), plane.server() as server:
            ended = await server.ended()
    assert ended.code == 1
    assert re.fullmatch(r"Error: failed to create listener: .*bind: address already in use\n", ended.errors)


async def test_etcd_reports_a_port_in_use_in_one_line(plane: TestPlane) -> None:
    async with plane.etcd() as etcd:
        await healthy(plane.etcd_port, "/health", etcd, tls=False)
        plane.data = plane.folder / "other"
        async with plane.etcd() as second:
            ended = await second.ended()
    assert (ended.code, ended.errors) == (
        1,
        f"Error: listen tcp 127.0.0.1:{plane.etcd_port}: bind: address already in use\n",
    )


async def test_two_etcds_do_not_share_a_data_directory(plane: TestPlane) -> None:
    async with plane.etcd() as etcd:
        await healthy(plane.etcd_port, "/health", etcd, tls=False)
        plane.etcd_port = free_port()
        async with plane.etcd() as second:
            ended = await second.ended()
    assert ended.code == 1
    assert "holds the file lock" in ended.errors


async def test_a_missing_serving_certificate_is_generated_in_the_certificate_directory(
    plane: TestPlane,
) -> None:
    await asyncio.to_thread(plane.write_certificates)
    for name in ("apiserver.crt", "apiserver.key"):
        (plane.certificates / name).unlink()
    async with plane.etcd(), plane.server() as server:
        await healthy(plane.port, "/healthz", server)
    assert (plane.certificates / "apiserver.crt").read_bytes().startswith(b"-----BEGIN CERTIFICATE")


async def test_flags_that_are_not_emulated_give_one_warning(plane: TestPlane) -> None:
    flags = [
        "--audit-log-path=-",
        "--feature-gates=AllAlpha=true,kube:ShardedListAndWatch=true",
        "--enable-admission-plugins=NodeRestriction",
    ]
    async with plane.running(*flags) as server:
        ended = await server.stop()
    assert ended.errors == (
        "Warning: kubewright does not emulate --audit-log-path, "
        "--enable-admission-plugins=NodeRestriction, --feature-gates=AllAlpha=true of kube-apiserver\n"
    )


async def test_the_flags_of_envtest_give_no_warning(plane: TestPlane) -> None:
    async with plane.running() as server:
        assert (await server.stop()).errors == ""


async def test_flags_are_also_read_from_the_environment(plane: TestPlane) -> None:
    environment = {**os.environ, "KUBEWRIGHT_ENVTEST_FLAGS": "--bogus"}
    async with plane.etcd(), plane.server(environment=environment) as server:
        ended = await server.ended()
    assert ended.errors == "Error: unknown flag: --bogus (in KUBEWRIGHT_ENVTEST_FLAGS)\n"


@pytest.mark.parametrize(
    ("program", "flag"), [("kube-apiserver", "secure-port"), ("etcd", "unsafe-no-fsync")]
)
def test_the_help_lists_flags_where_envtest_looks_for_them(assets: Path, program: str, flag: str) -> None:
    done = subprocess.run([assets / program, "--help"], check=True, capture_output=True, text=True)
    assert re.search(rf"(?m)^\s*--{flag}\b", done.stdout)
    assert not re.search(r"(?m)^\s*--insecure-port\b", done.stdout)


async def test_both_end_with_the_process_that_started_them(plane: TestPlane) -> None:
    await asyncio.to_thread(plane.write_certificates)
    commands = [
        [str(plane.assets / "etcd"), *plane.etcd_flags],
        [str(plane.assets / "kube-apiserver"), *plane.server_flags],
    ]
    starter = (
        "import json, signal, subprocess, sys, time\n"
        # These tests may run under nohup, which lets the programs outlive their parent.
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "started = [subprocess.Popen(command) for command in json.loads(sys.argv[1])]\n"
        "print(*(process.pid for process in started), flush=True)\n"
        "time.sleep(600)\n"
    )
    test = await asyncio.create_subprocess_exec(
        sys.executable, "-c", starter, json.dumps(commands), stdout=asyncio.subprocess.PIPE
    )
    assert test.stdout is not None
    numbers = [int(text) for text in (await test.stdout.readline()).split()]
    async with Program(Path("/bin/sleep"), "60") as unrelated:
        await healthy(plane.port, "/healthz", unrelated)
    test.kill()
    await test.wait()
    await eventually(lambda: not any(map(_runs, numbers)), timeout=SECONDS)


async def test_a_program_under_nohup_outlives_the_process_that_started_it(plane: TestPlane) -> None:
    starter = (
        "import json, signal, subprocess, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "print(subprocess.Popen(json.loads(sys.argv[1]), stdout=subprocess.DEVNULL).pid)\n"
    )
    command = json.dumps([str(plane.assets / "etcd"), *plane.etcd_flags])
    test = await asyncio.create_subprocess_exec(
        sys.executable, "-c", starter, command, stdout=asyncio.subprocess.PIPE
    )
    assert test.stdout is not None
    number = int(await test.stdout.readline())
    try:
        await test.wait()
        async with Program(Path("/bin/sleep"), "60") as unrelated:
            await healthy(plane.etcd_port, "/health", unrelated, tls=False)
        assert _runs(number)
    finally:
        os.kill(number, signal.SIGTERM)
    await eventually(lambda: not _runs(number), timeout=SECONDS)


def _runs(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    # A process that has ended remains as a zombie until its new parent has read its exit code.
    return b") Z" not in Path(f"/proc/{number}/stat").read_bytes()


async def test_a_deployment_becomes_available_with_controllers(plane: TestPlane) -> None:
    environment = {**os.environ, "KUBEWRIGHT_ENVTEST_FLAGS": "--controllers --nodes=2"}
    labels = {"app": "web"}
    async with plane.running(environment=environment), Client(plane.config("admin", MASTERS)) as client:
        deployment = apps_v1.Deployment(
            metadata=kw.Meta(name="web", namespace="default"),
            spec=apps_v1.DeploymentSpec(
                selector=meta_v1.LabelSelector(match_labels=labels),
                template=core_v1.PodTemplateSpec(
                    metadata=kw.Meta(labels=labels),
                    spec=core_v1.PodSpec(containers=[core_v1.Container(name="web", image="web")]),
                ),
            ),
        )
        await client.create(deployment)
        await eventually(lambda: _available(client), timeout=SECONDS)
        assert len(await client.list(core_v1.Node)) == 2


async def _available(client: Client) -> bool:
    status = (await client.get(apps_v1.Deployment, "web", "default")).status
    return status.available_replicas == 1


async def test_an_earlier_kubernetes_version_is_served(plane: TestPlane) -> None:
    environment = {**os.environ, "KUBEWRIGHT_ENVTEST_FLAGS": "--kubernetes=1.31"}
    async with plane.running(environment=environment), Client(plane.config("admin", MASTERS)) as client:
        assert (await client.server_version()).git_version.startswith("v1.31.")


def test_each_kubernetes_version_has_a_folder_of_its_own(tmp_path: Path) -> None:
    newest, earlier = create_folder(tmp_path), create_folder(tmp_path, "1.31.4")
    assert newest != earlier
    assert earlier.name.startswith("v1.31.4-")
    assert "--kubernetes=1.31.4" in (earlier / "kube-apiserver").read_text()
