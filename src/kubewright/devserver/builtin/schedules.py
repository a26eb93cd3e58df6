"""Cron schedules: what is wrong with one, in the words of the library that the real server uses."""

_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_BOUNDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: index for index, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: index for index, name in enumerate(_DAYS)}),
)


class ScheduleError(ValueError):
    """A schedule that cannot be read."""


def schedule_trouble(schedule: str) -> str:
    """Say what is wrong with a schedule; nothing when it is right."""
    try:
        _parse(schedule)
    except ScheduleError as error:
        return str(error)
    return ""


def _parse(schedule: str) -> None:
    if schedule.startswith("@"):
        if schedule not in _DESCRIPTORS and not schedule.startswith("@every "):
            raise ScheduleError(f"unrecognized descriptor: {schedule}")
        return
    fields = schedule.split()
    if len(fields) != len(_BOUNDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{schedule}]")
    for field, (low, high, names) in zip(fields, _BOUNDS, strict=True):
        for part in field.split(","):
            _parse_range(part, low, high, names)


def _parse_range(text: str, low: int, high: int, names: dict[str, int]) -> None:
    span, *steps = text.split("/")
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    first, *rest = span.split("-")
    if len(rest) > 1:
        raise ScheduleError(f"too many hyphens: {text}")
    if first in ("*", "?"):
        begin, end = low, high
    else:
        begin = _number(first, names)
        end = _number(rest[0], names) if rest else high if steps else begin
    step = _number(steps[0], {}) if steps else 1
    if begin < low:
        raise ScheduleError(f"beginning of range ({begin}) below minimum ({low}): {text}")
    if end > high:
        raise ScheduleError(f"end of range ({end}) above maximum ({high}): {text}")
    if begin > end:
        raise ScheduleError(f"beginning of range ({begin}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")


def _number(text: str, names: dict[str, int]) -> int:
    known = names.get(text.lower())
    if known is not None:
        return known
    try:
        value = int(text)
    except ValueError:
        reason = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ScheduleError(f"failed to parse int from {text}: {reason}") from None
    if value < 0:
        raise ScheduleError(f"negative number ({value}) not allowed: {text}")
    return value
