"""MyOwnShell, as its users see it."""

import pytest

import kubewright as kw
from kubewright.api import kind_of
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.testing import Cluster
from myownshell import MyOwnShell, ShellSpec, operator
from myownshell.controller import COMMAND, FINALIZER

GARBAGE = 90.0
"""A real garbage collector looks for new kinds twice a minute."""


def shell(size: int, name: str = "demo") -> MyOwnShell:
    return MyOwnShell(kw.Meta(name), spec=ShellSpec(size=size))


async def test_the_deployment_follows_the_size(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        made = await cluster.create(shell(3))
        await cluster.eventually(apps_v1.Deployment, "demo", lambda it: it.status.ready_replicas == 3)
        await cluster.eventually(MyOwnShell, "demo", lambda it: it.status.ready == 3)
        await cluster.client.patch(made, {"spec": {"size": 5}})
        await cluster.eventually(MyOwnShell, "demo", lambda it: it.status.ready == 5)
        await cluster.client.patch(made, {"spec": {"size": 0}})
        await cluster.eventually(MyOwnShell, "demo", lambda it: it.status.ready == 0)


async def test_the_deployment_equals_the_document(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        made = await cluster.create(shell(0))
        deployment = await cluster.eventually(apps_v1.Deployment, "demo")
    labels = {"app": "myownshell", "myownshell_cr": "demo"}
    assert deployment.spec.selector.match_labels == labels
    assert deployment.spec.template.metadata.labels == labels
    (container,) = deployment.spec.template.spec.containers
    assert (container.name, container.image) == ("busybox", "busybox:latest")
    assert container.command == ["sh", "-c", COMMAND]
    assert deployment.metadata.finalizers == [FINALIZER]
    (owner,) = deployment.metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller) == ("MyOwnShell", made.metadata.uid, True)
    assert owner.block_owner_deletion


async def test_a_deployment_scaled_by_hand_is_restored(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        await cluster.create(shell(2))
        child = await cluster.eventually(apps_v1.Deployment, "demo", lambda it: it.status.ready_replicas == 2)
        scaled = await cluster.client.scale(apps_v1.Deployment, "demo", cluster.namespace, replicas=7)
        assert scaled.spec.replicas == 7
        child = await cluster.eventually(
            apps_v1.Deployment,
            "demo",
            lambda it: it.spec.replicas == 2 and it.metadata.generation > child.metadata.generation + 1,
        )
        await cluster.eventually(apps_v1.Deployment, "demo", lambda it: it.status.ready_replicas == 2)


async def test_a_deployment_and_pods_deleted_by_hand_are_created_again(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        await cluster.create(shell(1))
        child = await cluster.eventually(apps_v1.Deployment, "demo", lambda it: it.status.ready_replicas == 1)
        (pod,) = await cluster.client.list(
            core_v1.Pod, namespace=cluster.namespace, labels="myownshell_cr=demo"
        )
        await cluster.client.delete(pod)
        await cluster.eventually_gone(core_v1.Pod, pod.metadata.name)
        await cluster.eventually(apps_v1.Deployment, "demo", lambda it: it.status.ready_replicas == 1)
        await cluster.client.delete(child)
        await cluster.eventually(
            apps_v1.Deployment,
            "demo",
            lambda it: it.metadata.uid != child.metadata.uid and it.status.ready_replicas == 1,
        )


async def test_deleting_the_resource_deletes_its_children(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        made = await cluster.create(shell(1))
        await cluster.eventually(apps_v1.Deployment, "demo", lambda it: it.status.ready_replicas == 1)
        await cluster.client.delete(made)
        await cluster.eventually_gone(MyOwnShell, "demo")
        await cluster.eventually_gone(apps_v1.Deployment, "demo", timeout=GARBAGE)
    assert any("Successfully finalized MyOwnShell" in line for line in cluster.log)


async def test_a_resource_deleted_without_an_operator_waits_for_its_finalizer(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        made = await cluster.create(shell(0))
        await cluster.eventually(apps_v1.Deployment, "demo")
    await cluster.client.delete(made)
    waiting = await cluster.get(MyOwnShell, "demo")
    assert waiting.metadata.deletion_timestamp is not None
    async with cluster.running(operator()):
        await cluster.eventually_gone(MyOwnShell, "demo")
        await cluster.eventually_gone(apps_v1.Deployment, "demo", timeout=GARBAGE)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec.size: Required value"),
        ({"size": "x"}, 'spec.size in body must be of type integer: "string"'),
        ({"size": -1}, "spec.size in body should be greater than or equal to 0"),
    ],
)
async def test_refuses_a_wrong_size(cluster: Cluster, spec: dict[str, object], message: str) -> None:
    await cluster.install(operator())
    kind = kind_of(MyOwnShell)
    document = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "wrong", "namespace": cluster.namespace},
        "spec": spec,
    }
    with pytest.raises(kw.errors.Invalid, match=message):
        await cluster.client.create(document, kind=kind)
