"""Where the records of an object's reconciles come from: an operator that runs on this machine, or a record file."""

import asyncio
import json
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from kubewright.api import ApiError, ConnectionFailed, JsonObject, KubewrightError
from kubewright.client import ApiRequest, Client, ClusterConfig
from kubewright.journal import (
    DroppedLine,
    ObjectLine,
    ReconcileLine,
    ReconcileRecord,
    RecordFileError,
    UnreadableLine,
    read_lines,
)

_TIMEOUT = 5.0


class Wanted(NamedTuple):
    """The object that is asked about."""

    group: str
    kind: str
    namespace: str
    name: str


class ObjectJournal(msgspec.Struct, frozen=True, kw_only=True):
    """Records of an object's reconciles, and what is known of the operator that made them."""

    source: str
    """Where the records come from, for people."""
    reconciles: list[ReconcileRecord] = []
    dropped: int = 0
    leading: bool = True
    lease: str = ""
    problems: list[str] = []


class SourceError(KubewrightError):
    """Records cannot be read."""


def journal_file(operator: str) -> Path:
    """Return the file with the address of an operator that runs in this process."""
    return _folder() / f"{operator}-{os.getpid()}.json"


async def running_journals(wanted: Wanted) -> list[ObjectJournal]:
    """Ask the operators that this user runs on this machine; return those that reconcile the object's kind."""
    addresses = await asyncio.to_thread(lambda: list(_addresses()))
    return [journal for address in addresses if (journal := await _ask(address, wanted)) is not None]


class RecordedObject(NamedTuple):
    """What a record file says about an object."""

    journal: ObjectJournal
    object: JsonObject | None
    """The latest version of the object in the file."""


def read_record(path: Path, resource: str, namespace: str, name: str) -> RecordedObject:
    """Read the reconciles of an object from a record file, line by line; the file may be large.

    `resource` is a kind or its plural, with or without its group, as on the command line. A second pass finds the
    object by its uid: its versions stand before the reconciles that refer to them.
    """
    reconciles, dropped, unreadable = list[ReconcileRecord](), 0, 0
    kinds: set[str] = set()
    try:
        for line in read_lines(path):
            match line:
                case ReconcileLine(reconcile=record):
                    kinds.add(record.kind)
                    if (
                        record.name == name
                        and record.namespace in (namespace, "")
                        and _is_called(record, resource)
                    ):
                        reconciles.append(record)
                case DroppedLine():
                    dropped += line.reconciles
                case UnreadableLine():
                    unreadable += 1
                case _:
                    pass
        uids = {record.uid for record in reconciles if record.uid}
        versions = (line for line in read_lines(path) if isinstance(line, ObjectLine) and line.uid in uids)
        latest = next(iter(deque(versions, maxlen=1)), None)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    except RecordFileError as error:
        raise SourceError(str(error)) from None
    skipped = f" without {unreadable} damaged lines" if unreadable else ""
    if not reconciles:
        known = f"; it has reconciles of {', '.join(sorted(kinds))}" if kinds else "; it has no reconciles"
        raise SourceError(f"{path} has no reconcile of {resource}/{name} in namespace {namespace}{known}")
    return RecordedObject(
        ObjectJournal(source=f"the record {path}{skipped}", reconciles=reconciles, dropped=dropped),
        None if latest is None else latest.object,
    )


def _is_called(record: ReconcileRecord, resource: str) -> bool:
    plain, _, group = resource.lower().partition(".")
    plural = record.resource.partition(".")[0]
    return plain in (record.kind.lower(), plural) and (not group or group == record.group)


class _Address(NamedTuple):
    operator: str
    url: str
    token: str
    pid: int


def _folder() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime, "kubewright")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kubewright", "running")


def _addresses() -> Iterator[_Address]:
    folder = _folder()
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*.json")):
        try:
            content = json.loads(path.read_text())
            address = _Address(path.stem, content["url"], content["token"], content["pid"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if _is_running(address.pid):
            yield address
        else:
            path.unlink(missing_ok=True)  # its operator was killed


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class _JournalPage(msgspec.Struct):
    operator: str
    kinds: list[str]
    dropped: int = 0
    leading: bool = True
    lease: str = ""
    problems: list[str] = []
    reconciles: list[ReconcileRecord] = []


async def _ask(address: _Address, wanted: Wanted) -> ObjectJournal | None:
    """Ask one operator; return None if it does not reconcile the kind, or has ended in the meantime."""
    request = ApiRequest(
        method="GET",
        path="/journal",
        query=urlencode(wanted._asdict()),
        verb="get",
        retry_safe=True,
        timeout=_TIMEOUT,
        resource="the journal",
    )
    config = ClusterConfig(server=address.url, token=address.token)
    try:
        async with Client(config) as client:
            response = await client.raw(request)
        page = msgspec.json.decode(response.body, type=_JournalPage)
    except ConnectionFailed:
        return None
    except (ApiError, msgspec.MsgspecError) as error:
        source = f"the operator {address.operator} (process {address.pid})"
        return ObjectJournal(source=source, problems=[f"its journal cannot be read: {error}"])
    if f"{wanted.kind}.{wanted.group}" not in page.kinds:
        return None
    return ObjectJournal(
        source=f"the operator {page.operator} (process {address.pid})",
        reconciles=page.reconciles,
        dropped=page.dropped,
        leading=page.leading,
        lease=page.lease,
        problems=page.problems,
    )
