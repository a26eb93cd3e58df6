"""Which fields a write to an object or its status may change and own, and readers for field selectors."""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from kubewright.devserver.objects import JsonObject

Paths = frozenset[tuple[str, ...]]

# Most built-in kinds accept changed metadata in a status write and restore only the spec.
SPEC_AND_STATUS: Mapping[str, Paths] = {"": frozenset({("status",)}), "status": frozenset({("spec",)})}


class StatusWrites(TypedDict):
    """What a write to the status keeps, as arguments of a strategy."""

    prepare_status_update: Callable[[JsonObject, JsonObject], None]
    reset_fields: Mapping[str, Paths]


def keep(*fields: str) -> Callable[[JsonObject, JsonObject], None]:
    """Return a function that restores the old values of fields."""

    def run(new: JsonObject, old: JsonObject) -> None:
        for name in fields:
            restore(new, old, name)

    return run


STATUS_KEEPS_SPEC: StatusWrites = {
    "prepare_status_update": keep("spec"),
    "reset_fields": SPEC_AND_STATUS,
}


def keep_spec_and_labels(new: JsonObject, old: JsonObject) -> None:
    """Restore the spec and the labels in a status write."""
    restore(new, old, "spec")
    restore(new["metadata"], old["metadata"], "labels")


def restore(new: JsonObject, old: JsonObject, name: str) -> None:
    """Restore the old value of a field."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def text_at(*path: str) -> Callable[[JsonObject], str]:
    """Return the reader of a field selector; a missing field is an empty text."""

    def read(obj: JsonObject) -> str:
        value: Any = obj
        for name in path:
            value = None if value is None else value.get(name)
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)

    return read


def number_at(*path: str) -> Callable[[JsonObject], str]:
    """Return the reader of a field selector for a number."""
    read = text_at(*path)
    return lambda obj: read(obj) or "0"


def flag_at(*path: str) -> Callable[[JsonObject], str]:
    """Return the reader of a field selector for a boolean."""
    read = text_at(*path)
    return lambda obj: read(obj) or "false"
