"""The journal of an operator: what each reconcile was caused by, read, wrote and reported.

`collected` gathers it while a reconcile runs, `ring` keeps the latest ones within a limit of memory, `records` makes
readable records of them, without secrets (`redaction`), and `recording` writes them to a file.
"""

from typing import TYPE_CHECKING

from kubewright.api.on_demand import names_on_demand
from kubewright.journal.collected import (
    CachedList,
    CachedRead,
    Collected,
    ExternalCall,
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
from kubewright.journal.records import (
    CallRecord,
    CauseRecord,
    EventRecord,
    FieldChange,
    LogRecord,
    ReadRecord,
    ReconcileRecord,
    WriteRecord,
    changed_fields,
    record_of,
)
from kubewright.journal.redaction import Redactor, is_placeholder, sensitive_schema_paths
from kubewright.journal.ring import DEFAULT_FILE_LIMIT, DEFAULT_LIMIT, Journal

if TYPE_CHECKING:
    from kubewright.journal.recording import (
        DroppedLine,
        ObjectLine,
        ReconcileLine,
        RecordFile,
        RecordFileError,
        StartLine,
        UnreadableLine,
        read_lines,
    )
else:
    # Only for runs that write or read a record.
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "recording": [
                "DroppedLine",
                "ObjectLine",
                "ReconcileLine",
                "RecordFile",
                "RecordFileError",
                "StartLine",
                "UnreadableLine",
                "read_lines",
            ]
        },
    )

__all__ = [
    "DEFAULT_FILE_LIMIT",
    "DEFAULT_LIMIT",
    "CachedList",
    "CachedRead",
    "CallRecord",
    "CauseRecord",
    "Collected",
    "DroppedLine",
    "EventRecord",
    "ExternalCall",
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
    "changed_fields",
    "collecting",
    "current",
    "end_collecting",
    "gathered_log",
    "is_placeholder",
    "read_lines",
    "record_of",
    "sensitive_schema_paths",
]
