"""The tree of an expression, with macros expanded, and the visitor that walks it.

Positions are kept for error messages. A visitor has one method for each class of node, so the type checker, the
evaluator and the cost estimate cannot forget one.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Expr(ABC):
    """A node at an offset of the source."""

    offset: int

    @abstractmethod
    def accept(self, visitor: "Visitor[T]") -> T:
        """Call the visitor's method for this class of node."""

    def children(self) -> "Sequence[Expr]":
        """Return the nodes below that were written in the source; macros add others."""
        return ()


@dataclass(eq=False, slots=True)
class Literal(Expr):
    """A constant."""

    value: Any

    def accept(self, visitor: "Visitor[T]") -> T:
        """Visit a constant."""
        return visitor.visit_literal(self)


@dataclass(eq=False, slots=True)
class Ident(Expr):
    """A variable."""

    name: str

    def accept(self, visitor: "Visitor[T]") -> T:
        """Visit a variable."""
        return visitor.visit_ident(self)


@dataclass(eq=False, slots=True)
class Select(Expr):
    """A field of an object, or the test whether it is set."""

    operand: Expr
    field: str
    test: bool = False

    def accept(self, visitor: "Visitor[T]") -> T:
        """Visit a field selection."""
        return visitor.visit_select(self)

    def children(self) -> Sequence[Expr]:
        """Return the object."""
        return (self.operand,)


@dataclass(eq=False, slots=True)
class Call(Expr):
    """A function or operator; `target` is set for the form `target.function(...)`."""

    function: str
    args: list[Expr]
    target: Expr | None = None

    def accept(self, visitor: "Visitor[T]") -> T:
        """Visit a call."""
        return visitor.visit_call(self)

    def children(self) -> Sequence[Expr]:
        """Return the target and the arguments."""
        return self.args if self.target is None else (self.target, *self.args)


@dataclass(eq=False, slots=True)
class CreateList(Expr):
    """A list literal; optional elements without a value are left out."""

    elements: list[Expr]
    optional: frozenset[int] = frozenset()

    def accept(self, visitor: "Visitor[T]") -> T:
        """Visit a list literal."""
        return visitor.visit_list(self)

    def children(self) -> Sequence[Expr]:
        """Return the elements."""
        return self.elements


@dataclass(eq=False, slots=True)
class MapEntry:
    """An entry of a map literal or a field of an object literal."""

    offset: int
    key: Expr
    value: Expr
    optional: bool = False


@dataclass(eq=False, slots=True)
class CreateMap(Expr):
    """A map literal."""

    entries: list[MapEntry]

    def accept(self, visitor: "Visitor[T]") -> T:
        """Visit a map literal."""
        return visitor.visit_map(self)

    def children(self) -> Sequence[Expr]:
        """Return the keys and values."""
        return [part for entry in self.entries for part in (entry.key, entry.value)]


@dataclass(eq=False, slots=True)
class CreateStruct(Expr):
    """An object literal with a type name; the keys of its entries are field names."""

    name: str
    entries: list[MapEntry]

    def accept(self, visitor: "Visitor[T]") -> T:
        """Visit an object literal."""
        return visitor.visit_struct(self)

    def children(self) -> Sequence[Expr]:
        """Return the values of the fields."""
        return [entry.value for entry in self.entries]


@dataclass(eq=False, slots=True)
class Comprehension(Expr):
    """A loop, as macros make it; `macro` is the name of the macro, `parts` are its arguments."""

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

    def accept(self, visitor: "Visitor[T]") -> T:
        """Visit a loop."""
        return visitor.visit_comprehension(self)

    def children(self) -> Sequence[Expr]:
        """Return the range and the arguments of the macro."""
        found = [self.range, self.init, *self.parts]
        return [*found, self.result] if self.macro == "bind" else found


class Visitor(ABC, Generic[T]):
    """Computes something for every node of a tree."""

    def visit(self, node: Expr) -> T:
        """Compute the result for a node."""
        return node.accept(self)

    @abstractmethod
    def visit_literal(self, node: Literal) -> T:
        """Compute the result for a constant."""

    @abstractmethod
    def visit_ident(self, node: Ident) -> T:
        """Compute the result for a variable."""

    @abstractmethod
    def visit_select(self, node: Select) -> T:
        """Compute the result for a field selection."""

    @abstractmethod
    def visit_call(self, node: Call) -> T:
        """Compute the result for a call."""

    @abstractmethod
    def visit_list(self, node: CreateList) -> T:
        """Compute the result for a list literal."""

    @abstractmethod
    def visit_map(self, node: CreateMap) -> T:
        """Compute the result for a map literal."""

    @abstractmethod
    def visit_struct(self, node: CreateStruct) -> T:
        """Compute the result for an object literal."""

    @abstractmethod
    def visit_comprehension(self, node: Comprehension) -> T:
        """Compute the result for a loop."""
