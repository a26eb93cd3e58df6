"""Types of the expression language, and the types that a schema declares."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "dyn", "error", "null", "bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration",
    "list", "map", "struct", "opaque", "type", "param",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Type:
    """A type; `name` is set for structs, opaque types and type parameters."""

    kind: Kind
    name: str = ""
    params: tuple["Type", ...] = ()
    nullable: bool = False

    def __str__(self) -> str:
        if self.kind == "error":
            return "!error!"
        if self.nullable:
            return f"wrapper({self.kind})"
        name = self.name or self.kind
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name

    def same(self, other: "Type") -> bool:
        """Tell whether values of both types are alike; one of them may be a wrapper that can be null."""
        shape, others = (self.kind, self.name, len(self.params)), (other.kind, other.name, len(other.params))
        return shape == others and all(map(Type.same, self.params, other.params))


DYN = Type("dyn")
ERROR = Type("error")
NULL = Type("null")
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")
TYPE = Type("type")


def list_of(element: Type) -> Type:
    """Return the type of lists of an element type."""
    return Type("list", "", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type("map", "", (key, value))


def optional_of(content: Type) -> Type:
    """Return the type of values that may be absent."""
    return Type("opaque", "optional_type", (content,))


def type_of(instance: Type) -> Type:
    """Return the type of a type."""
    return Type("type", "", (instance,))


def struct(name: str) -> Type:
    """Return an object type; its fields are declared apart."""
    return Type("struct", name)


def opaque(name: str) -> Type:
    """Return a type that only functions know how to use."""
    return Type("opaque", name)


def param(name: str) -> Type:
    """Return a type parameter."""
    return Type("param", name)


def wrapper(content: Type) -> Type:
    """Return the type of a message that wraps a plain value, or null."""
    return Type(content.kind, nullable=True)


def is_optional(candidate: Type) -> bool:
    """Tell whether a type is that of an optional value."""
    return candidate.kind == "opaque" and candidate.name == "optional_type"


@dataclass(slots=True)
class Declared:
    """A type with what a schema says about its values: fields, greatest number of elements, least serialized size."""

    type: Type
    max_elements: int = 0
    min_size: int = 1
    fields: dict[str, "Declared"] = field(default_factory=dict[str, "Declared"])
    names: dict[str, str] = field(default_factory=dict[str, str])
    key: "Declared | None" = None
    element: "Declared | None" = None
    conversion: str = ""
    list_type: str = ""
    list_keys: tuple[str, ...] = ()


class Mapping:
    """What type parameters stand for, while an expression is checked."""

    def __init__(self, known: dict[Type, Type] | None = None) -> None:
        self.known: dict[Type, Type] = dict(known or {})

    def assignable(self, left: Type, right: Type) -> bool:
        """Tell whether one type can stand for the other, and remember what parameters that fixes."""
        trial = Mapping(self.known)
        if not trial.matches(left, right):
            return False
        self.known = trial.known
        return True

    def assignable_all(self, left: list[Type], right: list[Type]) -> bool:
        """Do the same for two lists of types."""
        trial = Mapping(self.known)
        if len(left) != len(right) or not all(map(trial.matches, left, right)):
            return False
        self.known = trial.known
        return True

    def matches(self, left: Type, right: Type) -> bool:
        """Compare two types, extending the mapping even where they differ in the end."""
        if right.kind == "param":
            valid, known = self._substitution(left, right)
            if valid or known:
                return valid
        if left.kind == "param":
            return self._substitution(right, left)[0]
        if {left.kind, right.kind} & {"dyn", "error"}:
            return True
        if left.kind == "null" or right.kind == "null":
            return _nullable(right if left.kind == "null" else left)
        if left.kind == "type":
            return right.kind == "type"
        if left.kind in ("opaque", "list", "map"):
            same_shape = (left.kind, left.name, len(left.params)) == (
                right.kind,
                right.name,
                len(right.params),
            )
            return same_shape and all(map(self.matches, left.params, right.params))
        return left.same(right)

    def substitute(self, candidate: Type, *, to_dyn: bool = False) -> Type:
        """Replace parameters by what they stand for; free ones by dyn where asked."""
        if candidate in self.known:
            return self.substitute(self.known[candidate], to_dyn=to_dyn)
        if candidate.kind == "param":
            return DYN if to_dyn else candidate
        if not candidate.params:
            return candidate
        return Type(
            candidate.kind,
            candidate.name,
            tuple(self.substitute(inner, to_dyn=to_dyn) for inner in candidate.params),
        )

    def _substitution(self, left: Type, right: Type) -> tuple[bool, bool]:
        if left == right:
            return True, True
        if right in self.known:
            current = self.known[right]
            if left == current:
                return True, True
            if not self.matches(left, current):
                return False, True
            general = left if _less_specific(left, current) else current
            if self._free_of(right, general):
                self.known[right] = general
            return True, True
        if self._free_of(right, left):
            self.known[right] = left
            return True, False
        return False, False

    def _free_of(self, parameter: Type, within: Type) -> bool:
        if parameter == within:
            return False
        if within.kind == "param":
            return within not in self.known or self._free_of(parameter, self.known[within])
        return all(self._free_of(parameter, inner) for inner in within.params)


def _nullable(candidate: Type) -> bool:
    return candidate.nullable or candidate.kind in ("null", "opaque", "struct", "timestamp", "duration")


def _less_specific(left: Type, right: Type) -> bool:
    if left.kind in ("dyn", "param"):
        return True
    if right.kind in ("dyn", "param") or left.kind != right.kind:
        return False
    if left.kind in ("opaque", "list", "map"):
        same_shape = (left.name, len(left.params)) == (right.name, len(right.params))
        return same_shape and all(map(_less_specific, left.params, right.params))
    return left.kind == "type" or left == right
