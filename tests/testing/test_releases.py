"""The Kubernetes version of a test run: its selection, and tests that need another one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubewright.devserver.data import BUNDLE, MINOR, RELEASE
from kubewright.testing import embedded
from kubewright.testing.controlplane import binaries_folder, default_folder, release_of_binaries

MARKED = """
import pytest

@pytest.mark.kubernetes(since="1.{newer}")
def test_newer() -> None: ...

@pytest.mark.kubernetes(since="1.30", until="1.{minor}")
def test_present() -> None: ...

@pytest.mark.kubernetes(until="1.{older}")
def test_older() -> None: ...

def test_version(kubernetes_version: str) -> None:
    print("version", kubernetes_version)
"""

SERVED = """
from kubewright.testing import Cluster, embedded

async def has_device_classes(cluster: Cluster) -> bool:
    return any(item.kind.kind == "DeviceClass" for item in await cluster.client.api_resources())

async def test_served(cluster: Cluster) -> None:
    version = (await cluster.client.server_version()).git_version
    print(version, await has_device_classes(cluster))
    async with embedded(controllers=False) as other:
        assert (await other.client.server_version()).git_version == version
"""


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder, without the selection of the outer run."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("KUBEWRIGHT_KUBERNETES", "KUBEBUILDER_ASSETS")
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def built(cache: Path, release: str, reported: str = "") -> Path:
    """Put programs in place of the binaries of a release; kube-apiserver reports a version."""
    folder = cache / "kubewright" / "control-plane" / f"v{release}"
    folder.mkdir(parents=True)
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        (folder / name).write_text(f"#!/bin/sh\necho Kubernetes v{reported or release}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "test_marked.py").write_text(MARKED.format(newer=MINOR + 1, minor=MINOR, older=int(MINOR) - 1))
    return folder


def test_a_test_runs_only_on_the_versions_of_its_marker(marked: Path) -> None:
    done = run(marked, "-rs", "-s")
    assert done.returncode == 0, done.stdout
    assert "2 passed, 2 skipped" in done.stdout
    assert f"test_marked.py:4: needs Kubernetes 1.{MINOR + 1} or newer" in done.stdout
    assert f"needs Kubernetes 1.{MINOR - 1} or older" in done.stdout
    assert f"version {RELEASE}" in done.stdout


@pytest.mark.parametrize("by", ["option", "variable"])
def test_the_selected_version_decides_which_tests_run(marked: Path, tmp_path: Path, by: str) -> None:
    release = BUNDLE.releases["1.33"]
    built(tmp_path, release)
    chosen = ["--kubernetes", "1.33"] if by == "option" else []
    variables = {"KUBEWRIGHT_KUBERNETES": "1.33"} if by == "variable" else {}
    done = run(marked, "--server", "real", "-s", "-rs", *chosen, XDG_CACHE_HOME=str(tmp_path), **variables)
    assert "3 passed, 1 skipped" in done.stdout
    assert f"version {release}" in done.stdout


def test_the_embedded_server_serves_the_selected_version(tmp_path: Path) -> None:
    (tmp_path / "test_served.py").write_text(SERVED)
    for version, served in (("1.31", False), ("1.34", True)):
        done = run(tmp_path, "-q", "-s", "--kubernetes", version)
        assert done.returncode == 0, done.stdout
        assert f"v{BUNDLE.releases[version]}+kubewright {served}" in done.stdout


async def test_embedded_clusters_of_several_versions_run_side_by_side() -> None:
    async with (
        embedded(kubernetes="1.32", controllers=False) as old,
        embedded(kubernetes="1.36", controllers=False) as new,
    ):
        versions = [(await cluster.client.server_version()).git_version for cluster in (old, new)]
    assert [version.rpartition(".")[0] for version in versions] == ["v1.32", "v1.36"]


def test_workers_use_the_selected_version(marked: Path, tmp_path: Path) -> None:
    built(tmp_path, BUNDLE.releases["1.33"])
    done = run(marked, "--server=real", "--kubernetes=1.33", "--numprocesses=1", XDG_CACHE_HOME=str(tmp_path))
    assert "3 passed, 1 skipped" in done.stdout


def test_the_version_of_other_binaries_is_the_one_that_they_report(marked: Path, tmp_path: Path) -> None:
    folder = built(tmp_path, "0", reported="1.33.7")
    done = run(marked, "--server=real", "-s", KUBEBUILDER_ASSETS=str(folder))
    assert "3 passed, 1 skipped" in done.stdout
    assert "version 1.33.7" in done.stdout
    assert release_of_binaries(folder) == "1.33.7"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kubernetes", "1.20"), "unknown Kubernetes version '1.20': expected one of 1.31, 1.32, "),
        (
            ("--kubernetes", "1.33.2"),
            "the embedded server: unknown Kubernetes version '1.33.2': known versions are",
        ),
        (("--kubernetes", "latest"), "unknown Kubernetes version 'latest': expected one of 1.31, 1.32, "),
        (
            ("--server", "real", "--kubernetes", "1.33"),
            f"kube-scheduler. Run `scripts/control-plane build --kubernetes {BUNDLE.releases['1.33']}`",
        ),
        (
            ("--server", "existing", "--kubernetes", "1.33"),
            "an existing cluster has its own Kubernetes version",
        ),
    ],
)
def test_a_version_that_cannot_be_used_is_one_line(
    marked: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run(marked, *arguments, XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert [message in line for line in done.stderr.splitlines() if line.startswith("ERROR: ")] == [True]
    assert "Traceback" not in done.stderr


def test_a_marker_with_a_mistake_fails_the_test(tmp_path: Path) -> None:
    for number, mistake in enumerate(("'1.33'", "since=1.33", "since='latest'", "before='1.33'", "")):
        text = f"import pytest\n\n@pytest.mark.kubernetes({mistake})\ndef test_{number}() -> None: ...\n"
        (tmp_path / f"test_{number}.py").write_text(text)
    done = run(tmp_path, "-q")
    assert "5 errors" in done.stdout
    assert "'latest' is not a Kubernetes version such as" in done.stdout
    assert done.stdout.count('expected @pytest.mark.kubernetes(since="1.34")') >= 4


def test_a_selected_version_is_used_in_place_of_other_binaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.delenv("KUBEWRIGHT_KUBERNETES", raising=False)
    assert default_folder() == tmp_path
    monkeypatch.setenv("KUBEWRIGHT_KUBERNETES", "1.33")
    assert default_folder() == binaries_folder(f"v{BUNDLE.releases['1.33']}")
