"""Operators in shards: replicas share the objects, children follow their owners, and no read is answered from a part."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from kubewright.api import ConfigError, DeclarationError, Index, Meta, Object, owner_reference
from kubewright.api.builtin import coordination_v1, core_v1
from kubewright.api.sharding import parse_shards, shard_hash
from kubewright.controller import Context, Controller, Operator, owned, source
from kubewright.election import ElectionOptions, LeaseTimes
from kubewright.manager import Manager
from kubewright.shards import Shards
from kubewright.testing import Cluster, eventually

from .controller.running.conftest import cluster, known_types  # noqa: F401 (fixtures)
from .controller.running.kinds import Box, BoxStatus
from .controller.running.operators import options, started

SHARDS_LABEL = "kubewright.dev/shards-of"
QUICK = LeaseTimes(duration=6.0, renew_deadline=4.0, retry_period=0.2, main_loop_silence=4.0)


def manager(cluster: Cluster, operator: Operator, name: str) -> Manager:  # noqa: F811 (a fixture)
    chosen = options(election=ElectionOptions(times=QUICK, identity=name), namespaces=(cluster.namespace,))
    return Manager(operator, cluster.config, chosen)


async def test_two_replicas_work_on_their_own_objects_and_one_takes_over_all(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    worked: dict[str, set[str]] = {"first": set(), "second": set()}

    def replica(name: str) -> Manager:
        async def reconcile(box: Box, ctx: Context) -> None:
            worked[name].add(box.metadata.name)
            await ctx.apply(core_v1.ConfigMap(Meta(box.metadata.name), data={"size": str(box.spec.size)}))
            await ctx.patch_status(box, BoxStatus(ready=box.spec.size))

        operator = Operator(Controller(Box, reconcile, owns=[core_v1.ConfigMap]), shards=4)
        return manager(cluster, operator, name)

    first, second = replica("first"), replica("second")
    names = [f"box-{number}" for number in range(12)]
    async with AsyncExitStack() as stack:
        async with started(first):
            await stack.enter_async_context(started(second))
            await first.ready.wait()
            await second.ready.wait()
            for name in names:
                await cluster.create(Box(Meta(name)))
            for name in names:
                await cluster.eventually(Box, name, lambda found: found.status.ready == 1)
            assert worked["first"] | worked["second"] == set(names)
            assert not worked["first"] & worked["second"]
            assert worked["first"]
            assert worked["second"]
            # A child that is deleted is seen by the replica of its owner.
            await cluster.client.delete(await cluster.get(core_v1.ConfigMap, names[0]))
            await cluster.eventually(core_v1.ConfigMap, names[0], lambda found: found.data == {"size": "1"})
        for name in names:
            await cluster.client.patch(await cluster.get(Box, name), {"spec": {"size": 5}})
        for name in names:
            await cluster.eventually(Box, name, lambda found: found.status.ready == 5)
        assert worked["second"] == set(names)


async def test_leases_that_lost_their_label_are_found_and_labelled_again(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    seen: set[str] = set()

    async def reconcile(box: Box, ctx: Context) -> None:
        seen.add(f"{box.metadata.name} {box.spec.size}")

    operator = Operator(Controller(Box, reconcile), shards=2)
    names = {f"box-{number}" for number in range(6)}
    for name in names:
        await cluster.create(Box(Meta(name)))
    async with started(manager(cluster, operator, "first")):
        await eventually(lambda: len(seen) == len(names))
    labelled = await cluster.client.list(
        coordination_v1.Lease, labels=SHARDS_LABEL, namespace=cluster.namespace
    )
    assert len(labelled) == 2
    for lease in labelled:
        await cluster.client.patch(lease, {"metadata": {"labels": None}})
    seen.clear()
    async with started(manager(cluster, operator, "second")):
        await eventually(lambda: len(seen) == len(names))
        found = await cluster.client.list(
            coordination_v1.Lease, labels=SHARDS_LABEL, namespace=cluster.namespace
        )
        assert {lease.metadata.name for lease in labelled} <= {lease.metadata.name for lease in found}


@pytest.mark.parametrize("by", ["uid", "namespace"])
async def test_reads_in_a_shard_find_what_the_server_has(cluster: Cluster, by: Any) -> None:  # noqa: F811 (a fixture)
    """Every read of every reconcile is compared with the server, for objects of all shards."""
    await cluster.install(Box)
    sizes: Index[Box] = Index(Box, lambda box: [str(box.spec.size)])
    names = [f"box-{number}" for number in range(8)]
    checked: set[str] = set()
    wrong: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(core_v1.ConfigMap(Meta(box.metadata.name), data={"size": str(box.spec.size)}))
        for name in (*names, "missing"):
            for kind in (Box, core_v1.ConfigMap):
                found, live = await ctx.find(kind, name), await ctx.live.find(kind, name)
                if (found is None) != (live is None):
                    wrong.append(f"{kind.__name__} {name}")
        if len(await ctx.list(Box)) != len(names) or len(await ctx.list(sizes, "1")) != len(names):
            wrong.append(f"the list of {box.metadata.name}")
        for child in await ctx.live.list(core_v1.ConfigMap):
            if child.metadata.name not in {one.metadata.name for one in await ctx.list(core_v1.ConfigMap)}:
                wrong.append(f"the list of ConfigMaps lacks {child.metadata.name}")
        checked.add(box.metadata.name)

    for name in names:
        await cluster.create(Box(Meta(name)))
    operator = Operator(Controller(Box, reconcile, owns=[core_v1.ConfigMap]), shards=Shards(4, by))
    async with started(manager(cluster, operator, "only")):
        await eventually(lambda: checked == set(names))
    assert wrong == []


async def test_a_child_of_owners_in_two_shards_keeps_its_finalizer(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    """The owners are in different shards; neither shard takes the other's owner for gone."""
    await cluster.install(Box)
    finalizer = "running.example.com/box"
    seen: set[str] = set()

    async def reconcile(box: Box, ctx: Context) -> None:
        seen.add(f"{box.metadata.name} {box.spec.size}")

    owned_maps = owned(core_v1.ConfigMap, finalizer=finalizer, every_owner=True)
    shards = Shards(2)
    found: dict[int, Box] = {}
    number = 0
    while len(found) < 2:
        box = await cluster.create(Box(Meta(f"box-{number}")))
        found.setdefault(shards.number_of(box.metadata.uid), box)
        number += 1
    owners = [owner_reference(box) for box in found.values()]
    owners[1].controller = False
    child = core_v1.ConfigMap(Meta("shared", finalizers=[finalizer], owner_references=owners))
    await cluster.create(child)
    operator = Operator(Controller(Box, reconcile, owns=[owned_maps]), shards=shards)
    async with started(manager(cluster, operator, "only")):
        await eventually(lambda: len(seen) >= 2)
        for box in found.values():
            await cluster.client.patch(box, {"spec": {"size": 7}})
        await eventually(lambda: {f"{box.metadata.name} 7" for box in found.values()} <= seen)
        assert (await cluster.get(core_v1.ConfigMap, "shared")).metadata.finalizers == [finalizer]


async def nothing(box: Box, ctx: Context) -> None:
    """Do nothing."""


async def no_events() -> AsyncIterator[str]:
    """Yield no event."""
    return
    yield ""


class Zone(Object, group="running.example.com", version="v1", scope="Cluster"):
    """Has no namespace."""


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: Shards(0), "Shards(0): expected a number from 1 to 256"),
        (lambda: Shards(2.5), "Shards(2.5): expected a whole number from 1 to 256"),  # type: ignore[arg-type]
        (lambda: Shards(4, "name"), "by='name'): expected 'uid' or 'namespace'"),  # type: ignore[arg-type]
        (
            lambda: Operator(Controller(Box, nothing), shards=-1),
            "Shards(-1): expected a number from 1 to 256",
        ),
        (
            lambda: Operator(Controller(Zone, nothing), shards=Shards(4, "namespace")),  # type: ignore[arg-type]
            "4 shards by namespace: Zone is cluster-scoped and has no namespace: use 4 shards by uid",
        ),
        (
            lambda: Operator(
                Controller(Box, nothing, watches=[source(no_events, map=lambda event: [])]), shards=2
            ),
            "2 shards by uid: controller 'box' watches a source, whose events cannot be divided",
        ),
    ],
)
def test_shards_that_cannot_work_are_refused_in_one_line(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        declare()
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["0", "many", "8,name", "-3", "1000", ""])
def test_an_invalid_option_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ConfigError, match=f"^--shards {text}: expected"):
        parse_shards(text)


def test_the_option_takes_a_number_and_a_field() -> None:
    assert parse_shards("8") == Shards(8)
    assert parse_shards("3,namespace") == Shards(3, "namespace")


def test_the_hash_is_the_servers() -> None:
    assert shard_hash("") == 0xCBF29CE484222325
    assert shard_hash("a") == 0xAF63DC4C8601EC8C
    assert shard_hash("foobar") == 0x85944171F73967E8


async def test_each_of_two_replicas_knows_which_shards_the_other_holds(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    replicas = {
        name: manager(cluster, Operator(Controller(Box, nothing), shards=4), name) for name in ("one", "two")
    }

    def shows_all() -> bool:
        """Return True if both replicas and their metrics say the same about all shards."""
        shown = {name: replica.describe()["shards"] for name, replica in replicas.items()}
        holders = ["one" if number in shown["one"]["held"] else "two" for number in range(4)]
        gauges = {
            name: [
                replica.metrics.gauge("kubewright_shard_held", "", ("shard",)).labels(shard=str(number)).value
                for number in range(4)
            ]
            for name, replica in replicas.items()
        }
        return (
            sorted(shown["one"]["held"] + shown["two"]["held"]) == [0, 1, 2, 3]
            and all(found["holders"] == holders for found in shown.values())
            and all(gauges[name] == [holder == name for holder in holders] for name in replicas)
        )

    async with started(replicas["one"]), started(replicas["two"]):
        for replica in replicas.values():
            await replica.ready.wait()
        await eventually(shows_all)


async def test_the_journal_and_the_metrics_show_which_replica_holds_which_shard(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    only = manager(cluster, Operator(Controller(Box, nothing), shards=3), "only")
    async with started(only):
        await only.ready.wait()
        held = only.metrics.gauge("kubewright_shard_held", "", ("shard",))
        await eventually(lambda: [held.labels(shard=str(number)).value for number in range(3)] == [1, 1, 1])
        await eventually(lambda: only.describe()["shards"]["holders"] == ["only"] * 3)
        assert only.describe()["shards"]["held"] == [0, 1, 2]
        assert only.statistics().leading
    assert [held.labels(shard=str(number)).value for number in range(3)] == [0, 0, 0]
