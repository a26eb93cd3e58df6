"""Durations in Go's form: `1h2m3.5s`."""

import re
from datetime import timedelta
from typing import Any, Self

from kubewright.api.errors import DurationError
from kubewright.api.scalars import Scalar

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
_WHOLE = rf"[-+]?(?:{_PART})+"
_MAX_NANOSECONDS = 2**63 - 1


def parse_duration(text: str) -> timedelta:
    """Parse a duration in Go's format; fractions of a microsecond are truncated."""
    if text in ("0", "+0", "-0"):
        return timedelta()
    if not re.fullmatch(_WHOLE, text, re.ASCII):
        raise DurationError(f'invalid duration "{text}": write it like 1h2m3.5s, with a unit for each number')
    total = 0
    for number, unit in re.findall(_PART, text, re.ASCII):
        whole, _, fraction = number.partition(".")
        total += int(whole or 0) * _UNITS[unit] + int(fraction or 0) * _UNITS[unit] // 10 ** len(fraction)
    if total > _MAX_NANOSECONDS:
        raise DurationError(f'invalid duration "{text}": more than 292 years')
    duration = timedelta(microseconds=total // 1000)
    return -duration if text.startswith("-") else duration


def format_duration(duration: timedelta) -> str:
    """Write a duration as Go does: `1h0m0s`, `1.5s`, `250ms`, `0s`."""
    micros = duration // timedelta(microseconds=1)
    sign, micros = ("-" if micros < 0 else ""), abs(micros)
    if micros == 0:
        return "0s"
    if micros < 1_000:
        return f"{sign}{micros}µs"
    if micros < 1_000_000:
        return f"{sign}{_decimal(micros, 3)}ms"
    minutes, rest = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(rest, 6)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _decimal(value: int, places: int) -> str:
    whole, fraction = divmod(value, 10**places)
    return f"{whole}.{fraction:0{places}d}".rstrip("0").rstrip(".")


class Duration(timedelta, Scalar):
    """A duration as a field type, from Go's format or like a timedelta: `Duration("1h30m")`, `Duration(hours=2)`."""

    def __new__(
        cls,
        days: float | str = 0,
        seconds: float = 0,
        microseconds: float = 0,
        milliseconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        weeks: float = 0,
    ) -> Self:
        """Create a duration from a text in Go's format, or from the arguments of a timedelta."""
        if isinstance(days, str):
            return cls.of(parse_duration(days))
        return super().__new__(cls, days, seconds, microseconds, milliseconds, minutes, hours, weeks)

    @classmethod
    def from_wire(cls, value: Any) -> Self:
        """Parse Go's format."""
        if not isinstance(value, str):
            raise DurationError("a duration is text like 1h30m")
        return cls.of(parse_duration(value))

    @classmethod
    def of(cls, duration: timedelta) -> Self:
        """Return the duration of a timedelta."""
        return cls(days=duration.days, seconds=duration.seconds, microseconds=duration.microseconds)

    def to_wire(self) -> str:
        """Return the duration in Go's format."""
        return format_duration(self)
