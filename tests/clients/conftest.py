"""What the tests with foreign clients share."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from kubewright.testing import Cluster
from kubewright.testing.environments import ServerName
from kubewright.testing.hosting import RunningEnvironment

sys.path.insert(0, str(Path(__file__).parent))

from clients_kubectl import Kubectl


@pytest.fixture(scope="module")
def environment(server_name: ServerName) -> Iterator[RunningEnvironment]:
    """Run a cluster that no other test installs kinds in: what kubectl lists is compared whole."""
    running = RunningEnvironment(server_name)
    running.start()
    yield running
    running.stop()


@pytest_asyncio.fixture
async def kubectl(kubectl_path: Path, cluster: Cluster, tmp_path: Path) -> Kubectl:
    """Run kubectl in the test's namespace, with an empty cache."""
    return Kubectl(kubectl_path, cluster.kubeconfig, cluster.namespace, tmp_path)


@pytest.fixture
def collected() -> Iterator[None]:
    """Collect what a foreign client left behind while its warnings are still its own."""
    yield
    gc.collect()
