"""An explanation as text, on one screen."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from kubewright.journal import FieldChange, ReconcileRecord, WriteRecord
from kubewright.why import Explanation, parsed_time

_CAUSES = {
    "initial": "existed at the start",
    "create": "was created",
    "update": "changed",
    "delete": "was deleted",
    "external": "was named by an external event",
    "requested": "reached the time of its reconcile-at annotation",
}
_FIELDS = 6
_LINES = 8
_WIDTH = 110


def explanation_lines(found: Explanation, *, now: datetime, verbose: bool) -> Iterator[str]:
    """Yield the lines to print; `verbose` shortens nothing."""
    yield f"{found.kind} {_name(found.namespace, found.name)}{'' if found.exists else ' (deleted)'}"
    if facts := list(_facts(found, now)):
        yield f"  {', '.join(facts)}"
    if found.conditions:
        yield "Conditions"
        for each in found.conditions:
            text = f"{each.type}={each.status}  {each.reason}  {_ago(each.since, now)}  {each.message}"
            yield f"  {_cut(text.rstrip(), verbose)}"
    yield "Waits for"
    yield from (f"  {text}" for text in found.waiting_for or ["nothing that is known"])
    yield from _reconciles(found, verbose)
    if found.children:
        yield "Children"
        for child in found.children:
            state = f"{child.state}{', being deleted' if child.terminating else ''}"
            yield f"  {child.kind} {child.name}  {state}"
    if found.field_managers:
        yield "Field managers"
        for manager in found.field_managers:
            kind = f"{manager.operation}{' of ' + manager.subresource if manager.subresource else ''}"
            yield f"  {manager.manager} ({kind}): {_cut(', '.join(manager.fields), verbose)}"
    if found.events:
        yield "Events"
        for event in found.events if verbose else found.events[-_LINES:]:
            times = f" ({event.count} times)" if event.count > 1 else ""
            yield f"  {_ago(event.at, now)}  {event.type} {event.reason}: {_cut(event.note, verbose)}{times}"
    if found.unread:
        yield f"Not read: {'; '.join(found.unread)}"


def _facts(found: Explanation, now: datetime) -> Iterator[str]:
    if found.generation:
        observed = "" if found.observed_generation is None else f" (status of {found.observed_generation})"
        yield f"generation {found.generation}{observed}"
    if found.created_at:
        yield f"created {_ago(found.created_at, now)}"
    if found.terminating_since:
        yield f"being deleted since {_ago(found.terminating_since, now)}"


def _reconciles(found: Explanation, verbose: bool) -> Iterator[str]:
    if not found.source:
        yield "Reconciles"
        if found.owner is not None:
            where = f" -n {found.namespace}" if found.namespace else ""
            named = f"{found.owner.kind.lower()}/{found.owner.name}"
            yield f"  reconciled by its owner {found.owner.kind} {found.owner.name}: kubewright why {named}{where}"
            return
        yield "  not known: no operator that reconciles it was found on this machine or in the cluster; see --record"
        return
    earlier = f", {found.earlier_reconciles} earlier ones not shown" if found.earlier_reconciles else ""
    yield f"Reconciles (from {found.source}{earlier})"
    if not found.reconciles:
        yield "  none of this object in its journal"
    several = len({entry.operator for entry in found.reconciles}) > 1
    for entry in found.reconciles:
        yield from _reconcile(entry.reconcile, verbose)
        if several:
            yield f"    by       {entry.operator}"
        if entry.last_at is not None:
            at = entry.last_at.astimezone(UTC).strftime("%H:%M:%S.%f")[:-3]
            again = "once" if entry.times == 2 else f"{entry.times - 1} times"
            yield f"    again    {again} in the same way, last at {at}, id {entry.last_id}"


def _reconcile(record: ReconcileRecord, verbose: bool) -> Iterator[str]:
    at = record.started_at.astimezone(UTC).strftime("%H:%M:%S.%f")[:-3]
    repeated = f", after {record.repeated} that changed nothing either" if record.repeated else ""
    yield (
        f"  {at}  {record.controller}  {record.outcome}  {record.duration * 1000:.0f} ms  "
        f"{f'generation {record.generation}  ' if record.generation else ''}id {record.id}{repeated}"
    )
    if not record.causes:
        yield "    because  of a retry, a requeue or a resync"
    for cause in record.causes:
        named = f"{cause.kind} {_name(cause.namespace, cause.name)}".strip()
        yield f"    because  {named} {_CAUSES.get(cause.type, cause.type)}{_changes(cause.changes, verbose)}"
    for call in record.calls:
        yield f"    called   {_cut(str(call), verbose)}"
    for write in record.writes:
        yield f"    {_write(write, verbose)}"
    if record.skipped_applies:
        noun = "apply" if record.skipped_applies == 1 else "applies"
        yield f"    skipped  {record.skipped_applies} {noun} that would change nothing"
    for event in record.events:
        yield f"    event    {event.type} {event.reason}: {_cut(event.note, verbose)}"
    lines: Sequence[str] = [f"{line.level} {line.message}" for line in record.log]
    for line in lines if verbose else lines[-_LINES:]:
        yield f"    log      {_cut(line, verbose)}"
    if record.error:
        yield f"    error    {_cut(record.error, verbose)}"


def _write(write: WriteRecord, verbose: bool) -> str:
    about = f"{write.verb:<8} {write.resource}/{write.name}"
    if write.error:
        return f"{about}: {_cut(write.error, verbose)}"
    if write.created:
        return f"{about} created"
    return f"{about}{_changes(write.changes, verbose) or ': no field changed'}"


def _changes(changes: Sequence[FieldChange], verbose: bool) -> str:
    if not changes:
        return ""
    shown = changes if verbose else changes[:_FIELDS]
    more = f", {len(changes) - len(shown)} more" if len(changes) > len(shown) else ""
    return f": {', '.join(_cut(str(change), verbose) for change in shown)}{more}"


def _name(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _cut(text: str, verbose: bool) -> str:
    line = " ".join(text.split())
    return line if verbose or len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."


def _ago(text: str, now: datetime) -> str:
    at = parsed_time(text)
    if at is None:
        return "at an unknown time"
    seconds = max(0, int((now - at).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"
