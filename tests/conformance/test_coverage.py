"""Every behaviour that clients rely on, and every one that is easily got wrong, has a case that is really there."""

from pathlib import Path

import pytest
from conformance_coverage import EASILY_WRONG, RELIED_ON
from conformance_scenario import recorded, scenarios

ROOT = Path(__file__).parents[2]
COMPARED = {
    f"{scenario.name}-{step.name}"
    for scenario in scenarios()
    for step in scenario.steps
    if step.compared and step.name in recorded(scenario.name)
}
CLAIMS = {**RELIED_ON, **{f"{number}. {text}": cases for number, (text, cases) in EASILY_WRONG.items()}}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_behaviour_has_its_case(claim: str) -> None:
    assert CLAIMS[claim]
    missing = [case for case in CLAIMS[claim] if not _exists(case)]
    assert not missing


def _exists(case: str) -> bool:
    file, _, name = case.partition("::")
    if "/" not in case:
        return case in COMPARED
    return (ROOT / file).is_file() and f"def {name}" in (ROOT / file).read_text()


def test_each_way_to_be_wrong_is_covered() -> None:
    assert sorted(EASILY_WRONG) == list(range(1, 42))
