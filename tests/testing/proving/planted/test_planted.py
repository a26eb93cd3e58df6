"""Each planted bug is found, by a small case and a timeline."""

import pytest

from kubewright.testing.proving import Effort, Prover, explore

from .operators import PLANTED, SAMPLE, Planted
from .order_bugs import ORDER_BUGS
from .spec_bugs import SAMPLE as SHOP
from .spec_bugs import SPEC_BUGS, correct, field_without_effect

EFFORT = Effort(seeds=60, pairs=0, violations=1, only=frozenset({"faults"}))


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str) -> None:
    make, properties = PLANTED[name]
    report = explore(Prover(make, [SAMPLE]), EFFORT)
    assert report.violations, f"{make.__doc__}\n{report.text()}"
    assert report.violations[0].found.property.id in properties, report.text()
    assert len(report.violations[0].found.case.all_faults) <= 2
    assert "you: create Depot north" in report.violations[0].timeline


def test_planted_bugs_are_at_least_twenty() -> None:
    makes: list[Planted] = [make for make, _ in PLANTED.values()]
    assert len(makes) >= 20
    assert all(make.__doc__ for make in makes)


@pytest.mark.parametrize("name", ORDER_BUGS)
def test_a_planted_bug_in_an_order_is_found(name: str) -> None:
    bug = ORDER_BUGS[name]
    effort = Effort(only=frozenset({"orders"}), depth=bug.depth, schedules=400, violations=1)
    report = explore(Prover(bug.make, bug.samples), effort)
    assert report.violations, f"{bug.make.__doc__}\n{report.text()}"
    assert report.violations[0].found.property.id in bug.properties, report.text()
    assert report.violations[0].found.case.order is not None
    assert len(report.violations[0].found.case.order) <= bug.depth
    assert " order: " in report.violations[0].timeline


@pytest.mark.parametrize("name", SPEC_BUGS)
def test_a_planted_bug_in_the_handling_of_specs_is_found(name: str) -> None:
    bug = SPEC_BUGS[name]
    report = explore(Prover(bug.make, [SHOP]), Effort(sequences=110, violations=1, only=frozenset({"specs"})))
    assert report.violations, f"{bug.make.__doc__}\n{report.text()}"
    assert report.violations[0].found.property.id in bug.properties, report.text()
    assert report.violations[0].found.case.sequence is not None
    assert len(report.violations[0].found.case.sequence.steps) == bug.steps, report.text()
    assert bug.advice in report.violations[0].found.advice, report.text()
    assert "you: create Shop corner" in report.violations[0].timeline


def test_planted_bugs_in_the_handling_of_specs_are_at_least_ten() -> None:
    assert len(SPEC_BUGS) >= 10
    assert all(bug.make.__doc__ for bug in SPEC_BUGS.values())


def test_a_field_without_effect_is_a_warning_and_no_failure() -> None:
    report = explore(Prover(field_without_effect, [SHOP]), Effort(sequences=30, only=frozenset({"specs"})))
    assert not report.violations, report.text()
    assert [line.partition(" was ")[0] for line in report.warnings()] == [
        "warning: field without effect: Shop spec.owner"
    ]


def test_an_operator_without_a_bug_holds_all_properties_with_many_specs() -> None:
    report = explore(Prover(correct, [SHOP]), Effort(sequences=30, only=frozenset({"specs"})))
    assert not report.violations, report.text()
    assert report.warnings() == []
    assert report.sequences == 60
