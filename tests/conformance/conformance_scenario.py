"""Scenarios: requests in order against one server, their answers compared with what a real one said."""

import asyncio
import importlib.util
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from conformance_exchange import Answer, Step, Target
from conformance_normal import Normal

from kubewright.testing import eventually

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
    """Read the responses of the real server, by step."""
    file = recording(name)
    return json.loads(file.read_text())["answers"] if file.exists() else {}


def recording(name: str) -> Path:
    """Return the file with the real server's responses to a scenario, and its Kubernetes version."""
    return FOLDER / "recorded" / f"{name}.json"


class Run:
    """A run of steps against one server, with the values that they saved and the normalised responses.

    `expected` has the responses that a real server gave, by step: a stream is read until it has as many frames.
    """

    def __init__(
        self, target: Target, expected: Mapping[str, Any] | None = None, timeout: float = STEP_TIMEOUT
    ) -> None:
        self._target = target
        self._timeout = timeout
        self._normal = Normal()
        self._expected = expected or {}
        self.values: dict[str, str] = {}
        self.answers: dict[str, Any] = {}

    def play(self, scenario: Scenario) -> dict[str, Any]:
        """Send all steps and return the normalised responses to those that are compared."""
        with scenario.fixture() as values:
            self.values.update(values)
            for step in scenario.steps:
                self.perform(step)
        return self.answers

    def perform(self, step: Step) -> None:
        """Send a step, and keep what it saves and, if it is compared, the normalised response."""
        answer = self._ask(step)
        for name, path in step.save.items():
            self.values[name] = _dig(answer.body, path)
        if step.compared:
            self.answers[step.name] = asdict(
                Answer(answer.status, self._normal.value(answer.headers), self._normal.value(answer.body))
            )

    def _ask(self, step: Step) -> Answer:
        if step.forgets:
            self._target.forget()

        def answered() -> Answer | None:
            nonlocal answer
            answer = self._target.send(step, self.values, self.perform, self._frames(step))
            warned = step.warned in str(answer.headers.get("warning", ""))
            reached = warned and (step.until is None or step.until(answer.status, answer.body))
            return answer if reached else None

        answer: Answer | None = None
        try:
            # Most steps need no event loop: the first response is the expected one.
            return answered() or asyncio.run(eventually(answered, timeout=self._timeout))
        except AssertionError as error:
            raise AssertionError(
                f"{step.name}: not reached in {self._timeout:g} s, the last response was {answer}"
            ) from error

    def _frames(self, step: Step) -> int:
        """Return how many frames of a stream the real server sent."""
        body = self._expected.get(step.name, {}).get("body")
        return len(body) if isinstance(body, list) else 0


def _dig(value: Any, path: str) -> str:
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if int(part) < len(value) else ""
        else:
            value = value.get(part, "") if isinstance(value, dict) else ""
    return str(value)
