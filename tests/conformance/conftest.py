"""The server that the conformance scenarios run on, by the --server switch."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from conformance_exchange import Target
from conformance_scenario import Run, recorded, scenarios
from conformance_servers import running


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a scenario together, scenarios in the order in which their first tests came.

    A process plays a whole scenario for the first test of it, so few processes should get tests of the same one.
    """
    places: list[int] = []
    together: dict[str, list[pytest.Item]] = {}
    for place, item in enumerate(items):
        if isinstance(item, pytest.Function) and item.originalname == "test_answers_as_the_real_server_did":
            places.append(place)
            together.setdefault(item.callspec.params["scenario"], []).append(item)
    ordered = [item for found in together.values() for item in found]
    for place, item in zip(places, ordered, strict=True):
        items[place] = item


@pytest.fixture(scope="session")
def target(server_name: str) -> Iterator[Target]:
    if server_name == "existing":
        pytest.skip("the scenarios change roles and CRDs: not on an existing cluster")
    with running(server_name) as found:
        yield found


class Answers:
    """The answers of each scenario, asked for once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._found: dict[str, Any] = {}

    def of(self, name: str) -> dict[str, Any]:
        if name not in self._found:
            scenario = next(item for item in scenarios() if item.name == name)
            run = Run(self._target, recorded(name))
            try:
                run.play(scenario)
            except Exception as error:
                run.answers["failure"] = repr(error)
            self._found[name] = run.answers
        return self._found[name]


@pytest.fixture(scope="session")
def answers(project_release: None, target: Target) -> Answers:
    return Answers(target)
