"""Durable steps when the process ends anywhere: at each request, before and after it, and between the lines of a step."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import kubewright as kw
from kubewright.testing import Replica, Simulation, simulate


class DiskSpec(kw.Model):
    size: int = 1


class DiskStatus(kw.Model):
    snapshot: str = ""
    steps: list[kw.Step] = []


class Disk(kw.Resource[DiskSpec, DiskStatus], group="crashes.example.com", version="v1"):
    """Is snapshotted, by a provider outside the cluster."""


class Provider:
    """An external system: it outlives the operator."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.mails = 0

    def find(self, key: str) -> str | None:
        return f"id-{key}" if key in self.made else None

    def create(self, key: str) -> str:
        self.made.append(key)
        return f"id-{key}"


class Interruptions:
    """Call a function at the n-th of the places that the reconciler passes."""

    def __init__(self, at: int | None = None) -> None:
        self.passed: list[str] = []
        self.interrupt: Callable[[], None] = lambda: None
        self._at = at

    async def passes(self, place: str) -> None:
        self.passed.append(place)
        if len(self.passed) - 1 == self._at:
            self.interrupt()
            await asyncio.sleep(0.001)


def operator_of(provider: Provider, places: Interruptions) -> Callable[[], kw.Operator]:
    """Return an operator with two steps whose effects can be looked up, and one whose effect cannot."""

    async def create(step: Any) -> None:
        await places.passes("opened")
        if not step.done:
            await places.passes("before the effect")
            # No await between the look and the effect: the provider is asked at one moment.
            step.outcome = provider.find(step.key) or provider.create(step.key)
            await places.passes("after the effect")

    @kw.controller(Disk)
    async def disks(disk: Disk, ctx: kw.Context) -> None:
        await places.passes("begun")
        async with ctx.step("volume", input=disk.spec.size) as volume:
            await create(volume)
        await places.passes("recorded")
        async with ctx.step("snapshot", input=volume.outcome) as snapshot:
            await create(snapshot)
        async with ctx.step("mail", input=snapshot.outcome) as mail:
            if not mail.done:
                provider.mails += 1
                await places.passes("mailed")
                mail.outcome = ""
        await places.passes("before the status")
        await ctx.patch_status(disk, DiskStatus(snapshot=snapshot.outcome))

    return lambda: kw.Operator(disks, name="disks")


def run(
    crash: tuple[int, Any] | None = None, place: int | None = None, *, replicas: int = 1, pause: bool = False
) -> tuple[Provider, Sequence[str], int]:
    """Run the operator with one crash or pause, check the end, and return what happened."""
    provider, places = Provider(), Interruptions(place)

    async def scenario(sim: Simulation) -> int:
        started = await sim.start(operator_of(provider, places), replicas=replicas)
        if crash is not None:
            started[0].crash_at(*crash)

        struck: list[Replica] = []

        def interrupt() -> None:
            for replica in started:
                if replica.manager is not None and replica.manager.ready.is_set():
                    struck.append(replica)
                    (replica.pause if pause else replica.crash)()

        places.interrupt = interrupt
        await sim.cluster.create(Disk(kw.Meta("a"), spec=DiskSpec()))
        if pause:
            await sim.until(lambda: struck, "the leader is paused")
            await asyncio.sleep(60)
            struck[0].resume()
        await sim.settled()
        found = await sim.cluster.get(Disk, "a")
        steps = {step.name: step.outcome for step in found.status.steps}
        assert list(steps) == ["volume", "snapshot", "mail"]
        assert found.status.snapshot == steps["snapshot"] == f"id-{provider.made[1]}"
        return started[0].endpoint.requests

    requests = simulate(scenario)
    # Each effect that can be looked up happened once.
    assert len(provider.made) == len(set(provider.made)) == 2
    return provider, places.passed, requests


def test_each_effect_happens_once_without_faults() -> None:
    provider, passed, _ = run()
    assert provider.mails == 1
    assert passed.count("after the effect") == 2


def test_a_crash_at_any_request_repeats_no_effect_that_can_be_looked_up() -> None:
    _, _, requests = run()
    mails = [
        run((number, when))[0].mails for number in range(1, requests + 1) for when in ("before", "after")
    ]
    assert len(mails) >= 16
    # An effect that cannot be looked up is repeated if the process ends before the record: the limit of all this.
    assert set(mails) == {1, 2}


def test_a_crash_between_any_two_lines_repeats_no_effect_that_can_be_looked_up() -> None:
    _, passed, _ = run()
    first_reconcile = passed[: passed.index("before the status") + 1]
    for place, name in enumerate(first_reconcile):
        provider, _, _ = run(place=place)
        assert provider.mails == (2 if name == "mailed" else 1), name


@pytest.mark.parametrize("place", [0, 4])
def test_a_paused_leader_does_not_start_a_step_when_it_resumes(place: int) -> None:
    provider, passed, _ = run(place=place, replicas=2, pause=True)
    assert provider.mails == 1
    assert passed.count("after the effect") == 2


def test_a_leader_paused_inside_a_step_repeats_no_effect_that_can_be_looked_up() -> None:
    provider, passed, _ = run(place=2, replicas=2, pause=True)
    assert passed[2] == "before the effect"
    assert provider.mails == 1
