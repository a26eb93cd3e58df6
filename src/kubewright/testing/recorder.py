"""Log records of operators under test, kept for the message of a test that fails."""

import logging
from collections import deque
from textwrap import indent

from kubewright.tracebacks import folded_traceback

LOGGER = "kubewright"
HAPPENED = "what happened, in order:"
"""The heading of the log and the Events in the message of a wait that timed out."""


class LogLine(str):
    """One record as text, with the time at which it was logged."""

    __slots__ = ("created", "repeated")

    created: float
    repeated: object
    """What a further failure of the same sort has in common with this one; None if nothing can repeat."""


class Recorder(logging.Handler):
    """Keep the last lines while any context is open, each line once however many are.

    If an object fails repeatedly in the same way, the last line, which has the count, replaces those before it.
    Tracebacks are trimmed to the author's frames, also in what pytest captures.
    """

    def __init__(self, lines: deque[str]) -> None:
        super().__init__()
        self._lines = lines
        self._open = 0
        self._level = logging.NOTSET

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line."""
        if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
            # Formatters use this text if it is there, so pytest's "Captured log" shows the same frames.
            record.exc_text = folded_traceback(record.exc_info[1])
        fields: dict[str, object] = getattr(record, "fields", None) or {}
        text = record.getMessage()
        if place := fields.get("at"):
            text += f" (at {place})"
        if record.exc_text:
            text += "\n" + indent(record.exc_text, "    ")
        line = LogLine(text)
        line.created, line.repeated = record.created, None
        if not record.exc_text and "error" in fields:
            line.repeated = (record.name, fields.get("namespace"), fields.get("name"), fields["error"])
            last = self._lines[-1] if self._lines else None
            if isinstance(last, LogLine) and last.repeated == line.repeated:
                self._lines.pop()
        self._lines.append(line)

    def __enter__(self) -> None:
        logger = logging.getLogger(LOGGER)
        if self._open == 0:
            self._level = logger.level
            logger.addHandler(self)
            if logger.getEffectiveLevel() > logging.INFO:
                logger.setLevel(logging.INFO)
        self._open += 1

    def __exit__(self, *failure: object) -> None:
        self._open -= 1
        if self._open == 0:
            logger = logging.getLogger(LOGGER)
            logger.removeHandler(self)
            logger.setLevel(self._level)
