"""Ages and durations as kubectl shows them: the two largest units that matter."""

from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 31536000


def human_duration(seconds: float) -> str:
    """Write a span of time in a few characters: 45s, 3m20s, 5h, 12d, 2y30d."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def age(timestamp: str | None, now: float) -> str:
    """Tell how long ago a timestamp was."""
    moment = seconds_of(timestamp)
    return "<unknown>" if moment is None else human_duration(now - moment)


def seconds_of(timestamp: str | None) -> float | None:
    """Read an RFC 3339 time as seconds since the epoch."""
    if not timestamp:
        return None
    return datetime.fromisoformat(timestamp).astimezone(UTC).timestamp()


def _two(whole: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = whole % large // small
    return f"{whole // large}{large_unit}{rest}{small_unit}" if rest else f"{whole // large}{large_unit}"
