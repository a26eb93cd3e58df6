"""What writers through an object and through its status may change and come to own."""

from collections.abc import Callable, Mapping
from typing import Any

from kubewright.devserver.objects import JsonObject

Paths = frozenset[tuple[str, ...]]

# Most built-in kinds take metadata from a status write and keep only the spec.
SPEC_AND_STATUS: Mapping[str, Paths] = {"": frozenset({("status",)}), "status": frozenset({("spec",)})}


def keep_spec(new: JsonObject, old: JsonObject) -> None:
    """Take anything but the spec from a status write."""
    restore(new, old, "spec")


def keep_spec_and_labels(new: JsonObject, old: JsonObject) -> None:
    """Take anything but the spec and the labels from a status write."""
    restore(new, old, "spec")
    restore(new["metadata"], old["metadata"], "labels")


def restore(new: JsonObject, old: JsonObject, name: str) -> None:
    """Put a field back to what it was."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def text_at(*path: str) -> Callable[[JsonObject], str]:
    """Make the reader of a field selector; what is not there is empty."""

    def read(obj: JsonObject) -> str:
        value: Any = obj
        for name in path:
            value = None if value is None else value.get(name)
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)

    return read


def number_at(*path: str) -> Callable[[JsonObject], str]:
    """Make the reader of a field selector on a number."""
    read = text_at(*path)
    return lambda obj: read(obj) or "0"


def flag_at(*path: str) -> Callable[[JsonObject], str]:
    """Make the reader of a field selector on a boolean."""
    read = text_at(*path)
    return lambda obj: read(obj) or "false"
