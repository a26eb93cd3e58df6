"""Checks that hold for every operator: after each write, or when the operator has settled.

After each write: `sim.invariant(truthful_generation)`, `sim.invariant(nothing_doubled({"configmaps": 1}))`,
`sim.invariant(one_controller)`, `sim.invariant(holds_shard(operator))`. Undeclared access and hot loops fail every
simulation; no check has to be added for them.
When the operator has settled: `stays_settled` (it writes nothing more, not even after a restart), `outcome_of` to compare
the final states of two runs, `nothing_left` after everything was deleted.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubewright.api import JsonObject, kind_of
from kubewright.controller import Operator
from kubewright.election import LeaseLost, ShardNames
from kubewright.testing.simulation.outcome import outcome_of
from kubewright.testing.simulation.simulation import Simulation
from kubewright.testing.simulation.world import World, Write

Invariant = Callable[[World, Write], None]


def truthful_generation(world: World, write: Write) -> None:
    """Check that no status claims a generation that the object has not reached."""
    obj = write.after
    if obj is None or not isinstance(obj.get("status"), dict):
        return
    generation = obj["metadata"].get("generation")
    if generation is None:
        return
    for observed in _observed_generations(obj["status"]):
        assert observed <= generation, (
            f"{write.resource} {write.key}: status.observedGeneration is {observed}, but metadata.generation is {generation}"
        )


def _observed_generations(status: JsonObject) -> Iterable[int]:
    found: list[JsonObject] = [status, *(status.get("conditions") or ())]
    return [item["observedGeneration"] for item in found if isinstance(item.get("observedGeneration"), int)]


def one_controller(world: World, write: Write) -> None:
    """Check that no object has two controllers."""
    obj = write.after
    if obj is None:
        return
    owners: list[JsonObject] = obj["metadata"].get("ownerReferences") or []
    controllers = [owner for owner in owners if owner.get("controller")]
    assert len(controllers) <= 1, f"{write.resource} {write.key} has {len(controllers)} controllers"


def nothing_doubled(limits: Mapping[str, int]) -> Invariant:
    """Check that no owner has more children of a resource than in `limits`, not counting objects being deleted."""

    def check(world: World, write: Write) -> None:
        limit = limits.get(write.resource)
        if limit is None or write.after is None or write.before is not None:
            return
        for owner in write.after["metadata"].get("ownerReferences") or ():
            children = [
                child["metadata"]["name"]
                for child in world.children(owner["uid"], write.resource)
                if "deletionTimestamp" not in child["metadata"]
            ]
            assert len(children) <= limit, (
                f"{owner['kind']} {owner['name']} has {len(children)} {write.resource}, expected at most {limit}: "
                f"{', '.join(sorted(children))}"
            )

    return check


def holds_shard(operator: Operator) -> Invariant:
    """Check that a replica writes for an object only while it holds the lease of a shard that the object is in.

    With shards by uid, an object of a reconciled kind is in the shard of its uid, and a child in the shard of its
    controller's uid; with shards by namespace, both are in the shard of their namespace. Other objects are in no shard.
    """
    shards = operator.shards
    if shards is None:
        raise ValueError(f"operator {operator.name!r} has no shards")
    kinds = [kind_of(controller.kind) for controller in operator.controllers]
    reconciled = {(kind.group, kind.kind) for kind in kinds}
    resources = {kind.resource for kind in kinds}
    names = ShardNames(operator.name, shards)

    def texts(write: Write) -> Iterable[str]:
        metadata = write.object["metadata"]
        found = [
            owner["uid"]
            for owner in metadata.get("ownerReferences") or ()
            if owner.get("controller")
            and (owner["apiVersion"].rpartition("/")[0], owner["kind"]) in reconciled
        ]
        # A new object is not in a shard yet: it is written for its controller.
        if write.resource in resources and write.before is not None:
            found.append(metadata["uid"])
        return [metadata["namespace"]] if found and shards.by == "namespace" else found

    def check(world: World, write: Write) -> None:
        if write.writer not in world.operators:
            return
        leases = [names.shard(shards.number_of(text)) for text in texts(write)]
        holders = [_holder(world, lease) for lease in leases]
        assert not leases or any(holder.startswith(f"{write.writer}_") for holder in holders), (
            f"{write.writer} writes {write.resource} {write.key} while "
            + " and ".join(f"{holder!r} holds {lease}" for holder, lease in zip(holders, leases, strict=True))
        )

    return check


def _holder(world: World, name: str) -> str:
    lease = world.find("leases.coordination.k8s.io", name)
    return "" if lease is None else lease["spec"].get("holderIdentity") or ""


def healthy(sim: Simulation) -> None:
    """Check that each exception of a task was handled, and that no operator ended except by losing its lease."""
    assert not sim.loop.failures, f"unhandled: {sim.loop.failures[0]}"
    for replica in sim.replicas:
        wrong = [error for error in replica.exits if not isinstance(error, LeaseLost)]
        assert not wrong, f"{replica.name} ended by itself: {wrong[0]!r}"


async def stays_settled(sim: Simulation, seconds: float = 600.0) -> None:
    """Check that operators settle and then write nothing, not even after all of them were restarted."""
    await sim.settled()
    before = len(sim.world.work())
    await sim.settled(quiet=seconds)
    _assert_no_writes(sim, before, f"after {seconds:g} s without a change")
    for replica in sim.replicas:
        replica.crash()
    await sim.settled()
    _assert_no_writes(sim, before, "after a restart")


def _assert_no_writes(sim: Simulation, before: int, when: str) -> None:
    more = sim.world.work()[before:]
    assert not more, f"an operator that had settled wrote {when}:\n" + "\n".join(
        str(write) for write in more[:20]
    )


def nothing_left(world: World, before: Mapping[str, Any]) -> None:
    """Check that no objects exist that did not exist before; `before` is an earlier `outcome_of`."""
    more = sorted(outcome_of(world).keys() - before.keys())
    counts = Counter(name.partition(" ")[0] for name in more)
    summary = ", ".join(f"{count} {resource}" for resource, count in sorted(counts.items()))
    assert not more, f"{summary} were left behind: {', '.join(more[:10])}"
