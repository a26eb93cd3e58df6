"""One reconcile of a record file, with the objects that it read."""

import base64
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import structs

from kubewright.api import JsonObject, KubewrightError
from kubewright.journal import (
    ObjectLine,
    ReconcileLine,
    ReconcileRecord,
    RecordFileError,
    StartLine,
    UnreadableLine,
    read_lines,
)
from kubewright.journal.recording import RecordLine
from kubewright.journal.redaction import is_placeholder

ReadProgress = Callable[[int], object] | None


class ReplayError(KubewrightError):
    """A reconcile cannot be replayed."""


class RecordedReconcile(msgspec.Struct, frozen=True, kw_only=True):
    """A reconcile as it was recorded."""

    record: ReconcileRecord
    object: JsonObject | None
    """The reconciled object at the start of the reconcile; None if it was already deleted."""
    objects: list[JsonObject]
    """The objects that it read, each in the first version that it read, including the reconciled object."""
    unknown: list[str]
    """What the record lacks, as text for users."""
    missing: list[str] = []
    """The objects that it read whose content the record lacks: without them nothing can be compared."""


def recorded_reconciles(
    path: Path, progress: ReadProgress = None, on_damaged: Callable[[int], object] | None = None
) -> Iterator[ReconcileRecord]:
    """Yield the reconciles of a record file in order. Raise ReplayError if the file cannot be read.

    `progress` is called with the number of bytes that were read since the last call, `on_damaged` with the number of
    each line that cannot be read.
    """
    for line in _lines(path, objects=False, progress=progress):
        if isinstance(line, ReconcileLine):
            yield line.reconcile
        elif isinstance(line, UnreadableLine) and on_damaged is not None:
            on_damaged(line.number)


def find_reconcile(
    path: Path,
    id: str,  # noqa: A002 (the field's name)
    *,
    namespace: str = "",
    progress: ReadProgress = None,
) -> RecordedReconcile:
    """Read a reconcile from a record file.

    `id` is its reconcileID or a prefix of it; `last` is the last reconcile that failed, and KIND/NAME the last one of this
    object that failed, or its last one if none failed. `namespace` is needed if objects in several namespaces have the
    name. `progress` is called with the number of bytes that were read since the last call. Raise ReplayError if the file
    cannot be read, has no or several matching reconciles, or lacks the content of the reconciled object.
    """
    damaged: list[int] = []
    found, versions = _read(path, id, namespace, progress, damaged)
    own = versions.get((found.uid, found.resource_version))
    if own is None and found.uid:
        # Without it, the object would seem to be deleted, and the reconciler would not run.
        raise ReplayError(
            f"reconcile {found.id} cannot be replayed: {path} lacks the content of {found.object} at version "
            f"{found.resource_version}, the object that it reconciled; its line is damaged or was left out"
        )
    objects: dict[str, JsonObject] = {} if own is None else {found.uid: own}
    lines = (
        "1 truncated or damaged line" if len(damaged) == 1 else f"{len(damaged)} truncated or damaged lines"
    )
    unknown = [f"the content of {lines} of {path}"] if damaged else list[str]()
    missing: list[str] = []
    seen: dict[str, str] = {found.uid: found.resource_version} if own is not None else {}
    written = {write.resource_version: write for write in found.writes if write.resource_version}
    for read in found.reads:
        for each in read.found:
            about = f"{read.kind or read.resource} {each.namespace}/{each.name}"
            if each.resource_version in written:
                # The reconcile read what it had just written itself.
                if each.uid not in seen and not written[each.resource_version].created:
                    unknown.append(f"{about} before it was written")
                continue
            first = seen.setdefault(each.uid, each.resource_version)
            if each.resource_version != first:
                unknown.append(
                    f"{about} was read in versions {first} and {each.resource_version}: the replay has only {first}"
                )
            elif (document := versions.get((each.uid, each.resource_version))) is not None:
                objects.setdefault(each.uid, document)
            else:
                missing.append(f"the content of {about} at version {each.resource_version}")
    unknown.extend(
        f"the failure of {read.verb} {read.resource} {read.name}, which succeeds in the replay: {read.error}"
        for read in found.reads
        if read.error and read.status != 404
    )
    unknown.extend(
        f"the effect of {write.verb} {write.resource} {write.name}, which got no response: {write.error}"
        for write in found.writes
        if write.error and not write.status
    )
    unknown.extend(
        f"the response to {read.verb} {read.resource} {read.name}, which is not an object: the embedded server responds instead"
        for read in found.reads
        if read.source == "server" and read.verb == "get" and not read.found and not read.error
    )
    unknown.extend(f"the result of {call.function}: {call.missing}" for call in found.calls if call.missing)
    answers = [value for call in found.calls for value in (call.arguments, call.answer)]
    if any(_redacted(value) for value in (*objects.values(), *answers)):
        unknown.append(
            "the values of Secrets and sensitive fields: they are replaced by placeholders, and their changes are not compared"
        )
    return RecordedReconcile(
        record=found,
        object=None if own is None else usable(own),
        objects=[usable(document) for document in objects.values()],
        unknown=list(dict.fromkeys(unknown)),
        missing=list(dict.fromkeys(missing)),
    )


def extract(
    path: Path, recorded: RecordedReconcile, target: Path, *, expected: ReconcileRecord | None = None
) -> None:
    """Write the lines of a record file that a reconcile needs to another file.

    `expected` is what a replay of it did: it replaces what was recorded, for a test of a fix.
    """
    record = recorded.record
    needed = _versions_of(record)
    start: StartLine | None = None
    lines = list[RecordLine]()
    for line in read_lines(path):
        match line:
            case StartLine():
                start = start or line
            case ObjectLine() if (line.uid, line.resource_version) in needed:
                lines.append(line)
            case ReconcileLine() if line.reconcile.id == record.id:
                lines.append(
                    line if expected is None else ReconcileLine(reconcile=_corrected(record, expected))
                )
            case _:
                pass
    kept = [*([start] if start is not None else []), *lines]
    target.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in kept))


def _corrected(record: ReconcileRecord, expected: ReconcileRecord) -> ReconcileRecord:
    """Return the record up to the start of the reconciler, followed by what a replay did.

    Reads of the recorded reconcile's own writes are left out, because the replay created other versions.
    """
    written = {write.resource_version for write in record.writes if write.resource_version}
    reads = [
        structs.replace(read, found=[each for each in read.found if each.resource_version not in written])
        for read in record.reads
    ]
    return structs.replace(
        record,
        reads=reads,
        calls=expected.calls,
        writes=expected.writes,
        skipped_applies=expected.skipped_applies,
        events=expected.events,
        log=expected.log,
        outcome=expected.outcome,
        error=expected.error,
        retry_at=None,
    )


def _versions_of(record: ReconcileRecord) -> set[tuple[str, str]]:
    return {(record.uid, record.resource_version)} | {
        (each.uid, each.resource_version) for read in record.reads for each in read.found
    }


def _lines(
    path: Path, *, objects: bool = True, progress: ReadProgress = None
) -> Iterator[RecordLine | UnreadableLine]:
    try:
        yield from read_lines(path, objects=objects, progress=progress)
    except OSError as error:
        raise ReplayError(f"cannot read {path}: {error.strerror}") from None
    except RecordFileError as error:
        raise ReplayError(str(error)) from None


def _read(
    path: Path,
    id: str,  # noqa: A002
    namespace: str,
    progress: ReadProgress,
    damaged: list[int],
) -> tuple[ReconcileRecord, dict[tuple[str, str], JsonObject]]:
    """Return the reconcile, and the object versions that it refers to.

    The file is read twice, because it may be larger than the memory, and objects come before the reconcile.
    """
    records = recorded_reconciles(path, progress, damaged.append)
    found = _of_object(records, path, id, namespace) if "/" in id else _of_id(records, path, id)
    needed = _versions_of(found)
    versions = {
        (line.uid, line.resource_version): line.object
        for line in _lines(path, progress=progress)
        if isinstance(line, ObjectLine) and (line.uid, line.resource_version) in needed
    }
    return found, versions


def _of_id(records: Iterable[ReconcileRecord], path: Path, id: str) -> ReconcileRecord:  # noqa: A002
    found: ReconcileRecord | None = None
    for record in records:
        if record.outcome == "error" if id == "last" else record.id.startswith(id):
            if found is not None and id != "last":
                raise ReplayError(
                    f"{path} has several reconciles whose id begins with {id}: pass more characters of the id"
                )
            found = record
    if found is None:
        missing = "no reconcile that failed" if id == "last" else f"no reconcile {id}"
        raise ReplayError(f"{path} has {missing}; `kubewright replay {path}` lists them")
    return found


def _of_object(records: Iterable[ReconcileRecord], path: Path, named: str, namespace: str) -> ReconcileRecord:
    resource, _, name = named.partition("/")
    last: dict[str, ReconcileRecord] = {}
    for record in records:
        if record.is_of(resource, name) and namespace in ("", record.namespace):
            earlier = last.get(record.namespace)
            if earlier is None or earlier.outcome != "error" or record.outcome == "error":
                last[record.namespace] = record
    if not last:
        where = f" in namespace {namespace}" if namespace else ""
        raise ReplayError(f"{path} has no reconcile of {named}{where}; `kubewright replay {path}` lists them")
    if len(last) > 1:
        raise ReplayError(
            f"{path} has reconciles of {named} in the namespaces {', '.join(sorted(last))}: choose one with -n"
        )
    return next(iter(last.values()))


def usable(document: JsonObject) -> JsonObject:
    """Return an object with placeholders in a form that its kind allows: the data of a Secret is base64."""
    if document.get("kind") != "Secret" or document.get("apiVersion") != "v1":
        return document
    data: JsonObject = document.get("data") or {}
    encoded = {
        name: base64.b64encode(value.encode()).decode() if is_placeholder(value) else value
        for name, value in data.items()
    }
    return {**document, "data": encoded} if data else document


def _redacted(value: object) -> bool:
    return any(is_placeholder(text) for text in _texts(value))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(each)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(each)  # pyright: ignore[reportUnknownArgumentType]
