"""Explain an object: its state, what it waits for, and what its reconciles did (pure functions)."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
from msgspec import structs

from kubewright.api import PAUSED, JsonObject, parse_labels
from kubewright.api.sharding import Shards
from kubewright.journal import ReconcileRecord
from kubewright.why.cluster import RelatedObjects
from kubewright.why.sources import ObjectJournal

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
    """An object that the explained object owns."""

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


class ExplainedReconcile(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A reconcile, or several retries in a row that failed in the same way: `reconcile` is the first of them."""

    operator: str = ""
    """The operator that reconciled and where it runs; empty if it is not known."""
    reconcile: ReconcileRecord
    times: int = 1
    last_at: datetime | None = None
    last_id: str = ""


class Owner(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The controller owner of the object, whose operator reconciles it."""

    group: str = ""
    kind: str
    name: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The explanation of an object; `source` is where the reconciles come from, empty if there are none."""

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
    owner: Owner | None = None
    reconciles: list[ExplainedReconcile] = []
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
    """Return the explanation of an object from the cluster's state and the journals, with the latest `limit` reconciles."""
    metadata: JsonObject = document["metadata"]
    found = document.get("status")
    status = cast("JsonObject", found) if isinstance(found, dict) else {}
    found_records = sorted(
        ((record, journal.source) for journal in journals for record in journal.reconciles),
        key=lambda each: each[0].started_at,
    )
    reconciles = [record for record, _ in found_records]
    entries = _folded(found_records)
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
        owner=_owner(metadata),
        reconciles=entries[-limit:],
        earlier_reconciles=sum(entry.times for entry in entries[:-limit]),
        field_managers=[
            FieldManager(
                entry.get("manager", ""),
                entry.get("operation", ""),
                entry.get("subresource", ""),
                entry.get("time", "") or "",
                sorted(managed_field_paths(entry.get("fieldsV1") or {})),
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


def _folded(records: Iterable[tuple[ReconcileRecord, str]]) -> list[ExplainedReconcile]:
    """Return an entry for each reconcile; consecutive retries that failed in the same way are one entry."""
    entries: list[ExplainedReconcile] = []
    for record, operator in records:
        last = entries[-1] if entries else None
        if (
            last is not None
            and last.operator == operator
            and record.error
            and not record.causes
            and _failure(record) == _failure(last.reconcile)
        ):
            entries[-1] = structs.replace(
                last, times=last.times + 1, last_at=record.started_at, last_id=record.id
            )
        else:
            entries.append(ExplainedReconcile(operator=operator, reconcile=record))
    return entries


def _failure(record: ReconcileRecord) -> tuple[Any, ...]:
    """Return a key that is the same for a failure and for a retry that failed in the same way."""
    writes = [(write.verb, write.resource, write.name, write.error) for write in record.writes]
    return record.controller, record.outcome, record.error, record.generation, writes


def _owner(metadata: JsonObject) -> Owner | None:
    for owner in _objects(metadata.get("ownerReferences")):
        if owner.get("controller"):
            group = str(owner.get("apiVersion", "")).rpartition("/")[0]
            return Owner(group=group, kind=owner.get("kind", ""), name=owner.get("name", ""))
    return None


def _waits(
    metadata: JsonObject,
    status: JsonObject,
    related: RelatedObjects,
    journals: Sequence[ObjectJournal],
    reconciles: Sequence[ReconcileRecord],
    now: datetime,
) -> Iterator[str]:
    annotations: JsonObject = metadata.get("annotations") or {}
    if metadata.get("deletionTimestamp"):
        for finalizer in metadata.get("finalizers") or ():
            yield f"the finalizer {finalizer}: the object is deleted when its owner has removed it"
    elif annotations.get(PAUSED) == "true":
        yield f"kubewright resume: it is paused{_paused_since(metadata, status)} by the annotation {PAUSED}"
    for journal in journals:
        for problem in journal.problems:
            yield f"{journal.source}: {problem}"
        if journal.shards is not None:
            if journal.shards.waiting:
                yield f"{journal.source}: {journal.shards.waiting}"
        elif journal.lease and not journal.leading:
            yield f"the lease {journal.lease}: {journal.source} does not hold it, and reconciles nothing"
    yield from _selector_waits(metadata, journals)
    yield from _shard_waits(metadata, journals)
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


def _selector_waits(metadata: JsonObject, journals: Sequence[ObjectJournal]) -> Iterator[str]:
    """Yield the label selectors of operators that the object or its namespace does not match.

    If several operators have different selectors, it is enough that one of them selects the object.
    """
    namespace: str = metadata.get("namespace", "")
    labels: dict[str, str] = metadata.get("labels") or {}
    selecting = [journal for journal in journals if parse_labels(journal.selector).matches(labels)]
    for journal in journals if not selecting else ():
        yield f"a label that matches {journal.selector}: {journal.source} reconciles no other objects"
    for journal in selecting:
        found = journal.namespaces
        if found is None or not namespace:
            continue
        if namespace not in found.followed:
            yield (
                f"a label of namespace {namespace} that matches {found.selector}: {journal.source} "
                "reconciles nothing in other namespaces"
            )
        elif reason := found.refused.get(namespace):
            yield f"access to namespace {namespace}: {journal.source} cannot read it: {reason}"


def _shard_waits(metadata: JsonObject, journals: Sequence[ObjectJournal]) -> Iterator[str]:
    """Yield a line about the shard of the object if none of the replicas in `journals` holds it."""
    found: dict[str, str] = {}
    for journal in journals:
        shards = journal.shards
        if shards is None or found.get(journal.operator) == "":
            continue
        number = Shards(shards.count, shards.by).number_of(metadata.get(shards.by, ""))
        holder = shards.holders[number] if number < len(shards.holders) else ""
        if number in shards.held:
            found[journal.operator] = ""
        elif holder:
            found[journal.operator] = (
                f"the replica {holder}, which holds its shard {number} of {shards.count}: {journal.source} does not"
            )
        else:
            found[journal.operator] = f"a replica that takes its shard {number} of {shards.count}: it is free"
    yield from filter(None, found.values())


def _paused_since(metadata: JsonObject, status: JsonObject) -> str:
    """Return since when the object is paused, from its condition or from the managedFields entry of the annotation."""
    times = [
        each.get("lastTransitionTime")
        for each in _objects(status.get("conditions"))
        if each.get("type") == "Paused" and each.get("status") == "True"
    ]
    times += [
        entry.get("time")
        for entry in _objects(metadata.get("managedFields"))
        if f"metadata.annotations.{PAUSED}" in managed_field_paths(entry.get("fieldsV1") or {})
    ]
    return next((f" since {time}" for time in times if time), "")


def state_of(document: JsonObject) -> str:
    """Return the state of an object as a short text: a condition, a phase, or the number of ready replicas."""
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
    desired = document.get("spec", {}).get("replicas") if isinstance(document.get("spec"), dict) else None
    if desired is not None:
        return f"{status.get('readyReplicas', 0)}/{desired} ready"
    return "exists"


def managed_field_paths(fields: JsonObject, path: str = "") -> Iterator[str]:
    """Yield the paths of an entry of managedFields, `spec.containers[name=web].image`."""
    children = {name: value for name, value in fields.items() if name != "."}
    if not children and path:
        yield path
    for name, value in children.items():
        yield from managed_field_paths(value, _joined(path, name))


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
