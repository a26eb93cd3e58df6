"""An optional rate limit of a client's requests."""

import asyncio
from math import inf

from kubewright.client.config import RateLimit


class RateLimiter:
    """Let a burst through, then one request each 1/rate seconds, in order of arrival."""

    def __init__(self, limit: RateLimit) -> None:
        if limit.rate <= 0 or limit.burst < 1:
            raise ValueError(f"a rate limit needs rate > 0 and burst >= 1: {limit}")
        self._interval = 1.0 / limit.rate
        self._slack = self._interval * (limit.burst - 1)
        self._next = -inf

    async def wait_turn(self) -> None:
        """Wait until the next request may start."""
        now = asyncio.get_running_loop().time()
        turn = max(self._next, now - self._slack)
        self._next = turn + self._interval
        if turn > now:
            await asyncio.sleep(turn - now)
