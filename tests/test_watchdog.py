import logging

import pytest

from kubewright.manager.watchdog import Watchdog
from kubewright.metrics import Registry


async def test_the_function_that_blocks_the_event_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Registry()
    blocked = metrics.counter("kubewright_event_loop_blocked_total", "").labels()
    async with Watchdog(metrics, interval=0.05):
        block_until_reported(caplog.records)
    assert blocked.value == 1
    assert "blocked" in caplog.text
    assert "block_until_reported" in caplog.text


def block_until_reported(reports: list[logging.LogRecord]) -> None:
    while not reports:
        pass
