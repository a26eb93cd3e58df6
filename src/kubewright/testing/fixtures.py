"""The fixtures of the pytest plugin."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Generator
from typing import cast

import pytest
import pytest_asyncio

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from kubewright.testing.cluster import Cluster
from kubewright.testing.environments import ServerName
from kubewright.testing.hosting import RunningEnvironment


@pytest.fixture(scope="session")
def server_name(request: pytest.FixtureRequest) -> ServerName:
    """Tell which server was chosen: embedded, real or existing."""
    return cast(ServerName, request.config.getoption("--server"))


@pytest.fixture(scope="session")
def environment(server_name: ServerName) -> Generator[RunningEnvironment, None, None]:
    """Run the chosen cluster for the whole session."""
    running = RunningEnvironment(server_name)
    running.start()
    yield running
    running.stop()


@pytest_asyncio.fixture
async def cluster(environment: RunningEnvironment) -> AsyncGenerator[Cluster, None]:
    """Give a test a namespace of its own; it is deleted afterwards."""
    config = await asyncio.to_thread(environment.config)
    namespace = f"test-{secrets.token_hex(4)}"
    async with Client(config, field_manager="kubewright-testing") as client:
        await client.create(core_v1.Namespace(Meta(namespace)))
        made = Cluster(environment.name, client, config, environment.kubeconfig, namespace)
        # Pods are refused until the namespace has its ServiceAccount.
        await made.eventually(core_v1.ServiceAccount, "default")
        yield made
        await client.delete(core_v1.Namespace, namespace)
