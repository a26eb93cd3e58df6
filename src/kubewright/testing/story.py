"""The story of an object, for the message of a test that waited in vain."""

import itertools
import json
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, cast

import yaml

from kubewright.api import Kind, KubewrightError, Object, to_wire
from kubewright.client import Client

_EVENTS = Kind(group="", version="v1", kind="Event", plural="events", builtin=True)
_SKIPPED = ("managedFields", "uid", "resourceVersion")


_CHANGES = 12
_LINES = 20
_MISSING = object()


class History:
    """The changes of one object, as seen by polling."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._last: dict[str, Any] | None = None
        self.lines: deque[str] = deque(maxlen=_CHANGES)
        self.hindrance: Exception | None = None
        """What kept the test's condition from being asked of the last state."""

    def see(self, found: Object | dict[str, Any], now: float) -> None:
        """Note what differs from the state that was seen last."""
        state = found if isinstance(found, dict) else to_wire(found)
        if self._last is not None and state != self._last:
            for line in differences(self._last, state):
                self.lines.append(f"  {now - self._began:.2f} s: {line}")
        self._last = state


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Say field by field what has changed; what the server only counts is left out."""
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        for key in {**old, **new}:
            if not (path == "metadata" and key in _SKIPPED):
                yield from differences(
                    old.get(key, _MISSING), new.get(key, _MISSING), f"{path}.{key}" if path else key
                )
    elif before != after:
        yield f"{path}: {_shown(before)} -> {_shown(after)}"


def _shown(value: Any) -> str:
    text = "nothing" if value is _MISSING else json.dumps(value, default=str)
    return text if len(text) <= 100 else f"{text[:97]}..."


async def describe_failure(
    client: Client,
    kind: Kind,
    name: str,
    namespace: str,
    log: Sequence[str],
    history: History | None = None,
) -> str:
    """Show the object as it is, its last changes, its events, and the last lines of the operator's log."""
    try:
        found = await client.get(kind, name, namespace)
    except KubewrightError as error:
        state = f"{kind.kind} {name}: {error}"
    else:
        metadata = {key: value for key, value in found["metadata"].items() if key not in _SKIPPED}
        state = yaml.safe_dump({**found, "metadata": metadata}, sort_keys=False)
    events = await _events(client, name, namespace)
    parts = [state, "events:", *(events or ["  none"])]
    if history is not None and history.lines:
        parts += ["changes while the test waited:", *history.lines]
    if log:
        parts += ["log:", *(f"  {line}" for line in folded(log)[-_LINES:])]
    return "\n".join(parts)


def folded(lines: Sequence[str]) -> list[str]:
    """Say once what is said several times in a row, and how often."""
    runs = [(text, sum(1 for _ in run)) for text, run in itertools.groupby(lines)]
    return [text if count == 1 else f"({count} times) {text}" for text, count in runs]


async def _events(client: Client, name: str, namespace: str) -> list[str]:
    if not namespace:
        return []
    try:
        found = await client.list(_EVENTS, namespace=namespace, fields=f"involvedObject.name={name}")
    except KubewrightError as error:
        return [f"  {error}"]
    return [_line(event) for event in found]


def _line(event: dict[str, Any]) -> str:
    return f"  {event.get('type')} {event.get('reason')}: {event.get('message')}"
