"""Logs of a running operator: text for people at a terminal, JSON in a cluster."""

import json
import logging
import os
import re
import sys
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from textwrap import indent
from typing import Any, Literal, TextIO, cast

from kubewright.tracebacks import folded_traceback, stack_trace

LogFormat = Literal["text", "json"]

BURST = 5
"""Equal warnings or errors that are shown before the rest of a burst is only counted."""
BURST_SECONDS = 10.0

_COLOURS = {logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "31;1"}
_DIM = "2"
# Control characters, line and paragraph separators, and bidirectional controls: an object's name or an error
# message could otherwise clear the screen, hide text or look like a line of the log.
_UNPRINTABLE = r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
# Fields that come first in text, and fields that are only in JSON.
_SHOWN_FIRST = ("controller", "namespace", "name")
_MACHINE_FIELDS = frozenset({"controllerGroup", "controllerKind", "reconcileID"})


def set_up(
    log_format: LogFormat, *, level: int = logging.INFO, stream: TextIO | None = None
) -> logging.Handler:
    """Send the records of the process, from a level on, to standard error in one format."""
    out = stream or sys.stderr
    handler = logging.StreamHandler(out)
    lines = TextLines(colour=painted(out), whole=level <= logging.DEBUG)
    handler.setFormatter(JsonLines() if log_format == "json" else lines)
    handler.addFilter(FoldedBursts())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    return handler


def painted(stream: TextIO) -> bool:
    """Return True if output to this stream may be colored: on a terminal, unless NO_COLOR is set (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def fields_of(record: logging.LogRecord) -> Mapping[str, Any]:
    """Return the structured fields of a record."""
    found = getattr(record, "fields", None)
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


class TextLines(logging.Formatter):
    """Write time, level, message, then the fields as key=value; a traceback has the author's frames only, unless `whole`.

    Control characters are escaped, so a record is one line, followed only by the indented lines of a traceback.
    """

    def __init__(self, *, colour: bool, whole: bool = False) -> None:
        super().__init__()
        self._colour = colour
        self._whole = whole

    def format(self, record: logging.LogRecord) -> str:
        """Write one record."""
        moment = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        level = self._paint(f"{record.levelname:<7}", _COLOURS.get(record.levelno, ""))
        message = record.getMessage()
        fields = {
            key: value for key, value in fields_of(record).items() if not _is_in_message(key, value, message)
        }
        order = [name for name in _SHOWN_FIRST if fields.get(name)]
        order += [name for name in fields if name not in order and _is_shown(name, fields)]
        shown = escaped(" ".join(f"{name}={_text(fields[name])}" for name in order))
        line = f"{self._paint(moment, _DIM)} {level} {escaped(message)}"
        line += f"  {self._paint(shown, _DIM)}" if shown else ""
        if record.exc_info and record.exc_info[1] is not None:
            failure = record.exc_info[1]
            report = self.formatException(record.exc_info) if self._whole else folded_traceback(failure)
            line += "\n" + indent("\n".join(map(escaped, report.split("\n"))), "    ")
        return line

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and code else text


class JsonLines(logging.Formatter):
    """Write one JSON object per line, with controller-runtime's keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record."""
        line: dict[str, Any] = {
            "level": record.levelname.lower(),
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "logger": record.name,
            "msg": record.getMessage(),
            **fields_of(record),
        }
        # The traceback of a repeated failure is omitted in text only: JSON is searched record by record.
        raised = getattr(record, "raised", None) or (record.exc_info and record.exc_info[1])
        if isinstance(raised, BaseException):
            line.setdefault("error", str(raised))
            line["stacktrace"] = stack_trace(raised)
        return json.dumps(line, default=str, ensure_ascii=False)


class FoldedBursts(logging.Filter):
    """Show the first few of equal warnings and errors; the next one after a pause has the number of omitted ones.

    The same failure of several objects counts as equal; different failures are counted separately.
    """

    def __init__(self) -> None:
        super().__init__()
        self._bursts: dict[tuple[str, int, str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the record is to be shown."""
        if record.levelno < logging.WARNING or fields_of(record).get("terminal"):
            # A failure that is not retried is reported only this once.
            return True
        key = (record.name, record.lineno, str(record.msg), _failure(record))
        now = time.monotonic()
        began, count = self._bursts.get(key, (now, 0))
        if now - began > BURST_SECONDS:
            if (hidden := count - BURST) > 0:
                record.msg = f"{record.msg} ({hidden} similar messages suppressed)"
            began, count = now, 0
        self._bursts[key] = (began, count + 1)
        if len(self._bursts) > 1000:
            self._bursts = {
                key: burst for key, burst in self._bursts.items() if now - burst[0] <= BURST_SECONDS
            }
        return count < BURST


def _failure(record: logging.LogRecord) -> str:
    """Return the failure without the name of the object."""
    fields = fields_of(record)
    error = fields.get("error") or (record.exc_info and record.exc_info[1]) or ""
    text = str(error)
    for field in ("name", "namespace"):
        if name := fields.get(field):
            text = text.replace(str(name), field)
    return text


class OnlyControllers(logging.Filter):
    """Drop records below WARNING of other controllers in this process, such as those of a dev cluster."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__()
        self._names = names

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the record is to be shown."""
        return record.levelno >= logging.WARNING or fields_of(record).get("controller", "") in (
            "",
            *self._names,
        )


def _is_in_message(name: str, value: Any, message: str) -> bool:
    return name == "error" and str(value) in message


def _is_shown(name: str, fields: Mapping[str, Any]) -> bool:
    return name not in _MACHINE_FIELDS and name not in _SHOWN_FIRST and name != fields.get("controllerKind")


def escaped(text: str) -> str:
    """Return the text with control characters as Python writes them in a string: an escape is `\\x1b`."""
    return re.sub(_UNPRINTABLE, lambda found: found.group().encode("unicode_escape").decode(), text)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(value, ensure_ascii=False) if " " in value else value
