"""Which exits of an operator are right: a lost lease, a cache that faults keep empty, a failing external system."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.cache import CacheSyncTimeout
from kubewright.election import LeaseLost
from kubewright.testing import External, FailExternal, Pause, Plan, Replica, Simulation, simulate
from kubewright.testing.proving import Case, Prover
from kubewright.testing.proving.exits import exit_problem

SAMPLE = {"apiVersion": "exits.example.com/v1", "kind": "Lamp", "metadata": {"name": "desk"}, "spec": {}}


class Lamp(kw.Resource[kw.Model, kw.Model], group="exits.example.com", version="v1"):
    """A lamp."""


class Registry(External):
    """Answers a greeting."""

    async def greet(self) -> None:
        await self.call("greet", lambda: None)


async def lamps(lamp: Lamp, ctx: kw.Context) -> None:
    await ctx.apply(core_v1.ConfigMap(kw.Meta(lamp.metadata.name)))


def operator_with(translate: Callable[[Exception], Exception]) -> kw.Operator:
    @asynccontextmanager
    async def session() -> AsyncGenerator[None, None]:
        try:
            await Registry().greet()
        except ConnectionError as error:
            raise translate(error) from error
        yield

    controller = kw.Controller(Lamp, lamps, owns=[core_v1.ConfigMap], name="lamps")
    return kw.Operator(controller, name="lamps", lifespan=session, proving=session)


FAILING = Case(faults=Plan((FailExternal("before", 1, 5.0),), (0.0,)))


def test_a_lifespan_may_end_the_process_if_an_external_system_fails() -> None:
    assert Prover(lambda: operator_with(lambda error: error), [SAMPLE]).run(FAILING).failure is None


def test_any_other_exit_under_faults_is_not_healthy() -> None:
    def settings(error: Exception) -> Exception:
        return kw.errors.ConfigError(f"wrong settings: {error}")

    failure = Prover(lambda: operator_with(settings), [SAMPLE]).run(FAILING).failure
    assert failure is not None
    assert failure.property.id == "healthy"
    assert "lamps-0 exited by itself: ConfigError: wrong settings" in failure.message


def plain() -> kw.Operator:
    return kw.Operator(kw.Controller(Lamp, lamps, owns=[core_v1.ConfigMap], name="lamps"), name="lamps")


def test_a_lost_lease_is_right_only_if_it_was_not_renewed_or_is_held_by_another() -> None:
    async def scenario(sim: Simulation) -> None:
        replicas = await sim.start(plain, replicas=2)

        def leading() -> list[Replica]:
            return [each for each in replicas if each.manager is not None and each.manager.ready.is_set()]

        await sim.until(leading, "a replica leads")
        [leader] = leading()
        other = next(replica for replica in replicas if replica is not leader)
        lost = LeaseLost("leader election lost")
        assert "it renewed its lease" in exit_problem(sim, leader, lost)
        # Candidates give up for the same reason: another replica leads.
        assert exit_problem(sim, other, lost) == ""
        other.pause()
        leader.pause()
        await asyncio.sleep(11)
        assert exit_problem(sim, leader, lost) == ""

    simulate(scenario, 1)


def test_a_cache_that_was_not_filled_is_right_only_while_faults_are_active() -> None:
    async def scenario(sim: Simulation) -> None:
        [replica] = await sim.start(plain)
        await sim.settled()
        timeout = CacheSyncTimeout("lamps did not sync within 120 s")
        assert "no fault was active" in exit_problem(sim, replica, timeout)
        await Plan((Pause(0, 1.0),), (0.0,)).run(sim)
        assert exit_problem(sim, replica, timeout) == ""
        await asyncio.sleep(121)
        assert "no fault was active" in exit_problem(sim, replica, timeout)

    simulate(scenario, 1)
