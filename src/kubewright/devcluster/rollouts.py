"""The arithmetic of a rolling update: how far to scale up the new ReplicaSet and to scale down the old ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SetSize:
    """The size of one ReplicaSet; `max_replicas` is the Deployment's maximum when it was last scaled."""

    replicas: int
    available: int
    max_replicas: int = 0


def resolve(value: int | str | None, total: int, *, round_up: bool) -> int:
    """Resolve a number or a percentage of Pods."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    share = total * int(value.rstrip("%")) / 100
    return math.ceil(share) if round_up else math.floor(share)


def limits(desired: int, max_surge: int | str | None, max_unavailable: int | str | None) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable in Pods.

    If both are zero, maxUnavailable becomes one, so that a rollout can proceed.
    """
    surge = resolve(max_surge, desired, round_up=True)
    unavailable = min(resolve(max_unavailable, desired, round_up=False), desired)
    return (surge, 1) if surge == 0 and unavailable == 0 else (surge, unavailable)


def scale_up(desired: int, surge: int, new: SetSize, old: Sequence[SetSize]) -> int:
    """Return the size that the new ReplicaSet may have now."""
    if new.replicas >= desired:
        return desired
    room = desired + surge - new.replicas - sum(item.replicas for item in old)
    return min(desired, new.replicas + max(room, 0))


def scale_down(desired: int, unavailable: int, new: SetSize, old: Sequence[SetSize]) -> list[int]:
    """Return the new sizes of the old ReplicaSets, oldest first; unavailable Pods are removed first."""
    sizes = [item.replicas for item in old]
    total = new.replicas + sum(sizes)
    # Unavailable Pods of the new ReplicaSet count towards maxUnavailable.
    spare = total - (desired - unavailable) - (new.replicas - min(new.available, new.replicas))
    if spare <= 0:
        return sizes
    for index, item in enumerate(old):
        idle = min(max(item.replicas - item.available, 0), spare)
        sizes[index] -= idle
        spare -= idle
    serving = new.available + sum(min(size, item.available) for size, item in zip(sizes, old, strict=True))
    spare = serving - (desired - unavailable)
    for index, size in enumerate(sizes):
        fewer = min(size, max(spare, 0))
        sizes[index] -= fewer
        spare -= fewer
    return sizes


def proportional(desired: int, surge: int, set_sizes: Sequence[SetSize]) -> list[int]:
    """Return the sizes of the ReplicaSets, newest first, when a Deployment is scaled during a rollout."""
    sizes = [item.replicas for item in set_sizes]
    allowed = desired + surge if desired > 0 else 0
    total = sum(sizes)
    left = allowed - total
    largest_first = sorted(range(len(sizes)), key=lambda index: -sizes[index])
    for index in largest_first:
        share = round(sizes[index] * allowed / (set_sizes[index].max_replicas or total or 1)) - sizes[index]
        share = min(max(share, 0), left) if left > 0 else max(min(share, 0), left, -sizes[index])
        sizes[index] += share
        left -= share
    # The largest ReplicaSets take what rounding left over.
    for index in largest_first:
        share = max(left, -sizes[index])
        sizes[index] += share
        left -= share
    return sizes
