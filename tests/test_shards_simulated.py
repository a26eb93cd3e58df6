"""Several replicas in shards under virtual time: crashed, paused and cut off at any request, no object is left alone.

Each write of a replica is compared with the Lease that the API server has at that moment: the replica must hold the shard of
the object that the write is for.
"""

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
