"""Readable records of reconciles: what `kubewright why`, a record file and other programs get.

A record is created when it is requested, from the collected bytes (`journal.collected`): objects are decoded,
sensitive values are replaced, and the states of an object are compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
from msgspec import structs

from kubewright.api import JsonObject, Kind, RawObject
from kubewright.journal.collected import (
    CachedList,
    CachedRead,
    Collected,
    ExternalCall,
    LoggedLine,
    PublishedEvent,
    RequestExchange,
    Trigger,
)
from kubewright.journal.redaction import LAST_APPLIED, Redactor

MAX_CHANGES = 50
"""Changed fields of one object that a record lists."""
# Fields that the server or kubectl changes with each write, which say nothing about what was written.
_BOOKKEEPING = frozenset(
    {"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"}
)
# Fields that identify the elements of a list, in the order in which they are tried.
_LIST_KEYS = ("name", "type", "key", "containerPort", "port", "ip", "uid")


class FieldChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A field that differs between two states; an absent value is None."""

    path: str
    before: Any = None
    after: Any = None

    def __str__(self) -> str:
        return f"{self.path}: {_shown(self.before)} -> {_shown(self.after)}"


class CauseRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What led to a reconcile: an object, what happened to it, and which of its fields changed."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    type: str
    resource_version: str = ""
    changes: list[FieldChange] = []


class ObjectVersion(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One version of an object."""

    namespace: str = ""
    name: str
    uid: str = ""
    resource_version: str = ""


class ReadRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An object or a list that was read; `source` is "cache" or "server"."""

    verb: str
    source: str
    group: str = ""
    kind: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    labels: str = ""
    query: str = ""
    index_value: str | None = None
    found: list[ObjectVersion] = []
    status: int = 0
    error: str = ""


class WriteRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A write that was sent, the response, and the fields that it changed."""

    at: datetime
    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    status: int = 0
    error: str = ""
    message: str = ""
    created: bool = False
    resource_version: str = ""
    changes: list[FieldChange] = []
    more_changes: int = 0
    sent: Any = None


class EventRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An Event that was recorded."""

    at: datetime
    type: str
    reason: str
    note: str


class LogRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A line of the log."""

    at: datetime
    level: str
    logger: str
    message: str


class CallRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A call of an external system; `missing` says why its answer is not recorded."""

    at: datetime
    function: str
    arguments: dict[str, Any] = {}
    answer: Any = None
    error: str = ""
    error_type: str = ""
    missing: str = ""

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={_shown(value)}" for name, value in self.arguments.items())
        result = self.missing or self.error or _shown(self.answer)
        return f"{self.function}({arguments}) -> {result}"


class ReconcileRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One reconcile."""

    id: str
    number: int
    controller: str
    group: str = ""
    kind: str
    resource: str = ""
    namespace: str = ""
    name: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    started_at: datetime
    duration: float
    outcome: str
    error: str = ""
    retry_at: datetime | None = None
    repeated: int = 0
    causes: list[CauseRecord] = []
    reads: list[ReadRecord] = []
    writes: list[WriteRecord] = []
    skipped_applies: int = 0
    events: list[EventRecord] = []
    log: list[LogRecord] = []
    calls: list[CallRecord] = []

    @property
    def object(self) -> str:
        """Return the reconciled object for people: `Bucket default/photos`."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def is_of(self, resource: str, name: str) -> bool:
        """Return True if the object has this name and kind; a kind or plural, with or without its group, as for kubectl."""
        plain, _, group = resource.lower().partition(".")
        plural = self.resource.partition(".")[0]
        return (
            self.name == name and plain in (self.kind.lower(), plural) and (not group or group == self.group)
        )


def record_of(entry: Collected, redactor: Redactor) -> ReconcileRecord:
    """Return the record of a finished reconcile, without sensitive values."""
    return _Recording(entry, redactor).record()


def documents_of(entry: Collected, redactor: Redactor) -> Iterator[JsonObject]:
    """Yield the objects that a reconcile saw, each version as often as it was seen, without sensitive values."""
    recording = _Recording(entry, redactor)
    for document in recording.documents():
        metadata: JsonObject = document.get("metadata") or {}
        if metadata.get("uid") and metadata.get("resourceVersion"):
            yield document


class _Recording:
    """Go through the steps of a reconcile, with the last known state of each object."""

    def __init__(self, entry: Collected, redactor: Redactor) -> None:
        self._entry = entry
        self._redactor = redactor
        self._secrets: set[str] = set()
        self._known: dict[tuple[str, str, str], JsonObject | None] = {}

    def record(self) -> ReconcileRecord:
        entry = self._entry
        meta = None if entry.state is None else entry.state.meta
        causes = [self._cause(trigger) for trigger in entry.triggers]
        if entry.state is not None:
            self._note(_resource(entry.kind), self._decoded(entry.state, entry.kind))
        reads, writes, calls = list[ReadRecord](), list[WriteRecord](), list[CallRecord]()
        for step in entry.steps:
            match step:
                case CachedRead():
                    reads.append(self._cached_read(step))
                case CachedList():
                    reads.append(self._cached_list(step))
                case RequestExchange() if step.is_write:
                    writes.append(self._write(step))
                case RequestExchange():
                    reads.append(self._server_read(step))
                case ExternalCall():
                    calls.append(self._call(step))
                case _:
                    pass
        # Last: by now all sensitive values that the reconcile has met are known.
        started = _time(entry.started_at)
        return ReconcileRecord(
            id=entry.id,
            number=entry.number,
            controller=entry.controller,
            group=entry.kind.group,
            kind=entry.kind.kind,
            resource=entry.kind.resource,
            namespace=entry.key.namespace,
            name=entry.key.name,
            uid="" if meta is None else meta.uid,
            generation=0 if meta is None else meta.generation,
            resource_version="" if meta is None else meta.resource_version,
            started_at=started,
            duration=entry.duration,
            outcome=entry.outcome,
            error=self._text(entry.error),
            retry_at=None
            if entry.retry_after is None
            else _time(entry.started_at + entry.duration + entry.retry_after),
            repeated=entry.repeated,
            causes=causes,
            reads=reads,
            writes=writes,
            skipped_applies=entry.skipped_applies,
            events=[
                EventRecord(at=_time(step.at), type=step.type, reason=step.reason, note=self._text(step.note))
                for step in entry.steps
                if isinstance(step, PublishedEvent)
            ],
            log=[
                LogRecord(
                    at=_time(step.at), level=step.level, logger=step.logger, message=self._text(step.message)
                )
                for step in entry.steps
                if isinstance(step, LoggedLine)
            ],
            calls=[self._scrubbed_call(call) for call in calls],
        )

    def documents(self) -> Iterator[JsonObject]:
        """Yield all objects that were seen."""
        entry = self._entry
        if entry.state is not None:
            yield self._decoded(entry.state, entry.kind)
        for trigger in entry.triggers:
            for state in (trigger.before, trigger.after):
                if state is not None:
                    yield self._decoded(state, None)
        for step in entry.steps:
            match step:
                case CachedRead() if step.state is not None:
                    yield self._decoded(step.state, step.kind)
                case CachedList():
                    for state in step.states:
                        yield self._decoded(state, step.kind)
                case RequestExchange():
                    yield from self._documents(step)
                case _:
                    pass

    def _cause(self, trigger: Trigger) -> CauseRecord:
        before, after = trigger.before, trigger.after
        latest = after or before
        changes: list[FieldChange] = []
        if before is not None and after is not None:
            changes = list(changed_fields(self._decoded(before, None), self._decoded(after, None)))
        return CauseRecord(
            kind=trigger.kind,
            namespace=trigger.key.namespace,
            name=trigger.key.name,
            type=trigger.type,
            resource_version="" if latest is None else latest.meta.resource_version,
            changes=changes[:MAX_CHANGES],
        )

    def _cached_read(self, step: CachedRead) -> ReadRecord:
        found = list[ObjectVersion]()
        if step.state is not None:
            found.append(_version(step.state))
            self._note(_resource(step.kind), self._decoded(step.state, step.kind))
        else:
            self._known[_resource(step.kind), step.key.namespace, step.key.name] = None
        return ReadRecord(
            verb="get",
            source="cache",
            group=step.kind.group,
            kind=step.kind.kind,
            namespace=step.key.namespace,
            name=step.key.name,
            found=found,
        )

    def _cached_list(self, step: CachedList) -> ReadRecord:
        for state in step.states:
            self._note(_resource(step.kind), self._decoded(state, step.kind))
        return ReadRecord(
            verb="list",
            source="cache",
            group=step.kind.group,
            kind=step.kind.kind,
            namespace=step.namespace,
            labels=step.labels,
            index_value=None if step.index_value is None else self._text(step.index_value),
            found=[_version(state) for state in step.states],
        )

    def _server_read(self, step: RequestExchange) -> ReadRecord:
        request = step.request
        found = list[ObjectVersion]()
        for document in self._documents(step):
            self._note(request.resource, document)
            metadata: JsonObject = document.get("metadata") or {}
            found.append(
                ObjectVersion(
                    namespace=metadata.get("namespace", ""),
                    name=metadata.get("name", ""),
                    uid=metadata.get("uid", ""),
                    resource_version=metadata.get("resourceVersion", ""),
                )
            )
        return ReadRecord(
            verb=request.verb,
            source="server",
            resource=request.resource,
            namespace=request.namespace,
            name=request.name,
            query=request.query,
            found=found,
            status=step.status,
            error=self._text(step.error),
        )

    def _write(self, step: RequestExchange) -> WriteRecord:
        request = step.request
        resource = _whole_resource(request.resource)
        after = next(iter(self._documents(step)), None)
        about = (resource, request.namespace, request.name)
        if after is not None and after.get("kind") == "Status":
            after = None
        changes: list[FieldChange] = []
        before = self._known.get(about)
        succeeded = not step.error
        if succeeded and after is None:
            self._known[about] = None
        elif succeeded and after is not None:
            changes = list(changed_fields(before or {}, after))
            self._note(resource, after)
        sent = _decoded(request.body)
        metadata: JsonObject = {} if after is None else after.get("metadata") or {}
        return WriteRecord(
            at=_time(step.at),
            verb="apply" if "apply-patch" in request.content_type else request.verb,
            resource=request.resource,
            namespace=request.namespace,
            name=request.name or metadata.get("name", ""),
            status=step.status,
            error=self._text(step.error),
            message=self._text(step.message),
            created=step.status == 201,
            resource_version=metadata.get("resourceVersion", ""),
            changes=changes[:MAX_CHANGES],
            more_changes=max(0, len(changes) - MAX_CHANGES),
            sent=self._redacted(cast("JsonObject", sent)) if isinstance(sent, dict) else None,
        )

    def _call(self, step: ExternalCall) -> CallRecord:
        arguments = self._redactor.value(_decoded(step.arguments), step.sensitive_arguments, self._secrets)
        return CallRecord(
            at=_time(step.at),
            function=step.function,
            arguments=arguments,
            answer=self._redactor.value(_decoded(step.answer), step.sensitive_answer, self._secrets),
            error=step.error,
            error_type=step.error_type,
            missing=step.missing,
        )

    def _scrubbed_call(self, call: CallRecord) -> CallRecord:
        """Replace the sensitive values that the reconcile has met anywhere."""
        return structs.replace(
            call,
            arguments=self._scrubbed(call.arguments),
            answer=self._scrubbed(call.answer),
            error=self._text(call.error),
        )

    def _scrubbed(self, value: Any) -> Any:
        match value:
            case str():
                return self._text(value)
            case dict():
                fields = cast("dict[str, Any]", value)
                return {self._text(name): self._scrubbed(each) for name, each in fields.items()}
            case list():
                return [self._scrubbed(each) for each in cast("list[Any]", value)]
            case _:
                return value

    def _documents(self, step: RequestExchange) -> Iterator[JsonObject]:
        """Yield the objects of a response, those of a list one by one."""
        body = _decoded(step.body)
        if not isinstance(body, dict):
            return
        document = cast("JsonObject", body)
        items = document.get("items")
        if isinstance(items, list) and str(document.get("kind", "")).endswith("List"):
            kind = str(document["kind"]).removesuffix("List")
            for item in cast("list[JsonObject]", items):
                yield self._redacted({"apiVersion": document.get("apiVersion", ""), "kind": kind, **item})
        else:
            yield self._redacted(document)

    def _decoded(self, state: RawObject, kind: Kind | None) -> JsonObject:
        document: JsonObject = msgspec.json.decode(state.raw)
        if kind is None or "kind" in document:
            return self._redacted(document)
        return self._redacted({"apiVersion": kind.api_version, "kind": kind.kind, **document})

    def _redacted(self, document: Mapping[str, Any]) -> JsonObject:
        group = str(document.get("apiVersion", "")).rpartition("/")[0]
        return self._redactor.document(
            dict(document), self._secrets, group=group, kind=str(document.get("kind", ""))
        )

    def _text(self, text: str) -> str:
        return self._redactor.text(text, self._secrets)

    def _note(self, resource: str, document: JsonObject) -> None:
        metadata: JsonObject = document.get("metadata") or {}
        self._known[resource, metadata.get("namespace", ""), metadata.get("name", "")] = document


def changed_fields(before: Any, after: Any, path: str = "") -> Iterator[FieldChange]:
    """Yield the fields that differ, without those that the server changes with each write."""
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        for name in {**old, **new}:
            if not _is_bookkeeping(path, name):
                yield from changed_fields(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _changed_elements(cast("list[Any]", before), cast("list[Any]", after), path)
    elif isinstance(after, dict) and before is None and after:
        for name, value in cast("dict[str, Any]", after).items():
            if not _is_bookkeeping(path, name):
                yield from changed_fields(None, value, f"{path}.{name}" if path else name)
    elif before != after:
        yield FieldChange(path=path, before=before, after=after)


def _is_bookkeeping(path: str, name: str) -> bool:
    return (path == "metadata" and name in _BOOKKEEPING) or (
        path == "metadata.annotations" and name == LAST_APPLIED
    )


def _changed_elements(before: list[Any], after: list[Any], path: str) -> Iterator[FieldChange]:
    key = next((name for name in _LIST_KEYS if _is_key(name, before) and _is_key(name, after)), None)
    if key is None or not (before or after):
        if before != after:
            yield FieldChange(path=path, before=before, after=after)
        return
    old = {each[key]: each for each in before}
    new = {each[key]: each for each in after}
    for value in {**old, **new}:
        yield from changed_fields(old.get(value), new.get(value), f"{path}[{key}={value}]")
    common = [value for value in old if value in new]
    if common != [value for value in new if value in old]:
        yield FieldChange(path=f"{path} (order)", before=list(old), after=list(new))


def _is_key(name: str, elements: Sequence[Any]) -> bool:
    values = [cast("JsonObject", each).get(name) for each in elements if isinstance(each, dict)]
    hashable = all(isinstance(value, str | int) for value in values)
    return len(values) == len(elements) and hashable and len(set(values)) == len(values)


def _resource(kind: Kind) -> str:
    return kind.resource


def _whole_resource(resource: str) -> str:
    """Return the resource without its subresource: "deployments.apps" for "deployments/status.apps"."""
    plural, _, rest = resource.partition("/")
    group = rest.partition(".")[2]
    return f"{plural}.{group}" if group else plural


def _version(state: RawObject) -> ObjectVersion:
    meta = state.meta
    return ObjectVersion(
        namespace=meta.namespace, name=meta.name, uid=meta.uid, resource_version=meta.resource_version
    )


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body) if body else None
    except msgspec.DecodeError:
        return None


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _shown(value: Any) -> str:
    return "nothing" if value is None else msgspec.json.encode(value).decode()
