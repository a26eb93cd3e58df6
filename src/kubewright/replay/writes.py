"""The writes of a reconcile in a form in which two runs can be compared (pure functions)."""

import difflib
import re
from collections.abc import Sequence
from typing import Any, cast

import msgspec
import yaml

from kubewright.api import JsonObject
from kubewright.journal import CallRecord, FieldChange, ReconcileRecord, WriteRecord
from kubewright.journal.redaction import is_placeholder

_PLACEHOLDER = re.compile(r"\(redacted [0-9a-f]{6}\)")
_TRANSITION = re.compile(r'"lastTransitionTime":"[^"]*",?')
# Values that differ between two runs of the same reconcile: versions that the server assigns, and times.
_VARYING = frozenset({"resourceVersion", "lastTransitionTime"})


def differences(recorded: ReconcileRecord, replayed: ReconcileRecord) -> list[str]:
    """Return the differences between the calls, writes, Events and errors of two runs as lines of a unified diff.

    Writes that changed nothing are left out: whether an apply is sent that changes nothing depends on what the process
    has learned from earlier ones. So are resource versions, the times of conditions, and changes from one sensitive
    value to another, which the record does not have.
    """
    return list(
        difflib.unified_diff(_lines(recorded), _lines(replayed), "recorded", "replayed", lineterm="", n=10)
    )


def _lines(record: ReconcileRecord) -> list[str]:
    shown: dict[str, Any] = {
        "writes": [
            _comparable(write) for write in record.writes if _changes(write) or write.error or _deletes(write)
        ],
        "events": [f"{event.type} {event.reason}: {_plain(event.note)}" for event in record.events],
        "outcome": record.outcome,
    }
    if calls := [_plain(_call(call)) for call in record.calls]:
        shown = {"calls": calls, **shown}
    if record.error:
        shown["error"] = _plain(record.error)
    return yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=1000).splitlines()


def _call(call: CallRecord) -> str:
    """Return a call without its result, which is the recorded one in both runs, and without the class, which may differ."""
    arguments = ", ".join(f"{name}={_json(value)}" for name, value in call.arguments.items())
    return f"{call.function.rpartition('.')[2]}({arguments})"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _deletes(write: WriteRecord) -> bool:
    return write.verb.startswith("delete")


def _comparable(write: WriteRecord) -> dict[str, Any]:
    about = f"{write.namespace}/{write.name}" if write.namespace else write.name
    metadata = _metadata(write.sent)
    if metadata.get("generateName") and not metadata.get("name"):
        about = f"{write.namespace}/{metadata['generateName']}*"  # the server makes the name
    found: dict[str, Any] = {"write": f"{write.verb} {write.resource} {about}"}
    if write.error:
        found["error"] = _plain(write.error)
    changes = _changes(write)
    if changes:
        found["changes"] = [_plain(str(change)) for change in changes]
    return found


def _changes(write: WriteRecord) -> list[FieldChange]:
    return [
        change
        for change in write.changes
        if not _varies(change.path) and not (is_placeholder(change.before) and is_placeholder(change.after))
    ]


def _metadata(sent: Any) -> JsonObject:
    if not isinstance(sent, dict):
        return {}
    return cast("JsonObject", sent).get("metadata") or {}


def _varies(path: str) -> bool:
    return path.rpartition(".")[2] in _VARYING


def _plain(text: str) -> str:
    """Return a text without values that differ between runs: digests of placeholders, times of conditions."""
    return _TRANSITION.sub("", _PLACEHOLDER.sub("(redacted)", text))


def write_lines(writes: Sequence[WriteRecord]) -> list[str]:
    """Return the writes as text: a line for each write, and one for each changed field."""
    return [
        line
        for write in writes
        for line in (
            f"{write.verb} {write.resource}/{write.name}{f': {write.error}' if write.error else ''}",
            *(f"  {change}" for change in write.changes),
        )
    ]
