"""The report of an exploration, as text, Markdown or JSON: what was run, and what was found."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kubewright.api import JsonObject
from kubewright.testing.proving.cases import Case, to_json
from kubewright.testing.proving.properties import INVARIANTS, PROPERTIES, VALID_SPECS
from kubewright.testing.proving.prover import CaseResult
from kubewright.testing.proving.sequence_run import SpecsSeen
from kubewright.testing.proving.sequences import ApplySpec, EditChild, SpecSequence
from kubewright.testing.proving.timeline import describe
from kubewright.testing.proving.violations import DistinctViolation, FoundViolation, ViolationLog

_SHOWN = 5
_LONGEST_LINE = 180


@dataclass
class Stage:
    """A group of cases of one sort within a part of the exploration."""

    name: str
    planned: int
    """How many cases there are."""
    bound: int = 0
    """Maximum number of them that are run; 0 means all."""
    option: str = ""
    """The option of the command that sets the bound."""
    run: int = 0
    failed: int = 0

    def add(self, result: CaseResult) -> None:
        """Count a case of this stage."""
        self.run += 1
        self.failed += result.failure is not None

    def __str__(self) -> str:
        wanted = min(self.planned, self.bound) if self.bound else self.planned
        found = f"{self.run:,} of {self.planned:,} {self.name}"
        return f"{found}{self._limit()}" if self.run == wanted < self.planned else found

    def _limit(self) -> str:
        return f" (at most {self.bound:,}; more with {self.option})"


@dataclass
class OrderStage(Stage):
    """The schedules with the same number of deviations from the default order."""

    depth: int = 0
    pruned: int = 0
    """How many ended early because another schedule had been in the same state."""
    not_pruned: str = ""
    """Why states are not compared, if they are not."""
    notify: Callable[[CaseResult], None] = lambda _: None
    """Called with each result."""

    def add(self, result: CaseResult) -> None:
        """Count a schedule, and pass its result to the search."""
        super().add(result)
        self.pruned += result.pruned
        self.not_pruned = result.not_pruned or self.not_pruned
        if result.failure is None:
            self.notify(result)

    def __str__(self) -> str:
        name = "schedule in the default order" if self.depth == 0 else f"schedules of depth {self.depth}"
        found = f"{self.run:,} of {self.planned:,} {name}"
        return f"{found}{self._limit()}" if self.run == self.bound < self.planned else found


@dataclass
class SpecStage(Stage):
    """Sequences of specs."""


@dataclass
class Report:
    """The result of an exploration."""

    operator: str
    samples: Sequence[str]
    changes: Sequence[str]
    invariants: int = 0
    stages: list[Stage] = field(default_factory=list[Stage])
    violations: list[DistinctViolation] = field(default_factory=list[DistinctViolation])
    """The distinct violations, each with its smallest case; empty if all properties hold."""
    log: ViolationLog = field(default_factory=ViolationLog)
    """In how many runs each property does not hold."""
    reconciles: int = 0
    requests: int = 0
    virtual_seconds: float = 0.0
    elapsed: float = 0.0
    jobs: int = 1
    notes: Sequence[str] = ()
    """Messages about calls because of which runs cannot be repeated exactly."""
    stopped: str = ""
    """Why the exploration ended before all planned cases were run."""
    not_run: str = ""
    """Which parts could not be explored, and why."""
    sharded: bool = False
    faults: Counter[str] = field(default_factory=Counter[str])
    two_replicas: int = 0
    namespaces: int = 0
    specs: SpecsSeen = field(default_factory=SpecsSeen)
    early_claims: Counter[str] = field(default_factory=Counter[str])
    """A sentence for each object that was Ready=True while one of its workloads was still rolling out, with the number of runs."""

    @property
    def runs(self) -> int:
        """Return how many cases were run, including the one without faults."""
        return 1 + sum(stage.run for stage in self.stages)

    def add(self, part: str, stage: Stage, result: CaseResult, number: int) -> None:
        """Count a case of a part; `number` is its position among all cases."""
        stage.add(result)
        if result.failure is not None:
            self.log.add(part, number, result.failure)
        self.early_claims.update(result.early_claims)
        case = result.case
        self.faults.update(type(fault).__name__ for fault in case.all_faults)
        self.two_replicas += case.replicas > 1
        self.namespaces += case.ending == "namespace"
        self.reconciles += result.reconciles
        self.requests += result.requests
        self.virtual_seconds += result.seconds
        self.specs.add(result.specs)

    def coverage(self) -> list[str]:
        """Return lines that describe what was explored."""
        lines = [f"{_counted(len(self.samples), 'sample')}: {', '.join(self.samples)}"]
        lines.append(f"changed: {'; '.join(self.changes)}" if self.changes else "changed: no sample")
        lines += [str(stage) for stage in self.stages]
        lines += self._orders()
        lines += self._specs()
        if self.faults:
            counts = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
            lines.append(f"faults drawn: {counts}")
        if self.two_replicas:
            lines.append(f"{self.two_replicas} runs with two replicas and leader election")
        if self.namespaces:
            lines.append(f"{self.namespaces} runs ended with the deletion of the namespace")
        hours = self.virtual_seconds / 3600
        lines.append(
            f"{_counted(self.runs, 'run')}, {_counted(self.reconciles, 'reconcile')}, "
            f"{_counted(self.requests, 'request')}, {hours:,.1f} simulated hours in {self.elapsed:.0f} s "
            f"with {_counted(self.jobs, 'process', 'processes')}"
        )
        lines += self.notes
        if self.stopped:
            lines.append(f"stopped early: {self.stopped}")
        if self.not_run:
            lines.append(self.not_run)
        return lines

    def _orders(self) -> list[str]:
        """Return lines that say to which depth all schedules were run, and how many beyond it."""
        levels = [stage for stage in self.stages if isinstance(stage, OrderStage)]
        if not levels:
            return []
        count, pruned = sum(level.run for level in levels), sum(level.pruned for level in levels)
        whole = [level.depth for level in levels if level.run == level.planned]
        line = f"{_counted(count, 'schedule')} to depth {levels[-1].depth}"
        if pruned:
            line += f", {pruned:,} pruned in a state seen before"
        if len(whole) < len(levels):
            done = f"complete to depth {whole[-1]}" if whole else "the default order was not finished"
            line += (
                f"; PARTIAL: {done}, {levels[-1].run:,} of {levels[-1].planned:,} at depth {levels[-1].depth}"
            )
        if failed := sum(level.failed for level in levels):
            line += f"; {_counted(failed, 'schedule')} violated a property"
        else:
            line += "; all settle in the same state"
        lines = [line]
        if off := next((level.not_pruned for level in levels if level.not_pruned), ""):
            lines.append(f"pruning of schedules is off: {off}")
        if self.sharded:
            lines.append(
                "schedules ran with one replica, which holds all shards; the other parts ran with two replicas"
            )
        return lines

    @property
    def sequences(self) -> int:
        """Return how many sequences of specs were run."""
        return sum(stage.run for stage in self.stages if isinstance(stage, SpecStage))

    def _specs(self) -> list[str]:
        """Return lines that describe what the sequences of specs did."""
        if not self.sequences:
            return []
        seen = self.specs
        by_hand = f"{_counted(seen.edited, 'child', 'children')} edited and {seen.deleted:,} deleted by hand"
        done = f"{_counted(seen.applied, 'spec')} applied, {seen.refused:,} refused by the API server"
        compared = f"{_counted(seen.compared, 'final state')} compared with the last spec alone"
        lines = [f"{_counted(self.sequences, 'sequence')}: {done}; {by_hand}; {compared}"]
        lines += [
            f"final state differs from that of the last spec alone, explained by condition {reason}: {_counted(count, 'time')}"
            for reason, count in sorted(seen.explained.items())
        ]
        lines += [
            f"the operator keeps waiting: {reason}, {_counted(count, 'time')}"
            for reason, count in sorted(seen.waiting.items())[:_SHOWN]
        ]
        return lines

    def warnings(self) -> list[str]:
        """Return warnings: findings that look wrong but violate no property."""
        refused = [
            f"warning: the CRD accepts a spec that cannot be carried out, as the status reports: {reason}"
            for reason in sorted(self.specs.reported)[:_SHOWN]
        ]
        effects = [
            f"warning: field without effect: {name} was changed alone {self.specs.effects[name][0]} times, and nothing "
            "else was written or read"
            for name in self.specs.without_effect()
        ]
        early = [
            f"warning: {claim}, in {_counted(count, 'run')}: correct only if Ready is not meant to wait for it"
            for claim, count in sorted(self.early_claims.items())
        ]
        return [*refused, *effects, *early]

    def rows(self) -> list[tuple[str, str]]:
        """Return the title and the result of each property."""
        rows: list[tuple[str, str]] = []
        failed_sequences = sum(stage.failed for stage in self.stages if isinstance(stage, SpecStage))
        for each in PROPERTIES:
            if count := self.log.runs[each]:
                rows.append((each.title, f"FAILED in {count:,} of {_counted(self.runs, 'run')}"))
            elif each is INVARIANTS and not self.invariants:
                rows.append((each.title, "none declared"))
            elif each is VALID_SPECS:
                held = self.sequences - failed_sequences
                rows.append(
                    (each.title, f"held in {_counted(held, 'sequence')}" if held > 0 else "not explored")
                )
            else:
                held = self.runs - self.log.runs.total()
                rows.append(
                    (each.title, f"held in {_counted(held, 'run')}" if held else "not checked to the end")
                )
        return rows

    def text(self) -> str:
        """Return the report for a terminal."""
        width = max(len(title) for title, _ in self.rows())
        lines: list[str] = []
        for number, violation in enumerate(self.violations, 1):
            lines += [self._heading(number, violation), *violation_lines(violation.found)]
            lines += ["", "What happened:", violation.timeline, ""]
        lines += [f"{title:<{width}}  {result}" for title, result in self.rows()]
        lines += ["", *self.coverage(), *self.warnings(), ""]
        if not self.violations:
            return "\n".join([*lines, f"{self.operator}: no violation found"])
        lines.append(f"{self.operator}: {_counted(len(self.violations), 'distinct violation')}")
        lines += [
            f"{number}. {_first_line(violation.found)} ({_counted(violation.runs, 'run')})"
            for number, violation in enumerate(self.violations, 1)
        ]
        return "\n".join(lines)

    def _heading(self, number: int, violation: DistinctViolation) -> str:
        part = f", first in {violation.part}" if violation.part else ", first in the run without faults"
        return f"Violation {number} of {len(self.violations)}, in {violation.runs:,} of {_counted(self.runs, 'run')}{part}"

    def markdown(self) -> str:
        """Return the report for a pull request."""
        titles = dict.fromkeys(f"**{violation.found.property.title}**" for violation in self.violations)
        verdict = f"{_listed(list(titles))} not hold" if titles else "no violation found"
        lines = [
            f"### kubewright prove: `{self.operator}`, {verdict}",
            "",
            "| property | result |",
            "|---|---|",
        ]
        lines += [f"| {title} | {result} |" for title, result in self.rows()]
        lines += ["", *(f"- {line}" for line in (*self.coverage(), *self.warnings()))]
        for number, violation in enumerate(self.violations, 1):
            body = "\n".join([*violation_lines(violation.found), "", "What happened:", violation.timeline])
            lines += [
                "",
                f"<details><summary>{self._heading(number, violation)}: {violation.found.property.title}</summary>",
                "",
                "```text",
                body,
                "```",
                "",
                "</details>",
            ]
        return "\n".join(lines)

    def json(self) -> JsonObject:
        """Return the report for programs."""
        return {
            "operator": self.operator,
            "samples": list(self.samples),
            "changes": list(self.changes),
            "properties": dict(self.rows()),
            "stages": [
                {"name": stage.name, "planned": stage.planned, "run": stage.run, "failed": stage.failed}
                for stage in self.stages
            ],
            "runs": self.runs,
            "faults": dict(sorted(self.faults.items())),
            "specs": {
                "sequences": self.sequences,
                "applied": self.specs.applied,
                "refused": self.specs.refused,
                "childrenEdited": self.specs.edited,
                "childrenDeleted": self.specs.deleted,
                "compared": self.specs.compared,
                "explained": dict(sorted(self.specs.explained.items())),
                "waiting": dict(sorted(self.specs.waiting.items())),
                "refusedAndReported": sorted(self.specs.reported),
                "fieldsWithoutEffect": self.specs.without_effect(),
            },
            "warnings": self.warnings(),
            "reconciles": self.reconciles,
            "requests": self.requests,
            "simulatedSeconds": round(self.virtual_seconds, 3),
            "elapsedSeconds": round(self.elapsed, 3),
            "notes": list(self.notes),
            "stopped": self.stopped,
            "notRun": self.not_run,
            "violations": [violation_json(violation) for violation in self.violations],
        }


def violation_json(violation: DistinctViolation) -> JsonObject:
    """Return a violation as JSON."""
    found = violation.found
    return {
        "property": found.property.id,
        "about": found.about,
        "message": found.message,
        "advice": found.advice,
        "runs": violation.runs,
        "part": violation.part,
        "case": to_json(found.case),
        "timeline": violation.timeline.splitlines(),
    }


def _first_line(found: FoundViolation) -> str:
    """Return a violation in one line, without the lines that follow its message."""
    text = f"{found.property.title}: {found.message.partition(chr(10))[0]}".rstrip(":")
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}..."


def _listed(titles: Sequence[str]) -> str:
    """Return `A does`, or `A, B and C do`."""
    if len(titles) == 1:
        return f"{titles[0]} does"
    return f"{', '.join(titles[:-1])} and {titles[-1]} do"


def violation_lines(failure: FoundViolation) -> list[str]:
    """Return lines that describe a failure: the property, what was observed, and the case."""
    return [
        f"{failure.property.title} does not hold: {failure.message}",
        f"({failure.property.summary})",
        *([failure.advice] if failure.advice else ()),
        "",
        *case_lines(failure.case),
    ]


def case_lines(case: Case) -> list[str]:
    """Return lines that describe a case."""
    if case.sequence is not None:
        return [
            f"Seed {case.seed}, {_counted(len(case.sequence.steps), 'step')}",
            *_step_lines(case.sequence),
        ]
    lines = [f"Seed {case.seed}, {_replicas(case)}{_ending(case)}"]
    if case.order is not None:
        count = len(case.order)
        text = (
            f"- {_counted(count, 'step')} not in the default order, see below"
            if count
            else "- in the default order"
        )
        return [*lines, text]
    faults = [f"- {describe(fault)}" for fault in case.faults.faults]
    late = [f"- while everything is deleted: {describe(fault)}" for fault in case.late_faults.faults]
    if not faults and not late:
        return (
            [*lines, "- without any fault"]
            if case.pauses is None
            else [*lines, "- changes come without waiting"]
        )
    return [*lines, *faults, *late]


def _step_lines(sequence: SpecSequence) -> list[str]:
    lines: list[str] = []
    for step in sequence.steps:
        match step:
            case ApplySpec():
                lines.append(f"- {'apply' if lines else 'create with'} {step.fields}")
            case EditChild():
                lines.append("- edit a child by hand, see below")
            case _:
                lines.append("- delete a child by hand, see below")
    return lines


def _replicas(case: Case) -> str:
    return "one replica" if case.replicas == 1 else f"{case.replicas} replicas"


def _ending(case: Case) -> str:
    return ", the namespace is deleted at the end" if case.ending == "namespace" else ""


def _counted(count: int, one: str, several: str = "") -> str:
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"
