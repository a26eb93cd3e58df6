"""Foo, as its users see it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import kubewright as kw
from foo import Foo, FooSpec, FooV1Alpha1, operator
from foo.kinds import conversion
from kubewright.api.builtin import core_v1
from kubewright.testing import Cluster, embedded, eventually, virtual_time
from kubewright.testing.round_trip import check_round_trips

IMAGE = "gcr.io/google_containers/echoserver:1.4"


def foo(name: str = "test") -> FooV1Alpha1:
    return FooV1Alpha1(kw.Meta(name), test_string="first foo", test_num=1)


@asynccontextmanager
async def running(cluster: Cluster, **options: Any) -> AsyncGenerator[None, None]:
    """Run the operator, and wait until the API server calls its webhooks."""
    async with cluster.running(operator(), **options):
        await eventually(lambda: is_validated(cluster))
        await eventually(lambda: is_completed_and_converted(cluster))
        yield


async def is_validated(cluster: Cluster) -> bool:
    wrong = Foo(kw.Meta("probe", namespace=cluster.namespace), spec=FooSpec(test_num=-1))
    try:
        await cluster.client.create(wrong, dry_run=True)
    except kw.errors.Invalid:
        return True
    except kw.ApiError:
        pass
    return False


async def is_completed_and_converted(cluster: Cluster) -> bool:
    silent = FooV1Alpha1(kw.Meta("probe", namespace=cluster.namespace))
    try:
        return (await cluster.client.create(silent, dry_run=True)).test_string == "probe"
    except kw.ApiError:
        return False


async def test_creates_a_pod_of_the_same_name(cluster: Cluster) -> None:
    async with running(cluster):
        await cluster.create(foo())
        pod = await cluster.eventually(core_v1.Pod, "test")
    (container,) = pod.spec.containers
    assert (container.name, container.image) == ("busybox", IMAGE)
    assert pod.spec.restart_policy == "Always"
    assert pod.metadata.owner_references == []


@virtual_time
async def test_the_pod_exists_within_two_seconds() -> None:
    async with embedded() as cluster, running(cluster):
        await cluster.create(foo())
        await cluster.eventually(core_v1.Pod, "test", timeout=2)


async def test_a_deleted_pod_is_created_again(cluster: Cluster) -> None:
    async with running(cluster):
        await cluster.create(foo())
        pod = await cluster.eventually(core_v1.Pod, "test")
        await cluster.client.delete(pod, grace_period_seconds=0)
        await cluster.eventually(core_v1.Pod, "test", lambda it: it.metadata.uid != pod.metadata.uid)


async def test_a_pod_deleted_with_a_grace_period_is_created_again_once_it_is_gone(cluster: Cluster) -> None:
    async with running(cluster):
        await cluster.create(foo())
        pod = await cluster.eventually(core_v1.Pod, "test", lambda it: it.status.phase == "Running")
        await cluster.client.delete(pod)
        await cluster.eventually(core_v1.Pod, "test", lambda it: it.metadata.uid != pod.metadata.uid)


async def test_the_pod_stays_when_its_foo_is_deleted(cluster: Cluster) -> None:
    async with running(cluster):
        made = await cluster.create(foo())
        pod = await cluster.eventually(core_v1.Pod, "test", lambda it: it.status.phase == "Running")
        await cluster.client.delete(made)
        await cluster.eventually_gone(FooV1Alpha1, "test")
        await cluster.settled(core_v1.Pod)
        left = await cluster.get(core_v1.Pod, "test")
    assert (left.metadata.uid, left.metadata.deletion_timestamp) == (pod.metadata.uid, None)


async def test_foos_of_the_same_name_in_two_namespaces_have_two_pods(cluster: Cluster) -> None:
    name = f"twin-{cluster.namespace}"
    default = Cluster(cluster.server, cluster.client, cluster.config, cluster.kubeconfig, "default")
    async with running(cluster, everywhere=True):
        await cluster.create(foo(name))
        elsewhere = await default.create(foo(name))
        await cluster.eventually(core_v1.Pod, name)
        twin = await default.eventually(core_v1.Pod, name)
        await cluster.client.delete(elsewhere)
    await cluster.client.delete(twin, grace_period_seconds=0)


async def test_does_not_change_an_existing_pod(cluster: Cluster) -> None:
    theirs = core_v1.PodSpec(containers=[core_v1.Container(name="theirs", image="theirs:1")])
    before = await cluster.create(core_v1.Pod(kw.Meta("test"), spec=theirs))
    await cluster.eventually(core_v1.Pod, "test", lambda it: it.status.phase == "Running")
    await cluster.settled(core_v1.Pod)
    async with running(cluster):
        await cluster.create(foo())
        await cluster.create(foo("other"))
        await cluster.eventually(core_v1.Pod, "other")
        after = await cluster.get(core_v1.Pod, "test")
    assert after.metadata.uid == before.metadata.uid
    assert [container.name for container in after.spec.containers] == ["theirs"]
    assert "foo" not in {entry.manager for entry in after.metadata.managed_fields}


async def test_refuses_a_test_num_that_is_not_a_number(cluster: Cluster) -> None:
    await cluster.install(operator())
    document = {
        "apiVersion": "example.com/v1alpha1",
        "kind": "Foo",
        "metadata": {"name": "wrong", "namespace": cluster.namespace},
        "testNum": "one",
    }
    with pytest.raises(kw.errors.Invalid, match='testNum in body must be of type integer: "string"'):
        await cluster.client.create(document)


def test_every_foo_survives_a_change_of_version_and_back() -> None:
    check_round_trips(conversion)


async def test_foos_created_in_either_version_are_readable_in_both(cluster: Cluster) -> None:
    async with running(cluster):
        await cluster.create(foo("old"))
        await cluster.create(Foo(kw.Meta("new"), spec=FooSpec(test_string="second", test_num=2)))
        await cluster.eventually(Foo, "old", lambda it: it.status.pod == "old")
        old, new = await cluster.get(Foo, "old"), await cluster.get(FooV1Alpha1, "new")
    assert (old.spec.test_string, old.spec.test_num, old.spec.image) == ("first foo", 1, IMAGE)
    assert (new.test_string, new.test_num) == ("second", 2)


async def test_a_write_in_the_old_version_keeps_fields_of_the_new_one(cluster: Cluster) -> None:
    async with running(cluster):
        await cluster.create(Foo(kw.Meta("test"), spec=FooSpec(image="mine:1")))
        await cluster.eventually(Foo, "test", lambda it: it.status.pod == "test")
        await cluster.client.patch(FooV1Alpha1, {"testNum": 7}, name="test", namespace=cluster.namespace)
        kept = await cluster.get(Foo, "test")
    assert (kept.spec.test_num, kept.spec.image, kept.status.pod) == (7, "mine:1", "test")


async def test_two_field_errors_are_in_one_message_in_either_version(cluster: Cluster) -> None:
    async with running(cluster):
        await cluster.create(Foo(kw.Meta("test"), spec=FooSpec(test_num=3)))
        change = {"spec": {"testNum": 1, "image": "other:1"}}
        with pytest.raises(
            kw.errors.Invalid,
            match=r"\[spec.testNum: Invalid value: 1: may not shrink, spec.image: Forbidden: a Pod keeps",
        ):
            await cluster.client.patch(Foo, change, name="test", namespace=cluster.namespace)
        with pytest.raises(kw.errors.Invalid, match="may not shrink"):
            await cluster.client.patch(FooV1Alpha1, {"testNum": 1}, name="test", namespace=cluster.namespace)


async def test_a_foo_without_a_string_gets_its_name(cluster: Cluster) -> None:
    async with running(cluster):
        made = await cluster.create(FooV1Alpha1(kw.Meta("silent")))
    assert made.test_string == "silent"
