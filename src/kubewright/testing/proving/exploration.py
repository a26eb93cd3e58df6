"""Which cases are run, in which order: faults, then orders, then specs; in each part the systematic cases come first."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kubewright.api import JsonObject
from kubewright.testing.proving.cases import (
    Case,
    crash_pairs,
    leader_pauses,
    lost_responses,
    random_case,
    refused_requests,
    single_crashes,
    single_disturbances,
)
from kubewright.testing.proving.continuous_checks import Observed
from kubewright.testing.proving.orders import DEFAULT_DEPTH, DEFAULT_SCHEDULES, OrderSearch
from kubewright.testing.proving.prover import Prover
from kubewright.testing.proving.report import Report, SpecStage, Stage
from kubewright.testing.proving.sequences import drawn_sequence, targets
from kubewright.testing.proving.violations import (
    DEFAULT_VIOLATIONS,
    FoundViolation,
    ViolationLog,
    reduced,
)

PARTS = ("faults", "orders", "specs")
"""The parts of an exploration, in their order."""
DEFAULT_SEEDS = 50
DEFAULT_PAIRS = 50
"""Maximum number of pairs of crashes; a reconcile with ten writes has about two hundred."""

DEFAULT_SEQUENCES = 20
"""Number of random sequences of specs, and maximum number of changes of one field."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of an exploration."""

    seeds: int = DEFAULT_SEEDS
    first_seed: int = 1
    pairs: int = DEFAULT_PAIRS
    minutes: float | None = None
    """Time after which no further case is started; None means no limit."""
    only: frozenset[str] = frozenset()
    """The parts to explore, of `PARTS`; empty means all."""
    depth: int = DEFAULT_DEPTH
    """Maximum number of steps in which a schedule deviates from the default order."""
    schedules: int = DEFAULT_SCHEDULES
    """Maximum number of schedules."""
    sequences: int = DEFAULT_SEQUENCES
    """Number of random sequences of specs, with seeds from `first_seed` on, and maximum number of changes of one field."""
    violations: int = DEFAULT_VIOLATIONS
    """Number of distinct violations after which a part ends."""

    @property
    def parts(self) -> list[str]:
        """Return the parts that are explored, in their order."""
        return [part for part in PARTS if not self.only or part in self.only]


DEFAULT_EFFORT = Effort()


class ExplorationBudget:
    """Decide when a part of an exploration ends: after its share of the minutes, or with enough distinct violations.

    The minutes are divided equally among the parts; time that one part does not use is divided among the later ones.
    """

    def __init__(self, effort: Effort, parts: Sequence[str], log: ViolationLog) -> None:
        self._minutes = effort.minutes
        self._parts = parts
        self._log = log
        self._full: list[str] = []
        self._end = 0.0 if effort.minutes is None else time.monotonic() + effort.minutes * 60
        self._ends: dict[str, float] = {}
        self._cut: list[str] = []

    def is_over(self, part: str) -> bool:
        """Return True if no further case of a part should start.

        The share of a part starts with the first call, which returns False: the first case is always run.
        """
        if self._log.is_full(part):
            if part not in self._full:
                self._full.append(part)
            return True
        if self._minutes is None:
            return False
        now = time.monotonic()
        if part not in self._ends:
            self._ends[part] = now + (self._end - now) / (len(self._parts) - self._parts.index(part))
            return False
        if now <= self._ends[part]:
            return False
        if part not in self._cut:
            self._cut.append(part)
        return True

    @property
    def reason(self) -> str:
        """Return why the exploration ended before all planned cases were run; empty if it did not."""
        reasons: list[str] = []
        if self._cut:
            reasons.append(f"the {self._minutes:g} minutes were not enough for {', '.join(self._cut)}")
        if self._full:
            count = self._log.bound
            found = f"{count} distinct violation{'s' if count > 1 else ''}"
            reasons.append(f"{', '.join(self._full)} ended with {found}; there may be more (--violations)")
        return "; ".join(reasons)


def stages(
    part: str, samples: Sequence[JsonObject], observed: Observed, effort: Effort
) -> Iterator[tuple[Stage, Iterable[Case]]]:
    """Yield the stages of a part with their cases; run all cases of a stage before you request the next one."""
    if part == "faults":
        yield from _fault_stages(observed, effort)
    elif part == "orders":
        yield from OrderSearch(effort.depth, effort.schedules).stages()
    else:
        yield from _spec_stages(samples, observed, effort)


def _fault_stages(observed: Observed, effort: Effort) -> Iterator[tuple[Stage, Iterable[Case]]]:
    crashes = list(single_crashes(observed.points))
    yield Stage("crash points", len(crashes)), crashes
    lost = list(lost_responses(observed.points))
    yield Stage("lost responses of writes", len(lost)), lost
    refused = list(refused_requests(observed.points))
    yield Stage("refused requests", len(refused)), refused
    disturbed = list(single_disturbances(webhooks=observed.webhooks, external=observed.external))
    yield Stage("single disturbances", len(disturbed)), disturbed
    pauses = list(leader_pauses(observed.points))
    yield Stage("pauses of the leader at writes", len(pauses)), pauses
    pairs = crash_pairs(observed.points)
    yield Stage("pairs of crashes at writes", len(pairs), effort.pairs, "--pairs"), pairs[: effort.pairs]
    seeds = range(effort.first_seed, effort.first_seed + effort.seeds)
    yield (
        Stage("random seeds", len(seeds)),
        (random_case(seed, webhooks=observed.webhooks, external=observed.external) for seed in seeds),
    )


def _spec_stages(
    samples: Sequence[JsonObject], observed: Observed, effort: Effort
) -> Iterator[tuple[Stage, Iterable[Case]]]:
    changes = {number: changed for number, (_, changed) in observed.changes.items()}
    found = targets(samples, observed.schemas, changes)
    if not found:
        return
    singles = [sequence for target in found for sequence in target.single_changes()]
    yield (
        SpecStage("changes of one field", len(singles), effort.sequences, "--sequences"),
        (Case(sequence=sequence) for sequence in singles[: effort.sequences]),
    )
    seeds = range(effort.first_seed, effort.first_seed + effort.sequences)
    yield (
        SpecStage("sequences of specs", len(seeds)),
        (Case(seed=seed, sequence=drawn_sequence(seed, found)) for seed in seeds),
    )


def begin_report(
    name: str, samples: Sequence[JsonObject], observed: Observed, invariants: int, notes: Sequence[str] = ()
) -> Report:
    """Return the report of an exploration after its run without faults."""
    return Report(
        name,
        notes=notes,
        samples=list(dict.fromkeys(f"{sample['kind']} {sample['metadata']['name']}" for sample in samples)),
        changes=[
            f"{samples[number]['kind']} {samples[number]['metadata']['name']} {text}"
            for number, (text, _) in sorted(observed.changes.items())
        ],
        invariants=invariants,
        reconciles=observed.reconciles,
        requests=observed.requests,
        virtual_seconds=observed.seconds,
        sharded=observed.shards,
        early_claims=Counter(observed.early_claims),
    )


def begin_parts(
    effort: Effort, log: ViolationLog, report: Report, failure: FoundViolation | None
) -> list[str]:
    """Return the parts that can be explored after the run without faults, and log that run's failure, if it failed.

    Faults and orders are compared with that run, so they need it. Sequences of specs are compared with each other.
    """
    if failure is None:
        return effort.parts
    log.add("", 0, failure)
    missing = [part for part in effort.parts if part != "specs"]
    if missing:
        report.not_run = f"{' and '.join(missing)} not explored: they are compared with the run without faults, which fails"
    return [part for part in effort.parts if part == "specs"]


def explore(
    prover: Prover, effort: Effort = DEFAULT_EFFORT, *, progress: Callable[[str], None] = lambda _: None
) -> Report:
    """Run all cases in this process, shrink each distinct violation, and return the report.

    `progress` is called with the state of the current stage after each case.
    """
    began = time.perf_counter()
    observed, failure = prover.begin()
    report = begin_report(
        prover.name, prover.subject.samples, observed, len(prover.subject.invariants), prover.notes
    )
    log = report.log = ViolationLog(effort.violations)
    parts = begin_parts(effort, log, report, failure)
    budget = ExplorationBudget(effort, parts, log)
    for part in parts:
        for stage, cases in stages(part, prover.subject.samples, observed, effort):
            report.stages.append(stage)
            for case in cases:
                if budget.is_over(part):
                    break
                report.add(part, stage, prover.run(case), report.runs)
                progress(str(stage))
            if budget.is_over(part):
                break
    report.stopped = budget.reason
    for violation in log.violations():
        smallest = prover.shrink(violation.found)
        report.violations.append(reduced(violation, smallest, prover.explain(smallest)))
    report.elapsed = time.perf_counter() - began
    return report
