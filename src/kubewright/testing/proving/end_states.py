"""How the final states of two runs differ. Either of the two may be wrong, so messages name both values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kubewright.journal.records import changed_fields
from kubewright.testing.proving.properties import pattern_of
from kubewright.testing.simulation import Write

SHOWN_LINES = 12
"""Differences, writes and objects that one message names at most."""
_SHOWN_CHANGES = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of an object, or a whole object, that differs between two final states."""

    object: str
    """The resource and the key, such as `configmaps prove/honey`."""
    path: str
    """The field; empty if the object is missing in one of the states."""
    one: str
    other: str

    @property
    def about(self) -> str:
        """Return the resource and the field, without object names."""
        return f"{self.object.partition(' ')[0]} {pattern_of(self.path)}".rstrip()


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """Return the differences between two final states, sorted by object."""
    found: list[Difference] = []
    for name in sorted({*one, *other}):
        if name not in one or name not in other:
            found.append(
                Difference(
                    name,
                    "",
                    "exists" if name in one else "does not exist",
                    "exists" if name in other else "does not exist",
                )
            )
        else:
            found += [
                Difference(name, change.path, shown(change.before), shown(change.after))
                for change in changed_fields(one[name], other[name])
            ]
    return found


def difference_lines(found: Sequence[Difference], one: str, other: str) -> str:
    """Return a line for each difference; `one` and `other` are the labels of the two states."""
    lines = [
        f"{each.object}{f' {each.path}' if each.path else ''}: {one}: {each.one}; {other}: {each.other}"
        for each in found
    ]
    more = len(lines) - SHOWN_LINES
    return "\n".join([*lines[:SHOWN_LINES], f"and {more} more"] if more > 0 else lines)


def described(write: Write) -> str:
    """Return a description of a write in one line."""
    line = f"{write.writer} {write.verb} {write.resource} {write.key}"
    if write.before is not None and write.after is not None:
        changes = [str(change) for change in changed_fields(write.before, write.after)]
        line += f" ({'; '.join(changes[:_SHOWN_CHANGES])})"
    return line


def about_write(write: Write) -> str:
    """Return the verb, the resource and the changed fields of a write, without object names and values."""
    paths: list[str] = []
    if write.before is not None and write.after is not None:
        paths = [pattern_of(change.path) for change in changed_fields(write.before, write.after)]
    return f"{write.verb} {write.resource} {' '.join(dict.fromkeys(paths))}".rstrip()


def shown(value: Any) -> str:
    """Return a value as JSON, or `absent` for None."""
    return "absent" if value is None else msgspec.json.encode(value).decode()
