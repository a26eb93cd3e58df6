"""MyCustomResource, as its users see it."""

import asyncio
from typing import Any

import pytest

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.manager import Manager
from kubewright.testing import Cluster
from mycustomresource import FriendSpec, MyCustomResource, operator

MANY = 1000


def resource(name: str, friend: str) -> MyCustomResource:
    return MyCustomResource(kw.Meta(name), spec=FriendSpec(name=friend))


def pod(name: str, namespace: str = "") -> core_v1.Pod:
    """Make a Pod that no scheduler takes up: only its being there counts."""
    sleeper = core_v1.Container(name="ubuntu", image="ubuntu:latest", command=["sleep"], args=["infinity"])
    spec = core_v1.PodSpec(containers=[sleeper], scheduler_name="nobody", termination_grace_period_seconds=0)
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


async def test_follows_to_another_friend(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        made = await cluster.create(resource("fickle", "joe"))
        await cluster.create(pod("joe"))
        await cluster.eventually(MyCustomResource, "fickle", lambda it: it.status.healthy)
        await cluster.client.patch(made, {"spec": {"name": "marc"}})
        await cluster.eventually(MyCustomResource, "fickle", lambda it: it.status.healthy is False)
        await cluster.create(pod("marc"))
        await cluster.eventually(MyCustomResource, "fickle", lambda it: it.status.healthy)


async def test_tells_its_story_in_five_messages(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    async with cluster.running(operator()):
        await cluster.create(resource("told", "joe"))
        await cluster.eventually(MyCustomResource, "told", lambda it: it.status.healthy is False)
        await cluster.settled(MyCustomResource)
        caplog.clear()
        await cluster.create(pod("joe"))
        await cluster.eventually(MyCustomResource, "told", lambda it: it.status.healthy)
        await cluster.settled(MyCustomResource)
    told: list[tuple[str, Any, Any, Any]] = []
    for record in caplog.records:
        fields: dict[str, Any] = getattr(record, "fields", {})
        if fields.get("name") == "told":
            told.append((record.getMessage(), fields["name"], fields.get("friend"), fields.get("status")))
    assert told[:5] == [
        ("pod linked to a MyCustomResource custom resource issued an event", "told", "joe", None),
        ("reconciling MyCustomResource custom resource", "told", None, None),
        ("pod linked to a MyCustomResource custom resource found", "told", "joe", None),
        ("MyCustomResource's Healthy status updated", "told", None, True),
        ("MyCustomResource custom resource reconciled", "told", None, None),
    ]


async def test_a_thousand_resources_ignore_a_thousand_unrelated_pod_events(cluster: Cluster) -> None:
    async with cluster.running(operator()) as manager:
        await in_parallel(
            cluster.create(resource(f"r-{number}", f"friend-{number}")) for number in range(MANY)
        )
        await all_judged(cluster)
        # Watches keep their order: when this one is judged, all that came of the others was seen before it.
        await cluster.create(resource("last", "nobody"))
        await cluster.eventually(MyCustomResource, "last", lambda it: it.status.healthy is False)
        before = await at_rest(manager)
        strangers = [await cluster.create(pod(f"stranger-{number}")) for number in range(20)]
        for turn in range(MANY // len(strangers) - 2):
            patch = {"metadata": {"labels": {"turn": str(turn)}}}
            await in_parallel(cluster.client.patch(stranger, patch) for stranger in strangers)
        await in_parallel(cluster.client.delete(stranger) for stranger in strangers)
        assert reconciles(manager) == before
        # In the same way: when this friend is seen, so was every stranger before it.
        await cluster.create(pod("friend-7"))
        await cluster.eventually(MyCustomResource, "r-7", lambda it: it.status.healthy)
        assert await at_rest(manager) - before <= 2


async def at_rest(manager: Manager) -> int:
    """Wait until nothing is left to reconcile; gives how often it was done."""
    while True:
        if not any(it.queue.ready or it.queue.in_flight for it in manager.statistics().controllers):
            return reconciles(manager)
        await asyncio.sleep(0.01)


async def all_judged(cluster: Cluster) -> None:
    """Wait until every resource has been told that it has no friend."""
    async with asyncio.timeout(120):
        while True:
            found = await cluster.client.list(MyCustomResource, namespace=cluster.namespace)
            if len(found) == MANY and all(it.status.healthy is False for it in found):
                return
            await asyncio.sleep(0.2)


async def in_parallel(jobs: Any) -> None:
    """Do the jobs, some at once."""
    gate = asyncio.Semaphore(16)

    async def take_turn(job: Any) -> None:
        async with gate:
            await job

    async with asyncio.TaskGroup() as group:
        for job in jobs:
            group.create_task(take_turn(job))
