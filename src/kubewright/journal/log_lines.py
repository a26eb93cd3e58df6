"""Log records of a reconcile, gathered for the journal."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

from kubewright.journal.collected import LoggedLine, current

MAX_LINES = 200
"""Log lines of one reconcile that are kept."""
MAX_LENGTH = 2000
"""Characters of a log line that are kept."""


class _JournalHandler(logging.Handler):
    """Add the records that are logged during a reconcile to its journal entry."""

    def emit(self, record: logging.LogRecord) -> None:
        """Add the record to the current reconcile, if there is one."""
        entry = current()
        if entry is None or sum(isinstance(step, LoggedLine) for step in entry.steps) >= MAX_LINES:
            return
        try:
            message = record.getMessage()
        except Exception:
            message = str(record.msg)
        entry.add_work(LoggedLine(record.created, record.levelname, record.name, message[:MAX_LENGTH]))


_handler = _JournalHandler()
_users = 0


@contextmanager
def gathered_log() -> Generator[None]:
    """Gather the log records of reconciles, if the program has set up logging, until the end of the block.

    A handler of ours would otherwise be the only one, and Python would no longer print warnings by itself. One handler
    serves all operators of the process: it finds the reconcile by the context in which a record is logged.
    """
    global _users  # noqa: PLW0603 (logging itself is global)
    root = logging.getLogger()
    if not root.handlers:
        yield
        return
    _users += 1
    root.addHandler(_handler)
    try:
        yield
    finally:
        _users -= 1
        if not _users:
            root.removeHandler(_handler)
