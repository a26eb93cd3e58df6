"""The timeline of a run, as text: changes, faults, reconciles with their causes, and writes with their diffs.

Repeated lines, such as a retry that fails for the same reason again and again, are folded.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kubewright.journal import CauseRecord, ReadRecord, ReconcileRecord, Redactor, record_of
from kubewright.journal.records import changed_fields
from kubewright.testing.proving.case_run import CaseRun
from kubewright.testing.proving.cases import Case
from kubewright.testing.proving.subject import NAMESPACE
from kubewright.testing.simulation import (
    Crash,
    CutWatches,
    DropBookmarks,
    FailExternal,
    HoldEvents,
    JumpClock,
    Lose,
    LoseResponse,
    Pause,
    PauseAt,
    PauseLeader,
    PlannedFault,
    Refuse,
    RefuseRequest,
    SecondServer,
    Simulation,
    Slow,
    SlowExternal,
    WebhooksAway,
    Write,
)
from kubewright.testing.simulation.determinism import EPOCH
from kubewright.testing.simulation.network import CLUSTER
from kubewright.testing.simulation.trace import TraceEntry

MAX_LINES = 120
_LONGEST_BLOCK = 12
_LEAST_TIMES = 3
"""Minimum number of repetitions for a block of lines to be folded."""
_BACKOFF = re.compile(r"retried in [\d.e+-]+ s$")
_MAX_CHANGES = 6
# Events, leases, and the registration of webhooks and CRDs are not shown.
_HIDDEN = frozenset(
    {
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
    }
)
_BOOKKEEPING = frozenset({"serviceaccounts", "configmaps", "endpoints", "endpointslices.discovery.k8s.io"})
_EVENTS = {"end": "end", "reset": "break", "expire": "are too old (410 Gone)"}


@dataclass(order=True)
class _Line:
    time: float
    rank: int
    number: int
    text: str


def describe(fault: PlannedFault) -> str:
    """Return a sentence that describes a fault."""
    match fault:
        case Crash():
            effect = "is lost" if fault.when == "before" else "was carried out"
            return f"the operator crashes at its request {fault.request}, which {effect}"
        case Pause():
            return f"the operator is paused for {fault.seconds:g} s"
        case PauseAt():
            effect = "before" if fault.when == "before" else "when it was carried out, after"
            return f"the replica that sends `{fault.request}` is paused for {fault.pause:g} s {effect} it"
        case PauseLeader():
            return f"the leader at that time is paused for {fault.seconds:g} s"
        case RefuseRequest():
            return f"request {fault.request} of the operator fails with {fault.status}"
        case Refuse():
            return f"the next {fault.times} {_requests(fault.verbs)} fail with {fault.status}, for at most {fault.seconds:g} s"
        case Lose():
            done = "before they are carried out" if fault.when == "before" else "after they were carried out"
            return f"connections of the next {fault.times} {_requests(fault.verbs)} break {done}, for at most {fault.seconds:g} s"
        case LoseResponse():
            return f"request {fault.request} of the operator is carried out, and its response is lost"
        case Slow():
            return f"{_requests(fault.verbs)} take {fault.delay:g} s, for {fault.seconds:g} s"
        case CutWatches():
            compact = ", and the API server has dropped its history" if fault.compact else ""
            return f"all watches {_EVENTS[fault.how]}{compact}"
        case DropBookmarks():
            return f"watches send no bookmarks for {fault.seconds:g} s"
        case HoldEvents():
            return f"watch events arrive {fault.seconds:g} s late, all together"
        case SecondServer():
            return f"{fault.share:.0%} of the requests reach an API server that is behind, for {fault.seconds:g} s"
        case WebhooksAway():
            return f"the API server cannot reach the webhooks for {fault.seconds:g} s"
        case FailExternal():
            effect = "without an effect" if fault.when == "before" else "after they were carried out"
            return f"the next {fault.times} calls to external systems fail {effect}, for at most {fault.seconds:g} s"
        case SlowExternal():
            return f"external systems take {fault.delay:g} s for each call, for {fault.seconds:g} s"
        case JumpClock():
            return f"the wall clock of the operator jumps by {fault.by:+g} s"
        case _:
            return repr(fault)


def _requests(verbs: tuple[str, ...]) -> str:
    return f"{' and '.join(verbs)} requests" if verbs else "requests"


def timeline(sim: Simulation, run: CaseRun, case: Case) -> str:
    """Return one line for each event of a run, in order; the middle of a long timeline is left out."""
    lines = sorted([*_event_lines(sim, case), *_deviations(run), *_writes(sim), *_reconciles(run)])
    # Replicas are stopped by the end of the run itself: that is not worth a line.
    lines = [line for line in lines if line.time < sim.loop.time() or not line.text.endswith(" stops")]
    shown = list(_folded(lines))
    if len(shown) > MAX_LINES:
        left_out = len(shown) - MAX_LINES
        shown = [
            *shown[: MAX_LINES // 2],
            f"             ... {left_out} lines left out ...",
            *shown[-MAX_LINES // 2 :],
        ]
    return "\n".join(shown)


def _folded(lines: Sequence[_Line]) -> Iterator[str]:
    """Yield the lines as text; the repetitions of a block of lines become one line."""
    texts = [_BACKOFF.sub("retried", line.text) for line in lines]
    place = 0
    while place < len(lines):
        length, times = _repeated(texts, place)
        block = lines[place : place + length]
        yield from (f"{line.time:9.3f} s  {line.text}" for line in block)
        place += length * times
        if times > 1:
            what = "the line above" if length == 1 else f"the {length} lines above"
            until = lines[place - 1].time
            count = f"{times - 1} more times" if times > 2 else "once more"
            yield f"             ... {what} {count} until {until:.3f} s ({_clock(until)}) ..."


def _repeated(texts: Sequence[str], place: int) -> tuple[int, int]:
    """Return the length of the block of lines at a position and how often it is repeated; (1, 1) if it is not repeated."""
    for length in range(1, _LONGEST_BLOCK + 1):
        block = texts[place : place + length]
        times = 1
        while texts[place + length * times : place + length * (times + 1)] == block:
            times += 1
        if times >= _LEAST_TIMES:
            # A block must begin with the unindented line that caused the indented lines after it.
            causes = [not text.startswith(" ") for text in block]
            return (length, times) if causes[0] or not any(causes) else (1, 1)
    return 1, 1


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}h{rest // 60:02}m{rest % 60:02}s" if hours else f"{rest // 60}m{rest % 60:02}s"


def _event_lines(sim: Simulation, case: Case) -> Iterator[_Line]:
    by_text = {repr(fault): fault for fault in case.all_faults}
    last: dict[str, TraceEntry] = {}
    for number, entry in enumerate(sim.trace.entries):
        match entry.what:
            case "request" | "external":
                last[entry.process] = entry
                if entry.what == "external":
                    # The subject includes the query string of an HTTP request.
                    call = entry.subject.partition(" ")[2]
                    yield _Line(entry.time, 2, number, f"  {entry.process} calls {call}")
            case "lost" if entry.subject.endswith(("without an effect", "the response is lost")):
                yield _Line(entry.time, 2, number, f"  {entry.subject.partition(' ')[2]}")
            case "change":
                yield _Line(entry.time, 0, number, f"you: {entry.subject}")
            case "fault" if entry.subject in by_text:
                yield _Line(entry.time, 0, number, f"fault: {describe(by_text[entry.subject])}")
            case "crash":
                request = last.get(entry.process)
                at = f" at `{_without_number(request.subject)}`" if request is not None else ""
                yield _Line(entry.time, 3, number, f"{entry.process} crashes{at}")
            case "restart":
                yield _Line(entry.time, 3, number, f"{entry.process} is restarted after it settled")
            case "start" | "pause" | "resume" | "stop":
                yield _Line(
                    entry.time, 0, number, f"{entry.process} {entry.what}s{_FRESH.get(entry.what, '')}"
                )
            case _:
                pass


def _deviations(run: CaseRun) -> Iterator[_Line]:
    """Yield a line for each message that did not arrive in the default order."""
    for number, each in enumerate(run.schedule.taken if run.schedule is not None else ()):
        rest = ", ".join(each.overtaken)
        match each.kind:
            case "crash":
                text = f"the operator crashes before {rest} arrives"
            case "offer":
                text = f"you {each.chosen} before {rest} arrives"
            case "message":
                late = "all of which wait" if len(each.overtaken) > 1 else "which waits"
                text = f"{each.chosen} arrives before {rest}, {late} until nothing else is in transit"
        yield _Line(each.time, -1, number, f"order: {text}")


_FRESH = {"start": " with an empty memory"}


def _without_number(subject: str) -> str:
    return subject.partition(" ")[2].partition("?")[0]


def _writes(sim: Simulation) -> Iterator[_Line]:
    for number, write in enumerate(sim.world.writes):
        shown = write.writer in sim.world.operators or (write.writer == CLUSTER and _matters(write))
        if shown and write.resource not in _HIDDEN:
            yield _Line(
                write.time,
                2,
                number,
                f"  {write.writer} {write.verb} {write.resource} {write.key}{_changes(write)}",
            )


def _matters(write: Write) -> bool:
    """Return True if a write of the cluster's own controllers is worth a line: a spec or finalizers in the run's namespace."""
    if not write.key.startswith(f"{NAMESPACE}/") or write.resource in _BOOKKEEPING:
        return False
    if write.before is None or write.after is None:
        return True
    before, after = write.before, write.after
    # Status updates of workloads would fill the timeline.
    return before.get("spec") != after.get("spec") or before["metadata"].get("finalizers") != after[
        "metadata"
    ].get("finalizers")


def _changes(write: Write) -> str:
    if write.before is None or write.after is None:
        return ""
    found = [str(change) for change in changed_fields(write.before, write.after)]
    more = f", and {len(found) - _MAX_CHANGES} more" if len(found) > _MAX_CHANGES else ""
    return f": {'; '.join(found[:_MAX_CHANGES])}{more}" if found else ""


def _reconciles(run: CaseRun) -> Iterator[_Line]:
    redactor = Redactor(())
    for number, (replica, entry, ended) in enumerate(run.reconciles):
        record = record_of(entry, redactor)
        began = entry.started_at - EPOCH
        causes = ", ".join(_cause(cause) for cause in record.causes) or "a retry or resync"
        reads = "; ".join(text for read in record.reads if (text := _read(read, record)))
        seen = f"; it reads {reads}" if reads else ""
        yield _Line(
            began,
            1,
            number,
            f"{replica} reconciles {record.kind} {_place(record.namespace, record.name)} because of {causes}{seen}",
        )
        if record.error:
            again = f", retried in {entry.retry_after:g} s" if entry.retry_after is not None else ""
            # The end may seem to be before the start because of rounding.
            yield _Line(max(began, ended), 4, number, f"  the reconcile fails: {record.error}{again}")


def _cause(cause: CauseRecord) -> str:
    changed = [str(change) for change in cause.changes]
    detail = f" ({'; '.join(changed[:3])})" if changed else ""
    return f"{cause.type} {cause.kind} {_place(cause.namespace, cause.name)}{detail}"


def _read(read: ReadRecord, record: ReconcileRecord) -> str:
    if read.verb == "get" and (read.name, read.kind) == (record.name, record.kind):
        return ""
    name = read.kind or read.resource
    place = _place(read.namespace, read.name)
    if read.verb == "list":
        return f"{len(read.found)} {name} from the {read.source}"
    found = "" if read.found else ": not found"
    return f"{name} {place} from the {read.source}{found}"


def _place(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
