"""What the tests of the dev cluster share; those on a cluster pass on the embedded and on the real one alike."""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from kubewright.testing.cluster import Cluster
from kubewright.testing.controlplane import binaries_folder

Kubectl = Callable[..., Awaitable[str]]


@pytest.fixture(scope="session")
def kubectl_path() -> Path:
    """Find kubectl: beside the control plane's programs, or on the path."""
    built = binaries_folder() / "kubectl"
    found = str(built) if built.exists() else shutil.which("kubectl")
    if found is None:
        pytest.skip("kubectl is not installed")
    return Path(found)


@pytest.fixture
def kubectl(cluster: Cluster, kubectl_path: Path, tmp_path: Path) -> Kubectl:
    """Run kubectl in the test's namespace and return what it prints; a failure fails the test."""

    async def run(*arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            kubectl_path,
            f"--kubeconfig={cluster.kubeconfig}",
            f"--cache-dir={tmp_path}",
            f"--namespace={cluster.namespace}",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        text = output.decode()
        assert process.returncode == 0, f"kubectl {' '.join(arguments)}: {text}"
        return text

    return run
