"""Reconcilers run once for a burst of changes, and now and then during a long one."""

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


class Caller:
    """Calls a batched reconciler at given times and records when it runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.runs: list[float] = []
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now)
        self._reconcile = batched(self._run)

    async def _run(self, _: core_v1.ConfigMap, __: Context) -> None:
        self.runs.append(self.now)

    async def call(self, *causes: str, generation: int = 0) -> Result | None:
        subject = core_v1.ConfigMap(Meta("subject", uid="u", generation=generation))
        return await self._reconcile(subject, cast(Context, SimpleNamespace(causes=causes)))


@pytest.mark.parametrize("early", [0.0, 1e-12, 1e-9, 4e-7, 1e-4])
async def test_runs_when_less_than_a_millisecond_is_left(
    monkeypatch: pytest.MonkeyPatch, early: float
) -> None:
    caller = Caller(monkeypatch)
    await caller.call("born")
    caller.now += LONGEST
    await caller.call("changed")
    caller.now += QUIET - early
    await caller.call()
    assert len(caller.runs) == 2


async def test_runs_once_after_a_burst_and_not_at_its_first_change(monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller(monkeypatch)
    await caller.call("born")
    caller.now += LONGEST
    due: float | None = None
    for _ in range(10):
        due = _due(caller, await caller.call("changed"))
        due = await _pass(caller, caller.now + QUIET / 2, due)
    await _pass(caller, caller.now + LONGEST, due)
    assert len(caller.runs) == 2


async def test_a_new_generation_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller(monkeypatch)
    await caller.call("born")
    await caller.call("resized", generation=1)
    assert caller.runs == [caller.now, caller.now]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(gaps=st.lists(st.floats(0.0, 0.3), min_size=1, max_size=60))
def test_no_change_waits_longer_than_the_maximum_delay(gaps: list[float]) -> None:
    async def check() -> None:
        with pytest.MonkeyPatch.context() as monkeypatch:
            caller = Caller(monkeypatch)
            due: float | None = None
            for gap in gaps:
                due = await _pass(caller, caller.now + gap, due)
                result = await caller.call("changed")
                changed, due = caller.now, _due(caller, result)
                assert due is None or due <= changed + LONGEST
            last = caller.now
            await _pass(caller, last + LONGEST + QUIET, due)
            assert caller.runs[-1] >= last

    asyncio.run(check())


async def _pass(caller: Caller, until: float, due: float | None) -> float | None:
    """Advance the time, with the calls that were requested."""
    while due is not None and due <= until:
        caller.now = max(due, caller.now)
        due = _due(caller, await caller.call())
    caller.now = until
    return due


def _due(caller: Caller, result: Result | None) -> float | None:
    return (
        None if result is None else caller.now + max(result.after, timedelta(microseconds=1)).total_seconds()
    )
