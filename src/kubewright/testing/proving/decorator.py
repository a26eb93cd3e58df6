"""`@prove(...)` creates a test that proves an operator; `@prove.invariant` declares what must hold after each write."""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from kubewright.api import JsonObject
from kubewright.controller import Operator
from kubewright.documents import read_yaml
from kubewright.testing.proving.exploration import DEFAULT_PAIRS, DEFAULT_SEQUENCES, Effort, explore
from kubewright.testing.proving.fresh_modules import fresh_operator
from kubewright.testing.proving.orders import DEFAULT_DEPTH, DEFAULT_SCHEDULES
from kubewright.testing.proving.prover import Prover
from kubewright.testing.proving.subject import ProofError
from kubewright.testing.proving.violations import DEFAULT_VIOLATIONS
from kubewright.testing.simulation.invariants import Invariant

_MARK = "__kubewright_invariant__"


class ProveDecorator:
    """Create tests of operators, and declare invariants; `prove` is the only instance."""

    def __call__(
        self,
        operator: str | Callable[[], Operator],
        samples: str | Path | Sequence[JsonObject] = "samples",
        *,
        seeds: int = 10,
        pairs: int = DEFAULT_PAIRS,
        depth: int = DEFAULT_DEPTH,
        schedules: int = DEFAULT_SCHEDULES,
        sequences: int = DEFAULT_SEQUENCES,
        violations: int = DEFAULT_VIOLATIONS,
        first_seed: int = 1,
        only: Collection[str] = (),
        minutes: float | None = None,
        keeps: Sequence[str] = (),
        invariants: Sequence[Invariant] = (),
    ) -> Callable[[Callable[[], None]], Callable[[], None]]:
        """Return a decorator that creates a test, which proves an operator with its samples.

        - `operator`: `"module:object"`, whose modules are imported again at each restart, or a function that returns an
          operator.
        - `samples`: objects, or a file or directory beside the test's file or in the current directory.
        - `invariants`: functions that are checked in addition to the invariants of the test's module.
        - `keeps`: resources, such as `pods`, whose objects may stay when everything is deleted.
        - `only`: the parts to explore, of `faults`, `orders` and `specs`; all of them by default.
        - `seeds`, `pairs`: the number of random cases, and the maximum number of pairs of crashes.
        - `depth`, `schedules`: limits for the orders. `sequences`: limit for the specs.
        - `first_seed`: the seed of the first random case and the first random sequence.
        - `violations`: the number of distinct violations after which a part ends.
        - `minutes`: the time after which no further case is started.
        """

        def decorate(function: Callable[[], None]) -> Callable[[], None]:
            module = sys.modules[function.__module__]

            def test() -> None:
                __tracebackhide__ = True
                prover = Prover(
                    fresh_operator(operator) if isinstance(operator, str) else operator,
                    _read(samples, module) if isinstance(samples, str | Path) else samples,
                    invariants=[*invariants_of(module), *invariants],
                    keeps=keeps,
                )
                effort = Effort(
                    seeds=seeds,
                    first_seed=first_seed,
                    pairs=pairs,
                    minutes=minutes,
                    depth=depth,
                    schedules=schedules,
                    sequences=sequences,
                    violations=violations,
                    only=frozenset(only),
                )
                report = explore(prover, effort)
                function()
                if report.violations:
                    pytest.fail(report.text(), pytrace=False)

            test.__name__, test.__doc__, test.__module__ = (
                function.__name__,
                function.__doc__,
                function.__module__,
            )
            return test

        return decorate

    def invariant(self, check: Invariant) -> Invariant:
        """Declare an invariant: a function that is called after each write and raises AssertionError if it does not hold.

        It is called with the cluster's state and the write.
        """
        setattr(check, _MARK, True)
        return check


prove: ProveDecorator = ProveDecorator()
"""Create a test of an operator with `@prove(...)`; declare what must hold after each write with `@prove.invariant`."""


def invariants_of(module: ModuleType) -> list[Invariant]:
    """Return the invariants that a module declares, in the order of their names."""
    found = [value for _, value in sorted(vars(module).items()) if getattr(value, _MARK, False)]
    return cast("list[Invariant]", found)


def _read(place: str | Path, module: ModuleType) -> list[JsonObject]:
    beside = Path(module.__file__ or ".").parent / place
    found = beside if beside.exists() else Path(place)
    if not found.exists():
        raise ProofError(
            f"samples {place} not found beside {module.__file__} or in the current directory: pass samples= with the path"
        )
    return list(read_samples(found))


def read_samples(place: Path) -> Iterator[JsonObject]:
    """Yield the objects of a YAML file, or of all YAML files in a directory."""
    for path in sorted(place.glob("*.y*ml")) if place.is_dir() else [place]:
        for document in read_yaml(path.read_text(encoding="utf-8")):
            value: Any = document.value
            if isinstance(value, dict):
                yield cast("JsonObject", value)
