"""A cluster with process Pods, started with `kubewright dev`, for all tests here."""

import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from kubewright.testing import Cluster, isolated

COMMAND = [str(Path(sys.executable).with_name("kubewright")), "dev", "--pods=process"]
STAND_IN, MANAGER = "registry.example/stand-in", "registry.example/myownshell"
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def process_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path, None, None]:
    """Run `kubewright dev --pods=process`."""
    path = tmp_path_factory.mktemp("processes") / "kubeconfig"
    stand_in = f"--run={STAND_IN}=sh -c 'echo standing in for $0; exec sleep 1000'"
    manager = f"--run={MANAGER}={COMMAND[0]} run {EXAMPLES / 'myownshell'}"
    command = [*COMMAND, f"--kubeconfig={path}", stand_in, manager]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "as your user" in process.stdout.readline()
        assert "is ready" in process.stdout.readline()
        yield path
        process.terminate()
        assert process.wait(30) == 0


@pytest_asyncio.fixture
async def cluster(process_kubeconfig: Path) -> AsyncGenerator[Cluster, None]:
    """Provide a namespace on the cluster with process Pods."""
    async with isolated("embedded", process_kubeconfig) as made:
        yield made
