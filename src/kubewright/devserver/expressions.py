"""CEL expressions of match conditions and admission policies: environments, compilation, cost budgets."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from kubewright.api import KubewrightError
from kubewright.devserver.objects import JsonObject, items
from kubewright.schema import cel

CONDITIONS_BUDGET = 2_500_000
POLICY_BUDGET = 10_000_000
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"

_TEXT: JsonObject = {"type": "string"}
_KIND: JsonObject = {"type": "object", "properties": dict.fromkeys(("group", "version", "kind"), _TEXT)}
_RESOURCE: JsonObject = {
    "type": "object",
    "properties": dict.fromkeys(("group", "version", "resource"), _TEXT),
}
_TEXTS: JsonObject = {"type": "array", "items": _TEXT}
_TIME: JsonObject = {"type": "string", "format": "date-time"}
_TEXT_MAP: JsonObject = {"type": "object", "additionalProperties": _TEXT}
_ANYTHING: JsonObject = {"x-kubernetes-preserve-unknown-fields": True}
_REQUEST: JsonObject = {
    "type": "object",
    "properties": {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": _TEXT,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": _TEXT,
        "name": _TEXT,
        "namespace": _TEXT,
        "operation": _TEXT,
        "userInfo": {
            "type": "object",
            "properties": {
                "username": _TEXT,
                "uid": _TEXT,
                "groups": _TEXTS,
                "extra": {"type": "object", "additionalProperties": _TEXTS},
            },
        },
        "dryRun": {"type": "boolean"},
        "options": _ANYTHING,
    },
}
_NAMESPACE: JsonObject = {
    "type": "object",
    "properties": {
        "metadata": {
            "type": "object",
            "properties": {
                **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), _TEXT),
                **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
                **dict.fromkeys(("labels", "annotations"), _TEXT_MAP),
                **{name: {"type": "integer"} for name in ("deletionGracePeriodSeconds", "generation")},
                "finalizers": _TEXTS,
            },
        },
        "spec": {"type": "object", "properties": {"finalizers": _TEXTS}},
        "status": {
            "type": "object",
            "properties": {
                "phase": _TEXT,
                "conditions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "lastTransitionTime": _TIME,
                            **dict.fromkeys(("status", "type", "message", "reason"), _TEXT),
                        },
                    },
                },
            },
        },
    },
}


class ExpressionError(KubewrightError):
    """An expression that cannot be used."""


class InstantiationError(ExpressionError):
    """An expression whose types are right, but of which a constant part cannot be evaluated."""


def _spell_out(declared: cel.DeclaredType) -> None:
    """Set the names of reserved words as they are: only the fields of custom resources are escaped, as in `__namespace__`."""
    for escaped, name in list(declared.names.items()):
        if escaped != name:
            declared.fields[name] = declared.fields.pop(escaped)
            declared.names[name] = declared.names.pop(escaped)


@lru_cache(maxsize=1)
def _standard() -> dict[str, cel.Type | cel.DeclaredType]:
    request = cel.declare(_REQUEST, name="kubernetes.AdmissionRequest")
    namespace = cel.declare(_NAMESPACE, name="kubernetes.Namespace")
    assert request is not None
    assert namespace is not None
    for declared in (request, namespace, namespace.fields["metadata"]):
        _spell_out(declared)
    return {
        "object": cel.DYN,
        "oldObject": cel.DYN,
        "request": request,
        "namespaceObject": namespace,
        "authorizer": cel.AUTHORIZER,
        "authorizer.requestResource": cel.RESOURCE_CHECK,
    }


def environment(
    *,
    params: bool | cel.DeclaredType = False,
    variables: Mapping[str, cel.Type] | None = None,
    mutating: bool = False,
    kind: cel.DeclaredType | None = None,
    authorizer: bool = True,
) -> cel.CelEnvironment:
    """Return the environment of expressions about writes; `variables` are those that a policy declares.

    Expressions that are `mutating` may make objects and patches; those of messages have no `authorizer`. Objects are of any type, unless `kind` is given, and
    so are parameters.
    """
    known = {
        name: found for name, found in _standard().items() if authorizer or not name.startswith("authorizer")
    }
    if kind is not None:
        known["object"] = known["oldObject"] = kind
    if params:
        known["params"] = cel.DYN if params is True else params
    if variables is not None:
        declared = cel.DeclaredType(cel.struct("kubernetes.variables"), 0, 2)
        for name, found in variables.items():
            declared.fields[name] = cel.DeclaredType(found, 0, 0)
            declared.names[name] = name
        known["variables"] = declared
    library = cel.authorization_library()
    if not mutating:
        return cel.CelEnvironment(known, functions=library)
    return cel.CelEnvironment(
        known,
        functions=cel.Library(library, cel.mutation_library()),
        messages=[cel.OBJECT, cel.JSON_PATCH],
    )


@lru_cache(maxsize=1)
def _conditions() -> cel.CelEnvironment:
    return environment()


@lru_cache(maxsize=1024)
def compile_condition(text: str) -> cel.Program:
    """Compile a match condition; raise ExpressionError with kube-apiserver's words."""
    return compile_in(_conditions(), text, cel.BOOL)


def compile_in(place: cel.CelEnvironment, text: str, *expected: cel.Type) -> cel.Program:
    """Compile an expression; raise ExpressionError unless its type is one of `expected`, if any are given."""
    try:
        program = place.compile(text)
    except cel.CompileError as error:
        raise ExpressionError(f"compilation failed: {error}") from None
    except cel.InstantiationFailed as error:
        _check_type(error.type, expected)
        raise InstantiationError(f"program instantiation failed: {error}") from None
    _check_type(program.type, expected)
    return program


def _check_type(found: cel.Type, expected: Sequence[cel.Type]) -> None:
    """Raise ExpressionError unless a type is one of `expected`, if any are given."""
    if not expected or any(found.same(kind) for kind in expected):
        return
    if len(expected) == 1:
        raise ExpressionError(f"must evaluate to {expected[0]} but got {found}")
    listed = " ".join("null_type" if kind.kind == "null" else str(kind) for kind in expected)
    raise ExpressionError(f"must evaluate to one of [{listed}] but got {found}")


class CostBudget:
    """The cost that remains for the expressions of one write."""

    def __init__(self, total: int) -> None:
        self.left: int = total

    def evaluate(self, program: cel.Program, values: dict[str, Any]) -> Any:
        """Return the value of an expression; raise ExpressionError if the budget is exceeded."""
        frame = program.frame(values)
        try:
            value = program.step(frame)
        except cel.EvaluationError as error:
            self.spend(frame.cost)
            raise cel.EvaluationError(f"expression '{program.source}' resulted in error: {error}") from None
        self.spend(frame.cost)
        return value

    def spend(self, cost: int) -> None:
        """Subtract a cost; raise ExpressionError if it exceeds the budget."""
        if cost > self.left:
            raise ExpressionError(OUT_OF_BUDGET)
        self.left -= cost


_SIMPLE = frozenset({"bool", "bytes", "double", "duration", "int", "null", "string", "timestamp", "uint"})


class PolicyCompiler:
    """Compile the expressions of a policy, which may have parameters and variables."""

    def __init__(
        self, spec: JsonObject, kind: cel.DeclaredType | None = None, params: cel.DeclaredType | None = None
    ) -> None:
        self._kind = kind
        self._params = (params or True) if spec.get("paramKind") is not None else False
        self._variables: dict[str, cel.Type] = {}
        self._plain = environment(params=self._params, kind=kind)
        self._named: dict[str, cel.Type] | None = self._variables if items(spec, "variables") else None
        self._place = self._plain if self._named is None else self._with_variables()

    def _with_variables(self) -> cel.CelEnvironment:
        return environment(params=self._params, variables=self._variables, kind=self._kind)

    def expression(self, text: str) -> cel.Program:
        """Compile an expression of any type."""
        return compile_in(self._place, text)

    def condition(self, text: str) -> cel.Program:
        """Compile a match condition, which knows no variables."""
        return compile_in(self._plain, text, cel.BOOL)

    def variable(self, name: str, text: str) -> cel.Program:
        """Compile a variable and declare it for the expressions that follow."""
        # Declare it even if it does not compile: expressions that use it are not wrong.
        kind = cel.DYN
        try:
            program = compile_in(self._place, text)
            kind = _declared(program.type)
        finally:
            self._variables[name] = kind
            self._place = self._with_variables()
        return program

    def validation(self, text: str) -> cel.Program:
        """Compile a validation."""
        return compile_in(self._place, text, cel.BOOL)

    def message(self, text: str) -> cel.Program:
        """Compile a message expression."""
        place = environment(params=self._params, variables=self._named, kind=self._kind, authorizer=False)
        return compile_in(place, text, cel.STRING)

    def annotation(self, text: str) -> cel.Program:
        """Compile the value of an audit annotation."""
        return compile_in(self._place, text, cel.STRING, cel.Type("null"))

    def configuration(self, text: str) -> cel.Program:
        """Compile an apply configuration."""
        return compile_in(self._mutating(), text, cel.OBJECT.type)

    def patch(self, text: str) -> cel.Program:
        """Compile a JSON patch."""
        return compile_in(self._mutating(), text, cel.list_of(cel.JSON_PATCH.type))

    def _mutating(self) -> cel.CelEnvironment:
        return environment(params=self._params, variables=self._variables, mutating=True)


def _declared(kind: cel.Type) -> cel.Type:
    return kind if kind.kind in _SIMPLE or kind.kind in ("list", "map") else cel.DYN


class Variables(dict[str, Any]):
    """The variables of a policy for one write, each evaluated at its first use."""

    def __init__(
        self, programs: Mapping[str, cel.Program], values: Callable[[], dict[str, Any]], budget: CostBudget
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
