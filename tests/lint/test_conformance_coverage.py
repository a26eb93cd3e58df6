"""Lint: the cases that conformance_coverage names for each behaviour exist."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

from conformance_coverage import EASILY_WRONG, RELIED_ON
from conformance_scenario import recorded, scenarios

ROOT = Path(__file__).parents[2]
COMPARED = {
    f"{scenario.name}-{step.name}"
    for scenario in scenarios()
    for step in scenario.steps
    if step.compared and step.name in recorded(scenario.name)
}
CLAIMS = [*RELIED_ON.items(), *EASILY_WRONG.items()]


@pytest.mark.parametrize(("behaviour", "cases"), CLAIMS)
def test_a_behaviour_has_cases_that_exist(behaviour: str, cases: tuple[str, ...]) -> None:
    assert cases, f"no case shows {behaviour}"
    assert [case for case in cases if not _exists(case)] == []


def _exists(case: str) -> bool:
    file, _, name = case.partition("::")
    if "/" not in case:
        return case in COMPARED
    path = ROOT / file
    defined: list[str] = re.findall(r"\bdef (test_\w+)\(", path.read_text()) if path.is_file() else []
    return name in defined if name else bool(defined)
