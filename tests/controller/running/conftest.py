"""A cluster for each test: the embedded server by default, one real control plane for all with --server real."""

import dataclasses
from collections.abc import AsyncIterator

import pytest

from kubewright.devserver.wire import load_types
from kubewright.testing import Cluster, ControlPlane, RunningEnvironment, embedded, isolated


@pytest.fixture(scope="session", autouse=True)
def known_types() -> None:
    """Read the embedded server's tables before any event loop runs."""
    load_types().discovery()


@pytest.fixture
async def cluster(bare_plane: ControlPlane | None) -> AsyncIterator[Cluster]:
    """Provide a namespace on an API server without controllers, which operators use for their leases, too."""
    if bare_plane is None:
        opened = embedded(controllers=False)
    else:
        opened = isolated("real", bare_plane.kubeconfig, controllers=False)
    async with opened as made:
        made.config = dataclasses.replace(made.config, namespace=made.namespace)
        yield made


@pytest.fixture
async def collected(environment: RunningEnvironment) -> AsyncIterator[Cluster]:
    """Provide a namespace on a cluster with a garbage collector."""
    async with isolated(environment.name, environment.kubeconfig) as made:
        yield made
