"""A case: requests in order that share a state, drawn from a seed, and what one needs to draw them."""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from conformance_exchange import Step

JSON_PATCH = {"Content-Type": "application/json-patch+json"}
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
STRATEGIC_PATCH = {"Content-Type": "application/strategic-merge-patch+json"}
APPLY_PATCH = {"Content-Type": "application/apply-patch+yaml"}
NAMESPACES = "/api/v1/namespaces"


def no_values() -> AbstractContextManager[dict[str, str]]:
    return nullcontext({})


@dataclass(frozen=True)
class Case:
    """Requests to send to both servers, with `{run}` for a name that no other run of a case uses.

    `{ns}` is a namespace of the run's own, which the first step usually creates.
    """

    area: str
    seed: int
    number: int
    steps: tuple[Step, ...]
    cleanup: tuple[Step, ...] = ()
    """Requests that remove what would disturb other cases; sent in any case, never compared."""
    eventually: frozenset[str] = frozenset()
    """Names of the steps whose responses may take some time to become equal."""
    fixture: Callable[[], AbstractContextManager[dict[str, str]]] = no_values
    """A context that gives further values to fill in, such as the address of a webhook server."""

    def with_steps(self, steps: Sequence[Step]) -> "Case":
        """Return this case with other steps."""
        return replace(self, steps=tuple(steps))


@dataclass
class CaseBuilder:
    """Collect the steps of a case while they are drawn."""

    random: random.Random
    steps: list[Step] = field(default_factory=list)
    cleanup: list[Step] = field(default_factory=list)
    eventually: set[str] = field(default_factory=set)
    fixture: Callable[[], AbstractContextManager[dict[str, str]]] = no_values

    def namespace(self, **metadata: Any) -> None:
        """Create the namespace of the run."""
        self.prepare("POST", NAMESPACES, {"metadata": {"name": "{ns}", **metadata}})

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        eventually: bool = False,
        **more: Any,
    ) -> None:
        """Add a request whose responses are compared."""
        name = f"{len(self.steps):03}"
        self.steps.append(Step(name, method, path, body, headers or {}, **more))
        if eventually:
            self.eventually.add(name)

    def prepare(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        """Add a request whose responses are not compared."""
        self.send(method, path, body, headers, compared=False, **more)

    def clean(self, path: str) -> None:
        """Delete an object when the case has ended."""
        self.cleanup.append(Step(f"clean-{len(self.cleanup)}", "DELETE", path, compared=False))

    def case(self, area: str, seed: int, number: int) -> Case:
        """Return the case."""
        return Case(
            area,
            seed,
            number,
            tuple(self.steps),
            tuple(self.cleanup),
            frozenset(self.eventually),
            self.fixture,
        )


Generator = Callable[[CaseBuilder], None]
"""Draws the steps of one case."""


def draw(area: str, generator: Generator, seed: int, number: int) -> Case:
    """Draw a case: the same area, seed and number always give the same one."""
    builder = CaseBuilder(random.Random(f"{area}/{seed}/{number}"))
    generator(builder)
    return builder.case(area, seed, number)


def query(path: str, **options: Any) -> str:
    """Return a path with query options; those that are None or empty are left out."""
    parts = [f"{name}={value}" for name, value in options.items() if value not in (None, "")]
    if not parts:
        return path
    return f"{path}{'&' if '?' in path else '?'}{'&'.join(parts)}"


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Return the paths of all values inside a JSON value."""
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return
    for key, item in items:
        yield (*at, key)
        yield from places(item, (*at, key))


def value_at(value: Any, path: Sequence[str | int]) -> Any:
    """Return the value at a path."""
    for key in path:
        value = value[key]
    return value


def pointer(path: Sequence[str | int]) -> str:
    """Return a path as a JSON Pointer."""
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in path)


def copy(value: Any) -> Any:
    """Return a copy of a JSON value."""
    return json.loads(json.dumps(value))
