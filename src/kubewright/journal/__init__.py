"""The journal of an operator: what each reconcile was caused by, read, wrote and reported.

`collected` gathers it while a reconcile runs, `ring` keeps the latest ones within a limit of memory, `records` makes
readable records of them, without secrets (`redaction`), and `recording` writes them to a file.
"""

from kubewright.journal.collected import (
    CachedList,
    CachedRead,
    Collected,
    LoggedLine,
    PublishedEvent,
    RequestExchange,
    Trigger,
    begin_collecting,
    collecting,
    current,
    end_collecting,
)
from kubewright.journal.log_lines import gathered_log
from kubewright.journal.recording import (
    DEFAULT_FILE_LIMIT,
    DroppedLine,
    ObjectLine,
    ReconcileLine,
    RecordFile,
    RecordFileError,
    StartLine,
    UnreadableLine,
    read_lines,
)
from kubewright.journal.records import (
    CauseRecord,
    EventRecord,
    FieldChange,
    LogRecord,
    ReadRecord,
    ReconcileRecord,
    WriteRecord,
    record_of,
)
from kubewright.journal.redaction import Redactor
from kubewright.journal.ring import DEFAULT_LIMIT, Journal

__all__ = [
    "DEFAULT_FILE_LIMIT",
    "DEFAULT_LIMIT",
    "CachedList",
    "CachedRead",
    "CauseRecord",
    "Collected",
    "DroppedLine",
    "EventRecord",
    "FieldChange",
    "Journal",
    "LogRecord",
    "LoggedLine",
    "ObjectLine",
    "PublishedEvent",
    "ReadRecord",
    "ReconcileLine",
    "ReconcileRecord",
    "RecordFile",
    "RecordFileError",
    "Redactor",
    "RequestExchange",
    "StartLine",
    "Trigger",
    "UnreadableLine",
    "WriteRecord",
    "begin_collecting",
    "collecting",
    "current",
    "end_collecting",
    "gathered_log",
    "read_lines",
    "record_of",
]
