"""When a request is sent: within an optional rate limit, and again after a failure.

`retry_delay` and `leaves_outcome_open` are pure.
"""

import asyncio
from math import inf

import msgspec

from kubewright.api import ApiError, ConnectionLost
from kubewright.backoff import Backoff
from kubewright.client.config import RateLimit
from kubewright.client.requests import ApiRequest

LOST_ATTEMPTS = 3
_AFTER_LOSS = Backoff(base=0.05, maximum=1.0, factor=3.0, jitter=0.5)
_REFUSED_BEFORE_WORK = (429, 503)
MAX_READ_DELAY = 10.0
"""Maximum seconds to wait before a read is sent again, because its caller has stale data meanwhile."""


def retry_delay(request: ApiRequest, error: ApiError | ConnectionLost, attempt: int) -> float | None:
    """Return the seconds to wait before sending again, or None to give up.

    429 and 503 with Retry-After were rejected before any work was done, so every verb may be retried. After other
    responses with Retry-After, and lost connections, it is unknown whether a write happened.
    """
    if isinstance(error, ConnectionLost):
        if attempt >= LOST_ATTEMPTS or (error.sent and not request.retry_safe):
            return None
        return _AFTER_LOSS.delay(attempt)
    if error.retry_after is None or not request.honor_retry_after:
        return None
    if error.status.code in _REFUSED_BEFORE_WORK or (error.status.code >= 500 and request.retry_safe):
        return min(error.retry_after, MAX_READ_DELAY) if request.method == "GET" else error.retry_after
    return None


def leaves_outcome_open(error: ApiError | ConnectionLost) -> bool:
    """Return True if the failed request may have taken effect nevertheless."""
    if isinstance(error, ConnectionLost):
        return error.sent
    return error.status.code not in _REFUSED_BEFORE_WORK and error.status.code >= 500


class ThrottleStatistics(msgspec.Struct, frozen=True):
    """How many requests wait now because they are throttled, and how long requests have waited altogether."""

    waiting: int = 0
    seconds: float = 0.0


class ThrottleMeter:
    """Pause requests, and measure how long."""

    def __init__(self) -> None:
        self._waiting = 0
        self._seconds = 0.0

    def statistics(self) -> ThrottleStatistics:
        """Return what was measured."""
        return ThrottleStatistics(self._waiting, self._seconds)

    async def pause(self, seconds: float) -> None:
        """Wait, and count that."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        self._waiting += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._waiting -= 1
            self._seconds += loop.time() - started


class RateLimiter:
    """Let a burst through, then one request each 1/rate seconds, in order of arrival."""

    def __init__(self, limit: RateLimit, meter: ThrottleMeter | None = None) -> None:
        if limit.rate <= 0 or limit.burst < 1:
            raise ValueError(f"a rate limit needs rate > 0 and burst >= 1: {limit}")
        self._interval = 1.0 / limit.rate
        self._slack = self._interval * (limit.burst - 1)
        self._next = -inf
        self._meter = meter or ThrottleMeter()

    async def wait_turn(self) -> None:
        """Wait until the next request may start."""
        now = asyncio.get_running_loop().time()
        turn = max(self._next, now - self._slack)
        self._next = turn + self._interval
        if turn > now:
            await self._meter.pause(turn - now)
