"""What a plan found, as text, JSON and Markdown (pure functions)."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kubewright.api import JsonObject
from kubewright.cli.plan.changes import Action, PlannedChange

ACTIONS: tuple[Action, ...] = ("create", "change", "delete")
_NOTHING_WRITTEN = "nothing was written to the cluster"


@dataclass(frozen=True, slots=True)
class PlanResult:
    """The result of a plan."""

    pending: Sequence[PlannedChange]
    """Changes that the operator makes to what is in the cluster, without the user's change."""
    changes: Sequence[PlannedChange] | None
    """Changes that follow from the user's change; None if there is none."""
    failures: Sequence[str]
    """Errors of reconciles, without duplicates."""

    @property
    def all_changes(self) -> list[PlannedChange]:
        """Return the changes with and without the user's change."""
        return [*self.pending, *(self.changes or ())]


def counts(changes: Sequence[PlannedChange]) -> dict[str, int]:
    """Count the changes by action, and the workloads whose Pods are replaced."""
    counted = {action: sum(change.action == action for change in changes) for action in ACTIONS}
    return {**counted, "restart": sum(change.restarts for change in changes)}


def summary(changes: Sequence[PlannedChange]) -> str:
    """Return the counts as text, with the workloads whose Pods are replaced."""
    counted = counts(changes)
    text = ", ".join(f"{counted[action]} to {action}" for action in ACTIONS)
    restarted = counted["restart"]
    if restarted:
        text += f"; Pods of {restarted} {'workload' if restarted == 1 else 'workloads'} restart"
    return text


def as_text(result: PlanResult) -> Iterator[str]:
    """Yield the lines of the diffs, then those of the summary."""
    if result.changes is None:
        yield from _diff(result.pending)
        yield f"plan: {summary(result.pending)}; {_NOTHING_WRITTEN}"
        return
    if result.pending:
        yield "# changes that the operator would make without the change"
        yield from _diff(result.pending)
        yield "# changes caused by the change"
    yield from _diff(result.changes)
    if result.pending:
        yield f"without the change: {summary(result.pending)}"
    yield f"plan: {summary(result.changes)}; {_NOTHING_WRITTEN}"


def as_json(result: PlanResult) -> str:
    """Return the result as a JSON document."""
    document: JsonObject = {
        "pending": [_wire(change) for change in result.pending],
        "changes": [_wire(change) for change in result.changes or ()],
        "failures": list(result.failures),
        "counts": {"pending": counts(result.pending), "changes": counts(result.changes or ())},
    }
    return json.dumps(document, indent=2)


def as_markdown(result: PlanResult) -> Iterator[str]:
    """Yield the lines of a comment for a pull request."""
    yield "### kubewright plan"
    yield ""
    yield "| | create | change | delete | restart Pods |"
    yield "|---|---|---|---|---|"
    rows = [("the objects in the cluster", result.pending)]
    if result.changes is not None:
        rows = [("without the change", result.pending), ("with the change", result.changes)]
    for title, changes in rows:
        yield f"| {title} | {' | '.join(str(count) for count in counts(changes).values())} |"
    if result.failures:
        yield ""
        yield "Failed reconciles:"
        yield ""
        yield from (f"- {_code(failure)}" for failure in result.failures)
    for title, changes in rows:
        if changes:
            yield ""
            yield f"<details><summary>Changes: {title}</summary>"
            yield ""
            yield from _markdown_diffs(changes)
            yield ""
            yield "</details>"


def _markdown_diffs(changes: Sequence[PlannedChange]) -> Iterator[str]:
    restarted = [change.object for change in changes if change.restarts]
    if restarted:
        yield f"Pods restart: {', '.join(map(_code, restarted))}"
        yield ""
    lines = list(_diff(changes))
    fence = "`" * max(3, 1 + max((_longest_run(line) for line in lines), default=0))
    yield f"{fence}diff"
    yield from lines
    yield fence


def _diff(changes: Sequence[PlannedChange]) -> Iterator[str]:
    return (line for change in changes for line in change.lines)


def _code(text: str) -> str:
    """Return text as a code span, whatever backticks it contains."""
    fence = "`" * (1 + _longest_run(text))
    space = " " if "`" in text else ""
    return f"{fence}{space}{text.replace(chr(10), ' ')}{space}{fence}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def _wire(change: PlannedChange) -> JsonObject:
    return {
        "action": change.action,
        "object": change.name,
        "namespace": change.namespace,
        "restarts": change.restarts,
        "diff": list(change.lines),
    }
