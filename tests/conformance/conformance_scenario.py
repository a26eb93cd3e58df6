"""Scenarios: requests in order against one server, their answers compared with what a real one said."""

import importlib.util
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from conformance_exchange import Answer, Step, Target
from conformance_normal import Normal

FOLDER = Path(__file__).parent
STEP_TIMEOUT = 60.0


def _nothing() -> AbstractContextManager[dict[str, str]]:
    return nullcontext({})


@dataclass(frozen=True)
class Scenario:
    """Steps that share a state."""

    name: str
    steps: tuple[Step, ...]
    fixture: Callable[[], AbstractContextManager[dict[str, str]]] = _nothing
    """What runs beside the server while the scenario does, and gives values for its steps."""


@cache
def scenarios() -> list[Scenario]:
    """Load all scenarios, by name."""
    return [_load(file) for file in sorted((FOLDER / "scenarios").glob("*.py"))]


def _load(file: Path) -> Scenario:
    spec = importlib.util.spec_from_file_location(f"conformance_scenario_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    steps: tuple[Step, ...] = tuple(module.STEPS)
    names = [step.name for step in steps]
    repeated = {name for name in names if names.count(name) > 1}
    assert not repeated, f"{file.name}: steps named twice: {repeated}"
    return Scenario(file.stem, steps, getattr(module, "FIXTURE", _nothing))


@cache
def recorded(name: str) -> dict[str, Any]:
    """Read what the real server answered, by step."""
    file = FOLDER / "recorded" / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else {}


class Run:
    """One scenario's run against one server."""

    def __init__(self, scenario: Scenario, target: Target) -> None:
        self._scenario = scenario
        self._target = target
        self._values: dict[str, str] = {}
        self._normal = Normal()
        self._expected = recorded(scenario.name)
        self.answers: dict[str, Any] = {}

    def play(self) -> dict[str, Any]:
        """Send all steps; gives the normalised answers of those that are compared."""
        with self._scenario.fixture() as values:
            self._values.update(values)
            for step in self._scenario.steps:
                self._perform(step)
        return self.answers

    def _perform(self, step: Step) -> None:
        answer = self._ask(step)
        for name, path in step.save.items():
            self._values[name] = _dig(answer.body, path)
        if step.compared:
            self.answers[step.name] = asdict(
                Answer(answer.status, self._normal.value(answer.headers), self._normal.value(answer.body))
            )

    def _ask(self, step: Step) -> Answer:
        if step.forgets:
            self._target.forget()
        deadline = time.monotonic() + STEP_TIMEOUT
        while True:
            answer = self._target.send(step, self._values, self._perform, self._frames(step))
            warned = step.warned in str(answer.headers.get("warning", ""))
            if warned and (step.until is None or step.until(answer.status, answer.body)):
                return answer
            if time.monotonic() > deadline:
                raise AssertionError(f"{step.name}: the server did not come to it: {answer}")
            time.sleep(0.05)

    def _frames(self, step: Step) -> int:
        """Return how many frames of a stream the real server sent."""
        body = self._expected.get(step.name, {}).get("body")
        return len(body) if isinstance(body, list) else 0


def _dig(value: Any, path: str) -> str:
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value.get(part, "")
    return str(value)
