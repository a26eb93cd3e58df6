"""Bursts of changes are looked at when they are over, and now and then while they are not."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.controller import Context, Result
from kubewright.devcluster.batching import LONGEST, QUIET, batched


class Desk:
    """Calls a batched reconciler at moments of its own, and notes when it looks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.looks: list[float] = []
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now)
        self._reconcile = batched(self._look)

    async def _look(self, _: core_v1.ConfigMap, __: Context) -> None:
        self.looks.append(self.now)

    async def call(self, *causes: str, generation: int = 0) -> Result | None:
        subject = core_v1.ConfigMap(Meta("subject", uid="u", generation=generation))
        return await self._reconcile(subject, cast(Context, SimpleNamespace(causes=causes)))


@pytest.mark.parametrize("early", [0.0, 1e-12, 1e-9, 4e-7, 1e-4])
async def test_a_wait_that_is_all_but_over_is_over(monkeypatch: pytest.MonkeyPatch, early: float) -> None:
    desk = Desk(monkeypatch)
    await desk.call("born")
    desk.now += LONGEST
    await desk.call("changed")
    desk.now += QUIET - early
    await desk.call()
    assert len(desk.looks) == 2


async def test_a_burst_is_looked_at_once_and_not_at_its_first_change(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    await desk.call("born")
    desk.now += LONGEST
    due: float | None = None
    for _ in range(10):
        due = _due(desk, await desk.call("changed"))
        due = await _pass(desk, desk.now + QUIET / 2, due)
    await _pass(desk, desk.now + LONGEST, due)
    assert len(desk.looks) == 2


async def test_what_is_wanted_anew_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    await desk.call("born")
    await desk.call("resized", generation=1)
    assert desk.looks == [desk.now, desk.now]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(gaps=st.lists(st.floats(0.0, 0.3), min_size=1, max_size=60))
def test_no_change_waits_longer_than_the_longest_pause(gaps: list[float]) -> None:
    async def check() -> None:
        with pytest.MonkeyPatch.context() as monkeypatch:
            desk = Desk(monkeypatch)
            due: float | None = None
            for gap in gaps:
                due = await _pass(desk, desk.now + gap, due)
                result = await desk.call("changed")
                changed, due = desk.now, _due(desk, result)
                assert due is None or due <= changed + LONGEST
            last = desk.now
            await _pass(desk, last + LONGEST + QUIET, due)
            assert desk.looks[-1] >= last

    asyncio.run(check())


async def _pass(desk: Desk, until: float, due: float | None) -> float | None:
    """Let time pass with the calls that were asked for."""
    while due is not None and due <= until:
        desk.now = max(due, desk.now)
        due = _due(desk, await desk.call())
    desk.now = until
    return due


def _due(desk: Desk, result: Result | None) -> float | None:
    return None if result is None else desk.now + max(result.after, timedelta(microseconds=1)).total_seconds()
