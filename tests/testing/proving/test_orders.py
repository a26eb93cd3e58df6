"""Orders of messages: every schedule to a depth is run, the same one always gives the same run, and none more is claimed."""

import ast
from contextlib import nullcontext
from typing import Any

import pytest

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.testing import Deviation
from kubewright.testing.proving import Case, Effort, Prover, explore
from kubewright.testing.proving.cases import from_json, to_json
from kubewright.testing.proving.generated_test import source_of_tests
from kubewright.testing.proving.report import OrderStage
from kubewright.testing.simulation import ScheduleMismatch

from . import remembering

SAMPLE = {
    "apiVersion": "orders.example.com/v1",
    "kind": "Crate",
    "metadata": {"name": "apples"},
    "spec": {"size": 1},
}
FINALIZER = "orders.example.com/crate"
ORDERS = frozenset({"orders"})


class CrateSpec(kw.Model):
    size: int = 1


class CrateStatus(kw.Model):
    size: int = 0


class Crate(kw.Resource[CrateSpec, CrateStatus], group="orders.example.com", version="v1"):
    """Holds something."""


def label_of(crate: Crate) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(kw.Meta(crate.metadata.name), data={"size": str(crate.spec.size)})


async def correct(crate: Crate, ctx: kw.Context) -> None:
    await ctx.apply(label_of(crate))
    await ctx.patch_status(crate, CrateStatus(size=crate.spec.size))


def prover_of(reconcile: Any, **options: Any) -> Prover:
    options.setdefault("owns", [core_v1.ConfigMap])

    def make() -> kw.Operator:
        return kw.Operator(kw.Controller(Crate, reconcile, name="crates", **options), name="crates")

    return Prover(make, [SAMPLE])


class CacheTrusted:
    """Create a child behind the back of the cache, and delete in the finalizer what the cache has by then."""

    async def reconcile(self, crate: Crate, ctx: kw.Context) -> None:
        if await ctx.find(core_v1.ConfigMap, crate.metadata.name) is None:
            place = kw.Meta(crate.metadata.name, namespace=crate.metadata.namespace)
            await ctx.client.create(core_v1.ConfigMap(place))

    async def finalize(self, crate: Crate, ctx: kw.Context) -> None:
        if (label := await ctx.find(core_v1.ConfigMap, crate.metadata.name)) is not None:
            await ctx.delete(label)


def cache_trusted() -> Prover:
    needs = [kw.needs(core_v1.ConfigMap, "create", "delete")]
    return prover_of(CacheTrusted(), finalizer=FINALIZER, needs=needs)


def orders(depth: int, schedules: int = 100) -> Effort:
    return Effort(only=ORDERS, depth=depth, schedules=schedules)


def test_a_correct_operator_settles_in_the_same_state_in_every_order() -> None:
    report = explore(prover_of(correct), orders(1))
    assert not report.violations, report.text()
    assert [stage.run for stage in report.stages] == [stage.planned for stage in report.stages]
    assert sum(stage.run for stage in report.stages) > 20
    count = sum(stage.run for stage in report.stages)
    assert f"{count} schedules to depth 1" in report.text()
    assert "PARTIAL" not in report.text()


def test_the_report_is_partial_if_the_bound_is_reached() -> None:
    report = explore(prover_of(correct), orders(2, schedules=5))
    assert not report.violations, report.text()
    assert sum(stage.run for stage in report.stages) == 5
    assert "5 schedules to depth 1; PARTIAL: complete to depth 0, 4 of " in report.text()


def test_a_bug_that_an_order_shows_is_found_and_written_as_a_test() -> None:
    report = explore(cache_trusted(), orders(1))
    assert report.violations, report.text()
    assert report.violations[0].found.property.id == "nothing-left"
    assert report.violations[0].found.case.order is not None
    assert len(report.violations[0].found.case.order) == 1
    assert "order: you delete everything before " in report.violations[0].timeline
    text = source_of_tests(
        [report.violations[0].found], operator="crates", imports=[], setup="", make="make", samples="[]"
    )
    ast.parse(text)
    assert "from kubewright.testing import Deviation" in text
    assert f"order={report.violations[0].found.case.order!r}" in text


def test_the_same_deviations_give_the_same_run() -> None:
    case = Case(order=(Deviation(1, 1), Deviation(4, 2)))
    digests = {prover_of(correct).digest(case) for _ in range(2)}
    assert len(digests) == 1
    assert digests != {prover_of(correct).digest(Case(order=()))}


def test_a_deviation_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ScheduleMismatch, match="choice 90 of choice point 0 does not exist"):
        prover_of(correct).check(Case(order=(Deviation(0, 90),)))


def test_an_order_survives_json() -> None:
    for case in (Case(order=()), Case(order=(Deviation(3, 1), Deviation(5, 2))), Case()):
        assert from_json(to_json(case)) == case


def test_a_run_ends_in_a_state_in_which_another_run_was() -> None:
    prover = Prover(lambda: remembering.operator_of(remembering.plain), [SAMPLE])
    first, again = (prover.run(Case(order=())) for _ in range(2))
    assert prover.seen.off == ""
    assert first.failure is None
    assert not first.pruned
    assert all(point.state for point in first.points)
    assert again.pruned


def test_some_schedules_are_pruned_and_counted() -> None:
    prover = Prover(lambda: remembering.operator_of(remembering.plain), [SAMPLE])
    report = explore(prover, orders(1))
    assert not report.violations, report.text()
    pruned = [stage.pruned for stage in report.stages if isinstance(stage, OrderStage)]
    assert 0 < sum(pruned) < report.stages[-1].run
    assert f"{sum(pruned)} pruned in a state seen before" in report.text()


def test_pruning_is_off_if_the_operator_keeps_state_in_a_global() -> None:
    prover = Prover(lambda: remembering.operator_of(remembering.remembering), [SAMPLE])
    report = explore(prover, orders(1, schedules=2))
    assert not report.violations, report.text()
    assert (
        f"pruning of schedules is off: the operator keeps state in the global {remembering.__name__}.SEEN"
        in report.text()
    )


def test_pruning_is_off_if_the_operator_has_a_lifespan() -> None:
    def make() -> kw.Operator:
        made = remembering.operator_of(remembering.plain)
        return kw.Operator(*made.controllers, name="crates", lifespan=nullcontext, proving=nullcontext)

    assert Prover(make, [SAMPLE]).seen.off == "the operator has a lifespan, which may keep state"
