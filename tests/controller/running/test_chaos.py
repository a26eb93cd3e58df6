"""Faults of all kinds at once, drawn from a seed: invariants hold after every write, and the end is as specified.

`pytest tests/controller/running/test_chaos.py --seeds 1000` searches further, `--seed 17` repeats one run.
"""

import asyncio
import dataclasses

import pytest
from msgspec import structs

import kubewright as kw
from kubewright.api import kind_of
from kubewright.api.builtin import core_v1
from kubewright.manager import ManagerOptions
from kubewright.testing import (
    BACKUPS,
    COMMON,
    WEBHOOKS,
    Plan,
    RestoreBackup,
    Simulation,
    Trace,
    draw_plan,
    eventually,
    healthy,
    nothing_left,
    outcome_of,
    simulate,
    simulated,
    stays_settled,
)
from kubewright.testing.simulation.simulation import OPTIONS

from .chaos import (
    NAMESPACES,
    Accounts,
    Changes,
    Crate,
    Depot,
    Paper,
    lease_holder,
    make_operator,
    watch_over,
    wrongs,
)


async def started(sim: Simulation, *, replicas: int = 2, options: ManagerOptions = OPTIONS) -> Accounts:
    """Start the operator in a cluster with its namespaces."""
    accounts = Accounts()
    for namespace in NAMESPACES:
        await sim.client.create(core_v1.Namespace(kw.Meta(namespace)))
    await sim.start(lambda: make_operator(accounts), replicas=replicas, kinds=[Paper], options=options)
    return accounts


async def disturbed(sim: Simulation, plan: Plan, changes: int = 12) -> None:
    """Carry out a plan while people change things, then let everything end well."""
    people = Changes(sim)
    async with asyncio.TaskGroup() as group:
        group.create_task(plan.run(sim))
        for _ in range(changes):
            await people.make()
            await asyncio.sleep(sim.chance.choice([0.0, 0.01, 1.0, 20.0]))
    await people.finish()
    await sim.settled()


@simulated(seeds=50)
async def test_operators_converge_and_come_to_rest_after_any_fault(sim: Simulation) -> None:
    accounts = await started(sim)
    # Where its webhooks are served is registered by then.
    await sim.settled(quiet=20)
    before = outcome_of(sim.world)
    watch_over(sim)
    await disturbed(sim, draw_plan(sim.chance, 6, [*COMMON, *WEBHOOKS]))
    assert wrongs(sim.world, accounts) == []
    await stays_settled(sim)
    assert wrongs(sim.world, accounts) == []
    healthy(sim)
    for kind in (Crate, Depot):
        for found in sim.world.objects(kind):
            metadata = found["metadata"]
            await sim.client.delete(kind_of(kind), metadata["name"], metadata.get("namespace", ""))
    await sim.settled()
    nothing_left(sim.world, before)
    assert accounts.open == {}


@simulated(seeds=40)
async def test_one_replica_without_leader_election_recovers_from_every_fault(sim: Simulation) -> None:
    accounts = await started(sim, replicas=1)
    watch_over(sim)
    await disturbed(sim, draw_plan(sim.chance, 8, COMMON))
    assert wrongs(sim.world, accounts) == []
    healthy(sim)


@simulated(seeds=20)
async def test_an_operator_follows_a_cluster_that_was_restored_from_a_backup(sim: Simulation) -> None:
    # The backup may register the URL of an earlier process, as no Service would; registered by URL, webhooks that cannot be
    # called are ignored, unless a simulation asks for the declared policies.
    webhooks = structs.replace(OPTIONS.webhooks, declared_policies=False)
    accounts = await started(sim, replicas=1, options=dataclasses.replace(OPTIONS, webhooks=webhooks))
    # A crate that was deleted after the backup comes back with it.
    accounts.may_reopen = True
    people = Changes(sim)
    for _ in range(6):
        await people.make()
    plan = draw_plan(sim.chance, 2, [*COMMON, *BACKUPS])
    await disturbed(sim, Plan((*plan.faults, RestoreBackup(30.0)), (*plan.pauses, 1.0)))
    # A watch from a revision of the future ends silently, when its time is up: until then nothing can be noticed.
    await sim.settled(quiet=1500)
    # What was opened for crates that the backup does not know cannot be found by anything but the external system.
    known = {crate["metadata"]["uid"] for crate in sim.world.objects(Crate)}
    accounts.open = {uid: name for uid, name in accounts.open.items() if uid in known}
    assert wrongs(sim.world, accounts) == []


@simulated(seeds=3)
async def test_a_leader_paused_while_it_adds_a_finalizer_starts_no_work_when_it_wakes(
    sim: Simulation,
) -> None:
    accounts = await started(sim)
    await sim.settled(quiet=20)
    crate = await sim.client.create(Crate(kw.Meta("a", namespace=NAMESPACES[0])))
    await eventually(
        lambda: any(found["metadata"].get("finalizers") for found in sim.world.objects(Crate)),
        interval=0.0001,
    )
    # The finalizer is stored; the leader reads the answer only after its pause.
    [leader] = [replica for replica in sim.replicas if lease_holder(sim.world) == replica.name]
    leader.pause()
    await sim.client.delete(crate)
    # The other replica takes over, finalizes the crate and is done.
    await asyncio.sleep(60)
    assert sim.world.find(Crate, "a", NAMESPACES[0]) is None
    leader.resume()
    await sim.settled(quiet=40)
    assert accounts.open == {}
    assert wrongs(sim.world, accounts) == []


async def chaos(sim: Simulation) -> Trace:
    """Run the whole scenario for its trace."""
    await started(sim)
    watch_over(sim)
    await disturbed(sim, draw_plan(sim.chance, 6, [*COMMON, *WEBHOOKS]), changes=8)
    return sim.trace


@pytest.mark.parametrize("seed", range(3))
def test_a_simulation_with_webhooks_a_lease_and_crashes_is_reproducible(seed: int) -> None:
    first, second = simulate(chaos, seed), simulate(chaos, seed)
    for one, other in zip(first.entries, second.entries, strict=True):
        assert one == other
