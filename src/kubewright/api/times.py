"""Times with microseconds, as in Leases and Events."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, ClassVar, Self

from kubewright.api.scalars import Scalar


def utc_now() -> datetime:
    """Return the current time in UTC, by the same clock as `time.time`."""
    return datetime.fromtimestamp(time.time(), UTC)


class MicroTime(datetime, Scalar):
    """A time that is written with six decimals; plain `datetime` is written in whole seconds."""

    structural: ClassVar[Mapping[str, Any]] = {"type": "string", "format": "date-time"}

    @classmethod
    def of(cls, time: datetime) -> Self:
        """Convert a datetime that has a time zone."""
        moment = time.astimezone(UTC)
        return cls(
            moment.year,
            moment.month,
            moment.day,
            moment.hour,
            moment.minute,
            moment.second,
            moment.microsecond,
            UTC,
        )

    @classmethod
    def now(cls, tz: tzinfo | None = UTC) -> Self:
        """Return the current time, in UTC by default."""
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    def from_wire(cls, value: Any) -> Self:
        """Read RFC 3339."""
        if not isinstance(value, str):
            raise ValueError("a time is RFC 3339 text")
        time = datetime.fromisoformat(value)
        if time.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return cls.of(time)

    def to_wire(self) -> str:
        """Write RFC 3339 with six decimals, in UTC."""
        return self.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
