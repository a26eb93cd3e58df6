"""Checks that hold for every operator: after each write, or when everything is at rest.

After each write: `sim.invariant(truthful_generation)`, `sim.invariant(nothing_doubled({"configmaps": 1}))`,
`sim.invariant(one_controller)`. Undeclared access and hot loops fail every simulation without a check being added.
At rest: `stays_at_rest` (settles and then writes nothing, also not after a restart), `outcome_of` to compare the end of
two runs, `nothing_left` after everything was deleted.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from kubewright.api import JsonObject
from kubewright.election import LeaseLost
from kubewright.testing.simulation.simulation import Simulation
from kubewright.testing.simulation.world import World, Write

Invariant = Callable[[World, Write], None]

_SERVER_FIELDS = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"}
)
_TIMES = frozenset({"lastTransitionTime", "lastUpdateTime", "lastProbeTime", "startTime", "completionTime"})
_NOT_COMPARED = frozenset({"leases.coordination.k8s.io", "events", "events.events.k8s.io"})


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
            f"{write.resource} {write.key} claims generation {observed} and is at {generation}"
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
                f"{owner['kind']} {owner['name']} has {len(children)} {write.resource} where {limit} are expected: "
                f"{', '.join(sorted(children))}"
            )

    return check


def healthy(sim: Simulation) -> None:
    """Check that no task failed unnoticed, and that no operator ended except by losing its lease."""
    assert not sim.loop.failures, f"unhandled: {sim.loop.failures[0]}"
    for replica in sim.replicas:
        wrong = [error for error in replica.exits if not isinstance(error, LeaseLost)]
        assert not wrong, f"{replica.name} ended by itself: {wrong[0]!r}"


async def stays_at_rest(sim: Simulation, seconds: float = 600.0) -> None:
    """Check that operators settle and then write nothing, also not after a restart of all of them."""
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
    assert not more, f"an operator at rest wrote {when}:\n" + "\n".join(str(write) for write in more[:20])


def outcome_of(world: World, *, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return all objects without what differs from run to run: uids, versions, times.

    Resources in `without` are left out, as are leases and events.
    """
    left_out = _NOT_COMPARED | set(without)
    return {
        f"{resource} {key}": _stable(obj)
        for resource, key, obj in world.everything()
        if resource not in left_out
    }


def _stable(obj: JsonObject) -> JsonObject:
    generation = obj["metadata"].get("generation")
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _SERVER_FIELDS}
    if owners := metadata.get("ownerReferences"):
        metadata["ownerReferences"] = [
            {name: value for name, value in owner.items() if name != "uid"} for owner in owners
        ]
    rest = {name: value for name, value in obj.items() if name != "metadata"}
    return {**_without_times(rest, generation), "metadata": metadata}


def _without_times(value: Any, generation: int | None) -> Any:
    if isinstance(value, dict):
        found = cast(JsonObject, value)
        return {
            name: (item == generation) if name == "observedGeneration" else _without_times(item, generation)
            for name, item in found.items()
            if name not in _TIMES
        }
    if isinstance(value, list):
        return [_without_times(item, generation) for item in cast(list[Any], value)]
    return value


def nothing_left(world: World, before: Mapping[str, Any]) -> None:
    """Check that no objects exist that did not exist before; `before` is an earlier `outcome_of`."""
    more = sorted(outcome_of(world).keys() - before.keys())
    counts = Counter(name.partition(" ")[0] for name in more)
    summary = ", ".join(f"{count} {resource}" for resource, count in sorted(counts.items()))
    assert not more, f"{summary} were left behind: {', '.join(more[:10])}"
