"""Rate limits: how often something may start in any period, for a controller's reconciles or calls to an external system.

`RateSlots` is the pure part. A rate limits one process: each replica and each shard counts for itself.
"""

import weakref
from collections import deque
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Literal, NamedTuple, Protocol

from kubewright.api import DeclarationError, DurationError, ObjectKey, format_duration, parse_duration

__all__ = ["Rate"]

GroupBy = Literal["namespace"] | Callable[[ObjectKey], Hashable] | None
_SWEEP_ABOVE = 1000


class LoopClock(Protocol):
    """The clock of the event loop; a Protocol, so that declaring an operator does not import asyncio."""

    def time(self) -> float:
        """Return the time in seconds."""
        ...


class Rate:
    """At most this many starts in any period: `Rate(at_most=10, every="1s")`.

    - `Options(rate=Rate(at_most=5, every="1s", by="namespace"))` limits the reconciles of a controller, here those of each
      namespace; `by` may also be a function of the object's key. An object that has to wait takes no worker.
      Controllers with the same Rate share it.
    - `await ctx.wait_for(accounts)` before each call limits the calls of an external system, where `accounts` is one Rate for
      the whole program; `ctx.wait_for(accounts, account)` limits each account by itself. It waits in the reconcile, so it
      takes a worker.
    """

    def __init__(
        self,
        *,
        at_most: int,
        every: timedelta | str,
        by: GroupBy = None,
    ) -> None:
        shown = f"Rate(at_most={at_most!r}, every={every!r})"
        if isinstance(at_most, bool) or not isinstance(at_most, int) or at_most < 1:  # pyright: ignore[reportUnnecessaryIsInstance] (not every author checks types)
            raise DeclarationError(f"{shown}: at_most must be a whole number of at least 1")
        try:
            period = parse_duration(every) if isinstance(every, str) else every
        except DurationError as error:
            raise DeclarationError(f"{shown}: {error}") from None
        if not isinstance(period, timedelta) or period <= timedelta(0):  # pyright: ignore[reportUnnecessaryIsInstance] (not every author checks types)
            raise DeclarationError(f'{shown}: every must be a positive time, such as "1s"')
        self.at_most: int = at_most
        self.every: timedelta = period
        self.by: GroupBy = by
        self._slots = RateSlots(at_most, period.total_seconds())
        self._loop: weakref.ref[LoopClock] | None = None

    def __repr__(self) -> str:
        return f"Rate(at_most={self.at_most}, every={format_duration(self.every)!r})"

    def reserve(self, group: Hashable, loop: LoopClock) -> float:
        """Reserve the next free slot of a group and return its time on the loop's clock, which may be now."""
        return self._slots_of(loop).reserve(group, loop.time())

    def start(self, group: Hashable, loop: LoopClock) -> float:
        """Count a start now and return 0; if it is too early, return the seconds to wait instead."""
        return self._slots_of(loop).start(group, loop.time())

    def _slots_of(self, loop: LoopClock) -> "RateSlots":
        if self._loop is None or self._loop() is not loop:
            # Another event loop, for example in the next test, has another clock.
            self._loop = weakref.ref(loop)
            self._slots = RateSlots(self.at_most, self.every.total_seconds())
        return self._slots


class RateSlots:
    """The last starts of each group, and the slots that are reserved for waiting callers.

    Reserved slots give each waiting caller its own time, so that they do not all wake up when only some may start. Actual
    starts are counted as well, because after the event loop was blocked many reserved slots are due at once.
    """

    def __init__(self, at_most: int, period: float) -> None:
        self._at_most = at_most
        self._period = period
        self._groups: dict[Hashable, _Group] = {}
        self._sweep_above = _SWEEP_ABOVE

    def reserve(self, group: Hashable, now: float) -> float:
        """Reserve the first time, from now on, at which a start is allowed, and return it."""
        slots = self._group(group, now).slots
        at = max(now, slots[-1]) if slots else now
        if len(slots) == self._at_most:
            at = max(at, slots[0] + self._period)
        slots.append(at)
        return at

    def start(self, group: Hashable, now: float) -> float:
        """Count a start and return 0; if it is too early, return the seconds to wait instead."""
        starts = self._group(group, now).starts
        if len(starts) == self._at_most and (early := starts[0] + self._period - now) > 0:
            return early
        starts.append(now)
        return 0.0

    def __len__(self) -> int:
        return len(self._groups)

    def _group(self, name: Hashable, now: float) -> "_Group":
        group = self._groups.get(name)
        if group is None:
            if len(self._groups) >= self._sweep_above:
                self._sweep(now)
            group = self._groups[name] = _Group(deque(maxlen=self._at_most), deque(maxlen=self._at_most))
        return group

    def _sweep(self, now: float) -> None:
        """Drop groups without recent starts, so that deleted tenants take no memory."""
        self._groups = {
            name: group
            for name, group in self._groups.items()
            if any(times and times[-1] + self._period > now for times in group)
        }
        self._sweep_above = max(_SWEEP_ABOVE, 2 * len(self._groups))


class _Group(NamedTuple):
    slots: deque[float]
    starts: deque[float]
