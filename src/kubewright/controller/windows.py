"""Windows of the week in which disruptive writes are allowed (pure).

A window is open while the local time in its time zone is within it. If daylight saving time skips the whole window, it is
not open on that day; if an hour is repeated, the window is open in both.
"""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubewright.api import DeclarationError
from kubewright.controller.disruption import DisruptionWindow

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WINDOW = re.compile(r"(?:(?P<days>\S+)\s+)?(?P<start>\d{1,2}:\d{2})-(?P<end>\d{1,2}:\d{2})", re.ASCII)
_EXAMPLE = 'write it like "Sat 02:00-08:00", "Mon-Fri 22:00-04:00" or "02:00-04:00"'
_MINUTES = 24 * 60
_DAYS_AHEAD = 15
"""Days to look ahead for the next opening: two weeks, because daylight saving time may skip one opening."""


class Window(DisruptionWindow):
    """A time of the week in which disruptive writes are allowed: `Window("Sat 02:00-08:00", zone="Europe/Berlin")`.

    Days are Mon to Sun, alone, as a list (`Sat,Sun`) or as a range (`Mon-Fri`); without days it is every day. A window
    whose end is not after its start ends on the next day. `zone` is a name of the IANA time zone database.
    """

    def __init__(self, text: str, *, zone: str = "UTC") -> None:
        self._text = text
        self._zone_name = zone
        found = _WINDOW.fullmatch(text.strip())
        if found is None:
            raise self._error(f"it is not a time of the week: {_EXAMPLE}")
        self._days = self._parse_days(found["days"])
        self._start, self._end = self._parse_time(found["start"]), self._parse_time(found["end"])
        if self._start == _MINUTES:
            raise self._error("24:00 is the end of a day: write 00:00 for a start")
        if self._start == self._end:
            raise self._error("its start and end are the same time: write 00:00-24:00 for a whole day")
        self._zone = self._parse_zone(zone)

    def __repr__(self) -> str:
        return f"Window({self._text!r}, zone={self._zone_name!r})"

    def __str__(self) -> str:
        return f"{self._text} ({self._zone_name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Window) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def is_open(self, now: datetime) -> bool:
        """Return True if the local time in the window's zone is within the window."""
        local = now.astimezone(self._zone)
        minute, today = local.hour * 60 + local.minute, local.weekday()
        if self._start < self._end:
            return today in self._days and self._start <= minute < self._end
        yesterday = (today - 1) % 7
        return (today in self._days and minute >= self._start) or (
            yesterday in self._days and minute < self._end
        )

    def next_opening(self, now: datetime) -> datetime | None:
        """Return the next time at which the window is open, which may be now."""
        # In UTC, because Python ignores `fold` when it compares times in the same zone.
        now = now.astimezone(UTC)
        if self.is_open(now):
            return now
        first = now.astimezone(self._zone).date()
        candidates = [
            self._instant(first + timedelta(days=days), fold)
            for days in range(_DAYS_AHEAD)
            for fold in (0, 1)
        ]
        # After a change of the offset, the local time may be within the window at once.
        candidates += _clock_changes(self._zone, now, _DAYS_AHEAD)
        return min((at for at in candidates if at > now and self.is_open(at)), default=None)

    def _instant(self, day: date, fold: int) -> datetime:
        start = time(self._start // 60, self._start % 60, fold=fold)
        return datetime.combine(day, start, self._zone).astimezone(UTC)

    def _parse_days(self, text: str | None) -> frozenset[int]:
        if text is None:
            return frozenset(range(7))
        days: set[int] = set()
        for part in text.split(","):
            first, dash, last = part.partition("-")
            last = last if dash else first
            for name in (first, last):
                if name not in _DAYS:
                    raise self._error(f"{name!r} is not a day: use {', '.join(_DAYS)}; {_EXAMPLE}")
            start, stop = _DAYS.index(first), _DAYS.index(last)
            days.update((start + more) % 7 for more in range((stop - start) % 7 + 1))
        return frozenset(days)

    def _parse_time(self, text: str) -> int:
        hours, minutes = map(int, text.split(":"))
        if minutes > 59 or hours * 60 + minutes > _MINUTES:
            raise self._error(f"{text} is not a time of the day: use 00:00 to 24:00")
        return hours * 60 + minutes

    def _parse_zone(self, name: str) -> tzinfo:
        if name == "UTC":
            return UTC  # without a time zone database, which small images do not have
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise self._error(
                f"unknown time zone {name!r}: use a name such as Europe/Berlin; on a machine without a time zone "
                "database, install the package tzdata"
            ) from None

    def _error(self, problem: str) -> DeclarationError:
        return DeclarationError(f"{self!r}: {problem}")


def _clock_changes(zone: tzinfo, start: datetime, days: int) -> list[datetime]:
    """Return when the zone's offset from UTC changes in the days after the start, to the second."""
    found: list[datetime] = []
    low = start.astimezone(UTC).replace(microsecond=0)
    for _ in range(days):
        high = low + timedelta(days=1)
        before, after = low, high
        if before.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
            while after - before > timedelta(seconds=1):
                middle = before + timedelta(seconds=(after - before) // timedelta(seconds=1) // 2)
                if middle.astimezone(zone).utcoffset() == low.astimezone(zone).utcoffset():
                    before = middle
                else:
                    after = middle
            found.append(after)
        low = high
    return found
