"""MyCustomResource from its users' point of view."""

import asyncio
from typing import Any

import pytest

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.manager import Manager
from kubewright.testing import Cluster, eventually
from mycustomresource import FriendSpec, MyCustomResource, operator

MANY = 1000


def resource(name: str, friend: str) -> MyCustomResource:
    return MyCustomResource(kw.Meta(name), spec=FriendSpec(name=friend))


def pod(name: str, namespace: str = "") -> core_v1.Pod:
    """Return a Pod with an unknown scheduler, so that it never runs; only its existence matters."""
    sleeper = core_v1.Container(name="ubuntu", image="ubuntu:latest", command=["sleep"], args=["infinity"])
    spec = core_v1.PodSpec(containers=[sleeper], scheduler_name="none", termination_grace_period_seconds=0)
    return core_v1.Pod(kw.Meta(name, namespace=namespace), spec=spec)


def reconciles(manager: Manager) -> int:
    return sum(sum(controller.outcomes.values()) for controller in manager.statistics().controllers)


async def test_is_healthy_while_its_friend_exists(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        for name, friend in (("my-custom-resource-01", "funny-joe"), ("my-custom-resource-02", "crazy-marc")):
            await cluster.create(resource(name, friend))
            await cluster.eventually(MyCustomResource, name, lambda it: it.status.healthy is False)
        other = await cluster.get(MyCustomResource, "my-custom-resource-02")
        joe = await cluster.create(pod("funny-joe"))
        await cluster.eventually(MyCustomResource, "my-custom-resource-01", lambda it: it.status.healthy)
        await cluster.client.delete(joe)
        await cluster.eventually(MyCustomResource, "my-custom-resource-01", lambda it: not it.status.healthy)
        untouched = await cluster.get(MyCustomResource, "my-custom-resource-02")
    assert untouched.metadata.resource_version == other.metadata.resource_version


async def test_a_friend_counts_in_any_namespace(cluster: Cluster) -> None:
    friend = f"joe-of-{cluster.namespace}"
    async with cluster.running(operator(), everywhere=True):
        await cluster.create(resource("lonely", friend))
        joe = await cluster.create(pod(friend, "default"))
        await cluster.eventually(MyCustomResource, "lonely", lambda it: it.status.healthy)
        await cluster.client.delete(joe)
        await cluster.eventually(MyCustomResource, "lonely", lambda it: it.status.healthy is False)


async def test_two_resources_with_the_same_friend_both_follow(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        await cluster.create(resource("one", "joe"))
        await cluster.create(resource("two", "joe"))
        await cluster.create(pod("joe"))
        await cluster.eventually(MyCustomResource, "one", lambda it: it.status.healthy)
        await cluster.eventually(MyCustomResource, "two", lambda it: it.status.healthy)


async def test_the_status_follows_a_changed_friend(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        made = await cluster.create(resource("fickle", "joe"))
        await cluster.create(pod("joe"))
        await cluster.eventually(MyCustomResource, "fickle", lambda it: it.status.healthy)
        await cluster.client.patch(made, {"spec": {"name": "marc"}})
        await cluster.eventually(MyCustomResource, "fickle", lambda it: it.status.healthy is False)
        await cluster.create(pod("marc"))
        await cluster.eventually(MyCustomResource, "fickle", lambda it: it.status.healthy)


async def test_logs_five_messages_for_a_new_friend(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster.running(operator()):
        await cluster.create(resource("logged", "joe"))
        await cluster.eventually(MyCustomResource, "logged", lambda it: it.status.healthy is False)
        await cluster.settled(MyCustomResource)
        caplog.clear()
        await cluster.create(pod("joe"))
        await cluster.eventually(MyCustomResource, "logged", lambda it: it.status.healthy)
        await cluster.settled(MyCustomResource)
    logged: list[tuple[str, Any, Any, Any]] = []
    for record in caplog.records:
        fields: dict[str, Any] = getattr(record, "fields", {})
        if fields.get("name") == "logged":
            logged.append((record.getMessage(), fields["name"], fields.get("friend"), fields.get("status")))
    assert logged[:5] == [
        ("pod linked to a MyCustomResource custom resource issued an event", "logged", "joe", None),
        ("reconciling MyCustomResource custom resource", "logged", None, None),
        ("pod linked to a MyCustomResource custom resource found", "logged", "joe", None),
        ("MyCustomResource's Healthy status updated", "logged", None, True),
        ("MyCustomResource custom resource reconciled", "logged", None, None),
    ]


async def test_a_thousand_resources_ignore_a_thousand_unrelated_pod_events(cluster: Cluster) -> None:
    async with cluster.running(operator()) as manager:
        await in_parallel(
            cluster.create(resource(f"r-{number}", f"friend-{number}")) for number in range(MANY)
        )
        await all_unhealthy(cluster)
        # Watches keep their order: when this one has a status, the events of the others were handled before it.
        await cluster.create(resource("last", "absent"))
        await cluster.eventually(MyCustomResource, "last", lambda it: it.status.healthy is False)
        before = await at_rest(manager)
        unrelated = [await cluster.create(pod(f"unrelated-{number}")) for number in range(20)]
        for turn in range(MANY // len(unrelated) - 2):
            patch = {"metadata": {"labels": {"turn": str(turn)}}}
            await in_parallel(cluster.client.patch(each, patch) for each in unrelated)
        await in_parallel(cluster.client.delete(each) for each in unrelated)
        assert reconciles(manager) == before
        # In the same way: when this friend is seen, so was every unrelated Pod before it.
        await cluster.create(pod("friend-7"))
        await cluster.eventually(MyCustomResource, "r-7", lambda it: it.status.healthy)
        assert await at_rest(manager) - before <= 2


async def at_rest(manager: Manager) -> int:
    """Wait until nothing is left to reconcile, and return the number of reconciles."""
    await eventually(
        lambda: not any(it.queue.ready or it.queue.in_flight for it in manager.statistics().controllers)
    )
    return reconciles(manager)


async def all_unhealthy(cluster: Cluster) -> None:
    """Wait until the status of every resource is unhealthy."""

    async def look() -> bool:
        found = await cluster.client.list(MyCustomResource, namespace=cluster.namespace)
        return len(found) == MANY and all(it.status.healthy is False for it in found)

    await eventually(look, timeout=120)


async def in_parallel(jobs: Any) -> None:
    """Do the jobs, some at once."""
    gate = asyncio.Semaphore(16)

    async def take_turn(job: Any) -> None:
        async with gate:
            await job

    async with asyncio.TaskGroup() as group:
        for job in jobs:
            group.create_task(take_turn(job))
