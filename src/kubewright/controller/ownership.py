"""Which fields a manager owns, as the server keeps it in managedFields (the FieldsV1 form)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

Fields = Mapping[str, Any]
"""A node of FieldsV1: `f:name`, `k:{keys}` and `v:value` lead to children, `.` stands for the node itself."""

Entry = dict[str, Any]


def read_entries(managed_fields: bytes | msgspec.Raw) -> list[Entry]:
    """Read the managedFields list from its JSON; empty bytes are an empty list."""
    data = bytes(managed_fields)
    return cast("list[Entry]", msgspec.json.decode(data) or []) if data else []


def applied_fields(entries: Iterable[Entry], manager: str, subresource: str = "") -> Fields | None:
    """Return what the manager owns by server-side apply; None where it never applied."""
    found = _find(entries, manager, subresource)
    return None if found is None else cast("Fields", found.get("fieldsV1") or {})


def hand_over(entries: Sequence[Entry], manager: str, formers: Sequence[str]) -> list[Entry] | None:
    """Give what former managers applied to the manager; None where there is nothing to give."""
    given = [
        entry for entry in entries if entry.get("operation") == "Apply" and entry.get("manager") in formers
    ]
    if not given:
        return None
    handed: list[Entry] = [entry for entry in entries if entry not in given]
    for former in given:
        own = _find(handed, manager, former.get("subresource", ""))
        if own is None:
            handed.append(former | {"manager": manager})
        else:
            merged = own | {"fieldsV1": union(own.get("fieldsV1") or {}, former.get("fieldsV1") or {})}
            handed[handed.index(own)] = merged
    return handed


def union(one: Fields, other: Fields) -> dict[str, Any]:
    """Return the set of fields that is in either."""
    merged = dict(one)
    for step, below in other.items():
        merged[step] = union(merged[step], below) if step in merged else below
    return merged


def _find(entries: Iterable[Entry], manager: str, subresource: str) -> Entry | None:
    for entry in entries:
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and entry.get("subresource", "") == subresource
        ):
            return entry
    return None
