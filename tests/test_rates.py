"""Rates: never more starts in a period than allowed, and no wait without need."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubewright as kw
from kubewright.api import DeclarationError
from kubewright.api.builtin import core_v1
from kubewright.rates import Rate, RateSlots
from kubewright.testing import embedded, eventually
from kubewright.testing.virtual_time import virtual_time

ROUNDING = 1e-6
STEPS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 12)), max_size=60)


@given(STEPS, st.integers(1, 4), st.integers(1, 20), st.integers(0, 30))
def test_no_period_has_more_starts_than_allowed_and_none_waits_without_need(
    steps: list[tuple[str, int]], at_most: int, period: int, late: int
) -> None:
    slots, starts, now = RateSlots(at_most, period), dict[str, list[float]](), 0
    waiting: list[tuple[float, str]] = []
    for group, pause in steps:
        now += pause
        waiting.append((slots.reserve(group, now), group))
    # From here on nothing is added; each one that waits is looked at `late` after its time.
    while waiting:
        waiting.sort()
        due, group = waiting.pop(0)
        now = max(now, due + late)
        started = starts.setdefault(group, [])
        full = len(started) >= at_most and started[-at_most] > now - period
        delay = slots.start(group, now)
        assert (delay > 0) == full, (
            "it waits if and only if the last period has all the starts that are allowed"
        )
        if delay > 0:
            waiting.append((now + delay, group))
        else:
            started.append(now)
    assert sum(map(len, starts.values())) == len(steps)


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=3000))
def test_groups_that_are_gone_take_no_memory(groups: list[int]) -> None:
    slots = RateSlots(1, 1.0)
    for number, group in enumerate(groups):
        slots.reserve(group, number * 0.01)
    # A period has 100 of these starts, and each group waits at most for one earlier start of its own.
    assert len(slots) <= 2000


@pytest.mark.parametrize(
    ("at_most", "every", "named"),
    [(0, "1s", "at_most must be"), (-1, "1s", "at_most must be"), (1, "0s", "positive"), (1, "soon", "soon")],
)
def test_a_rate_that_allows_nothing_is_an_error_where_it_is_declared(
    at_most: int, every: str, named: str
) -> None:
    with pytest.raises(DeclarationError, match=named) as raised:
        Rate(at_most=at_most, every=every)
    assert "\n" not in str(raised.value)


def test_a_cluster_scoped_kind_has_no_rate_by_namespace() -> None:
    async def reconcile(node: core_v1.Node, ctx: kw.Context) -> None: ...

    options = kw.Options(rate=Rate(at_most=1, every="1s", by="namespace"))
    with pytest.raises(DeclarationError, match="Node is cluster-scoped; pass a function"):
        kw.Controller(core_v1.Node, reconcile, options=options)


class Spec(kw.Model):
    size: int = 1


class Jar(kw.Resource[Spec, kw.Model], group="rates.example.com", version="v1"):
    """A jar."""


def tenant(key: kw.ObjectKey) -> str:
    return key.name.partition("-")[0]


@virtual_time
async def test_a_busy_tenant_waits_for_its_rate_without_a_worker() -> None:
    starts: list[tuple[str, float]] = []

    @kw.controller(Jar, options=kw.Options(rate=Rate(at_most=2, every="10s", by=tenant)))
    async def jars(jar: Jar, ctx: kw.Context) -> None:
        starts.append((jar.metadata.name, asyncio.get_running_loop().time()))

    async with embedded() as cluster:
        await cluster.install(Jar)
        for number in range(6):
            await cluster.create(Jar(kw.Meta(f"busy-{number}"), spec=Spec()))
        await cluster.create(Jar(kw.Meta("quiet-0"), spec=Spec()))
        async with cluster.running(kw.Operator(jars, name="jars")) as manager:
            await eventually(lambda: len(starts) == 7, timeout=100)
            (limited,) = (
                sample.value
                for family in manager.metrics.families()
                if family.name == "kubewright_rate_limited_total"
                for sample in family.samples
            )
    busy = sorted(at for name, at in starts if name.startswith("busy"))
    (quiet,) = (at for name, at in starts if name.startswith("quiet"))
    assert len(busy) == 6
    assert all(later - earlier >= 10 - ROUNDING for earlier, later in zip(busy, busy[2:], strict=False))
    assert quiet < busy[2], "one worker, and the busy tenant does not occupy it while it waits"
    assert limited == 4


@virtual_time
async def test_calls_of_an_external_system_wait_for_its_rate() -> None:
    accounts = Rate(at_most=2, every=timedelta(seconds=5))
    calls: list[float] = []

    @kw.controller(Jar, concurrency=4)
    async def jars(jar: Jar, ctx: kw.Context) -> None:
        await ctx.wait_for(accounts)
        calls.append(asyncio.get_running_loop().time())

    async with embedded() as cluster:
        await cluster.install(Jar)
        for number in range(5):
            await cluster.create(Jar(kw.Meta(f"jar-{number}"), spec=Spec()))
        async with cluster.running(kw.Operator(jars, name="jars")):
            await eventually(lambda: len(calls) == 5, timeout=100)
    assert all(later - earlier >= 5 - ROUNDING for earlier, later in zip(calls, calls[2:], strict=False))
