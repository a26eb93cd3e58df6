"""The expressions of one admission policy, compiled together: later ones may use the variables named before."""

from collections.abc import Callable, Mapping
from typing import Any

from kubewright.devserver.expressions import Budget, compile_in, environment
from kubewright.devserver.objects import JsonObject, items
from kubewright.schema import cel

_SIMPLE = frozenset({"bool", "bytes", "double", "duration", "int", "null", "string", "timestamp", "uint"})


class PolicyCompiler:
    """Compile the expressions of a policy, which may have parameters and variables."""

    def __init__(self, spec: JsonObject) -> None:
        self._params = params = spec.get("paramKind") is not None
        self._variables: dict[str, cel.Type] = {}
        self._plain = environment(params=params)
        self._named: dict[str, cel.Type] | None = self._variables if items(spec, "variables") else None
        self._place = (
            environment(params=params, variables=self._named) if self._named is not None else self._plain
        )

    def condition(self, text: str) -> cel.Program:
        """Compile a match condition, which knows no variables."""
        return compile_in(self._plain, text, cel.BOOL)

    def variable(self, name: str, text: str) -> cel.Program:
        """Compile a variable and let the expressions that follow know it."""
        # One that does not compile is known all the same: what uses it is not at fault.
        kind = cel.DYN
        try:
            program = compile_in(self._place, text)
            kind = _declared(program.type)
        finally:
            self._variables[name] = kind
            self._place = environment(params=self._params, variables=self._variables)
        return program

    def validation(self, text: str) -> cel.Program:
        """Compile what must be true."""
        return compile_in(self._place, text, cel.BOOL)

    def message(self, text: str) -> cel.Program:
        """Compile what is said when it is not."""
        return compile_in(self._place, text, cel.STRING)

    def annotation(self, text: str) -> cel.Program:
        """Compile the value of an audit annotation."""
        return compile_in(self._place, text, cel.STRING, cel.Type("null"))

    def configuration(self, text: str) -> cel.Program:
        """Compile what is laid over an object."""
        return compile_in(self._mutating(), text, cel.OBJECT.type)

    def patch(self, text: str) -> cel.Program:
        """Compile a list of changes to an object."""
        return compile_in(self._mutating(), text, cel.list_of(cel.JSON_PATCH.type))

    def _mutating(self) -> cel.Environment:
        return environment(params=self._params, variables=self._variables, mutating=True)


def _declared(kind: cel.Type) -> cel.Type:
    return kind if kind.kind in _SIMPLE or kind.kind in ("list", "map") else cel.DYN


class Variables(dict[str, Any]):
    """The variables of a policy for one write, each evaluated when it is first asked for."""

    def __init__(
        self, programs: Mapping[str, cel.Program], values: Callable[[], dict[str, Any]], budget: Budget
    ) -> None:
        super().__init__()
        self._programs = programs
        self._values = values
        self._budget = budget

    def __missing__(self, name: str) -> Any:
        program = self._programs[name]
        frame = program.frame(self._values())
        try:
            found = program.step(frame)
        except cel.EvaluationError as error:
            raise cel.EvaluationError(f'composited variable "{name}" fails to evaluate: {error}') from None
        finally:
            self._budget.spend(frame.cost)
        self[name] = found
        return found


def declared_variables(spec: JsonObject, compiler: PolicyCompiler) -> dict[str, cel.Program]:
    """Compile the variables of a policy in their order."""
    return {
        item["name"]: compiler.variable(item["name"], item["expression"]) for item in items(spec, "variables")
    }
