"""Read and write timestamps as Go's `time` package does, with its error texts."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from kubewright.devserver.wire.errors import WireDecodeError

RFC3339 = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO = "2006-01-02T15:04:05.000000Z07:00"
ZERO = datetime(1, 1, 1, tzinfo=UTC)

_PLAIN = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_MICRO = re.compile(r"\.\d{6}", re.ASCII)
_ELEMENTS = (
    ("2006", 4),
    ("-", 0),
    ("01", 2),
    ("-", 0),
    ("02", 2),
    ("T", 0),
    ("15", 2),
    (":", 0),
    ("04", 2),
    (":", 0),
    ("05", 2),
)
_RANGES = {"01": ("month", 1, 12), "15": ("hour", 0, 23), "04": ("minute", 0, 59), "05": ("second", 0, 59)}


@lru_cache(maxsize=4096)
def second_time(text: str) -> str | None:
    """Normalise an RFC 3339 text to whole seconds of UTC; the zero time is None."""
    moment, _ = _parse(text, RFC3339)
    return None if moment == ZERO else _written(moment) + "Z"


@lru_cache(maxsize=4096)
def micro_time(text: str) -> str | None:
    """Normalise a text with exactly six decimals to UTC; the zero time is None."""
    moment, micros = _parse(text, RFC3339_MICRO)
    return None if moment == ZERO and not micros else f"{_written(moment)}.{micros:06d}Z"


def _written(moment: datetime) -> str:
    return f"{moment.year:04d}{moment.strftime('-%m-%dT%H:%M:%S')}"


def _parse(text: str, layout: str) -> tuple[datetime, int]:
    match = _PLAIN.fullmatch(text)
    if match is None or (layout == RFC3339_MICRO and not _MICRO.fullmatch(match[7] or "")):
        raise WireDecodeError(_complaint(text, layout))
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    try:
        moment = datetime(year or 1, month, day, hour, minute, second, tzinfo=UTC)
        if match[8] != "Z":
            offset = timedelta(hours=int(match[8][1:3]), minutes=int(match[8][4:]))
            moment = moment - offset if match[8][0] == "+" else moment + offset
    except (ValueError, OverflowError):
        raise WireDecodeError(_complaint(text, layout)) from None
    return moment, int((match[7] or ".0")[1:7].ljust(6, "0"))


def _quoted(text: str) -> str:
    """Quote a text as Go's time package does: byte by byte where it is not printable ASCII."""
    parts = (
        f"\\{byte:c}" if byte in b'"\\' else chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}"
        for byte in text.encode()
    )
    return f'"{"".join(parts)}"'


def _complaint(text: str, layout: str) -> str:
    """Find the first element of the layout that the text does not fit."""
    rest = text
    for element, digits in _ELEMENTS:
        if digits == 0:
            if not rest.startswith(element):
                return _cannot_parse(text, layout, rest, element)
            rest = rest[1:]
            continue
        if not re.match(r"\d" * digits, rest, re.ASCII):
            return _cannot_parse(text, layout, rest, element)
        number, rest = int(rest[:digits]), rest[digits:]
        if element in _RANGES:
            name, low, high = _RANGES[element]
            if not low <= number <= high:
                return f"parsing time {_quoted(text)}: {name} out of range"
    if layout == RFC3339_MICRO:
        if not _MICRO.match(rest):
            return _cannot_parse(text, layout, rest, ".000000")
        rest = rest[7:]
    else:
        rest = re.sub(r"^[.,]\d+", "", rest, flags=re.ASCII)
    zone = re.match(r"Z|[+-]\d\d:\d\d", rest, re.ASCII)
    if zone is None:
        return _cannot_parse(text, layout, rest, "Z07:00")
    if rest[zone.end() :]:
        return f"parsing time {_quoted(text)}: extra text: {_quoted(rest[zone.end() :])}"
    return f"parsing time {_quoted(text)}: day out of range"


def _cannot_parse(text: str, layout: str, rest: str, element: str) -> str:
    return f'parsing time {_quoted(text)} as "{layout}": cannot parse {_quoted(rest)} as "{element}"'
