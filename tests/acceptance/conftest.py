"""What the acceptance tests drive operators with: kubectl, and `kubewright run` as a process of its own."""

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from kubewright.testing import Cluster

sys.path.insert(0, str(Path(__file__).parent))

from acceptance_kubectl import Kubectl, find_kubectl
from acceptance_replica import Replica
from acceptance_samples import SAMPLES, Sample


@pytest.fixture(params=SAMPLES, ids=lambda sample: sample.name)
def sample(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sample:
    """Each of the five operators in turn; the simulated vCenter lies in `tmp_path`."""
    monkeypatch.setenv("VMGROUP_SIMULATOR", str(tmp_path / "vcenter.json"))
    chosen: Sample = request.param
    return chosen


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    """Run kubectl in the test's namespace."""
    program = find_kubectl()
    if program is None:
        pytest.skip("no kubectl: neither on the PATH nor in the control plane's cache folder")
    return Kubectl(program, cluster.kubeconfig, cluster.namespace)


Launch = Callable[..., Replica]


@pytest_asyncio.fixture
async def launch(cluster: Cluster, tmp_path: Path) -> AsyncGenerator[Launch, None]:
    """Start replicas of an operator as processes; those that still run are stopped at the end."""
    async with AsyncExitStack() as stack:

        async def start(target: Path, *flags: str) -> Replica:
            replica = await Replica.start(target, cluster, tmp_path, flags)
            stack.push_async_callback(replica.stop)
            return replica

        yield start
