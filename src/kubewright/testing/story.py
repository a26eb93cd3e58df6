"""The story of an object, for the message of a test that waited in vain."""

from collections.abc import Sequence
from typing import Any

import yaml

from kubewright.api import Kind, KubewrightError
from kubewright.client import Client

_EVENTS = Kind(group="", version="v1", kind="Event", plural="events", builtin=True)
_SKIPPED = ("managedFields", "uid", "resourceVersion")


async def tell_story(client: Client, kind: Kind, name: str, namespace: str, log: Sequence[str]) -> str:
    """Show the object as it is, its events, and the last lines of the operator's log."""
    try:
        found = await client.get(kind, name, namespace)
    except KubewrightError as error:
        state = f"{kind.kind} {name}: {error}"
    else:
        metadata = {key: value for key, value in found["metadata"].items() if key not in _SKIPPED}
        state = yaml.safe_dump({**found, "metadata": metadata}, sort_keys=False)
    events = await _events(client, name, namespace)
    parts = [state, "events:", *(events or ["  none"])]
    if log:
        parts += ["log:", *(f"  {line}" for line in log[-20:])]
    return "\n".join(parts)


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
