"""Entries of `metadata.managedFields`: which manager owns which fields, in the FieldsV1 form."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

OwnedFields = Mapping[str, Any]
"""A node of FieldsV1: `f:name`, `k:{keys}` and `v:value` lead to children, `.` stands for the node itself."""

OwnershipEntry = dict[str, Any]

SELF = "."
STATUS = "status"


def read_entries(managed_fields: bytes | msgspec.Raw) -> list[OwnershipEntry]:
    """Read the managedFields list from its JSON; empty bytes are an empty list."""
    data = bytes(managed_fields)
    return cast("list[OwnershipEntry]", msgspec.json.decode(data) or []) if data else []


def applied_entry(
    entries: Iterable[OwnershipEntry], manager: str, subresource: str = ""
) -> OwnershipEntry | None:
    """Return the entry of what the manager applied; None if there is none or more than one.

    The server keeps one such entry for each manager and subresource, in whatever version it applied last.
    """
    found = [
        entry
        for entry in entries
        if entry.get("manager") == manager
        and entry.get("operation") == "Apply"
        and entry.get("subresource", "") == subresource
    ]
    return found[0] if len(found) == 1 else None


def fields_of(entry: OwnershipEntry) -> OwnedFields:
    """Return the fields that an entry lists."""
    return entry.get("fieldsV1") or {}


def sharing_entries(entries: Iterable[OwnershipEntry], own: OwnedFields) -> list[OwnershipEntry]:
    """Return the entries, times aside, that can own a field that `own` holds too: of the status, or of the rest.

    The cache keeps the same choice (`cache/trimming.py`), so an object from the cache and the same object from the
    server give the same entries.
    """
    parts = _parts(own)
    return [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in entries
        if not parts.isdisjoint(_parts(fields_of(entry)))
    ]


def _parts(fields: OwnedFields) -> set[bool]:
    return {step == "f:status" for step in fields}


def owners_of(entries: Iterable[OwnershipEntry], path: Sequence[Any], *, apart: str) -> list[str]:
    """Return the managers whose entries hold the path, apart from what the manager `apart` applied.

    A step of the path is the name of a field, or the element of a list as the object has it.
    """
    return sorted(
        {
            str(entry.get("manager", ""))
            for entry in entries
            if (entry.get("manager"), entry.get("operation")) != (apart, "Apply")
            and _holds(fields_of(entry), path)
        }
    )


def _holds(fields: OwnedFields, path: Sequence[Any]) -> bool:
    for index, step in enumerate(path):
        if isinstance(step, str) and f"f:{step}" in fields:
            fields = fields[f"f:{step}"]
        else:
            element = next((name for name in fields if is_element(name, step)), None)
            if element is None:
                return False
            fields = fields[element]
        if not fields:
            # An empty node is one value: it owns everything below.
            return True
        if index == len(path) - 1:
            return True
    return False


def is_element(step: str, item: Any) -> bool:
    """Return True if a `k:` or `v:` step can stand for this element of a list."""
    if step.startswith("v:"):
        return bool(msgspec.json.decode(step[2:]) == item)
    if not step.startswith("k:") or not isinstance(item, dict):
        return False
    element = cast("dict[str, Any]", item)
    keys: dict[str, Any] = msgspec.json.decode(step[2:])
    return any(key in element for key in keys) and all(
        element.get(key, value) == value for key, value in keys.items()
    )


def hand_over(
    entries: Sequence[OwnershipEntry], manager: str, formers: Sequence[str]
) -> list[OwnershipEntry] | None:
    """Return the entries with what former managers applied given to the manager; None if they applied nothing."""
    given = [
        entry for entry in entries if entry.get("operation") == "Apply" and entry.get("manager") in formers
    ]
    if not given:
        return None
    handed: list[OwnershipEntry] = [entry for entry in entries if entry not in given]
    for former in given:
        own = applied_entry(handed, manager, former.get("subresource", ""))
        if own is None:
            handed.append(former | {"manager": manager})
        else:
            merged = own | {"fieldsV1": union(fields_of(own), fields_of(former))}
            handed[handed.index(own)] = merged
    return handed


def union(one: OwnedFields, other: OwnedFields) -> dict[str, Any]:
    """Return the set of fields that is in either."""
    merged = dict(one)
    for step, below in other.items():
        merged[step] = _joined(merged[step], below) if step in merged else below
    return merged


def _joined(one: OwnedFields, other: OwnedFields) -> OwnedFields:
    if bool(one) != bool(other):
        # An empty node is a member itself; beside children that is written as a dot.
        return {SELF: {}, **(one or other)}
    return union(one, other)
