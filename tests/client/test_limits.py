"""A rate limit lets a burst through and then keeps its pace."""

import asyncio

import pytest

from kubewright.client import RateLimit
from kubewright.client.retries import RateLimiter
from kubewright.testing.virtual_time import virtual_time


@virtual_time
async def test_a_burst_passes_at_once_and_the_rest_in_turn() -> None:
    limiter = RateLimiter(RateLimit(rate=10, burst=3))
    loop = asyncio.get_running_loop()
    moments: list[float] = []
    for _ in range(5):
        await limiter.wait_turn()
        moments.append(round(loop.time(), 3))
    assert moments == [0, 0, 0, 0.1, 0.2]


@virtual_time
async def test_an_idle_client_regains_one_burst() -> None:
    limiter = RateLimiter(RateLimit(rate=10, burst=2))
    await asyncio.sleep(60)
    loop = asyncio.get_running_loop()
    for _ in range(3):
        await limiter.wait_turn()
    assert round(loop.time(), 3) == 60.1


@pytest.mark.parametrize("limit", [RateLimit(0), RateLimit(-1), RateLimit(1, burst=0)])
def test_a_rate_limit_of_zero_is_refused(limit: RateLimit) -> None:
    with pytest.raises(ValueError, match="rate limit"):
        RateLimiter(limit)
