"""Operators in Go, TypeScript, Java and Rust: their own tests start envtest's programs, ours or the real ones.

Building four languages takes minutes the first time, so these tests run only with --languages. With --server real
they run on the real kube-apiserver and etcd. Go, npm, Maven and Cargo keep what they download and build in their usual
places, Cargo's build directory is in the cache of kubewright.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kubewright.testing.controlplane import find_binaries

HERE = Path(__file__).parent
HOW_TO = HERE.parents[1] / "docs" / "how-to"
LANGUAGES = {
    "go": ("go", ".go"),
    "typescript": ("ts", ".ts"),
    "java": ("java", ".java"),
    "rust": ("rust", ".rs"),
}
"""The projects, how their how-to pages mark code, and how its files are named."""
BUILT = {"node_modules", "dist", "target"}


@pytest.fixture
def asked_for(pytestconfig: pytest.Config) -> None:
    """Skip the test unless --languages is given."""
    if not pytestconfig.getoption("--languages"):
        pytest.skip("building other languages takes minutes: pass --languages")


@pytest.fixture
def assets(asked_for: None, server_name: str) -> Path:
    """Return the folder with kube-apiserver, etcd and kubectl."""
    if server_name == "existing":
        pytest.skip("these tests start their own API server")
    if server_name == "real":
        folder = find_binaries()
        assert folder is not None, "run scripts/control-plane build"
        return folder
    command = [sys.executable, "-m", "kubewright", "envtest", "path"]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def need(*programs: str) -> None:
    """Skip the test if a program of its tool chain is missing."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on PATH")


def copied(language: str, target: Path) -> Path:
    """Copy a project without what was built in it, so that runs at the same time do not share a build directory."""
    built = shutil.ignore_patterns(*BUILT)
    return shutil.copytree(HERE / language, target / language, ignore=built)


def run(
    *command: str, project: Path, assets: Path | None = None, variables: Mapping[str, str] | None = None
) -> str:
    """Run a command in a project; return its output, or fail with the end of it."""
    environment: dict[str, str] = {**os.environ, "GINKGO_NO_COLOR": "true", **(variables or {})}
    if assets is not None:
        environment["KUBEBUILDER_ASSETS"] = str(assets)
    done = subprocess.run(
        command,
        check=False,
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        pytest.fail(
            f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout[-8000:]}", pytrace=False
        )
    return done.stdout


def test_go_with_controller_runtime_and_ginkgo(assets: Path, server_name: str, tmp_path: Path) -> None:
    need("go")
    recording = tmp_path / "access.jsonl"
    flags = {"KUBEWRIGHT_ENVTEST_FLAGS": f"--record-access={recording}"} if server_name == "embedded" else {}
    project = HERE / "go"
    run("go", "vet", "./...", project=project)
    output = run("go", "test", "-count=1", "-v", "./...", project=project, assets=assets, variables=flags)
    assert output.count("SUCCESS! -- 7 Passed") == 2, output
    if server_name == "embedded":
        verify_role(project / "config" / "rbac" / "role.yaml", recording)


def verify_role(role: Path, recording: Path) -> None:
    """Check that the generated role grants what the manager used, and no more than it needs elsewhere."""
    command = [sys.executable, "-m", "kubewright", "rbac", "verify"]
    command += ["--role", str(role), "--recording", str(recording)]
    found = subprocess.run(command, check=False, capture_output=True, text=True).stdout.splitlines()
    unused = "ClusterRole manager-role grants it, but no recorded request used it"
    assert found == [
        # client-go patches an Event that repeats; these tests cause none.
        f"unused     patch events of events.k8s.io: {unused}",
        # Clusters with the admission plugin OwnerReferencesPermissionEnforcement, such as OpenShift, need it.
        f"unused     update sites/finalizers of example.com: {unused}",
    ]


def test_typescript_with_the_official_client(assets: Path, tmp_path: Path) -> None:
    need("node", "npm")
    project = copied("typescript", tmp_path)
    run("npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", project=project)
    output = run("npm", "test", project=project, assets=assets)
    assert "# pass 6\n" in output, output


def test_java_with_the_operator_sdk(assets: Path, tmp_path: Path) -> None:
    need("java", "mvn")
    if shutil.which("kubectl", path=str(assets)) is None:
        pytest.skip("no kubectl on PATH: fabric8's kube-api-test waits for the namespace default with it")
    output = run("mvn", "-B", "test", project=copied("java", tmp_path), assets=assets)
    assert "Tests run: 7, Failures: 0, Errors: 0, Skipped: 0" in output, output


@pytest.mark.timeout(3600)
def test_rust_with_kube_rs(assets: Path) -> None:
    need("cargo")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # Cargo locks the directory: runs at the same time wait for each other while they build.
    target = {"CARGO_TARGET_DIR": str(cache / "kubewright" / "languages" / "rust")}
    output = run("cargo", "test", project=HERE / "rust", assets=assets, variables=target)
    assert "test result: ok. 3 passed; 0 failed" in output, output


@pytest.mark.parametrize("project", LANGUAGES)
def test_the_how_to_page_shows_code_of_the_project(project: str) -> None:
    mark, suffix = LANGUAGES[project]
    page = (HOW_TO / f"envtest-{project}.md").read_text()
    blocks = re.findall(rf"^```{mark}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    sources = [path for path in (HERE / project).rglob(f"*{suffix}") if not BUILT.intersection(path.parts)]
    files = [without_indent(path.read_text()) for path in sources]
    assert blocks
    for block in blocks:
        assert any(without_indent(block) in file for file in files), f"not in {project}:\n{block}"


def without_indent(text: str) -> str:
    """Return the lines that are not empty, without the space around them."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())
