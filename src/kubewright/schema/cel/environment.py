"""Environments with variables and functions, and the programs that are compiled in them."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from kubewright.schema.cel.checker import Checked, Known, check, evaluate_constants, literal_issues
from kubewright.schema.cel.costs import UNBOUNDED, estimate
from kubewright.schema.cel.errors import CompileError, CostExceeded, EvaluationError
from kubewright.schema.cel.evaluator import Frame, compile_steps
from kubewright.schema.cel.extensions import list_library, optional_library, text_library
from kubewright.schema.cel.kubernetes import kubernetes_library, network_library
from kubewright.schema.cel.messages import MessageType, MessageTypes
from kubewright.schema.cel.parser import parse, too_deep
from kubewright.schema.cel.standard import standard_library
from kubewright.schema.cel.types import DeclaredType, Library, Type, converted, structs_in

CALL_LIMIT = 1_000_000
"""The maximum cost of one evaluation."""


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


class CelEnvironment:
    """The variables and functions that expressions may use.

    A variable is a `Type`, or a `DeclaredType` type that `declare` returns for a schema; `messages` are the types of the
    objects that expressions may create, `Name{field: value}`.
    """

    def __init__(
        self,
        variables: dict[str, Type | DeclaredType],
        *,
        functions: Library | None = None,
        messages: Iterable[MessageType] = (),
    ) -> None:
        types = {
            name: kind.type if isinstance(kind, DeclaredType) else kind for name, kind in variables.items()
        }
        self._declared = {name: kind for name, kind in variables.items() if isinstance(kind, DeclaredType)}
        self._structs: dict[str, DeclaredType] = {}
        for declared in self._declared.values():
            self._structs.update(structs_in(declared))
        library = base_library() if functions is None else Library(base_library(), functions)
        self._known = Known(library, types, self._structs, MessageTypes(messages))

    def compile(self, source: str) -> "Program":
        """Compile an expression; raise CompileError if it has errors.

        A constant that cannot be converted, or a message type that is used as a value, raises InstantiationFailed with
        the error of every evaluation.
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
        try:
            evaluate_constants(checked)
        except EvaluationError as error:
            raise InstantiationFailed(str(error), checked.type) from None
        for name in checked.undefined:
            raise InstantiationFailed(f"reference to undefined type: {name}", checked.type)
        return Program(checked, self._declared, self._structs)


class InstantiationFailed(EvaluationError):
    """An expression of correct types that no input gives a value, such as one with a constant that cannot be converted."""

    def __init__(self, message: str, kind: Type) -> None:
        super().__init__(message)
        self.type = kind
        """The type of the expression, which kube-apiserver checks before it reports this error."""


class Program:
    """A compiled expression."""

    def __init__(
        self, checked: Checked, declared: dict[str, DeclaredType], structs: dict[str, DeclaredType]
    ) -> None:
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
        """Return the maximum cost of an evaluation, for all values that the schema allows."""
        try:
            return estimate(self._checked, self._declared)
        except RecursionError:
            return UNBOUNDED

    def evaluate(self, variables: dict[str, Any], *, limit: int = CALL_LIMIT) -> Any:
        """Return the value of the expression; raise EvaluationError if it has none."""
        return self.run(variables, limit=limit)[0]

    def run(self, variables: dict[str, Any], *, limit: int = CALL_LIMIT) -> tuple[Any, int]:
        """Return the value and its cost."""
        frame = self.frame(variables, limit)
        return self.step(frame), frame.cost

    def frame(self, variables: dict[str, Any], limit: int = CALL_LIMIT) -> Frame:
        """Prepare an evaluation, for callers that need the cost even if it fails."""
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
