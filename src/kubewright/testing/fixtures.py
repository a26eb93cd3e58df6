"""The fixtures of the pytest plugin."""

from collections.abc import AsyncGenerator, Generator
from typing import cast

import pytest
import pytest_asyncio

from kubewright.testing.cluster import Cluster
from kubewright.testing.environments import ServerName
from kubewright.testing.hosting import RunningEnvironment
from kubewright.testing.isolation import embedded, isolated
from kubewright.testing.plugin import release_under_test


@pytest.fixture(scope="session")
def server_name(request: pytest.FixtureRequest) -> ServerName:
    """Return the chosen server: embedded, real or existing."""
    return cast(ServerName, request.config.getoption("--server"))


@pytest.fixture(scope="session")
def kubernetes_version(request: pytest.FixtureRequest, server_name: ServerName) -> str:
    """Return the Kubernetes release of the chosen server, such as `1.33.13`."""
    return release_under_test(request.config)


@pytest.fixture(scope="session")
def environment(server_name: ServerName) -> Generator[RunningEnvironment, None, None]:
    """Run the chosen cluster for the whole session."""
    running = RunningEnvironment(server_name)
    running.start()
    yield running
    running.stop()


@pytest_asyncio.fixture
async def cluster(environment: RunningEnvironment) -> AsyncGenerator[Cluster, None]:
    """Create a namespace for one test, and delete it afterwards."""
    async with isolated(environment.name, environment.kubeconfig) as made:
        yield made


@pytest_asyncio.fixture
async def embedded_cluster() -> AsyncGenerator[Cluster, None]:
    """Run an embedded cluster for one test, which may inject faults."""
    async with embedded() as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_cluster(environment: RunningEnvironment) -> AsyncGenerator[Cluster, None]:
    """Create a namespace for the tests of a module; they must run on the module's loop."""
    async with isolated(environment.name, environment.kubeconfig) as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def session_cluster(environment: RunningEnvironment) -> AsyncGenerator[Cluster, None]:
    """Create a namespace for all tests of a run; they must run on the session's loop."""
    async with isolated(environment.name, environment.kubeconfig) as made:
        yield made
