"""A cluster for each test: the embedded server by default, one real control plane for all with --server real."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubewright.client import Client, ClusterConfig, config_from_kubeconfig
from kubewright.devcluster.garbage import GarbageCollector
from kubewright.devserver import Server
from kubewright.devserver.wire import load_types

from .cluster import Cluster


@pytest.fixture(scope="session", autouse=True)
def known_types() -> None:
    """Read the embedded server's tables before any event loop runs."""
    load_types().discovery()


@pytest.fixture
async def cluster(real_config: ClusterConfig | None) -> AsyncIterator[Cluster]:
    if real_config is not None:
        async with Client(real_config, field_manager="test") as client:
            yield await Cluster.prepare(real_config, client)
        return
    async with Server(disable_admission_plugins=("ServiceAccount",)) as server:
        config = config_from_kubeconfig(server.kubeconfig())
        async with Client(config, field_manager="test") as client:
            yield await Cluster.prepare(config, client)


@pytest.fixture
def collected_config(server_name: str, request: pytest.FixtureRequest) -> ClusterConfig | None:
    """Return the configuration of the real cluster that has controllers; None on another server."""
    return request.getfixturevalue("environment").config() if server_name == "real" else None


@pytest.fixture
async def collected(collected_config: ClusterConfig | None) -> AsyncIterator[tuple[Cluster, ClusterConfig]]:
    """Give a cluster whose garbage is collected."""
    if collected_config is not None:
        async with Client(collected_config, field_manager="test") as client:
            yield await Cluster.prepare(collected_config, client), collected_config
        return
    async with Server(disable_admission_plugins=("ServiceAccount",)) as server:
        config = config_from_kubeconfig(server.kubeconfig())
        async with Client(config, field_manager="test") as client, asyncio.TaskGroup() as group:
            collecting = group.create_task(GarbageCollector(client).run())
            yield await Cluster.prepare(config, client), config
            collecting.cancel()
