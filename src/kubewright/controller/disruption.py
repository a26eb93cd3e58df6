"""Limits for disruptive writes: a budget that all objects of a controller share, and windows of time (pure).

A `Budget` has `at_most` slots. Each disruptive write takes a slot for its object, or renews the slot that the object has; a
slot expires after `every`. So in any period of that length at most `at_most` objects are disrupted. Slots are never
released: the slot of a process that crashed expires as well.

The slots are entries of one ConfigMap (`controller/running/disruption.py`). `SlotTable` decides which of them are held.
Each entry contains the time at which it was taken. When a process first sees an entry, it computes the expiry on the
clock of its event loop, so later changes of the wall clock have no effect. It remembers the slots that it has seen: if the
ConfigMap is deleted or edited by hand, they still last.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec

from kubewright.api import DeclarationError, DurationError, MicroTime, format_duration, parse_duration
from kubewright.controller.errors import DisruptionDeferred

_DAY = 86400.0
_EXACT_BELOW = 60.0
"""Seconds; a longer wait is shortened by the jitter that the queue may add, so that a window is not missed."""
_MOST_ADDED = 1.1


class Budget:
    """At most this many objects of a controller are disrupted in any period: `Budget(at_most=2, every="10m")`."""

    def __init__(self, *, at_most: int, every: timedelta | str) -> None:
        shown = f"Budget(at_most={at_most!r}, every={every!r})"
        if isinstance(at_most, bool) or not isinstance(at_most, int) or at_most < 1:  # pyright: ignore[reportUnnecessaryIsInstance] (not every author checks types)
            raise DeclarationError(f"{shown}: at_most must be a whole number of at least 1")
        try:
            period = parse_duration(every) if isinstance(every, str) else every
        except DurationError as error:
            raise DeclarationError(f"{shown}: {error}") from None
        if not isinstance(period, timedelta) or period <= timedelta(0):  # pyright: ignore[reportUnnecessaryIsInstance] (not every author checks types)
            raise DeclarationError(f'{shown}: every must be a positive time, such as "10m"')
        self.at_most: int = at_most
        self.every: timedelta = period

    def __str__(self) -> str:
        return f"{self.at_most} every {format_duration(self.every)}"

    def __repr__(self) -> str:
        return f"Budget(at_most={self.at_most}, every={format_duration(self.every)!r})"


class DisruptionWindow(ABC):
    """A time in which disruptive writes are allowed; `Window` implements it, in a module that loads time zones."""

    @abstractmethod
    def is_open(self, now: datetime) -> bool:
        """Return True if writes are allowed now."""

    @abstractmethod
    def next_opening(self, now: datetime) -> datetime | None:
        """Return the next time at which writes are allowed, which may be now; None if there is none within two weeks."""


class Disruption(ABC):
    """A block of a reconcile whose writes are disruptive; `with ctx.disruption()` opens it."""

    @abstractmethod
    async def acquire(self) -> None:
        """Take a slot now, for a disruption other than a write of `ctx`; raise DisruptionDeferred if none is free.

        Writes in the block take a slot without this call. A block takes one slot only: further calls and writes renew it.
        """


def check_windows(windows: Sequence[DisruptionWindow], now: datetime) -> None:
    """Raise DisruptionDeferred unless there are no windows, or one of them is open."""
    if not windows or any(window.is_open(now) for window in windows):
        return
    openings = [(at, window) for window in windows if (at := window.next_opening(now)) is not None]
    if not openings:
        raise DisruptionDeferred("a disruptive write waits: no window opens within two weeks", after=_DAY)
    opening, window = min(openings, key=lambda found: found[0])
    raise DisruptionDeferred(
        f"a disruptive write waits for the window {window}, which opens at "
        f"{opening.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        after=_wait((opening - now).total_seconds()),
    )


class DisruptionSlot(msgspec.Struct, frozen=True):
    """An entry of the ConfigMap: the object that may be disrupted, and since when."""

    object: str
    taken: str

    @classmethod
    def now(cls, about: str, now: datetime) -> "DisruptionSlot":
        """Return the slot of an object, taken now."""
        return cls(about, MicroTime.of(now).to_wire())


class SlotTable:
    """The slots of one budget as this process knows them: entries by uid, and when each of them ends."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._entries: dict[str, str] = {}
        self._ends: dict[str, float] = {}

    def read(self, entries: Mapping[str, str], now: datetime, elapsed: float) -> None:
        """Add the entries of the ConfigMap; `elapsed` is the event loop's time.

        An entry that cannot be read counts as a slot that was taken now. A slot that was seen before never ends earlier
        than it did then, whatever its entry says now.
        """
        for uid, text in entries.items():
            if self._entries.get(uid) != text:
                self._ends[uid] = max(elapsed + self._remaining(text, now), self._ends.get(uid, elapsed))
        seen = self._entries | dict(entries)
        self._ends = {uid: end for uid, end in self._ends.items() if uid in entries or end > elapsed}
        self._entries = {uid: seen[uid] for uid in self._ends}

    def with_slot(self, uid: str, about: str, now: datetime, elapsed: float) -> dict[str, str]:
        """Return the entries with a slot for this object, taken now; raise DisruptionDeferred if none is free."""
        held = {other: end for other, end in self._ends.items() if end > elapsed and other != uid}
        if len(held) >= self._budget.at_most:
            names = ", ".join(sorted(self._name(other) for other in held))
            wait = min(held.values()) - elapsed
            raise DisruptionDeferred(
                f"a disruptive write waits for a slot: the budget is {self._budget}, taken by {names}; "
                f"the next one is free in {wait:.0f} s",
                after=_wait(wait),
            )
        slot = msgspec.json.encode(DisruptionSlot.now(about, now)).decode()
        return {other: self._entries[other] for other in held} | {uid: slot}

    def _remaining(self, text: str, now: datetime) -> float:
        every = self._budget.every.total_seconds()
        try:
            taken = MicroTime.from_wire(msgspec.json.decode(text, type=DisruptionSlot).taken)
        except (msgspec.DecodeError, ValueError):
            return every
        # At most the duration of a slot: the clock of the machine that took it may be ahead.
        return min(every, max(0.0, every - (now - taken).total_seconds()))

    def _name(self, uid: str) -> str:
        try:
            return msgspec.json.decode(self._entries[uid], type=DisruptionSlot).object
        except msgspec.DecodeError:
            return uid


def _wait(seconds: float) -> float:
    """Return how long to wait; a long wait is shortened by the jitter that the queue may add."""
    return max(0.001, seconds if seconds <= _EXACT_BELOW else seconds / _MOST_ADDED)


def check_limits(controller: str, budget: Any, windows: Any) -> None:
    """Raise DeclarationError if the budget or the windows of a controller have wrong types."""
    if budget is not None and not isinstance(budget, Budget):
        raise DeclarationError(f"controller {controller!r}: budget={budget!r}: pass a Budget")
    if not isinstance(windows, Sequence) or not all(
        isinstance(each, DisruptionWindow) for each in cast("Sequence[Any]", windows)
    ):
        raise DeclarationError(f"controller {controller!r}: windows={windows!r}: pass a list of Windows")
