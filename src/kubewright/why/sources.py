"""The records of an object's reconciles, from running operators or from a record file."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from msgspec import structs

from kubewright.api import ApiError, ConnectionFailed, JsonObject, KubewrightError
from kubewright.api.sharding import ShardField
from kubewright.client import ApiRequest, Client
from kubewright.journal import (
    DroppedLine,
    ObjectLine,
    ReconcileLine,
    ReconcileRecord,
    RecordFileError,
    UnreadableLine,
    read_lines,
)
from kubewright.why.cluster import owner_uids
from kubewright.why.endpoints import JournalEndpoint, cluster_endpoints, local_endpoints

_TIMEOUT = 5.0


class JournalQuery(NamedTuple):
    """The object whose reconciles are read."""

    group: str
    kind: str
    namespace: str
    name: str


class ShardHolders(msgspec.Struct, frozen=True, kw_only=True):
    """The shards of an operator and the replica that holds each, as reported by one replica."""

    by: ShardField
    count: int
    replica: str = ""
    held: list[int] = []
    holders: list[str] = []
    waiting: str = ""


class FollowedLabels(msgspec.Struct, frozen=True, kw_only=True):
    """The label selector for an operator's namespaces, the selected namespaces, and the errors of unreadable ones."""

    selector: str
    followed: list[str] = []
    refused: dict[str, str] = {}


class ObjectJournal(msgspec.Struct, frozen=True, kw_only=True):
    """Records of an object's reconciles, and the state of the operator that made them."""

    source: str
    """Where the records come from, for messages."""
    operator: str = ""
    reconciles: list[ReconcileRecord] = []
    dropped: int = 0
    leading: bool = True
    lease: str = ""
    shards: ShardHolders | None = None
    selector: str = ""
    namespaces: FollowedLabels | None = None
    problems: list[str] = []


class SourceError(KubewrightError):
    """Records cannot be read."""


async def running_journals(query: JournalQuery) -> list[ObjectJournal]:
    """Return the journals of operators that this user runs on this machine and that reconcile the object's kind."""
    return await _ask_all(await local_endpoints(), query)


async def deployed_journals(
    client: Client, query: JournalQuery, *, namespace: str = "", service_account: str = ""
) -> tuple[list[ObjectJournal], list[str]]:
    """Return the journals of deployed operators that reconcile the object's kind, and the problems of the search.

    The parameters are those of `cluster_endpoints`. If an operator has a leader, its other replicas are left out.
    """
    async with cluster_endpoints(client, namespace=namespace, service_account=service_account) as search:
        journals = await _ask_all(search.endpoints, query)
    leading = {journal.operator for journal in journals if journal.leading}
    kept = [journal for journal in journals if journal.leading or journal.operator not in leading]
    return kept, search.problems


async def _ask_all(endpoints: Sequence[JournalEndpoint], query: JournalQuery) -> list[ObjectJournal]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(endpoint, query)) for endpoint in endpoints]
    return [journal for task in tasks if (journal := task.result()) is not None]


class RecordedObject(NamedTuple):
    """An object and its reconciles in a record file."""

    journal: ObjectJournal
    object: JsonObject | None
    """The latest version of the object in the file."""
    children: list[JsonObject]
    """The objects of the file that it owns, each in its latest version."""


def read_record(
    path: Path, resource: str, namespace: str, name: str, progress: Callable[[int], object] | None = None
) -> RecordedObject:
    """Read the reconciles of an object from a record file, line by line; the file may be large.

    `resource` is a kind or its plural, with or without its group, as on the command line. A second pass finds the
    object and its children by uid, because in the file they come before the reconciles that refer to them. `progress` is
    called with the number of bytes that were read since the last call.
    """
    reconciles, dropped, unreadable = list[ReconcileRecord](), 0, 0
    kinds: set[str] = set()
    try:
        for line in read_lines(path, objects=False, progress=progress):
            match line:
                case ReconcileLine(reconcile=record):
                    kinds.add(record.kind)
                    if record.namespace in (namespace, "") and record.is_of(resource, name):
                        # The count is for a journal, which keeps only the last repetition; a record has all of them.
                        reconciles.append(structs.replace(record, repeated=0))
                case DroppedLine():
                    dropped += line.reconciles
                case UnreadableLine():
                    unreadable += 1
                case _:
                    pass
        uids = {record.uid for record in reconciles if record.uid}
        latest: JsonObject | None = None
        children: dict[str, JsonObject] = {}
        for line in read_lines(path, progress=progress) if uids else ():
            if isinstance(line, ObjectLine):
                if line.uid in uids:
                    latest = line.object
                elif not uids.isdisjoint(owner_uids(line.object)):
                    children[line.uid] = line.object
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    except RecordFileError as error:
        raise SourceError(str(error)) from None
    damaged = "1 truncated or damaged line" if unreadable == 1 else f"{unreadable} truncated or damaged lines"
    if not reconciles:
        known = f"; it has reconciles of {', '.join(sorted(kinds))}" if kinds else "; it has no reconciles"
        lost = f", and {damaged}" if unreadable else ""
        raise SourceError(
            f"{path} has no reconcile of {resource}/{name} in namespace {namespace}{known}{lost}"
        )
    skipped = f" without {damaged}" if unreadable else ""
    return RecordedObject(
        ObjectJournal(source=f"the record {path}{skipped}", reconciles=reconciles, dropped=dropped),
        latest,
        list(children.values()),
    )


class _JournalPage(msgspec.Struct):
    operator: str
    kinds: list[str]
    dropped: int = 0
    leading: bool = True
    lease: str = ""
    shards: ShardHolders | None = None
    selector: str = ""
    namespaces: FollowedLabels | None = None
    problems: list[str] = []
    reconciles: list[ReconcileRecord] = []


async def ask(endpoint: JournalEndpoint, query: JournalQuery) -> ObjectJournal | None:
    """Read the journal of one operator; return None if it does not reconcile the kind, or has ended in the meantime."""
    request = ApiRequest(
        method="GET",
        path="/journal",
        query=urlencode(query._asdict()),
        verb="get",
        retry_safe=True,
        timeout=_TIMEOUT,
        resource="the journal",
    )
    try:
        async with Client(endpoint.config) as client:
            response = await client.raw(request)
        page = msgspec.json.decode(response.body, type=_JournalPage)
    except (ApiError, ConnectionFailed, msgspec.MsgspecError) as error:
        reason = endpoint.failure()
        if isinstance(error, ConnectionFailed) and not reason and not endpoint.in_cluster:
            return None
        return ObjectJournal(
            source=endpoint.source, problems=[f"its journal cannot be read: {reason or error}"]
        )
    if f"{query.kind}.{query.group}" not in page.kinds:
        return None
    return ObjectJournal(
        source=endpoint.source,
        operator=page.operator,
        reconciles=page.reconciles,
        dropped=page.dropped,
        leading=page.leading,
        lease=page.lease,
        shards=page.shards,
        selector=page.selector,
        namespaces=page.namespaces,
        problems=page.problems,
    )
