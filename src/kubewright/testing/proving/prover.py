"""Run cases of one operator, compare each with the run without faults, and shrink failing ones."""

import gc
import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from kubewright.api import JsonObject, leaves
from kubewright.controller import Operator
from kubewright.testing.proving.advice import advice
from kubewright.testing.proving.case_run import CaseRun
from kubewright.testing.proving.cases import Case, smaller, undisturbed
from kubewright.testing.proving.clocks import author_files, real_clocks
from kubewright.testing.proving.continuous_checks import Observed
from kubewright.testing.proving.operator_state import SeenStates, StateSeen
from kubewright.testing.proving.properties import HEALTHY, SETTLES, VALID_SPECS, PropertyFailed
from kubewright.testing.proving.sequence_run import SequenceRun, SpecsSeen
from kubewright.testing.proving.sequences import SpecSequence, SpecTarget, smaller_sequences, targets
from kubewright.testing.proving.subject import ProofError, Subject, needs_workloads
from kubewright.testing.proving.timeline import timeline
from kubewright.testing.proving.violations import FoundViolation
from kubewright.testing.simulation import (
    Deadlock,
    HotLoop,
    Livelock,
    ScheduleMismatch,
    Simulation,
    SimulationError,
    simulate,
)
from kubewright.testing.simulation.invariants import Invariant
from kubewright.testing.simulation.schedule import ChoicePoint
from kubewright.testing.simulation.world import resource_of

SHRINKING_RUNS = 60
"""Maximum number of runs in the search for a smaller case."""
SHRINKING_SEQUENCES = 150
"""The same for a sequence of specs, whose values are reduced too."""
_RUNS_PER_COLLECTION = 10
"""A run leaves some megabytes, and a collection of everything takes too long to do it after each."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case."""

    case: Case
    failure: FoundViolation | None
    reconciles: int
    requests: int
    writes: int
    seconds: float
    """Virtual time that passed."""
    points: Sequence[ChoicePoint] = ()
    """Where messages could have arrived in another order, if the case has an order."""
    pruned: bool = False
    """Whether the run was ended because another run had been in the same state."""
    not_pruned: str = ""
    """Why its states were not compared with those of other runs."""
    specs: SpecsSeen = field(default_factory=SpecsSeen)
    """Counts of what a sequence of specs did."""
    early_claims: frozenset[str] = frozenset()
    """A sentence for each object that was Ready=True while one of its workloads was still rolling out."""


class Prover:
    """Prove one operator: `Prover(make, samples).check(Case(seed=7))`.

    `make` is called at each start and returns a new operator. Pass a `FreshModules`, or the result of `fresh_operator`, to
    import the operator's modules again at each start.
    """

    def __init__(
        self,
        make: Callable[[], Operator],
        samples: Sequence[JsonObject],
        *,
        invariants: Sequence[Invariant] = (),
        keeps: Sequence[str] = (),
    ) -> None:
        operator = make()
        _check(operator)
        declared = (resource_of(kind) for kind in operator.keeps)
        self.subject: Subject = Subject(
            lambda: _with_simulated_systems(make()), samples, invariants, frozenset((*keeps, *declared))
        )
        self.name: str = operator.name
        self.notes: list[str] = real_clocks(author_files(make))
        """Messages about calls because of which runs cannot be repeated exactly."""
        self.webhooks: bool = bool(operator.webhooks)
        self._workloads = needs_workloads(operator)
        self._replicas = 2 if operator.shards is not None else 1
        self._undisturbed: dict[Case, Observed] = {}
        self._runs = 0
        self._targets: list[SpecTarget] | None = None
        self.seen: SeenStates = SeenStates(off=_pruning_obstacle(operator, invariants))
        """The states that runs with an order were in."""

    def undisturbed(self, case: Case | None = None) -> Observed:
        """Run without faults, with the samples of a case, and return what was observed; raise PropertyFailed if it fails.

        The result is cached.
        """
        observed, failure = self._without_faults(undisturbed(case or Case()))
        if failure is not None:
            raise failure
        return observed

    def begin(self) -> tuple[Observed, FoundViolation | None]:
        """Run without faults; return what was observed, and the violation if a property does not hold."""
        observed, failure = self._without_faults(Case())
        return observed, None if failure is None else _violation(failure, Case())

    def check(self, case: Case) -> Observed:
        """Run a case and return what was observed.

        Raise PropertyFailed if a property does not hold in it, or in the same run without faults.
        """
        case = self._with_replicas(case)
        if case.sequence is not None:
            found = self.run(case).failure
            if found is not None:
                raise PropertyFailed(found.property, found.message, found.about)
            return self._alone(case)[0]
        _, run, failure = self._observe(case, self.undisturbed(case))
        if failure is not None:
            raise failure
        return run.observed

    def run(self, case: Case) -> CaseResult:
        """Run a case and return its result; a failure does not raise."""
        case = self._with_replicas(case)
        if case.sequence is not None:
            return self._run_sequence(case)
        failed, points, pruned = undisturbed(case), list[ChoicePoint](), False
        seen, failure = self._without_faults(failed)
        if failure is None:
            failed = case
            try:
                _, run, failure = self._observe(case, seen, self.seen if case.order is not None else None)
            except ScheduleMismatch:
                # Happens while a case is shrunk: without an earlier deviation, the choice point of a later one is missing.
                return CaseResult(case, None, 0, 0, 0, 0.0)
            seen, pruned = run.observed, run.pruned
            points = [] if run.schedule is None else run.schedule.points
            if failure is None:
                self.seen.add(point.state for point in points)
        return CaseResult(
            case,
            None if failure is None else _violation(failure, failed),
            seen.reconciles,
            seen.requests,
            seen.writes,
            seen.seconds,
            points,
            pruned,
            self.seen.off if case.order is not None else "",
            early_claims=frozenset(seen.early_claims),
        )

    def shrink(self, failure: FoundViolation, *, runs: int | None = None) -> FoundViolation:
        """Return the simplest case found that shows the same violation: with the fewest faults or steps, and samples.

        `runs` limits the number of runs of the search.
        """
        if runs is None:
            runs = SHRINKING_RUNS if failure.case.sequence is None else SHRINKING_SEQUENCES
        tried: set[Case] = {failure.case}
        while True:
            for case in map(self._with_replicas, self._smaller(failure.case)):
                if case in tried:
                    continue
                tried.add(case)
                if runs == 0:
                    return self._with_advice(failure)
                runs -= 1
                found = self.run(case).failure
                if found is not None and found.is_same(failure):
                    failure = found
                    break
            else:
                return self._with_advice(failure)

    def _with_advice(self, failure: FoundViolation) -> FoundViolation:
        sequence = failure.case.sequence
        if sequence is None:
            return failure
        target = self._target(sequence.sample)
        return replace(failure, advice=advice(failure.property, failure.message, sequence, target))

    def explain(self, failure: FoundViolation) -> str:
        """Run a failing case again and return its timeline: one line for each event."""
        plain = undisturbed(failure.case)
        if failure.case.sequence is not None:
            expected = self._alone(failure.case)[0] if _has_changes(failure.case) else None
        else:
            expected = None if failure.case == plain else self.undisturbed(failure.case)
        simulation, run, _ = self._observe(failure.case, expected)
        return timeline(simulation, run, failure.case)

    def digest(self, case: Case) -> str:
        """Run a case and return a hash of everything that happened in it; equal runs have equal hashes."""
        plain = case.sequence is not None or case == undisturbed(case)
        return self._observe(case, None if plain else self.undisturbed(case))[0].trace.digest()

    # Sequences of specs

    def targets(self) -> list[SpecTarget]:
        """Return the samples whose specs can be explored."""
        if self._targets is None:
            # A failure does not matter here: the schemas are read at the start.
            observed, _ = self._without_faults(Case())
            changes = {number: changed for number, (_, changed) in observed.changes.items()}
            self._targets = targets(self.subject.samples, observed.schemas, changes)
        return self._targets

    def _target(self, number: int) -> SpecTarget:
        return next(each for each in self.targets() if each.number == number)

    def _run_sequence(self, case: Case) -> CaseResult:
        """Run a sequence, then its last spec alone, and compare the final states.

        The sequence runs first, because it shows which of its specs the API server and the webhooks accept.
        """
        _, run, failure = self._observe(case, None)
        assert isinstance(run, SequenceRun)
        if not run.done:
            return _result(case, run, None)
        assert case.sequence is not None
        done = replace(case, sequence=SpecSequence(case.sequence.sample, tuple(run.done)))
        alone, failed_alone = (run.observed, failure) if not _has_changes(done) else self._alone(done)
        if failed_alone is not None:
            return _result(case, run, failed_alone, _alone(done) if _has_changes(done) else done)
        if failure is not None:
            return _result(case, run, _as_change_failure(failure), done)
        run.seen.compared = 1
        if _has_changes(done) and alone.outcome != run.observed.outcome:
            # Run it again and wait longer before the comparison: the operator may correct the state after a requeue.
            _, again, failure = self._observe(done, alone)
            assert isinstance(again, SequenceRun)
            run.seen.explained = again.seen.explained
        return _result(case, run, failure, done)

    def _alone(self, case: Case) -> tuple[Observed, PropertyFailed | None]:
        """Run the last spec of a sequence alone; return what was observed, and the failure."""
        alone = _alone(case)
        known = self._undisturbed.get(alone)
        if known is not None:
            return known, None
        _, run, failure = self._observe(alone, None)
        if failure is None:
            self._undisturbed[alone] = run.observed
        return run.observed, failure

    def _smaller(self, case: Case) -> Iterator[Case]:
        if case.sequence is None:
            yield from smaller(case, len(self.subject.samples))
            return
        number = case.sequence.sample
        chosen = tuple(range(len(self.subject.samples))) if case.samples is None else case.samples
        if len(chosen) > 1:
            yield replace(case, samples=(number,))
            for left_out in chosen:
                if left_out != number:
                    yield replace(case, samples=tuple(each for each in chosen if each != left_out))
        for sequence in smaller_sequences(case.sequence, self._target(number)):
            yield replace(case, sequence=sequence)

    def _with_replicas(self, case: Case) -> Case:
        """Return the case with the number of replicas that it needs: two with shards, except for cases with an order."""
        if case.order is not None or case.replicas >= self._replicas:
            return case
        return replace(case, replicas=self._replicas)

    def _without_faults(self, plain: Case) -> tuple[Observed, PropertyFailed | None]:
        known = self._undisturbed.get(plain)
        if known is not None:
            return known, None
        _, run, failure = self._observe(plain, None)
        if failure is None:
            self._undisturbed[plain] = run.observed
        return run.observed, failure

    def _observe(
        self, case: Case, expected: Observed | None, states: SeenStates | None = None
    ) -> tuple[Simulation, CaseRun, PropertyFailed | None]:
        self._runs += 1
        if self._runs % _RUNS_PER_COLLECTION == 0:
            # What earlier runs left was still in use when they ended, and the collector is off during a run: by itself
            # it would hardly ever come to it.
            gc.collect()
        case = self._with_replicas(case)
        if case.sequence is not None:
            run: CaseRun = SequenceRun(self.subject, case, expected)
        else:
            run = CaseRun(self.subject, case, expected, states)
        seen: list[Simulation] = []
        failure: PropertyFailed | None = None

        async def scenario(simulation: Simulation) -> None:
            seen.append(simulation)
            await run.execute(simulation)

        with _log_suppressed():
            try:
                simulate(scenario, case.seed, workloads=self._workloads)
            except PropertyFailed as error:
                failure = error
            except (HotLoop, Livelock, Deadlock) as error:
                failure = PropertyFailed(
                    HEALTHY, str(error).partition("\nthe last writes")[0], type(error).__name__
                )
            except StateSeen:
                run.pruned = True
            except ScheduleMismatch:
                raise
            except SimulationError as error:
                raise ProofError(str(error)) from error
            except BaseExceptionGroup as group:
                failure = _property_failure(group)
        run.count()
        return seen[0], run, failure


def _has_changes(case: Case) -> bool:
    """Return True if a case has a sequence with further steps after the creation of the object."""
    return case.sequence is not None and len(case.sequence.steps) > 1


def _alone(case: Case) -> Case:
    assert case.sequence is not None
    return Case(samples=case.samples, sequence=case.sequence.alone())


def _as_change_failure(failure: PropertyFailed) -> PropertyFailed:
    """Return the failure of a sequence whose last spec alone does not fail: the spec is valid, the change to it fails."""
    if failure.property is not VALID_SPECS:
        return failure
    return PropertyFailed(
        SETTLES,
        f"{failure.message}; an object that is created with this spec does not fail",
        failure.about,
    )


def _result(
    case: Case, run: SequenceRun, failure: PropertyFailed | None, failed: Case | None = None
) -> CaseResult:
    seen = run.observed
    return CaseResult(
        case,
        None if failure is None else _violation(failure, failed or case),
        seen.reconciles,
        seen.requests,
        seen.writes,
        seen.seconds,
        specs=run.seen,
        early_claims=frozenset(seen.early_claims),
    )


def _violation(failure: PropertyFailed, case: Case) -> FoundViolation:
    return FoundViolation(failure.property, failure.message, case, about=failure.about)


def _property_failure(group: "BaseExceptionGroup[BaseException]") -> PropertyFailed:
    """Return the first PropertyFailed of a group; raise the first other exception in it, if there is one."""
    found = list(leaves(group))
    for error in found:
        if not isinstance(error, PropertyFailed):
            raise error
    assert isinstance(found[0], PropertyFailed)
    return found[0]


@contextmanager
def _log_suppressed() -> Generator[None]:
    """Do not pass the log of the simulated operators on to the root logger."""
    log = logging.getLogger("kubewright")
    before, log.propagate = log.propagate, False
    try:
        yield
    finally:
        log.propagate = before


def _pruning_obstacle(operator: Operator, invariants: Sequence[Invariant]) -> str:
    """Return why the states of two runs of an operator cannot be compared; an empty string if they can."""
    if operator.lifespan is not None or operator.proving is not None:
        return "the operator has a lifespan, which may keep state"
    if operator.shards is not None:
        return "the operator has shards, whose leases are renewed all the time"
    if operator.webhooks:
        return "the operator has webhooks, whose requests in progress are not compared"
    if invariants:
        return "an invariant may look at earlier writes"
    return ""


def _check(operator: Operator) -> None:
    """Raise ProofError if the operator needs an external system and declares no simulated one."""
    if operator.lifespan is not None and operator.proving is None:
        raise ProofError(
            f"operator {operator.name!r} has a lifespan, which may use an external system: pass "
            "Operator(..., proving=...) with a lifespan that uses a simulated system instead, a subclass of "
            "kubewright.testing.External whose External.resources() returns what exists in it; or pass "
            "proving=contextlib.nullcontext if the operator uses no external system"
        )


def _with_simulated_systems(operator: Operator) -> Operator:
    operator.lifespan = operator.proving
    return operator
