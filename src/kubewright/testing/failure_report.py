"""What happened to an object, for the message of a test whose wait timed out."""

import itertools
import json
import time
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from textwrap import indent
from typing import Any, NamedTuple

import yaml

from kubewright.api import Kind, KubewrightError, Object, to_wire
from kubewright.client import Client
from kubewright.journal import FieldChange, changed_fields
from kubewright.testing.recorder import HAPPENED

_EVENTS = Kind(group="", version="v1", kind="Event", plural="events", builtin=True)
_SKIPPED = ("managedFields", "uid", "resourceVersion")

_CHANGES = 12
_LINES = 20
_WIDTH = 100


class ObjectHistory:
    """The changes of one object, as seen by polling."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._last: dict[str, Any] | None = None
        self.lines: deque[str] = deque(maxlen=_CHANGES)
        self.hindrance: Exception | None = None
        """The error that the test's condition raised for the last state."""

    def see(self, found: Object | dict[str, Any], now: float) -> None:
        """Record what differs from the state that was seen last."""
        state = found if isinstance(found, dict) else to_wire(found)
        if self._last is not None and state != self._last:
            for change in changed_fields(self._last, state):
                self.lines.append(f"  {now - self._began:.2f} s: {_line_of(change)}")
        self._last = state


def _line_of(change: FieldChange) -> str:
    return f"{change.path}: {_shown(change.before)} -> {_shown(change.after)}"


def _shown(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, default=str)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


async def describe_failure(
    client: Client,
    kind: Kind,
    name: str,
    namespace: str,
    log: Sequence[str],
    history: ObjectHistory | None = None,
) -> str:
    """Show the object as it is, its last changes, and its Events and the operator's log in the order of time."""
    try:
        found = await client.get(kind, name, namespace)
    except KubewrightError as error:
        state = f"{kind.kind} {name}: {error}"
    else:
        metadata = {key: value for key, value in found["metadata"].items() if key not in _SKIPPED}
        state = yaml.safe_dump({**found, "metadata": metadata}, sort_keys=False)
    parts = [state]
    if history is not None and history.lines:
        parts += ["changes while the test waited:", *history.lines]
    happened = [*_logged(log), *await _events(client, name, namespace)]
    parts += [HAPPENED, *_in_order(happened)] if happened else ["no log lines and no Events"]
    return "\n".join(parts)


class TimedLine(NamedTuple):
    """Something that happened, and when."""

    at: float
    text: str


def folded(lines: Sequence[str]) -> list[str]:
    """Return equal lines in a row as one, with their number."""
    runs = [(text, sum(1 for _ in run)) for text, run in itertools.groupby(lines)]
    return [text if count == 1 else f"({count} times) {text}" for text, count in runs]


def _in_order(moments: Sequence[TimedLine]) -> list[str]:
    ordered = sorted(moments, key=lambda moment: moment.at)[-_LINES:]
    began = ordered[0].at
    return [indent(f"{moment.at - began:6.2f} s  {moment.text}", "  ") for moment in ordered]


def _logged(log: Sequence[str]) -> list[TimedLine]:
    """Return the lines of the log; of equal ones in a row, the first with their number."""
    runs = [list(run) for _, run in itertools.groupby(log)]
    return [TimedLine(getattr(run[0], "created", 0.0), *folded(run)) for run in runs]


async def _events(client: Client, name: str, namespace: str) -> list[TimedLine]:
    if not namespace:
        return []
    try:
        found = await client.list(_EVENTS, namespace=namespace, fields=f"involvedObject.name={name}")
    except KubewrightError as error:
        return [TimedLine(time.time(), f"the Events cannot be read: {error}")]
    return [TimedLine(_time_of(event), _line(event)) for event in found]


def _time_of(event: dict[str, Any]) -> float:
    """Return when an Event happened first; Events of older clients have no microseconds."""
    text: str = (
        event.get("eventTime") or event.get("firstTimestamp") or event["metadata"]["creationTimestamp"]
    )
    return datetime.fromisoformat(text).timestamp()


def _line(event: dict[str, Any]) -> str:
    series: dict[str, Any] = event.get("series") or {}
    count: int = series.get("count") or event.get("count") or 1
    times = f" ({count} times)" if count > 1 else ""
    return f"Event {event.get('type')} {event.get('reason')}: {event.get('message')}{times}"
