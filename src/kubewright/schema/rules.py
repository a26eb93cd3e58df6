"""CEL validation rules of a schema (x-kubernetes-validations).

`RuleTree` mirrors the schema nodes that have rules at or below them and compiles the rules of a node on first use. `check`
walks a value and its old value together. All rules of one object share one cost budget; when it is used up, evaluation
stops with one last error. A failed rule is ignored if nothing changed (ratcheting), except for transition rules.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from kubewright.api import FieldError, problems
from kubewright.schema.cel import (
    BOOL,
    STRING,
    CelEnvironment,
    CompileError,
    CostExceeded,
    DeclaredType,
    EvaluationError,
    InstantiationFailed,
    Program,
)
from kubewright.schema.cel.types import declare, optional_of
from kubewright.schema.cel.values import NONE, Optional
from kubewright.schema.json_tree import (
    NO_PATH,
    FieldPathError,
    Json,
    Schema,
    additional,
    items,
    properties,
    resolve_field_path,
)
from kubewright.schema.ratcheting import Correlation, Ratchet, map_key

BUDGET = 10_000_000
_MAX_MESSAGE = 5 * 1024
_NO_BOOL = "cel expression must evaluate to a bool"
_NO_STRING = "messageExpression must evaluate to a string"
_OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class OutOfBudget(Exception):
    """Stops the evaluation of an object's rules; carries the last error."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


class CompiledRule:
    """One rule, compiled for the type of its schema node."""

    def __init__(self, rule: dict[str, Any], schema: Schema, declared: DeclaredType) -> None:
        self.text: str = str(rule.get("rule", "")).strip()
        self.message: str = str(rule.get("message", "")).strip()
        self.reason: str | None = rule.get("reason")
        self.optional_old: bool = bool(rule.get("optionalOldSelf"))
        self.problem: str = ""
        self.message_problem: str = ""
        self.program: Program | None = None
        self.message_program: Program | None = None
        self.message_expression: str = str(rule.get("messageExpression", ""))
        self.field_path: str = _field_path(str(rule.get("fieldPath", "")), schema)
        if self.text:
            self._compile(str(rule["rule"]), declared)

    @property
    def uses_old(self) -> bool:
        """Return True if the rule uses oldSelf (a transition rule)."""
        return self.program is not None and "oldSelf" in self.program.names

    @property
    def shown(self) -> str:
        """Return the name of the rule in errors."""
        return self.message or self.text

    @property
    def failure(self) -> str:
        """Return the message for a value that fails the rule."""
        return self.message or f"failed rule: {self.text}"

    def _compile(self, source: str, declared: DeclaredType) -> None:
        environment = _environment(declared, self.optional_old)
        try:
            program = environment.compile(source)
        except CompileError as error:
            self.problem = f"compilation failed: {error}"
            return
        except InstantiationFailed as error:
            if error.type != BOOL:
                self.problem = _NO_BOOL
            else:
                self.problem = f"program instantiation failed: {error}"
            return
        if program.type != BOOL:
            self.problem = _NO_BOOL
            return
        self.program = program
        if self.message_expression:
            self._compile_message(environment)

    def _compile_message(self, environment: CelEnvironment) -> None:
        try:
            program = environment.compile(self.message_expression)
        except CompileError as error:
            self.message_problem = f"messageExpression compilation failed: {error}"
            return
        except InstantiationFailed as error:
            if error.type != STRING:
                self.message_problem = _NO_STRING
            else:
                self.message_problem = f"messageExpression instantiation failed: {error}"
            return
        if program.type != STRING:
            self.message_problem = _NO_STRING
            return
        self.message_program = program


def _environment(declared: DeclaredType, optional_old: bool) -> CelEnvironment:
    old = DeclaredType(optional_of(declared.type)) if optional_old else declared
    return CelEnvironment({"self": declared, "oldSelf": old})


def _field_path(text: str, schema: Schema) -> str:
    try:
        return resolve_field_path(text, schema)[0] if text else ""
    except FieldPathError:
        return ""


def compile_schema_rules(schema: Schema, declared: DeclaredType) -> list[CompiledRule]:
    """Compile the rules of one schema node."""
    return [CompiledRule(rule, schema, declared) for rule in schema.get("x-kubernetes-validations") or ()]


def has_rules(schema: Schema) -> bool:
    """Return True if a schema has rules at any depth."""
    below = [*properties(schema).values(), items(schema), additional(schema)]
    return bool(schema.get("x-kubernetes-validations")) or any(
        sub is not None and has_rules(sub) for sub in below
    )


class RuleTree:
    """The rules of a schema node and of the nodes below it that have any."""

    def __init__(self, schema: Schema, *, resource: bool = False) -> None:
        self._schema = schema
        self._resource = resource or bool(schema.get("x-kubernetes-embedded-resource"))
        self._type = schema.get("type", "")
        self._fields = {name: RuleTree(sub) for name, sub in properties(schema).items() if has_rules(sub)}
        self._others = _tree(additional(schema))
        self._elements = _tree(items(schema))

    @cached_property
    def _rules(self) -> list[CompiledRule]:
        if not self._schema.get("x-kubernetes-validations"):
            return []
        declared = declare(self._schema, resource=self._resource, name="selfType")
        return compile_schema_rules(self._schema, declared) if declared is not None else []

    def check(
        self,
        value: Any,
        old: Any,
        correlation: Correlation | None = None,
        *,
        path: str = "",
        warnings: list[str] | None = None,
    ) -> list[FieldError]:
        """Return the errors of the rules that a value fails; `old` is None if there is no old value.

        Rules that an unchanged part fails are no errors; they are appended to `warnings`.
        """
        errors: list[FieldError] = []
        budget = _Budget([] if warnings is None else warnings)
        try:
            self._check(path, value, old, Ratchet(correlation), budget, errors)
        except OutOfBudget as end:
            errors.append(end.error)
        return errors

    def _check(
        self, path: str, value: Json, old: Json, ratchet: Ratchet, budget: "_Budget", errors: list[FieldError]
    ) -> None:
        if value is None:
            return
        if self._rules:
            errors.extend(self._evaluate(path, value, old, ratchet, budget))
        if isinstance(value, list):
            self._check_elements(path, value, old, ratchet, budget, errors)
        elif isinstance(value, dict):
            previous = old if isinstance(old, dict) else {}
            if self._others is not None:
                for name, item in value.items():
                    below = f"{path}[{name}]"
                    self._others._check(below, item, previous.get(name), ratchet.key(name), budget, errors)
            for name, tree in self._fields.items():
                if name in value:
                    below = f"{path}.{name}" if path else name
                    tree._check(below, value[name], previous.get(name), ratchet.key(name), budget, errors)

    def _check_elements(
        self,
        path: str,
        value: list[Any],
        old: Json,
        ratchet: Ratchet,
        budget: "_Budget",
        errors: list[FieldError],
    ) -> None:
        if self._elements is None:
            return
        before = self._old_elements(old)
        for position, item in enumerate(value):
            key = map_key(self._schema, item) if before else None
            previous = before.get(key) if key is not None else None
            below = f"{path}[{position}]"
            self._elements._check(below, item, previous, ratchet.index(position), budget, errors)

    def _old_elements(self, old: Json) -> dict[tuple[Any, ...], Any]:
        if self._schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
            return {}
        elements: dict[tuple[Any, ...], Any] = {}
        for item in old:
            key = map_key(self._schema, item)
            if key is not None:
                elements.setdefault(key, item)
        return elements

    def _evaluate(
        self, path: str, value: Any, old: Any, ratchet: Ratchet, budget: "_Budget"
    ) -> Iterator[FieldError]:
        field = path or NO_PATH
        for rule in self._rules:
            if rule.problem:
                yield problems.invalid(field, self._type, f"rule compile error: {rule.problem}")
                continue
            if rule.program is None or (rule.uses_old and old is None and not rule.optional_old):
                continue
            variables: dict[str, Any] = {"self": value}
            if rule.optional_old:
                variables["oldSelf"] = NONE if old is None else Optional(old)
            elif old is not None:
                variables["oldSelf"] = old
            outcome = self._outcome(rule, field, variables, budget)
            if isinstance(outcome, FieldError):
                yield outcome
            elif not outcome:
                error = self._failure(rule, path, value, variables, budget)
                if rule.uses_old or not ratchet.unchanged:
                    yield error
                else:
                    budget.warnings.append(str(error))

    def _outcome(
        self, rule: CompiledRule, field: str, variables: dict[str, Any], budget: "_Budget"
    ) -> bool | FieldError:
        """Return True if the value passes the rule, or the error that stopped its evaluation."""
        if budget.left <= 0:
            raise OutOfBudget(problems.invalid(field, self._type, _OUT_OF_BUDGET))
        assert rule.program is not None
        try:
            return bool(budget.spend(rule.program, variables)) is True
        except CostExceeded as error:
            text = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.shown}"
            raise OutOfBudget(problems.invalid(field, self._type, text)) from None
        except EvaluationError as error:
            if budget.left < 0:
                raise OutOfBudget(problems.invalid(field, self._type, _OUT_OF_BUDGET)) from None
            if str(error).startswith("no such overload"):
                text = (
                    f"'{error}': call arguments did not match a supported operator, function or macro signature "
                    f"for rule: {rule.shown}"
                )
            else:
                text = f"{error} evaluating rule: {rule.shown}"
            return problems.invalid(field, self._type, text)

    def _failure(
        self, rule: CompiledRule, path: str, value: Any, variables: dict[str, Any], budget: "_Budget"
    ) -> FieldError:
        field = path or NO_PATH
        if rule.field_path:
            field = f"{path}.{rule.field_path}" if path else rule.field_path
        detail = self._message(rule, field, variables, budget)
        shown = problems.OMITTED if self._type in ("object", "array") else value
        constructors: dict[str | None, Callable[[], FieldError]] = {
            "FieldValueForbidden": lambda: problems.forbidden(field, detail),
            "FieldValueRequired": lambda: problems.required(field, detail),
            "FieldValueDuplicate": lambda: problems.duplicate(field, shown),
        }
        return constructors.get(rule.reason, lambda: problems.invalid(field, shown, detail))()

    def _message(self, rule: CompiledRule, field: str, variables: dict[str, Any], budget: "_Budget") -> str:
        if rule.message_program is None:
            return rule.failure
        try:
            text = budget.spend(rule.message_program, variables)
        except CostExceeded:
            quoted = problems.quoted(rule.message_expression)
            detail = f"no further validation rules will be run due to call cost exceeds limit for messageExpression: {quoted}"
            raise OutOfBudget(problems.invalid(field, self._type, detail)) from None
        except EvaluationError:
            return rule.failure
        if budget.left < 0:
            detail = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
            raise OutOfBudget(problems.invalid(field, self._type, detail))
        text = text.strip()
        usable = text and "\n" not in text and len(text.encode()) <= _MAX_MESSAGE
        return text if usable else rule.failure


def _tree(schema: Schema | None) -> RuleTree | None:
    return RuleTree(schema) if schema is not None and has_rules(schema) else None


class _Budget:
    """The remaining cost budget for the rules of one object, and the warnings for unchanged parts."""

    def __init__(self, warnings: list[str]) -> None:
        self.left = BUDGET
        self.warnings = warnings

    def spend(self, program: Program, variables: dict[str, Any]) -> Any:
        """Evaluate a program and subtract its cost."""
        frame = program.frame(variables)
        try:
            return program.step(frame)
        finally:
            self.left -= frame.cost
