"""Namespaces by scope: one for a test, one for a module, one for a run."""

import pytest

from kubewright.api.builtin import core_v1
from kubewright.testing import Cluster

seen: dict[str, set[str]] = {"module": set(), "session": set()}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("turn", ["one", "other"])
async def test_the_tests_of_a_module_may_share_a_namespace(module_cluster: Cluster, turn: str) -> None:
    await module_cluster.eventually(core_v1.ServiceAccount, "default")
    seen["module"].add(module_cluster.namespace)
    assert len(seen["module"]) == 1, turn


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("turn", ["one", "other"])
async def test_the_tests_of_a_run_may_share_a_namespace(session_cluster: Cluster, turn: str) -> None:
    await session_cluster.eventually(core_v1.ServiceAccount, "default")
    seen["session"].add(session_cluster.namespace)
    assert len(seen["session"]) == 1, turn


async def test_a_test_has_a_namespace_of_its_own(cluster: Cluster) -> None:
    assert cluster.namespace not in seen["module"] | seen["session"]
