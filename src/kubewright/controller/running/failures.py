"""Failed reconciles: which are expected, and what is logged for each.

An unexpected error is logged with its traceback the first time. While the object keeps failing in the same place, each
further failure is one line with a count. `RetryLater` is one line each time. A success resets the count.
"""

import logging
import traceback
from datetime import timedelta
from typing import Any

import msgspec

from kubewright.api import KubewrightError, ObjectKey, leaves
from kubewright.controller.errors import RetryLater
from kubewright.controller.running.telemetry import RAISED, FieldLog
from kubewright.guards import text_of
from kubewright.tracebacks import place_of

MAX_SHOWN = 3
"""Maximum number of errors of an exception group in a log line."""


class _Failing(msgspec.Struct):
    """An object that has failed since its last success."""

    count: int = 0
    traced: set[int] = msgspec.field(default_factory=set[int])
    """Hashes of the errors whose tracebacks were logged."""


class FailureLog:
    """Log the failed reconciles of one controller."""

    def __init__(self) -> None:
        self.retrying: bool = True
        """False in a replay, where there is no retry to announce."""
        self._failing: dict[ObjectKey, _Failing] = {}

    def forget(self, key: ObjectKey) -> None:
        """Reset the count: the object was reconciled."""
        self._failing.pop(key, None)

    def retry_later(self, error: BaseException, delay: float, log: FieldLog) -> None:
        """Log an expected failure."""
        reason = summary_of(error)
        if not self.retrying:
            log.warning("Would retry later: %s", reason, extra={"error": reason})
            return
        log.warning("Retrying in %s: %s", shown_delay(delay), reason, extra={"error": reason})

    def failed(self, key: ObjectKey, error: BaseException, delay: float | None, log: FieldLog) -> None:
        """Log an unexpected failure; a `delay` of None means that it is not retried."""
        failing = self._failing.setdefault(key, _Failing())
        failing.count += 1
        # kubewright's errors contain the fix; for an error of the author's code the traceback matters.
        raised = None if all(isinstance(leaf, KubewrightError) for leaf in leaves(error)) else error
        identity = _identity(error)
        repeated = identity in failing.traced
        failing.traced.add(identity)
        text = summary_of(error)
        fields: dict[str, Any] = {"error": text}
        if place := _place_of(error):
            fields["at"] = place
        if raised is not None:
            fields[RAISED] = raised
        trace = None if repeated and not log.isEnabledFor(logging.DEBUG) else raised
        if not self.retrying:
            log.error("Reconciler error: %s", text, exc_info=trace, extra=fields)
        elif delay is None:
            self.forget(key)  # the next change of the object is a new start
            fields["terminal"] = True
            log.error("Reconciler error, not retried: %s", text, exc_info=trace, extra=fields)
        elif failing.count == 1:
            log.error(
                "Reconciler error, next try in %s: %s", shown_delay(delay), text, exc_info=trace, extra=fields
            )
        else:
            log.error(
                "Reconciler error, failed %d times, next try in %s: %s",
                failing.count,
                shown_delay(delay),
                text,
                exc_info=trace,
                extra=fields,
            )


def expected_delay(error: BaseException) -> tuple[bool, timedelta | None]:
    """Return True if the error, or all errors of its group, are RetryLater, and the shortest delay; None means backoff."""
    expected = [leaf for leaf in leaves(error) if isinstance(leaf, RetryLater)]
    if len(expected) != len(list(leaves(error))):
        return False, None
    delays = [leaf.after for leaf in expected if leaf.after is not None]
    return True, min(delays) if len(delays) == len(expected) else None


def summary_of(error: BaseException) -> str:
    """Return an error as one line; for a group, its members."""
    texts = list(dict.fromkeys(map(_summary_of_one, leaves(error))))
    more = f"; and {len(texts) - MAX_SHOWN} more" if len(texts) > MAX_SHOWN else ""
    return "; ".join(texts[:MAX_SHOWN]) + more


def _summary_of_one(error: BaseException) -> str:
    text, name = text_of(error), type(error).__name__
    return text if isinstance(error, KubewrightError) or text == name else f"{name}: {text}"


def shown_delay(seconds: float) -> str:
    """Return a delay in a readable unit."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _place_of(error: BaseException) -> str:
    return next((place for leaf in leaves(error) if (place := place_of(leaf))), "")


def _identity(error: BaseException) -> int:
    """Return a number that is the same for errors of the same classes from the same lines, regardless of their messages."""
    lines = [
        (type(leaf), *((frame.f_code, line) for frame, line in traceback.walk_tb(leaf.__traceback__)))
        for leaf in leaves(error)
    ]
    return hash(tuple(lines))
