"""What happened in a run, in order: requests, responses, watch events, writes, faults, starts and ends of processes."""

import hashlib
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

What = Literal[
    "start",
    "ready",
    "stop",
    "crash",
    "restart",
    "pause",
    "resume",
    "request",
    "response",
    "lost",
    "event",
    "external",
    "write",
    "fault",
    "change",
]

# Keys and certificates are created by OpenSSL, whose random numbers cannot be seeded.
_CERTIFICATES = re.compile(rb'"(caBundle|ca\.crt|ca\.key|client-ca-file|tls\.crt|tls\.key|token)":"[^"]*"')
_MARKS = (b"caBundle", b"ca.crt", b"client-ca-file", b"tls.", b'"token"')
_SHOWN = 160


class TraceEntry(msgspec.Struct, frozen=True, gc=False):
    """One event of a run."""

    time: float
    process: str
    what: What
    subject: str
    data: bytes = b""

    def __str__(self) -> str:
        data = self.data[:_SHOWN].decode("utf-8", "replace").rstrip("\n")
        return f"{self.time:12.4f} s  {self.process:<14} {self.what:<8} {self.subject} {data}".rstrip()


class Trace:
    """Collect entries; two runs of one seed have equal traces."""

    def __init__(self) -> None:
        self.entries: list[TraceEntry] = []

    def add(self, time: float, process: str, what: What, subject: str, data: bytes = b"") -> None:
        """Add an entry."""
        if any(mark in data for mark in _MARKS):
            data = _CERTIFICATES.sub(rb'"\1":"redacted"', data)
        self.entries.append(TraceEntry(time, process, what, subject, data))

    def __len__(self) -> int:
        return len(self.entries)

    def of(self, *what: What, process: str = "") -> Iterator[TraceEntry]:
        """Yield the entries of these types, optionally of one process."""
        return (entry for entry in self.entries if entry.what in what and process in ("", entry.process))

    def digest(self) -> str:
        """Return a hash of the whole trace."""
        found = hashlib.sha256()
        for entry in self.entries:
            found.update(f"{entry.time!r} {entry.process} {entry.what} {entry.subject} ".encode())
            found.update(entry.data)
            found.update(b"\n")
        return found.hexdigest()

    def tail(self, count: int = 20, *what: What) -> str:
        """Return the last entries as text, optionally of these types."""
        chosen = [entry for entry in self.entries if not what or entry.what in what]
        return "\n".join(str(entry) for entry in chosen[-count:])
