"""Foo, as its users see it."""

import pytest

import kubewright as kw
from foo import FooV1Alpha1, operator
from kubewright.api.builtin import core_v1
from kubewright.testing import Cluster

IMAGE = "gcr.io/google_containers/echoserver:1.4"


def foo(name: str = "test") -> FooV1Alpha1:
    return FooV1Alpha1(kw.Meta(name), test_string="first foo", test_num=1)


async def test_makes_a_pod_of_its_own_name(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        await cluster.create(foo())
        pod = await cluster.eventually(core_v1.Pod, "test", timeout=2)
    (container,) = pod.spec.containers
    assert (container.name, container.image) == ("busybox", IMAGE)
    assert pod.spec.restart_policy == "Always"
    assert pod.metadata.owner_references == []


async def test_a_deleted_pod_comes_back(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        await cluster.create(foo())
        pod = await cluster.eventually(core_v1.Pod, "test")
        await cluster.client.delete(pod, grace_period_seconds=0)
        await cluster.eventually(core_v1.Pod, "test", lambda it: it.metadata.uid != pod.metadata.uid)


async def test_a_pod_deleted_with_grace_comes_back_when_it_is_gone(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        await cluster.create(foo())
        pod = await cluster.eventually(core_v1.Pod, "test", lambda it: it.status.phase == "Running")
        await cluster.client.delete(pod)
        await cluster.eventually(core_v1.Pod, "test", lambda it: it.metadata.uid != pod.metadata.uid)


async def test_the_pod_outlives_its_foo(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        made = await cluster.create(foo())
        pod = await cluster.eventually(core_v1.Pod, "test", lambda it: it.status.phase == "Running")
        await cluster.client.delete(made)
        await cluster.eventually_gone(FooV1Alpha1, "test")
        await cluster.settled(core_v1.Pod)
        left = await cluster.get(core_v1.Pod, "test")
    assert (left.metadata.uid, left.metadata.deletion_timestamp) == (pod.metadata.uid, None)


async def test_the_same_name_in_two_namespaces_makes_two_pods(cluster: Cluster) -> None:
    name = f"twin-{cluster.namespace}"
    default = Cluster(cluster.server, cluster.client, cluster.config, cluster.kubeconfig, "default")
    async with cluster.running(operator(), everywhere=True):
        await cluster.create(foo(name))
        elsewhere = await default.create(foo(name))
        await cluster.eventually(core_v1.Pod, name)
        twin = await default.eventually(core_v1.Pod, name)
        await cluster.client.delete(elsewhere)
    await cluster.client.delete(twin, grace_period_seconds=0)


async def test_leaves_a_pod_that_was_there_alone(cluster: Cluster) -> None:
    theirs = core_v1.PodSpec(containers=[core_v1.Container(name="theirs", image="theirs:1")])
    before = await cluster.create(core_v1.Pod(kw.Meta("test"), spec=theirs))
    await cluster.eventually(core_v1.Pod, "test", lambda it: it.status.phase == "Running")
    await cluster.settled(core_v1.Pod)
    async with cluster.running(operator()):
        await cluster.create(foo())
        await cluster.create(foo("other"))
        await cluster.eventually(core_v1.Pod, "other")
        after = await cluster.get(core_v1.Pod, "test")
    assert after.metadata.uid == before.metadata.uid
    assert [container.name for container in after.spec.containers] == ["theirs"]
    assert "foo" not in {entry.manager for entry in after.metadata.managed_fields}


async def test_refuses_a_number_that_is_none(cluster: Cluster) -> None:
    await cluster.install(operator())
    document = {
        "apiVersion": "example.com/v1alpha1",
        "kind": "Foo",
        "metadata": {"name": "wrong", "namespace": cluster.namespace},
        "testNum": "one",
    }
    with pytest.raises(kw.Invalid, match='testNum in body must be of type integer: "string"'):
        await cluster.client.create(document)
