"""The distinct violations of an exploration, and which cases showed each of them.

Two cases show the same violation if the same property fails with the same `PropertyFailed.about`: the kind, the
resource, the field or the line of code, without names and values. Cases are numbered in the order in which they are
planned, and the first case of a violation represents it, so the result does not depend on the number of processes.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from kubewright.testing.proving.cases import Case
from kubewright.testing.proving.properties import Property

DEFAULT_VIOLATIONS = 5
"""Distinct violations after which a part of an exploration ends; more with `--violations`."""


@dataclass(frozen=True, slots=True)
class FoundViolation:
    """A property that does not hold in a case."""

    property: Property
    message: str
    case: Case
    advice: str = ""
    """A suggested fix, or an empty string."""
    about: str = ""
    """What is violated, such as a resource and a field."""

    def is_same(self, other: "FoundViolation") -> bool:
        """Return True if the property and `about` are the same."""
        return (self.property, self.about) == (other.property, other.about)


@dataclass(frozen=True, slots=True)
class DistinctViolation:
    """One of the distinct violations, with the number of runs that showed it."""

    found: FoundViolation
    """The first case that showed it; after shrinking, the smallest one."""
    runs: int
    part: str = ""
    """The part of the exploration that found it first; empty if the run without faults did."""
    timeline: str = ""
    """What happened in the case, one line for each event."""


@dataclass
class ViolationLog:
    """Collect the violations of the cases as they are run."""

    bound: int = DEFAULT_VIOLATIONS
    runs: Counter[Property] = field(default_factory=Counter[Property])
    """In how many runs each property does not hold."""
    _first: dict[tuple[Property, str], tuple[int, str, FoundViolation]] = field(
        default_factory=dict[tuple[Property, str], tuple[int, str, FoundViolation]]
    )
    _counts: Counter[tuple[Property, str]] = field(default_factory=Counter[tuple[Property, str]])

    def add(self, part: str, number: int, found: FoundViolation) -> None:
        """Count a violation that the case with this number showed."""
        key = found.property, found.about
        self.runs[found.property] += 1
        self._counts[key] += 1
        if key not in self._first or number < self._first[key][0]:
            self._first[key] = number, part, found

    def is_full(self, part: str) -> bool:
        """Return True if a part has found `bound` distinct violations."""
        return sum(found == part for _, found, _ in self._first.values()) >= self.bound

    def violations(self) -> list[DistinctViolation]:
        """Return the distinct violations in the order of their first cases; at most `bound` for each part."""
        shown: Counter[str] = Counter()
        chosen: list[DistinctViolation] = []
        for key, (_, part, found) in sorted(self._first.items(), key=lambda item: item[1][0]):
            shown[part] += 1
            if shown[part] <= self.bound:
                chosen.append(DistinctViolation(found, self._counts[key], part))
        return chosen


def reduced(violation: DistinctViolation, found: FoundViolation, timeline: str) -> DistinctViolation:
    """Return a violation with its smallest case and what happened in it."""
    return replace(violation, found=found, timeline=timeline)
