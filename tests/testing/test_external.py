"""Simulated external systems: their state outlives crashes, and calls fail as planned."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import kubewright as kw
from kubewright.testing import (
    EXTERNAL_SYSTEMS,
    External,
    FailExternal,
    Plan,
    Simulation,
    SlowExternal,
    draw_plan,
    simulate,
)
from kubewright.testing.proving import Case, Effort, ProofError, PropertyFailed, Prover, explore


class DomainSpec(kw.Model):
    address: str = "10.0.0.1"


class DomainStatus(kw.Model):
    record: str = ""


class Domain(kw.Resource[DomainSpec, DomainStatus], group="external.example.com", version="v1"):
    """A name in a simulated DNS."""


SAMPLE = {
    "apiVersion": "external.example.com/v1",
    "kind": "Domain",
    "metadata": {"name": "shop"},
    "spec": {"address": "10.0.0.1"},
}


class DnsError(Exception):
    """A call of the DNS failed."""


class Dns(External):
    """Records by their id; it does not care about names that are there twice."""

    error = DnsError

    def resources(self) -> dict[str, list[Any]]:
        """Return the records by name, without their ids."""
        found: dict[str, list[Any]] = {}
        for record in self.state.values():
            found.setdefault(record["name"], []).append(record)
        return found

    async def find(self, name: str) -> str:
        """Return the id of a record, or an empty string."""
        return await self.call(
            f"GET /records?name={name}",
            lambda: next((key for key, record in self.state.items() if record["name"] == name), ""),
        )

    async def create(self, name: str, address: str) -> str:
        """Add a record and return its id."""
        key = f"r{len(self.state)}"
        await self.call(
            f"create {name}", lambda: self.state.update({key: {"name": name, "address": address}})
        )
        return key

    async def change(self, key: str, address: str) -> None:
        """Change a record."""
        await self.call(f"change {key}", lambda: self.state[key].update(address=address))

    async def delete(self, key: str) -> None:
        """Remove a record if it exists."""
        await self.call(f"delete {key}", lambda: self.state.pop(key, None))


class Domains:
    """Reconcile Domains; `looks` is whether an existing record is looked up before one is created."""

    def __init__(self, *, looks: bool = True, cleans_up: bool = True) -> None:
        self._looks = looks
        self._cleans_up = cleans_up
        self._dns: Dns | None = None

    @asynccontextmanager
    async def simulated(self) -> AsyncGenerator[None, None]:
        self._dns = Dns()
        yield

    @property
    def dns(self) -> Dns:
        assert self._dns is not None
        return self._dns

    async def reconcile(self, domain: Domain, ctx: kw.Context) -> None:
        name, address = domain.metadata.name, domain.spec.address
        record = domain.status.record or (await self.dns.find(name) if self._looks else "")
        if not record:
            record = await self.dns.create(name, address)
        await self.dns.change(record, address)
        await ctx.patch_status(domain, DomainStatus(record=record))

    async def finalize(self, domain: Domain, ctx: kw.Context) -> None:
        if self._cleans_up and (record := await self.dns.find(domain.metadata.name)):
            await self.dns.delete(record)


def operator_of(**options: Any) -> Callable[[], kw.Operator]:
    def make() -> kw.Operator:
        domains = Domains(**options)
        controller = kw.Controller(Domain, domains, finalizer="external.example.com/record", name="domains")
        return kw.Operator(controller, name="domains", lifespan=domains.simulated, proving=domains.simulated)

    return make


def test_an_operator_that_looks_up_what_it_created_survives_lost_responses() -> None:
    report = explore(Prover(operator_of(), [SAMPLE]), Effort(seeds=2, pairs=1, only=frozenset({"faults"})))
    assert not report.violations, report.text()
    assert report.stages[0].planned > 15


def test_calls_of_an_external_system_are_crash_points() -> None:
    points = Prover(operator_of(), [SAMPLE]).undisturbed().points
    assert "Dns: create shop" in [point.request for point in points]


def test_a_create_that_is_not_looked_up_is_doubled_after_a_crash() -> None:
    effort = Effort(seeds=0, violations=1, only=frozenset({"faults"}))
    report = explore(Prover(operator_of(looks=False), [SAMPLE]), effort)
    assert report.violations
    assert report.violations[0].found.property.id == "nothing-doubled"
    assert "Dns shop has 2 resources" in report.violations[0].found.message
    assert "calls Dns: create shop" in report.violations[0].timeline


def test_the_query_of_a_call_is_in_the_timeline() -> None:
    prover = Prover(operator_of(cleans_up=False), [SAMPLE])
    _, failure = prover.begin()
    assert failure is not None
    assert "domains-0 calls Dns: GET /records?name=shop" in prover.explain(failure)


def test_a_resource_that_no_finalizer_deletes_is_left() -> None:
    with pytest.raises(
        PropertyFailed,
        match=r"Nothing left: .*External.resources\(\) of external systems still returns:\nDns shop",
    ):
        Prover(operator_of(cleans_up=False), [SAMPLE]).check(Case())


def test_a_lifespan_without_a_simulated_system_is_no_finding() -> None:
    def make() -> kw.Operator:
        domains = Domains()
        return kw.Operator(
            kw.Controller(Domain, domains, finalizer="external.example.com/record", name="domains"),
            name="domains",
            lifespan=domains.simulated,
        )

    with pytest.raises(ProofError, match=r"has a lifespan.*proving="):
        Prover(make, [SAMPLE])


@pytest.mark.parametrize(("when", "done"), [("before", False), ("after", True)])
def test_a_failing_call_has_an_effect_or_none(when: Any, done: bool) -> None:
    seen: list[Any] = []

    class Careless:
        def __init__(self) -> None:
            self.dns: Dns | None = None

        @asynccontextmanager
        async def simulated(self) -> AsyncGenerator[None, None]:
            self.dns = Dns()
            yield

        async def reconcile(self, domain: Domain, ctx: kw.Context) -> None:
            assert self.dns is not None
            try:
                await self.dns.create("shop", "10.0.0.1")
            except DnsError as error:
                seen.append((str(error), bool(self.dns.state)))

    def make() -> kw.Operator:
        careless = Careless()
        controller = kw.Controller(Domain, careless.reconcile, name="domains")
        return kw.Operator(controller, name="domains", lifespan=careless.simulated)

    async def scenario(sim: Simulation) -> None:
        await sim.start(make)
        faults = asyncio.create_task(Plan((FailExternal(when, 1, 100.0),), (0.0,)).run(sim))
        await sim.cluster.create(Domain(kw.Meta("shop"), spec=DomainSpec()))
        await sim.until(lambda: seen, "the call fails")
        await faults

    simulate(scenario)
    assert seen[0][1] is done


async def test_an_external_system_works_outside_of_a_simulation() -> None:
    dns = Dns()
    key = await dns.create("shop", "10.0.0.1")
    await dns.change(key, "10.0.0.2")
    assert dns.resources() == {"shop": [{"name": "shop", "address": "10.0.0.2"}]}


def test_faults_of_external_systems_are_drawn() -> None:
    async def scenario(sim: Simulation) -> set[type[Any]]:
        return {type(fault) for fault in draw_plan(sim.chance, 20, EXTERNAL_SYSTEMS).faults}

    assert simulate(scenario) == {FailExternal, SlowExternal}
