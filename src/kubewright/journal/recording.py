"""All reconciles of a run in a file, as JSON Lines.

A thread makes the records and writes them, behind a queue that is limited by bytes: a slow or full disk never holds up
the operator, and what does not fit is dropped and counted, in the file as well. When a file has reached half of the
limit it is renamed to `FILE.1`, in place of an earlier one. Each file can be read by itself: it begins with a `start`
line, and the content of an object version stands in it once, before the first reconcile that refers to it.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from kubewright.api import JsonObject
from kubewright.guards import text_of
from kubewright.journal.collected import Collected
from kubewright.journal.records import ReconcileRecord, documents_of, record_of
from kubewright.journal.redaction import Redactor
from kubewright.journal.ring import DEFAULT_FILE_LIMIT

FORMAT = 1
QUEUE_LIMIT = 32 * 1024 * 1024
"""Bytes of reconciles that may wait to be written."""
MAX_LINE = 64 * 1024 * 1024
"""Bytes of a line that can be read; the longest are reconciles with many large writes."""
_RETRY_SECONDS = 5.0
_PIECE = 1024 * 1024
_FIRST_LINE = 64 * 1024
"""Bytes in which a file must have begun like a record."""
_OBJECT_LINE = b'{"type":"object"'

_log = logging.getLogger("kubewright.journal")
_encoder = msgspec.json.Encoder()


class StartLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="start"):
    """The first line of a run."""

    format: int
    operator: str
    at: datetime


class ObjectLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="object"):
    """One version of an object, without sensitive values."""

    uid: str
    resource_version: str
    object: JsonObject


class _UnparsedObjectLine(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="object"
):
    """An object line whose syntax is checked without building its content, in a fifth of the time."""

    uid: str
    resource_version: str
    object: msgspec.Raw


class ReconcileLine(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="reconcile"
):
    """One reconcile."""

    reconcile: ReconcileRecord


class DroppedLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="dropped"):
    """How many reconciles are missing at this place, and why."""

    reconciles: int
    reason: Literal["slow", "error"]


class UnreadableLine(msgspec.Struct, frozen=True):
    """A line that is no line of a record: it was cut, or the file is damaged."""

    number: int


RecordLine = StartLine | ObjectLine | ReconcileLine | DroppedLine


class RecordFile:
    """Write finished reconciles to a file, from `open` to `close`; `add` never waits."""

    def __init__(
        self,
        path: Path,
        *,
        operator: str,
        redactor: Redactor,
        limit: int = DEFAULT_FILE_LIMIT,
        queue_limit: int = QUEUE_LIMIT,
    ) -> None:
        self.path: Path = path
        self.dropped: int = 0
        """How many reconciles are not in the file."""
        self._operator = operator
        self._redactor = redactor
        self._limit = limit
        self._queue_limit = queue_limit
        self._queue: deque[Collected] = deque()
        self._queued = 0
        self._missing: dict[Literal["slow", "error"], int] = {"slow": 0, "error": 0}
        self._condition = threading.Condition()
        self._closing = False
        self._file: BinaryIO | None = None
        self._size = 0
        self._written: set[tuple[str, str]] = set()
        self._reported = False
        self._retry_at = 0.0
        self._thread = threading.Thread(target=self._run, name="kubewright-record", daemon=True)

    def open(self) -> None:
        """Open the file, so that a path that cannot be written is an error at once, and start the thread.

        Raise RecordFileError if it is another file than a record: nothing is appended to it.
        """
        if self.path.is_file() and self.path.stat().st_size:
            next(read_lines(self.path))
        self._open()
        self._thread.start()

    def close(self) -> None:
        """Write what is queued, for five seconds at most, and close the file."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        self._thread.join(timeout=5.0)
        if self._thread.is_alive():
            _log.warning(
                "The record %s lacks the last %d reconciles: the disk is slow", self.path, len(self._queue)
            )

    def add(self, entry: Collected) -> None:
        """Queue a finished reconcile, or count it as dropped if too much is queued."""
        with self._condition:
            if self._queued + entry.size > self._queue_limit:
                self._drop("slow")
                return
            self._queue.append(entry)
            self._queued += entry.size
            self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._queue and not self._closing:
                    self._condition.wait()
                if not self._queue:
                    break
                entry = self._queue.popleft()
                self._queued -= entry.size
            self._write(entry)
        self._close()

    def _write(self, entry: Collected) -> None:
        try:
            if self._file is None:
                if time.monotonic() < self._retry_at:
                    self._drop("error")
                    return
                self._open()
            self._write_lines(entry)
            self._reported = False
        except OSError as error:
            self._failed(error.strerror or str(error))
        except Exception as error:
            # The thread must go on: without it all further reconciles would be missing.
            _log.debug("Cannot record a reconcile", exc_info=error)
            self._failed(f"{type(error).__name__}: {text_of(error)}")

    def _failed(self, reason: str) -> None:
        self._drop("error")
        self._close()
        self._retry_at = time.monotonic() + _RETRY_SECONDS
        if not self._reported:
            self._reported = True
            _log.warning(
                "Cannot write the record %s: %s; reconciles are not recorded until it can be written",
                self.path,
                reason,
            )

    def _dropped_lines(self) -> list[RecordLine]:
        with self._condition:
            missing = dict(self._missing)
            self._missing.update({"slow": 0, "error": 0})
        return [DroppedLine(reconciles=count, reason=reason) for reason, count in missing.items() if count]

    def _lines(self, entry: Collected) -> Iterator[RecordLine]:
        for document in documents_of(entry, self._redactor):
            metadata = document["metadata"]
            version = (metadata["uid"], metadata["resourceVersion"])
            if version not in self._written:
                self._written.add(version)
                yield ObjectLine(uid=version[0], resource_version=version[1], object=document)
        yield ReconcileLine(reconcile=record_of(entry, self._redactor))

    def _write_lines(self, entry: Collected) -> None:
        dropped = self._dropped_lines()
        data = _encoded((*dropped, *self._lines(entry)))
        if self._size and self._size + len(data) > self._limit // 2:
            self._rotate()
            # The new file needs all objects of the reconcile, also those that the earlier file has.
            data = _encoded((*dropped, *self._lines(entry)))
        assert self._file is not None
        self._file.write(data)
        self._file.flush()
        self._size += len(data)

    def _rotate(self) -> None:
        self._close()
        self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        self._open()

    def _open(self) -> None:
        self._written.clear()
        file = open(self.path, "ab", opener=_private)  # noqa: SIM115 (closed by _close)
        self._size = os.fstat(file.fileno()).st_size
        if self._size and not _ends_a_line(self.path):
            file.write(b"\n")  # the last line was cut, when the disk was full or the process was killed
        start = StartLine(format=FORMAT, operator=self._operator, at=datetime.now(UTC))
        try:
            self._size += file.write(_encoder.encode(start) + b"\n")
            file.flush()
        except OSError:
            file.close()
            raise
        self._file = file

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                _log.debug("Cannot close the record %s: %s", self.path, error)

    def _drop(self, reason: Literal["slow", "error"]) -> None:
        with self._condition:
            self.dropped += 1
            self._missing[reason] += 1


class RecordFileError(ValueError):
    """A file that is not a record, or is one of another version."""


def read_lines(
    path: Path, *, objects: bool = True, progress: Callable[[int], object] | None = None
) -> Iterator[RecordLine | UnreadableLine]:
    """Yield the lines of a record file one by one: the file may be larger than the memory.

    `objects=False` leaves out the contents of objects, which are most of a file, and yields only the damaged ones of
    their lines. `progress` is called with the number of bytes that were read since the last call. Raise RecordFileError
    if the file does not begin like a record, or has another format.
    """
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(RecordLine)
    unparsed = msgspec.json.Decoder(_UnparsedObjectLine)
    with path.open("rb", buffering=_PIECE) as file:
        for number, text in enumerate(_bounded_lines(file, progress), 1):
            if number > 1 and not objects and text.startswith(_OBJECT_LINE):
                if not _is_whole(text, unparsed):
                    yield UnreadableLine(number)
                continue
            try:
                line: RecordLine = decoder.decode(text)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                if number == 1:
                    raise RecordFileError(_not_a_record(path, text, error)) from None
                yield UnreadableLine(number)
                continue
            if number == 1 and not isinstance(line, StartLine):
                raise RecordFileError(
                    f"{path} does not begin with the start of a record: use the whole file, from its first line"
                )
            if isinstance(line, StartLine) and line.format != FORMAT:
                raise RecordFileError(
                    f"{path} has format {line.format}, and this kubewright reads format {FORMAT}: "
                    "use the version of kubewright that wrote it"
                )
            yield line


def _is_whole(text: bytes, decoder: msgspec.json.Decoder[_UnparsedObjectLine]) -> bool:
    """Return True if an object line can be read."""
    try:
        text.decode()  # the decoder checks the encoding only of what it builds
        return bytes(decoder.decode(text).object).startswith(b"{")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def _bounded_lines(file: BinaryIO, progress: Callable[[int], object] | None) -> Iterator[bytes]:
    """Yield the lines of a file; of one that is longer than any line of a record, and of the first, the beginning."""
    limit = _FIRST_LINE
    pieces, size = list[bytes](), 0
    while piece := file.readline(_PIECE):
        if progress is not None:
            progress(len(piece))
        if size <= limit:
            pieces.append(piece)
        size += len(piece)
        if size > limit and len(pieces) > 1:
            del pieces[1:]
        if piece.endswith(b"\n") or limit == _FIRST_LINE:
            yield b"".join(pieces)
            pieces, size, limit = [], 0, MAX_LINE
    if pieces or limit == _FIRST_LINE:
        yield b"".join(pieces)


def _not_a_record(path: Path, text: bytes, error: Exception) -> str:
    if not text:
        return f"{path} is empty: it has no record of `kubewright run --record`"
    cut = "" if text.endswith(b"\n") else ", or was cut in its first line"
    return f"{path} is not a record of `kubewright run --record`{cut}: {error}"


def _encoded(lines: Iterable[RecordLine]) -> bytes:
    return b"".join(_encoder.encode(line) + b"\n" for line in lines)


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read: it has objects of the cluster in it."""
    return os.open(path, flags, 0o600)
