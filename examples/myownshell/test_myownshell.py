"""MyOwnShell, as its users see it."""

import kubewright as kw
from kubewright.api.builtin import apps_v1
from kubewright.testing import Cluster
from myownshell import MyOwnShell, ShellSpec, operator
from myownshell.controller import FINALIZER


async def test_deployment_follows_the_size(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        shell = await cluster.create(MyOwnShell(kw.Meta("demo"), spec=ShellSpec(size=3)))
        await cluster.eventually(apps_v1.Deployment, "demo", lambda it: it.status.ready_replicas == 3)
        await cluster.eventually(MyOwnShell, "demo", lambda it: it.status.ready == 3)
        await cluster.client.patch(shell, {"spec": {"size": 5}})
        await cluster.eventually(MyOwnShell, "demo", lambda it: it.status.ready == 5)


async def test_deletion_takes_everything_along(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        shell = await cluster.create(MyOwnShell(kw.Meta("demo"), spec=ShellSpec(size=1)))
        child = await cluster.eventually(apps_v1.Deployment, "demo", lambda it: it.status.ready_replicas == 1)
        assert child.metadata.finalizers == [FINALIZER]
        await cluster.client.delete(shell)
        await cluster.eventually_gone(MyOwnShell, "demo")
        await cluster.eventually_gone(apps_v1.Deployment, "demo")
    assert any("Successfully finalized MyOwnShell" in line for line in cluster.log)
