"""Delays between attempts: exponential, capped, optionally jittered."""

import random

import msgspec


class Backoff(msgspec.Struct, frozen=True):
    """How long to wait before attempt 0, 1, 2, …

    The cap applies before jitter is added, so that clients that have all reached it still spread out.
    """

    base: float = 0.005
    maximum: float = 1000.0
    factor: float = 2.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if not (self.base >= 0 and self.maximum >= 0 and self.factor >= 1 and self.jitter >= 0):
            raise ValueError(f"a backoff needs base, maximum and jitter >= 0 and factor >= 1: {self}")

    def delay(self, attempt: int) -> float:
        """Return the seconds to wait before this attempt; attempt 0 waits the base."""
        delay = self._capped(attempt)
        if self.jitter:
            delay += delay * self.jitter * random.random()
        return delay

    def _capped(self, attempt: int) -> float:
        try:
            return min(self.base * self.factor**attempt, self.maximum)
        except OverflowError:  # after hours of retries
            return self.maximum if self.base else 0.0


RETRY_BACKOFF = Backoff(jitter=0.1)
"""The default backoff of failed work."""
