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
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from kubewright.api import JsonObject
from kubewright.guards import text_of
from kubewright.journal.collected import Collected
from kubewright.journal.records import ReconcileRecord, documents_of, record_of
from kubewright.journal.redaction import Redactor

FORMAT = 1
DEFAULT_FILE_LIMIT = 200 * 1024 * 1024
QUEUE_LIMIT = 32 * 1024 * 1024
"""Bytes of reconciles that may wait to be written."""
_RETRY_SECONDS = 5.0

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
        """Open the file, so that a path that cannot be written is an error at once, and start the thread."""
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
            self._write_lines(self._lines(entry))
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

    def _lines(self, entry: Collected) -> Iterator[RecordLine]:
        with self._condition:
            missing = dict(self._missing)
            self._missing.update({"slow": 0, "error": 0})
        for reason, count in missing.items():
            if count:
                yield DroppedLine(reconciles=count, reason=reason)
        for document in documents_of(entry, self._redactor):
            metadata = document["metadata"]
            version = (metadata["uid"], metadata["resourceVersion"])
            if version not in self._written:
                self._written.add(version)
                yield ObjectLine(uid=version[0], resource_version=version[1], object=document)
        yield ReconcileLine(reconcile=record_of(entry, self._redactor))

    def _write_lines(self, lines: Iterator[RecordLine]) -> None:
        data = b"".join(_encoder.encode(line) + b"\n" for line in lines)
        if self._size and self._size + len(data) > self._limit // 2:
            self._rotate()
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
    """A file that is not a record, or is one of a newer kubewright."""


def read_lines(path: Path) -> Iterator[RecordLine | UnreadableLine]:
    """Yield the lines of a record file one by one.

    Raise RecordFileError if the file does not begin like a record, or has a format that is not known.
    """
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(RecordLine)
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            try:
                line: RecordLine = decoder.decode(text)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                if number == 1:
                    raise RecordFileError(
                        f"{path} is not a record of `kubewright run --record`: {error}"
                    ) from None
                yield UnreadableLine(number)
                continue
            if number == 1 and not isinstance(line, StartLine):
                raise RecordFileError(f"{path} does not begin with the start of a record")
            if isinstance(line, StartLine) and line.format > FORMAT:
                raise RecordFileError(
                    f"{path} has format {line.format}, and this kubewright reads formats up to {FORMAT}: "
                    "use the version that wrote it, or a newer one"
                )
            yield line


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read: it has objects of the cluster in it."""
    return os.open(path, flags, 0o600)
