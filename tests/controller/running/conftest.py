"""A cluster for each test: the embedded server by default, one real control plane for all with --server real."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubewright.client import Client, ClusterConfig, config_from_kubeconfig, load_config
from kubewright.devcluster.garbage import GarbageCollector
from kubewright.devserver import Server
from kubewright.devserver.wire import load_types
from kubewright.testing.controlplane import ControlPlane

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
async def collected(server_name: str) -> AsyncIterator[tuple[Cluster, ClusterConfig]]:
    """Run a cluster with a garbage collector."""
    if server_name == "real":
        async with ControlPlane() as plane:
            config = await asyncio.to_thread(load_config, plane.kubeconfig)
            async with Client(config, field_manager="test") as client:
                yield await Cluster.prepare(config, client), config
        return
    async with Server(disable_admission_plugins=("ServiceAccount",)) as server:
        config = config_from_kubeconfig(server.kubeconfig())
        async with Client(config, field_manager="test") as client, asyncio.TaskGroup() as group:
            collecting = group.create_task(GarbageCollector(client).run())
            yield await Cluster.prepare(config, client), config
            collecting.cancel()
