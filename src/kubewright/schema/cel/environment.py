"""Expressions in an environment: which variables there are, and programs that evaluate with them."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from kubewright.schema.cel.checker import Checked, Known, check
from kubewright.schema.cel.declarations import converted, structs_in
from kubewright.schema.cel.errors import CompileError, CostExceeded, EvaluationError
from kubewright.schema.cel.estimates import estimate
from kubewright.schema.cel.evaluator import compile_steps
from kubewright.schema.cel.frames import Frame
from kubewright.schema.cel.kubernetes import kubernetes_library
from kubewright.schema.cel.lists import list_library
from kubewright.schema.cel.literals import evaluate_constants, literal_issues
from kubewright.schema.cel.messages import MessageType, MessageTypes
from kubewright.schema.cel.network import network_library
from kubewright.schema.cel.optionals import optional_library
from kubewright.schema.cel.overloads import Library
from kubewright.schema.cel.parser import parse, too_deep
from kubewright.schema.cel.ranges import UNBOUNDED
from kubewright.schema.cel.standard import standard_library
from kubewright.schema.cel.texts import text_library
from kubewright.schema.cel.types import Declared, Type

CALL_LIMIT = 1_000_000
"""What one evaluation may cost."""


@cache
def base_library() -> Library:
    """Return the functions that the API server offers to every expression."""
    return Library(
        standard_library(),
        optional_library(),
        text_library(),
        list_library(),
        network_library(),
        kubernetes_library(),
    )


class Environment:
    """The variables and functions that expressions may use.

    A variable is a `Type`, or a `Declared` type made from a schema by `declare`; `messages` are the types of which
    expressions may make objects, `Name{field: value}`.
    """

    def __init__(
        self,
        variables: dict[str, Type | Declared],
        *,
        functions: Library | None = None,
        messages: Iterable[MessageType] = (),
    ) -> None:
        types = {name: kind.type if isinstance(kind, Declared) else kind for name, kind in variables.items()}
        self._declared = {name: kind for name, kind in variables.items() if isinstance(kind, Declared)}
        self._structs: dict[str, Declared] = {}
        for declared in self._declared.values():
            self._structs.update(structs_in(declared))
        library = base_library() if functions is None else Library(base_library(), functions)
        self._known = Known(library, types, self._structs, MessageTypes(messages))

    def compile(self, source: str) -> "Program":
        """Compile an expression, or raise a CompileError that shows what is wrong with it.

        A constant that cannot be converted, or a message type that is used as a value, raises the EvaluationError that
        every evaluation would end with.
        """
        try:
            return self._compile(source)
        except RecursionError:
            raise too_deep(source) from None

    def _compile(self, source: str) -> "Program":
        checked = check(source, parse(source), self._known)
        issues = literal_issues(checked)
        if issues:
            raise CompileError(source, issues)
        evaluate_constants(checked)
        for name in checked.undefined:
            raise EvaluationError(f"reference to undefined type: {name}")
        return Program(checked, self._declared, self._structs)


class Program:
    """A compiled expression."""

    def __init__(self, checked: Checked, declared: dict[str, Declared], structs: dict[str, Declared]) -> None:
        self.source: str = checked.source
        self.type: Type = checked.type
        self.names: frozenset[str] = frozenset(checked.names)
        self._checked = checked
        self._declared = declared
        self._converted = {
            name: kind for name, kind in declared.items() if kind.conversion and kind.conversion != "struct"
        }
        self._step = compile_steps(checked, structs)

    @property
    def greatest_cost(self) -> int:
        """Return what an evaluation can cost at most, for all values that the schema allows."""
        try:
            return estimate(self._checked, self._declared)
        except RecursionError:
            return UNBOUNDED

    def evaluate(self, variables: dict[str, Any], *, limit: int = CALL_LIMIT) -> Any:
        """Return the value of the expression; raises an EvaluationError where it has none."""
        return self.run(variables, limit=limit)[0]

    def run(self, variables: dict[str, Any], *, limit: int = CALL_LIMIT) -> tuple[Any, int]:
        """Return the value and what it cost."""
        frame = self.frame(variables, limit)
        return self.step(frame), frame.cost

    def frame(self, variables: dict[str, Any], limit: int = CALL_LIMIT) -> Frame:
        """Prepare an evaluation, for callers that need the cost even where it fails."""
        given = dict(variables)
        for name, kind in self._converted.items():
            if name in given:
                given[name] = converted(kind, given[name])
        return Frame(given, limit)

    def step(self, frame: Frame) -> Any:
        """Evaluate in a prepared frame."""
        try:
            value = self._step(frame)
        except RecursionError:
            raise EvaluationError("expression nests too deeply") from None
        if frame.cost > frame.limit:
            raise CostExceeded
        return value
