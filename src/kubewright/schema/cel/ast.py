"""The tree of an expression: macros are already expanded, positions are kept for messages."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False, slots=True)
class Expr:
    """A node at an offset of the source."""

    offset: int


@dataclass(eq=False, slots=True)
class Literal(Expr):
    """A constant."""

    value: Any


@dataclass(eq=False, slots=True)
class Ident(Expr):
    """A variable."""

    name: str


@dataclass(eq=False, slots=True)
class Select(Expr):
    """A field of an object, or the question whether it is there."""

    operand: Expr
    field: str
    test: bool = False


@dataclass(eq=False, slots=True)
class Call(Expr):
    """A function or operator; `target` is set for the form `target.function(...)`."""

    function: str
    args: list[Expr]
    target: Expr | None = None


@dataclass(eq=False, slots=True)
class CreateList(Expr):
    """A list literal; optional elements are left out where they have no value."""

    elements: list[Expr]
    optional: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class Entry:
    """An entry of a map literal or a field of an object literal."""

    offset: int
    key: Expr
    value: Expr
    optional: bool = False


@dataclass(eq=False, slots=True)
class CreateMap(Expr):
    """A map literal."""

    entries: list[Entry]


@dataclass(eq=False, slots=True)
class CreateStruct(Expr):
    """An object literal with a type name; the keys of its entries are field names."""

    name: str
    entries: list[Entry]


@dataclass(eq=False, slots=True)
class Comprehension(Expr):
    """A loop, as macros make it; `macro` tells which one, with its own arguments in `parts`."""

    range: Expr
    variable: str
    second: str
    accumulator: str
    init: Expr
    condition: Expr
    step: Expr
    result: Expr
    macro: str = ""
    parts: list[Expr] = field(default_factory=list[Expr])
