"""Several replicas in shards under virtual time: crashed, paused and cut off at any request, no object is left alone.

Each write of a replica is compared with the Lease that the API server has at that moment: the replica must hold the shard of
the object that the write is for.
"""

import asyncio
from typing import Any

import pytest

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.shards import Shards
from kubewright.testing import Simulation, holds_shard, simulate

OBJECTS = 6
SELECTS = pytest.mark.kubernetes(since="1.36")


class PhotoSpec(kw.Model):
    size: int = 1


class PhotoStatus(kw.Model):
    ready: int = 0


class Photo(kw.Resource[PhotoSpec, PhotoStatus], group="shards.example.com", version="v1"):
    """A picture."""


async def reconcile(photo: Photo, ctx: kw.Context) -> None:
    await ctx.apply(core_v1.ConfigMap(kw.Meta(photo.metadata.name), data={"size": str(photo.spec.size)}))
    await ctx.patch_status(photo, PhotoStatus(ready=photo.spec.size))


def photos(shards: Shards) -> kw.Operator:
    owns = [kw.owned(core_v1.ConfigMap, finalizer="shards.example.com/photo")]
    return kw.Operator(kw.Controller(Photo, reconcile, owns=owns), name="photos", shards=shards)


def sizes(sim: Simulation) -> dict[str, int]:
    return {
        item["metadata"]["name"]: (item.get("status") or {}).get("ready", 0)
        for item in sim.world.objects(Photo)
    }


async def change_all(sim: Simulation, size: int) -> None:
    for item in sim.world.objects(Photo):
        found = await sim.client.get(Photo, item["metadata"]["name"], item["metadata"]["namespace"])
        await sim.client.patch(found, {"spec": {"size": size}})


def reconciled(sim: Simulation, size: int) -> bool:
    return sizes(sim) == {f"photo-{number}": size for number in range(OBJECTS)}


@pytest.mark.seeds(9, 44)
@pytest.mark.parametrize(
    ("fault", "by", "selected"),
    [
        ("crash", "uid", False),
        ("cut", "uid", False),
        ("pause", "namespace", False),
        pytest.param("crash", "uid", True, marks=SELECTS),
        pytest.param("pause", "uid", True, marks=SELECTS),
        pytest.param("cut", "uid", True, marks=SELECTS),
        pytest.param("stop", "uid", True, marks=SELECTS),
        pytest.param("cut", "namespace", True, marks=SELECTS),
    ],
)
def test_no_object_is_left_alone_and_none_is_written_without_its_shard(
    fault: str, by: Any, selected: bool, seed: int
) -> None:
    """With `selected` the API server selects the objects of shards, otherwise each replica does."""
    shards = Shards(4, by)

    async def scenario(sim: Simulation, step: int) -> None:
        sim.invariant(holds_shard(photos(shards)))
        replicas = await sim.start(lambda: photos(shards), replicas=3)
        for number in range(OBJECTS):
            namespace = f"{number % 4}-space" if by == "namespace" else "test"
            if by == "namespace" and number < 4:
                await sim.client.create(core_v1.Namespace(kw.Meta(namespace)))
            await sim.client.create(Photo(kw.Meta(f"photo-{number}", namespace=namespace)))
        victim = replicas[step % 3]
        if fault == "crash":
            victim.crash_at(step + 1, "after" if step % 2 else "before")
        await sim.until(lambda: reconciled(sim, 1), "all objects are reconciled")
        await sim.until(lambda: sim.loop.time() > 10 + step / 10, "the step is reached")
        if fault == "pause":
            victim.pause()
        elif fault == "cut":
            sim.faults.add(match=victim.match(), fail="reset")
            sim.faults.cut_watches(victim.match(), how="reset")
        elif fault == "stop":
            await victim.stop()
        await change_all(sim, 2)
        await sim.until(lambda: reconciled(sim, 2), "the others take over", within=120)
        if fault == "pause":
            victim.resume()
        elif fault == "cut":
            sim.faults.clear()
        await change_all(sim, 3)
        await sim.until(lambda: reconciled(sim, 3), "all objects are reconciled again", within=120)

    simulate(
        lambda sim: scenario(sim, seed % 60),
        seed,
        garbage_collector=False,
        feature_gates={"ShardedListAndWatch": True} if selected else None,
    )


def test_a_replica_that_stops_hands_each_shard_on_as_soon_as_its_own_reconciles_have_ended() -> None:
    """One slow reconcile keeps one shard; the others are neither taken again by the replica that stops, nor left to it."""
    shards, objects = Shards(4), 40

    async def slow(photo: Photo, ctx: kw.Context) -> None:
        if photo.spec.size == 2:
            await asyncio.sleep(20)
        await ctx.patch_status(photo, PhotoStatus(ready=photo.spec.size))

    def operator() -> kw.Operator:
        return kw.Operator(kw.Controller(Photo, slow), name="photos", shards=shards)

    async def scenario(sim: Simulation) -> None:
        sim.invariant(holds_shard(operator()))
        first, _ = await sim.start(operator, replicas=2)
        for number in range(objects):
            await sim.client.create(Photo(kw.Meta(f"photo-{number}", namespace="test")))
        await sim.until(lambda: list(sizes(sim).values()) == [1] * objects, "all objects are reconciled")
        names = {
            shards.number_of(item["metadata"]["uid"]): item["metadata"]["name"]
            for item in sim.world.objects(Photo)
        }
        assert first.manager is not None
        busy, idle = (names[number] for number in first.manager.describe()["shards"]["held"])
        await sim.client.patch(await sim.client.get(Photo, busy, "test"), {"spec": {"size": 2}})
        await asyncio.sleep(1)
        stopping = asyncio.get_running_loop().create_task(first.stop())
        await asyncio.sleep(0.1)
        await sim.client.patch(await sim.client.get(Photo, idle, "test"), {"spec": {"size": 3}})
        await sim.until(lambda: sizes(sim)[idle] == 3, "the other replica takes the idle shard", within=6)
        assert sizes(sim)[busy] == 1
        await stopping
        assert sizes(sim)[busy] == 2

    simulate(scenario, 1, garbage_collector=False)
