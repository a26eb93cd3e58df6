"""Streams of events from outside that fail, end, or are cancelled by their own library."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import pytest

from kubewright.backoff import Backoff
from kubewright.controller import source
from kubewright.controller.running.runner import MAX_SOURCE_DELAY, follow
from kubewright.controller.running.telemetry import FieldLog
from kubewright.testing.virtual_time import virtual_time

LOG = FieldLog(logging.getLogger("kubewright.controller"), {})


class Stream:
    """Count how often it is opened, and fail or end each time."""

    def __init__(self, end: Callable[[], None], lasts: float = 0.0) -> None:
        self.opened = 0
        self.taken: list[str] = []
        self._end = end
        self._lasts = lasts

    async def events(self) -> AsyncIterator[str]:
        self.opened += 1
        yield "event"
        await asyncio.sleep(self._lasts)
        self._end()

    async def followed(self, seconds: float) -> bool:
        """Follow for a while; return True if it was still followed at the end."""
        outside = source(self.events, map=lambda _: ())
        try:
            async with asyncio.timeout(seconds):
                await follow(outside, self.taken.append, Backoff(), LOG)
        except TimeoutError:
            return True
        return False


def fail() -> None:
    raise ConnectionError("cut")


def cancel() -> None:
    raise asyncio.CancelledError


def leave() -> None:
    raise SystemExit(3)


@virtual_time
@pytest.mark.parametrize("end", [fail, cancel, leave])
async def test_a_source_that_fails_after_each_first_event_is_reopened_with_backoff(
    end: Callable[[], None],
) -> None:
    stream = Stream(end)
    assert await stream.followed(3600)
    assert 3600 / (2 * MAX_SOURCE_DELAY) < stream.opened < 3600 / MAX_SOURCE_DELAY + 20
    assert len(stream.taken) == stream.opened


@virtual_time
async def test_a_source_that_ran_long_is_reopened_at_once() -> None:
    stream = Stream(fail, lasts=600)
    assert await stream.followed(3600)
    assert stream.opened == 6


@virtual_time
async def test_a_source_that_ends_is_logged_and_not_reopened(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stream = Stream(lambda: None)
    assert not await stream.followed(3600)
    assert stream.opened == 1
    assert "Source ended" in caplog.text
