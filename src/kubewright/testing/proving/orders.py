"""The search over message orders: every schedule that deviates from the default order in at most `depth` steps.

A schedule is a list of deviations (`kubewright.testing.simulation.schedule`); the depth is their number. The search goes
level by level. Level 0 is the default order. Each run reports its choice points. For each choice point after its last
deviation, each choice that it did not make is a schedule of the next level. So every set of deviations is run exactly
once: it extends the set without its last deviation.

A run is pruned when it reaches a state that an earlier run was in (`operator_state`). No schedule is missed: both runs
continue in the same way, and the earlier run had at most as many deviations, so every schedule that could branch off
from the pruned run also branches off from the earlier one, within the same depth.
"""

from collections.abc import Iterator

from kubewright.testing.proving.cases import Case
from kubewright.testing.proving.prover import CaseResult
from kubewright.testing.proving.report import OrderStage
from kubewright.testing.simulation import Deviation

DEFAULT_DEPTH = 1
DEFAULT_SCHEDULES = 200
"""Schedules that are run at most; more with `--schedules`."""


class OrderSearch:
    """Choose the schedules to run: all of a level, then those that branch off from its runs."""

    def __init__(self, depth: int = DEFAULT_DEPTH, bound: int = DEFAULT_SCHEDULES) -> None:
        self._depth = depth
        self._left = bound
        self._partial = False
        self._branches: list[tuple[tuple[Deviation, ...], int, tuple[int, ...]]] = []

    def stages(self) -> Iterator[tuple[OrderStage, Iterator[Case]]]:
        """Yield each level with its cases; run all of them before you request the next level."""
        yield self._stage(0, 1, iter([Case(order=())]))
        for depth in range(1, self._depth + 1):
            if self._partial:
                return
            # Sorted, so that the order does not depend on which process finished first.
            branches, self._branches = sorted(self._branches), []
            planned = sum(options - 1 for _, _, points in branches for options in points)
            if planned:
                yield self._stage(depth, planned, _cases(branches))

    def _stage(self, depth: int, planned: int, cases: Iterator[Case]) -> tuple[OrderStage, Iterator[Case]]:
        bound = min(planned, self._left)
        self._left -= bound
        self._partial = bound < planned
        stage = OrderStage("schedules", planned, bound, option="--schedules", depth=depth, notify=self._add)
        return stage, (case for case, _ in zip(cases, range(bound), strict=False))

    def _add(self, result: CaseResult) -> None:
        """Record where the schedules of the next level branch off."""
        base = result.case.order
        assert base is not None
        first = base[-1].point + 1 if base else 0
        options = tuple(point.options for point in result.points[first:])
        if options:
            self._branches.append((base, first, options))


def _cases(branches: list[tuple[tuple[Deviation, ...], int, tuple[int, ...]]]) -> Iterator[Case]:
    for base, first, points in branches:
        for place, options in enumerate(points, first):
            for choice in range(1, options):
                yield Case(order=(*base, Deviation(place, choice)))
