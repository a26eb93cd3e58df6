"""One reconcile of a record file, with the objects that it read."""

import base64
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kubewright.api import JsonObject, KubewrightError
from kubewright.journal import (
    ObjectLine,
    ReconcileLine,
    ReconcileRecord,
    RecordFileError,
    StartLine,
    read_lines,
)
from kubewright.journal.recording import RecordLine
from kubewright.journal.redaction import is_placeholder


class ReplayError(KubewrightError):
    """A reconcile cannot be replayed."""


class RecordedReconcile(msgspec.Struct, frozen=True, kw_only=True):
    """A reconcile as it was recorded."""

    record: ReconcileRecord
    object: JsonObject | None
    """The reconciled object as the reconcile found it; None if it was gone."""
    objects: list[JsonObject]
    """The objects that it read, each as it was read first; the reconciled one is among them."""
    unknown: list[str]
    """What the record cannot say, for people."""


def find_reconcile(path: Path, id: str) -> RecordedReconcile:  # noqa: A002 (the field's name)
    """Read a reconcile from a record file; `id` is its reconcileID or the beginning of it, `last` the last that failed.

    Raise ReplayError if the file cannot be read, or has none or several of this id.
    """
    try:
        found, versions = _read(path, id)
    except OSError as error:
        raise ReplayError(f"cannot read {path}: {error.strerror}") from None
    except RecordFileError as error:
        raise ReplayError(str(error)) from None
    own = versions.get((found.uid, found.resource_version))
    objects: dict[str, JsonObject] = {} if own is None else {found.uid: own}
    unknown = list[str]()
    seen: dict[str, str] = {found.uid: found.resource_version} if own is not None else {}
    written = {write.resource_version: write for write in found.writes if write.resource_version}
    for read in found.reads:
        for each in read.found:
            if each.uid not in seen and each.resource_version in written:
                # The reconcile read what it had just written itself.
                if not written[each.resource_version].created:
                    unknown.append(
                        f"{read.kind or read.resource} {each.namespace}/{each.name} before it was written"
                    )
                continue
            document = versions.get((each.uid, each.resource_version))
            about = f"{read.kind or read.resource} {each.namespace}/{each.name}"
            if document is None:
                unknown.append(
                    f"the content of {about} at version {each.resource_version}: it is not in the file"
                )
                continue
            objects.setdefault(each.uid, document)
            first = seen.setdefault(each.uid, each.resource_version)
            if each.resource_version != first and each.resource_version not in written:
                unknown.append(
                    f"{about} was read in versions {first} and {each.resource_version}, the replay has {first}"
                )
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
    if any(_redacted(document) for document in objects.values()):
        unknown.append(
            "the values of Secrets and sensitive fields: placeholders stand for them, and changes of them are not compared"
        )
    return RecordedReconcile(
        record=found,
        object=None if own is None else usable(own),
        objects=[usable(document) for document in objects.values()],
        unknown=list(dict.fromkeys(unknown)),
    )


def extract(path: Path, recorded: RecordedReconcile, target: Path) -> None:
    """Write the lines of a record file that a reconcile needs to another file."""
    record = recorded.record
    wanted = _versions_of(record)
    start: StartLine | None = None
    lines = list[RecordLine]()
    for line in read_lines(path):
        match line:
            case StartLine():
                start = start or line
            case ObjectLine() if (line.uid, line.resource_version) in wanted:
                lines.append(line)
            case ReconcileLine() if line.reconcile.id == record.id:
                lines.append(line)
            case _:
                pass
    kept = [*([start] if start is not None else []), *lines]
    target.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in kept))


def _versions_of(record: ReconcileRecord) -> set[tuple[str, str]]:
    return {(record.uid, record.resource_version)} | {
        (each.uid, each.resource_version) for read in record.reads for each in read.found
    }


def _read(path: Path, id: str) -> tuple[ReconcileRecord, dict[tuple[str, str], JsonObject]]:  # noqa: A002
    """Return the reconcile, and the object versions that it refers to.

    Two passes over the file: it may be larger than the memory, and objects stand before the reconcile.
    """
    found: ReconcileRecord | None = None
    for line in read_lines(path):
        if not isinstance(line, ReconcileLine):
            continue
        record = line.reconcile
        if record.outcome == "error" if id == "last" else record.id.startswith(id):
            if found is not None and id != "last":
                raise ReplayError(f"{path} has several reconciles whose id begins with {id}: give more of it")
            found = record
    if found is None:
        wanted = "no reconcile that failed" if id == "last" else f"no reconcile {id}"
        raise ReplayError(f"{path} has {wanted}; `kubewright why --record` shows the ids")
    wanted_versions = _versions_of(found)
    versions = {
        (line.uid, line.resource_version): line.object
        for line in read_lines(path)
        if isinstance(line, ObjectLine) and (line.uid, line.resource_version) in wanted_versions
    }
    return found, versions


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
