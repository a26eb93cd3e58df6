"""The arithmetic of a rolling update: how far to scale up the new, how far to scale down the old."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Batch:
    """One ReplicaSet as a rollout counts it."""

    replicas: int
    available: int


def resolve(value: int | str | None, total: int, *, round_up: bool) -> int:
    """Turn a number or percentage of Pods into a number."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    share = total * int(value.rstrip("%")) / 100
    return math.ceil(share) if round_up else math.floor(share)


def limits(wanted: int, max_surge: int | str | None, max_unavailable: int | str | None) -> tuple[int, int]:
    """Give surge and unavailability in Pods; both zero would never move, so one may then be missing."""
    surge = resolve(max_surge, wanted, round_up=True)
    unavailable = resolve(max_unavailable, wanted, round_up=False)
    return (surge, 1) if surge == 0 and unavailable == 0 else (surge, unavailable)


def scale_up(wanted: int, surge: int, new: Batch, old: Sequence[Batch]) -> int:
    """Give the size the new ReplicaSet may have now."""
    if new.replicas >= wanted:
        return wanted
    room = wanted + surge - new.replicas - sum(batch.replicas for batch in old)
    return min(wanted, new.replicas + max(room, 0))


def scale_down(wanted: int, unavailable: int, new: Batch, old: Sequence[Batch]) -> list[int]:
    """Give the sizes the old ReplicaSets, oldest first, must have now: Pods that serve nobody go first."""
    sizes = [batch.replicas for batch in old]
    total = new.replicas + sum(sizes)
    # Pods of the new set that are not available yet count against what may be missing.
    spare = total - (wanted - unavailable) - (new.replicas - new.available)
    for index, batch in enumerate(old):
        idle = min(batch.replicas - batch.available, max(spare, 0))
        sizes[index] -= idle
        spare -= idle
    serving = new.available + sum(min(size, batch.available) for size, batch in zip(sizes, old, strict=True))
    spare = serving - (wanted - unavailable)
    for index, size in enumerate(sizes):
        fewer = min(size, max(spare, 0))
        sizes[index] -= fewer
        spare -= fewer
    return sizes
