"""Cron schedules: parse five fields, names, steps and macros, and compute the next run."""

import calendar
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_DAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_YEARS = 5
"""How many years ahead to search for a run; 29 February occurs every fourth year."""


class ScheduleError(ValueError):
    """A schedule that cannot be parsed."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A parsed cron schedule."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a schedule."""
        fields = _MACROS.get(text.strip().lower(), text).split()
        if len(fields) != 5:
            raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: {fields}")
        minutes, hours, days, months, weekdays = fields
        return cls(
            minutes=_field(minutes, 0, 59),
            hours=_field(hours, 0, 23),
            days=_field(days, 1, 31),
            months=_field(months, 1, 12, _MONTHS),
            weekdays=frozenset(day % 7 for day in _field(weekdays, 0, 7, _DAYS)),
            any_day=days[0] in "*?",
            any_weekday=weekdays[0] in "*?",
        )

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first run after a moment, or None if there is none within the next years."""
        start = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        for day in self._days_from(start):
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    found = day.replace(hour=hour, minute=minute)
                    if found >= start:
                        return found
        return None

    def _days_from(self, start: datetime) -> Iterator[datetime]:
        day = start.replace(hour=0, minute=0)
        last = day.year + _YEARS
        while day.year <= last:
            if day.month in self.months and self._on(day):
                yield day
            day += timedelta(days=1)

    def _on(self, day: datetime) -> bool:
        by_date, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return by_date and by_weekday
        # If both a day of the month and a weekday are restricted, either one matches.
        return by_date or by_weekday


def _field(text: str, low: int, high: int, names: Mapping[str, int] | None = None) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        found.update(_part(part, low, high, names or {}))
    return frozenset(found)


def _part(text: str, low: int, high: int, names: Mapping[str, int]) -> range:
    span, slash, step_text = text.partition("/")
    if slash and not (step_text.isdigit() and int(step_text)):
        raise ScheduleError(f"step of {text!r} must be a positive number")
    step = int(step_text) if slash else 1
    if span in ("*", "?"):
        return range(low, high + 1, step)
    first_text, dash, last_text = span.partition("-")
    first = _number(first_text, names)
    last = _number(last_text, names) if dash else high if slash else first
    if not low <= first <= last <= high:
        raise ScheduleError(f"{text!r} is not between {low} and {high}")
    return range(first, last + 1, step)


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.isdigit():
        return int(text)
    try:
        return names[text.lower()]
    except KeyError:
        raise ScheduleError(f"{text!r} is not a number") from None
