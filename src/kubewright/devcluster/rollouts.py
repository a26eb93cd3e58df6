"""The arithmetic of a rolling update: how far to scale up the new, how far to scale down the old."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Batch:
    """One ReplicaSet as a rollout counts it; `told` is the largest total it was last scaled for."""

    replicas: int
    available: int
    told: int = 0


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
    unavailable = min(resolve(max_unavailable, wanted, round_up=False), wanted)
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
    spare = total - (wanted - unavailable) - (new.replicas - min(new.available, new.replicas))
    if spare <= 0:
        return sizes
    for index, batch in enumerate(old):
        idle = min(max(batch.replicas - batch.available, 0), spare)
        sizes[index] -= idle
        spare -= idle
    serving = new.available + sum(min(size, batch.available) for size, batch in zip(sizes, old, strict=True))
    spare = serving - (wanted - unavailable)
    for index, size in enumerate(sizes):
        fewer = min(size, max(spare, 0))
        sizes[index] -= fewer
        spare -= fewer
    return sizes


def proportional(wanted: int, surge: int, batches: Sequence[Batch]) -> list[int]:
    """Give the sizes of several ReplicaSets, newest first, when their whole grows or shrinks in a rollout."""
    sizes = [batch.replicas for batch in batches]
    allowed = wanted + surge if wanted > 0 else 0
    total = sum(sizes)
    left = allowed - total
    largest_first = sorted(range(len(sizes)), key=lambda index: -sizes[index])
    for index in largest_first:
        share = round(sizes[index] * allowed / (batches[index].told or total or 1)) - sizes[index]
        share = min(max(share, 0), left) if left > 0 else max(min(share, 0), left, -sizes[index])
        sizes[index] += share
        left -= share
    # What rounding left over goes to the largest, which can bear it best.
    for index in largest_first:
        share = max(left, -sizes[index])
        sizes[index] += share
        left -= share
    return sizes
