"""The real control plane: its starter, its processes and folder, and that nothing is left behind or lost."""

import asyncio
import contextlib
import importlib
import json
import os
import signal
import ssl
import stat
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio
import yaml

from kubewright.certificates import Authority
from kubewright.devcluster import Scratch
from kubewright.devserver.data import BUNDLE, MINOR
from kubewright.testing import eventually
from kubewright.testing.components import kubeconfig
from kubewright.testing.controlplane import (
    KUBERNETES,
    ControlPlane,
    ControlPlaneError,
    binaries_folder,
    default_feature_gates,
    find_binaries,
)
from kubewright.testing.processes import Process, ProcessError
from kubewright.testing.releases import supported_releases

ROOT = Path(__file__).parent.parent

on_shared_plane = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder of its own, so that a fault in cleaning up can reach nothing of value."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def real(server_name: str) -> Path:
    """Return the folder of the binaries; skip the test if they are not used."""
    folder = find_binaries()
    if server_name != "real" or folder is None:
        pytest.skip("runs with --server real, on built binaries")
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(real: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlPlane]:
    """Run a control plane for the tests that do not care what else it holds."""
    with contextlib.chdir(tmp_path_factory.mktemp("elsewhere")):
        async with ControlPlane(real, users={"bob": ["dev", "ops"]}) as running:
            yield running


async def kubectl(plane: ControlPlane, *arguments: str, config: Path | None = None) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        plane.binaries / "kubectl",
        "--kubeconfig",
        config or plane.kubeconfig,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def wait_for_json(plane: ControlPlane, wanted: str, *arguments: str) -> dict[str, Any]:
    """Read until the JSON text of the answer contains `wanted`."""

    async def read() -> dict[str, Any] | None:
        code, output = await kubectl(plane, *arguments, "-o", "json")
        return json.loads(output) if code == 0 and wanted in output else None

    return await eventually(read, timeout=100)


def programs(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


@on_shared_plane
async def test_controllers_and_the_scheduler_run(plane: ControlPlane):
    await kubectl(plane, "create", "deployment", "web", "--image=web", "--replicas=2")
    pods = ("get", "pods", "--selector=app=web")
    await wait_for_json(plane, "no nodes available to schedule pods", *pods)
    assert len((await wait_for_json(plane, "web-", *pods))["items"]) == 2
    await kubectl(plane, "delete", "deployment", "web")
    await wait_for_json(plane, '"items": []', *pods)


@on_shared_plane
async def test_service_account_admission_is_on(plane: ControlPlane):
    await kubectl(plane, "run", "one", "--image=web")
    pod = await wait_for_json(plane, "one", "get", "pod", "one")
    assert pod["spec"]["serviceAccountName"] == "default"
    assert pod["spec"]["volumes"][0]["name"].startswith("kube-api-access-")


@on_shared_plane
async def test_users_have_only_the_rights_of_their_roles(plane: ControlPlane):
    alice = await plane.add_user("alice", ["dev"])
    assert stat.S_IMODE(alice.stat().st_mode) == 0o600
    code, output = await kubectl(plane, "get", "pods", config=alice)
    assert (code, 'User "alice" cannot list resource "pods"' in output) == (1, True)
    await kubectl(plane, "create", "clusterrolebinding", "dev", "--clusterrole=view", "--group=dev")

    async def may_list() -> bool:
        return (await kubectl(plane, "get", "pods", config=alice))[0] == 0

    await eventually(may_list)


@on_shared_plane
async def test_static_and_service_account_tokens_authenticate(plane: ControlPlane, tmp_path: Path):
    async def whoami(token: str) -> dict[str, Any]:
        document = kubeconfig(plane.url, plane.ca, {"user": Authority.create().pair})
        document["users"][0]["user"] = {"token": token}
        config = tmp_path / "token.kubeconfig"
        config.write_text(yaml.safe_dump(document))
        code, output = await kubectl(plane, "auth", "whoami", "-o", "json", config=config)
        assert code == 0, output
        return json.loads(output)["status"]["userInfo"]

    bob = await whoami(plane.tokens["bob"])
    assert (bob["username"], bob["groups"]) == ("bob", ["dev", "ops", "system:authenticated"])
    _, token = await kubectl(plane, "create", "token", "default")
    assert (await whoami(token.strip()))["username"] == "system:serviceaccount:default:default"


@on_shared_plane
async def test_restart_of_the_api_server_keeps_address_and_data(plane: ControlPlane):
    await kubectl(plane, "create", "configmap", "kept")
    for grace in (1.0, 0.0):
        await plane.stop_api_server(grace=grace)
        assert (await kubectl(plane, "get", "configmap", "kept"))[0] != 0
        await plane.start_api_server()
        assert (await kubectl(plane, "get", "configmap", "kept"))[0] == 0


async def test_stopping_leaves_no_process_and_no_file(real: Path):
    async with ControlPlane(real, controllers=False) as plane:
        directory = plane.directory
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert not directory.exists()
    with pytest.raises(OSError, match="Connect"):
        await asyncio.open_connection("127.0.0.1", int(plane.url.rpartition(":")[2]))


async def test_program_that_fails_is_reported_with_its_log(real: Path):
    with pytest.raises(ControlPlaneError, match=r"(?s)kube-apiserver ended.*unknown flag: --no-such-flag"):
        async with ControlPlane(real, controllers=False, api_server_flags=["--no-such-flag"]):
            pass


async def test_the_end_of_a_program_is_reported(real: Path):
    async with ControlPlane(real, controllers=False) as plane, asyncio.timeout(60):
        await plane.stop_api_server(grace=0)
        with pytest.raises(ControlPlaneError, match="kube-apiserver ended unexpectedly"):
            await plane.wait_ended()


@on_shared_plane
async def test_controller_that_ends_by_itself_is_started_again(plane: ControlPlane):
    first = plane.process_id("kube-scheduler")
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await kubectl(plane, "run", "later", "--image=web")
    await wait_for_json(plane, "no nodes available to schedule pods", "get", "pod", "later")
    assert plane.process_id("kube-scheduler") not in (first, None)


def test_binaries_come_from_the_environment_before_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("KUBEBUILDER_ASSETS", "KUBEWRIGHT_KUBERNETES"):
        monkeypatch.delenv(name, raising=False)
    assert find_binaries() is None
    cached = programs(binaries_folder(), "etcd", "kube-apiserver")
    assert find_binaries() == cached
    assets = programs(tmp_path / "assets", "etcd", "kube-apiserver")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert find_binaries() == assets


async def test_missing_programs_are_named_with_a_fix(tmp_path: Path, elsewhere: Path):
    (elsewhere / "of-value").touch()
    folder = programs(tmp_path / "some", "etcd", "kube-apiserver")
    remedy = "lacks kube-controller-manager, kube-scheduler: run `scripts/control-plane build`"
    with pytest.raises(ControlPlaneError, match=remedy):
        async with ControlPlane(folder):
            pass
    assert os.listdir(elsewhere) == ["of-value"]


async def test_missing_programs_of_another_version_are_built_by_naming_it():
    folder = binaries_folder("v1.33.0")
    with pytest.raises(ControlPlaneError, match=r"run `scripts/control-plane build --kubernetes 1\.33\.0`"):
        async with ControlPlane(folder):
            pass


async def test_failed_start_removes_only_its_own_folder(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
):
    (elsewhere / "of-value").touch()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    folder = programs(tmp_path / "some")
    for name in ("etcd", "kube-apiserver"):
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)
    with pytest.raises(ControlPlaneError, match="ended unexpectedly"):
        async with ControlPlane(folder, controllers=False):
            pass
    assert os.listdir(elsewhere) == ["of-value"]
    assert os.listdir(temporary) == []


@pytest.mark.parametrize(
    ("name", "gates"),
    [("v1.37.1", {"ShardedListAndWatch": True}), ("v1.36.0", {"ShardedListAndWatch": True}), ("v1.35.4", {})],
)
def test_alpha_features_that_operators_use_are_on_in_versions_that_know_them(
    name: str, gates: dict[str, bool], tmp_path: Path
):
    assert default_feature_gates(tmp_path / name) == gates


def test_starter_and_modules_agree_on_the_version():
    assert f"k8s.io/kubernetes {KUBERNETES}" in (ROOT / "tools/control_plane/go.mod").read_text()


@pytest.fixture
def binaries(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the builder, which runs as a script and not as part of the package."""
    monkeypatch.syspath_prepend(str(ROOT / "tools/control_plane"))
    return importlib.import_module("binaries")


def test_builder_and_starter_use_the_same_folder(binaries: ModuleType, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KUBEWRIGHT_KUBERNETES", raising=False)
    assert binaries.cache_folder() / binaries.resolve("") == binaries_folder()


def test_builder_and_starter_use_the_same_release_and_folder_of_each_version(
    binaries: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    for version in (*supported_releases(), "1.33.2", "v1.33.2"):
        monkeypatch.setenv("KUBEWRIGHT_KUBERNETES", version)
        assert binaries.cache_folder() / binaries.resolve(version) == binaries_folder()


def test_versions_are_named_by_minor_or_release(binaries: ModuleType):
    assert binaries.resolve("1.33.2") == binaries.resolve("v1.33.2") == "v1.33.2"
    assert binaries.resolve("1.33") == f"v{BUNDLE.releases['1.33']}"
    assert binaries.resolve(f"1.{MINOR}") == KUBERNETES
    for unknown in ("1.20", f"1.{MINOR + 1}.0", "latest", "1.33.x", "../1.33.1"):
        with pytest.raises(binaries.BuildError, match=r"is not one of 1\.31"):
            binaries.resolve(unknown)


def test_modules_of_another_version_have_its_replace_directives(binaries: ModuleType):
    upstream = """
go 1.24.0
godebug default=go1.24
require (
\tgo.etcd.io/etcd/client/v3 v3.5.21
\tgo.etcd.io/etcd/server/v3 v3.5.22 // indirect
\tk8s.io/utils v0.0.0-1
)
replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/client-go => ./staging/src/k8s.io/client-go
)
"""
    lines = binaries.module_file("v1.33.13", upstream).splitlines()
    assert "\tk8s.io/kubernetes v1.33.13" in lines
    assert "\tgo.etcd.io/etcd/server/v3 v3.5.22" in lines
    assert "godebug default=go1.24" in lines
    assert lines[lines.index("replace (") :] == [
        "replace (",
        "\tk8s.io/api => k8s.io/api v0.33.13",
        "\tk8s.io/client-go => k8s.io/client-go v0.33.13",
        ")",
    ]


async def test_a_process_dies_with_its_owner(tmp_path: Path):
    if sys.platform != "linux":
        pytest.skip("only Linux can tie a process to its parent")
    owner = """
import asyncio, os, pathlib, sys
from kubewright.testing.processes import Process
async def main():
    here = pathlib.Path(sys.argv[1])
    process = Process(["/bin/sh", "-c", "echo $$; exec sleep 600"], log=here / "log", directory=here)
    await process.start()
    while not (text := (here / "log").read_text().strip()):
        await asyncio.sleep(0.01)
    print(text, flush=True)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", owner, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    await eventually(lambda: not _alive(int(output)))


def _alive(pid: int) -> bool:
    try:
        # A process that has not been reaped yet is dead, too.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_process_that_ignores_sigterm_is_killed_after_its_grace_period(tmp_path: Path):
    script = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    process = Process(["/bin/sh", "-c", script], log=tmp_path / "log", directory=tmp_path)
    await process.start()
    await eventually(lambda: "ready" in (tmp_path / "log").read_text())
    assert process.running
    await process.stop(grace=0.1)
    assert process.ended


async def test_process_is_started_again_as_often_as_asked(tmp_path: Path):
    process = Process(["/bin/sh", "-c", "echo again; exit 3"], log=tmp_path / "log", directory=tmp_path)
    await process.start()
    async with asyncio.timeout(60):
        await process.keep_running(restarts=2, delay=0.0)
    assert (tmp_path / "log").read_text() == "again\n" * 3
    assert process.ended


async def test_a_failure_shows_the_end_of_the_log(tmp_path: Path):
    process = Process(["/bin/sh", "-c", "echo oh no; exit 3"], log=tmp_path / "log", directory=tmp_path)
    await process.start()
    with pytest.raises(ProcessError, match=r"(?s)sh ended unexpectedly \(exit status 3\).*oh no"):
        await process.wait_ended()


def test_scratch_of_a_dead_owner_is_removed_and_of_a_living_one_is_not(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    living = Scratch.create("scratch-")
    abandoned = temporary / "scratch-abandoned"
    abandoned.mkdir()
    (abandoned / "lock").touch()
    unmarked = temporary / "scratch-of-another-user"
    unmarked.mkdir()
    third = Scratch.create("scratch-")
    found = [folder.exists() for folder in (living.path, abandoned, unmarked, third.path)]
    assert found == [True, False, True, True]
    living.close()
    third.close()
    assert os.listdir(temporary) == [unmarked.name]


@pytest.mark.parametrize("path", [Path(), Path("elsewhere"), Path("/nowhere/scratch-1")])
def test_scratch_removes_nothing_outside_the_temporary_folder(path: Path, elsewhere: Path, tmp_path: Path):
    (elsewhere / "lock").touch()
    with (tmp_path / "lock").open("wb") as lock:
        Scratch(path, lock).close()
    assert os.listdir(elsewhere) == ["lock"]


def test_the_authority_issues_certificates_that_tls_accepts(tmp_path: Path):
    authority = Authority.create()
    pair = authority.serving("server", hosts=["127.0.0.1", "localhost"])
    (tmp_path / "chain").write_bytes(pair.certificate + pair.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "chain")
    client = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    for name in ("127.0.0.1", "localhost"):
        assert _handshake(client, server, name)
    with pytest.raises(ssl.SSLCertVerificationError):
        _handshake(client, server, "elsewhere")


def _handshake(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> bool:
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(back, there, server_hostname=name),
        server.wrap_bio(there, back, server_side=True),
    ]
    for _ in range(10):
        pending = 0
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pending += 1
        if not pending:
            return True
    return False
