"""Why an object is as it is: its state, what it waits for, and what its reconciles did (pure functions)."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from kubewright.api import JsonObject
from kubewright.cli.why.cluster import RelatedObjects
from kubewright.cli.why.sources import ObjectJournal
from kubewright.journal import ReconcileRecord

_STATE_CONDITIONS = ("Ready", "Available", "Complete", "Failed", "Bound")


class ConditionState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One condition of the object."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: str = ""


class FieldManager(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A field manager, and the fields that it owns."""

    manager: str
    operation: str
    subresource: str = ""
    at: str = ""
    fields: list[str] = []


class ChildState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An object whose owner is the object."""

    kind: str
    namespace: str
    name: str
    state: str
    terminating: bool = False


class SeenEvent(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An Event about the object."""

    at: str
    type: str
    reason: str
    note: str
    count: int = 1


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """All that is known of an object; `source` says where the reconciles come from, empty if there are none."""

    kind: str
    namespace: str = ""
    name: str
    uid: str = ""
    generation: int = 0
    observed_generation: int | None = None
    created_at: str = ""
    terminating_since: str = ""
    exists: bool = True
    conditions: list[ConditionState] = []
    waiting_for: list[str] = []
    source: str = ""
    reconciles: list[ReconcileRecord] = []
    earlier_reconciles: int = 0
    field_managers: list[FieldManager] = []
    children: list[ChildState] = []
    events: list[SeenEvent] = []
    unread: list[str] = []


def explain(
    document: JsonObject,
    related: RelatedObjects,
    journals: Sequence[ObjectJournal],
    *,
    now: datetime,
    limit: int,
    exists: bool = True,
) -> Explanation:
    """Put together what the cluster and the journals say; the latest `limit` reconciles are kept."""
    metadata: JsonObject = document["metadata"]
    found = document.get("status")
    status = cast("JsonObject", found) if isinstance(found, dict) else {}
    reconciles = sorted(
        (record for journal in journals for record in journal.reconciles),
        key=lambda record: record.started_at,
    )
    return Explanation(
        kind=document.get("kind", ""),
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        uid=metadata.get("uid", ""),
        generation=metadata.get("generation", 0),
        observed_generation=status.get("observedGeneration"),
        created_at=metadata.get("creationTimestamp") or "",
        terminating_since=metadata.get("deletionTimestamp") or "",
        exists=exists,
        conditions=[
            ConditionState(
                each.get("type", ""),
                each.get("status", ""),
                each.get("reason", ""),
                each.get("message", ""),
                each.get("lastTransitionTime", "") or "",
            )
            for each in _objects(status.get("conditions"))
        ],
        waiting_for=list(_waits(metadata, status, related, journals, reconciles, now)),
        source=" and ".join(journal.source for journal in journals),
        reconciles=reconciles[-limit:],
        earlier_reconciles=max(0, len(reconciles) - limit),
        field_managers=[
            FieldManager(
                entry.get("manager", ""),
                entry.get("operation", ""),
                entry.get("subresource", ""),
                entry.get("time", "") or "",
                sorted(_field_paths(entry.get("fieldsV1") or {})),
            )
            for entry in _objects(metadata.get("managedFields"))
        ],
        children=[
            ChildState(
                child.get("kind", ""),
                child["metadata"].get("namespace", ""),
                child["metadata"]["name"],
                state_of(child),
                bool(child["metadata"].get("deletionTimestamp")),
            )
            for child in related.children
        ],
        events=[_seen(event) for event in sorted(related.events, key=_event_time)],
        unread=related.unread,
    )


def _waits(
    metadata: JsonObject,
    status: JsonObject,
    related: RelatedObjects,
    journals: Sequence[ObjectJournal],
    reconciles: Sequence[ReconcileRecord],
    now: datetime,
) -> Iterator[str]:
    if metadata.get("deletionTimestamp"):
        for finalizer in metadata.get("finalizers") or ():
            yield f"the finalizer {finalizer}: the object is deleted when its owner has removed it"
    for journal in journals:
        for problem in journal.problems:
            yield f"{journal.source}: {problem}"
        if journal.lease and not journal.leading:
            yield f"the lease {journal.lease}: {journal.source} does not hold it, and reconciles nothing"
    last: dict[str, ReconcileRecord] = {record.controller: record for record in reconciles}
    for record in last.values():
        if record.outcome == "error" and record.retry_at is None:
            yield f"a change: controller {record.controller} does not retry after {record.error}"
        elif record.retry_at is not None and record.retry_at > now:
            seconds = (record.retry_at - now).total_seconds()
            reason = f" after {record.error}" if record.error else ""
            yield f"controller {record.controller}, which reconciles it again in {seconds:.0f} s{reason}"
        elif record.retry_at is not None and record.error:
            yield f"controller {record.controller}, whose next try was due at {record.retry_at:%H:%M:%S} after {record.error}"
    observed = status.get("observedGeneration")
    if isinstance(observed, int) and observed < metadata.get("generation", 0):
        yield (
            f"a reconcile of generation {metadata['generation']}: the status is about generation {observed}"
        )
    for child in related.children:
        if child["metadata"].get("deletionTimestamp") and child["metadata"].get("finalizers"):
            named = f"{child.get('kind', '')} {child['metadata']['name']}"
            yield f"the deletion of {named}: finalizers {', '.join(child['metadata']['finalizers'])}"


def state_of(document: JsonObject) -> str:
    """Return the state of an object in a few words: a condition, a phase, or the number of ready replicas."""
    found = document.get("status")
    status = cast("JsonObject", found) if isinstance(found, dict) else {}
    for condition in _objects(status.get("conditions")):
        if condition.get("type") in _STATE_CONDITIONS and (
            condition.get("type") != "Failed" or condition.get("status") == "True"
        ):
            reason = f" ({condition['reason']})" if condition.get("reason") else ""
            return f"{condition['type']}={condition.get('status')}{reason}"
    if isinstance(status.get("phase"), str):
        return status["phase"]
    wanted = document.get("spec", {}).get("replicas") if isinstance(document.get("spec"), dict) else None
    if wanted is not None:
        return f"{status.get('readyReplicas', 0)}/{wanted} ready"
    return "exists"


def _field_paths(fields: JsonObject, path: str = "") -> Iterator[str]:
    """Yield the paths of an entry of managedFields, `spec.containers[name=web].image`."""
    children = {name: value for name, value in fields.items() if name != "."}
    if not children and path:
        yield path
    for name, value in children.items():
        yield from _field_paths(value, _joined(path, name))


def _joined(path: str, name: str) -> str:
    prefix, _, rest = name.partition(":")
    if prefix == "f":
        return f"{path}.{rest}" if path else rest
    if prefix == "k":
        keys: dict[str, Any] = msgspec.json.decode(rest)
        return f"{path}[{','.join(f'{key}={value}' for key, value in keys.items())}]"
    return f"{path}[{rest}]"


def _objects(value: Any) -> list[JsonObject]:
    if not isinstance(value, list):
        return []
    return [cast("JsonObject", each) for each in cast("list[Any]", value) if isinstance(each, dict)]


def _event_time(event: JsonObject) -> str:
    series: JsonObject = event.get("series") or {}
    return (
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp")
        or ""
    )


def _seen(event: JsonObject) -> SeenEvent:
    series: JsonObject = event.get("series") or {}
    return SeenEvent(
        _event_time(event),
        event.get("type", ""),
        event.get("reason", ""),
        event.get("message", ""),
        series.get("count") or event.get("count") or 1,
    )


def parsed_time(text: str) -> datetime | None:
    """Return a time of an object, or None if it has none."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except ValueError:
        return None
