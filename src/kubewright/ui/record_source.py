"""The reconciles of a record file (`run --record`) and the objects that they saw, as a history.

The file may be larger than the memory: it is read line by line in a thread, and the oldest data is dropped when the
limits of the page's history are reached. Objects have no time in the file. Their lines come before the reconcile that
saw them: the response to a write gets the time of that write, every other object the start of the reconcile.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path

from kubewright.api import GroupVersionKind, JsonObject, Kind, KubewrightError, plural_of
from kubewright.cache.store import compare_versions
from kubewright.journal import (
    DroppedLine,
    ObjectLine,
    ReconcileLine,
    ReconcileRecord,
    RecordFileError,
    StartLine,
    UnreadableLine,
    read_lines,
)
from kubewright.journal.recording import RecordLine
from kubewright.ui.reconciles import ObjectName
from kubewright.ui.state import PageState

OBJECTS_LIMIT = 128 * 1024 * 1024
"""Maximum size of current versions in bytes: a record does not contain every deletion, so old objects must be dropped."""
_BATCH = 200
_MAX_SEEN = 5000

ReadLine = RecordLine | UnreadableLine


class RecordError(KubewrightError):
    """A record file cannot be shown."""


class RecordSource:
    """Read a record file into the page's state."""

    def __init__(self, path: Path, state: PageState) -> None:
        self._path = path
        self._state = state
        self._operator = ""
        self._seen: list[JsonObject] = []
        """Objects that the next reconcile in the file saw."""
        self._uids: dict[ObjectName, str] = {}
        self._named: dict[tuple[str, str], set[ObjectName]] = {}
        """The objects of `_uids` by namespace and name."""
        self._unreadable = 0
        self._missing = 0
        self._runs = 0
        self._evicted = 0
        self._read = 0
        self._plurals: dict[tuple[str, str], str] = {}

    def check(self) -> None:
        """Raise RecordError if the file cannot be read, or is not a record in a supported format."""
        try:
            next(read_lines(self._path), None)
        except OSError as error:
            raise RecordError(f"cannot read {self._path}: {error.strerror}") from None
        except RecordFileError as error:
            raise RecordError(str(error)) from None

    async def run(self) -> None:
        """Read the file and report the progress."""
        self._state.loading = True
        try:
            self._report(await self._read_all())
        finally:
            self._state.finish_loading()

    async def _read_all(self) -> str:
        """Read to the end; return an error message if that fails, else an empty string."""
        size = max(1, (await asyncio.to_thread(self._path.stat)).st_size)
        lines = read_lines(self._path, progress=self._advanced)
        try:
            while batch := await asyncio.to_thread(lambda: list(islice(lines, _BATCH))):
                for line in batch:
                    self._take(line)
                self._report(f"{self._path.name} is being read: {min(1.0, self._read / size):.0%}")
        except (OSError, RecordFileError) as error:
            return f"{self._path.name} cannot be read further: {error}"
        return ""

    def _advanced(self, size: int) -> None:
        self._read += size

    def _report(self, text: str) -> None:
        problems = [text] if text else []
        if self._unreadable:
            lines = (
                f"line of {self._path.name} is"
                if self._unreadable == 1
                else f"lines of {self._path.name} are"
            )
            problems.append(f"{self._unreadable} {lines} truncated or damaged and not shown")
        if self._missing:
            problems.append(
                f"{self._missing} reconciles are missing in {self._path.name}: the recorder dropped them"
            )
        if self._evicted:
            problems.append(f"{self._evicted} objects that no reconcile saw for a long time are not shown")
        if not text and not len(self._state.reconciles):
            problems.append(f"{self._path.name} has no reconciles")
        self._state.set_problems("record", problems)

    def _take(self, line: ReadLine) -> None:
        match line:
            case StartLine():
                self._operator = line.operator
                self._runs += 1
                if self._runs == 1:
                    self._state.history.restart(line.at.timestamp())
            case ObjectLine():
                self._seen.append(line.object)
                if len(self._seen) >= _MAX_SEEN:
                    self._put_seen(self._state.history.end, {})
            case ReconcileLine():
                self._take_reconcile(line.reconcile)
            case DroppedLine():
                self._missing += line.reconciles
            case UnreadableLine():
                self._unreadable += 1

    def _take_reconcile(self, record: ReconcileRecord) -> None:
        started = record.started_at.timestamp()
        self._plurals[record.group, record.kind] = record.resource.partition(".")[0]
        gone = set(self._gone_before(record))
        for about in gone:
            self._remove(about, started)
        written = {write.resource_version: write.at.timestamp() for write in record.writes}
        self._put_seen(started, written, gone)
        for write in record.writes:
            if write.verb == "delete" and not write.error:
                self._remove_resource(write.resource, write.namespace, write.name, write.at.timestamp())
        self._state.add_reconcile(self._operator, record)

    def _gone_before(self, record: ReconcileRecord) -> Iterator[ObjectName]:
        """Yield the objects that did not exist when a reconcile read them, or whose deletion caused it.

        The reconcile may have created them afterwards.
        """
        if not record.uid:
            yield (record.group, record.kind, record.namespace, record.name)
        for read in record.reads:
            if read.verb == "get" and read.kind and not read.found and not read.error:
                yield (read.group, read.kind, read.namespace, read.name)
        for cause in record.causes:
            if cause.type != "delete":
                continue
            for about in self._named.get((cause.namespace, cause.name), ()):
                current = self._state.history.current(self._uids[about])
                # Another object of the same name may have been created since.
                if (
                    about[1] == cause.kind
                    and current is not None
                    and compare_versions(current.resource_version, cause.resource_version) <= 0
                ):
                    yield about

    def _put_seen(
        self, started: float, written: Mapping[str, float], gone: Collection[ObjectName] = ()
    ) -> None:
        """Add the objects that a reconcile saw to the state, in the order of their resourceVersions.

        `written` has the time of each write by its resourceVersion. Of the objects in `gone`, only the versions that the
        reconcile itself wrote are added.
        """
        seen, self._seen = self._seen, []
        for document in sorted(seen, key=_version_number):
            kind = self._kind_of(document)
            if kind is None:
                continue
            metadata = document["metadata"]
            about = (kind.group, kind.kind, metadata.get("namespace") or "", metadata.get("name") or "")
            at = written.get(metadata["resourceVersion"])
            if at is not None or about not in gone:
                self._put(kind, about, document, started if at is None else at)

    def _put(self, kind: Kind, about: ObjectName, document: JsonObject, at: float) -> None:
        metadata = document["metadata"]
        before = self._uids.get(about)
        current = self._state.history.current(metadata["uid"])
        if (
            current is not None
            and compare_versions(metadata["resourceVersion"], current.resource_version) <= 0
        ):
            return  # a reconcile also records the earlier state of its object
        if before is not None and before != metadata["uid"]:
            self._state.remove(before, at)
        self._uids[about] = metadata["uid"]
        self._named.setdefault(about[2:], set()).add(about)
        self._state.put(kind, document, at)
        while self._state.history.current_size > OBJECTS_LIMIT:
            oldest = self._state.history.oldest.object
            self._remove((oldest.kind.group, oldest.kind.kind, oldest.namespace, oldest.name), at)
            self._evicted += 1

    def _remove_resource(self, resource: str, namespace: str, name: str, at: float) -> None:
        for about in list(self._named.get((namespace, name), ())):
            group, kind = about[:2]
            plural = self._plural(group, kind)
            if resource == (f"{plural}.{group}" if group else plural):
                self._remove(about, at)

    def _remove(self, about: ObjectName, at: float) -> None:
        uid = self._uids.pop(about, None)
        if uid is None:
            return
        self._state.remove(uid, at)
        named = self._named[about[2:]]
        named.discard(about)
        if not named:
            del self._named[about[2:]]

    def _kind_of(self, document: JsonObject) -> Kind | None:
        api_version, name = document.get("apiVersion"), document.get("kind")
        if not isinstance(api_version, str) or not isinstance(name, str):
            return None
        gvk = GroupVersionKind.parse(api_version, name)
        return Kind(group=gvk.group, version=gvk.version, kind=name, plural=self._plural(gvk.group, name))

    def _plural(self, group: str, kind: str) -> str:
        return self._plurals.get((group, kind)) or plural_of(kind)


def _version_number(document: JsonObject) -> int:
    version = document["metadata"]["resourceVersion"]
    return int(version) if str(version).isdecimal() else 0
