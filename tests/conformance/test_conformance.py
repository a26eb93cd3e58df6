"""The embedded server and a real kube-apiserver give the same answers to the same requests."""

from typing import Any

import pytest
from conformance_scenario import recorded, scenarios

CASES = [
    pytest.param(scenario.name, step.name, id=f"{scenario.name}-{step.name}")
    for scenario in scenarios()
    for step in scenario.steps
    if step.compared
]


@pytest.mark.parametrize(("scenario", "step"), CASES)
def test_answers_as_the_real_server_did(scenario: str, step: str, answers: Any) -> None:
    found = answers.of(scenario)
    assert step in found, f"not reached: {found.get('failure')}"
    assert found[step] == recorded(scenario)[step]
