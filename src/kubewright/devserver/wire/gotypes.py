"""Go types as the data bundle spells them: named structs and the expressions of their fields."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

OMITEMPTY, OMITZERO, INLINE = 1, 2, 4
INTEGERS = frozenset({"int", "int32", "int64", "uint64"})
SCALARS = INTEGERS | {"string", "bool", "float64"}


@dataclass(frozen=True, slots=True)
class GoType:
    """One type expression: a pointer, list, map, byte string, scalar, or a name of the table."""

    form: str
    spelled: str
    item: "GoType | None" = None
    alias: bool = False

    @property
    def reflected(self) -> str:
        """Spell the type as Go's reflection prints it: `[]v1.Container`."""
        if self.alias or self.form in {"scalar", "struct", "leaf"}:
            return self.spelled.rsplit("/", 1)[-1]
        if self.form == "bytes":
            return "[]uint8"
        inner = self.item.reflected if self.item else ""
        if self.form == "map":
            key = self.spelled[4 : self.spelled.index("]")].rsplit("/", 1)[-1]
            return f"map[{key}]{inner}"
        return {"list": "[]", "pointer": "*"}[self.form] + inner


@dataclass(frozen=True, slots=True)
class GoField:
    """One field of a struct: JSON name, protobuf number, type, and facts from its tags and schema."""

    name: str
    number: int
    type: GoType
    flags: int
    facts: Mapping[str, Any]
    embedded: tuple[str, ...] = ()

    @property
    def omitempty(self) -> bool:
        """Return True if Go leaves the empty value out."""
        return bool(self.flags & OMITEMPTY)


class GoTypes:
    """The table's declarations, resolved on demand."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.kinds: dict[str, dict[str, str]] = document["kinds"]
        self._structs: dict[str, list[list[Any]]] = document["structs"]
        self._aliases: dict[str, str] = document["aliases"]
        self._document = document
        self._fields: dict[str, tuple[GoField, ...]] = {}

    @cached_property
    def atomic(self) -> frozenset[str]:
        """Return the names of the structs that server-side apply treats as one value."""
        return frozenset(self._document["atomic"])

    def resolve(self, spelled: str) -> GoType:
        """Read a type expression; named non-struct types stand for what they are made of."""
        if spelled.startswith("*"):
            return GoType("pointer", spelled, self.resolve(spelled[1:]))
        if spelled == "[]byte":
            return GoType("bytes", spelled)
        if spelled.startswith("[]"):
            return GoType("list", spelled, self.resolve(spelled[2:]))
        if spelled.startswith("map["):
            return GoType("map", spelled, self.resolve(spelled.split("]", 1)[1]))
        if spelled in SCALARS:
            return GoType("scalar", spelled)
        if spelled in self._structs:
            return GoType("struct", spelled)
        if spelled in self._aliases:
            return self._resolve_alias(spelled)
        return GoType("leaf", spelled)

    def _resolve_alias(self, spelled: str) -> GoType:
        target = self.resolve(self._aliases[spelled])
        item = GoType("scalar", scalar_name(target)) if target.form == "scalar" else target.item
        return GoType(target.form, spelled, item, alias=True)

    def fields(self, struct: str) -> tuple[GoField, ...]:
        """List a struct's fields in Go's order, those of embedded structs in their place."""
        known = self._fields.get(struct)
        if known is None:
            known = self._fields[struct] = tuple(self._read_fields(struct))
        return known

    def containing(self, structs: Iterable[str]) -> set[str]:
        """Return structs with those that contain them at any depth, as fields, pointers or in lists."""
        holders: dict[str, list[str]] = {}
        for holder, rows in self._structs.items():
            for row in rows:
                # Names only: resolving the types of all fields would take most of a server's start.
                spelled: str = row[2]
                inner = self._aliases.get(spelled, spelled).lstrip("*[]")
                holders.setdefault(self._aliases.get(inner, inner).lstrip("*[]"), []).append(holder)
        found = set(structs)
        due = list(found)
        while due:
            for holder in holders.get(due.pop(), ()):
                if holder not in found:
                    found.add(holder)
                    due.append(holder)
        return found

    def declared(self, struct: str) -> list[GoField]:
        """List a struct's own fields, embedded structs not flattened."""
        return [self._field(row) for row in self._structs[struct]]

    def _field(self, row: list[Any]) -> GoField:
        name, number, spelled, flags, *facts = row
        return GoField(name, number, self.resolve(spelled), flags, facts[0] if facts else {})

    def _read_fields(self, struct: str) -> list[GoField]:
        found: list[GoField] = []
        for field in self.declared(struct):
            if not field.flags & INLINE:
                found.append(field)
                continue
            inner = field.type.item if field.type.form == "pointer" and field.type.item else field.type
            label = inner.spelled.rsplit(".", 1)[-1]
            found += [
                GoField(f.name, f.number, f.type, f.flags, f.facts, (label, *f.embedded))
                for f in self.fields(inner.spelled)
            ]
        return found


def scalar_name(go_type: GoType) -> str:
    """Return the name of the basic scalar type of a scalar type or its alias."""
    return go_type.item.spelled if go_type.alias and go_type.item else go_type.spelled
