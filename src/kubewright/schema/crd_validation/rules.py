"""Validation of the CEL rules in a schema: that they compile, and that their estimated cost is within the limits."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from kubewright.api import FieldError, problems
from kubewright.schema.cel.types import MAX_REQUEST_SIZE, declare
from kubewright.schema.crd_validation.internal_types import internal_rule
from kubewright.schema.json_tree import Schema, additional, items, properties
from kubewright.schema.rules import CompiledRule, compile_schema_rules

_RULE_LIMIT = 10_000_000
_SCHEMA_LIMIT = 100_000_000
_LARGEST = 2**64 - 1
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, "
    "and strings are declared)"
)


@dataclass(slots=True)
class _Total:
    """The total cost of the rules of a schema, and the most expensive rules."""

    faulty: Collection[str] = ()
    """The paths of the nodes whose rules are skipped."""
    cost: int = 0
    greatest: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def add(self, path: str, cost: int) -> None:
        """Add the cost of one expression."""
        self.cost = min(self.cost + cost, _LARGEST)
        if cost >= _SCHEMA_LIMIT // 100:
            self.greatest = sorted([*self.greatest, (cost, path)], key=lambda item: -item[0])[:4]


@dataclass(frozen=True, slots=True)
class _RuleContext:
    """The path of a node, how often it can occur, and the list above it whose elements have no old value."""

    path: str
    root: bool = False
    occurrences: int | None = 1
    uncorrelated: str = ""

    def below(self, step: str, schema: Schema) -> "_RuleContext":
        """Return the context of a child of a node with this schema."""
        factor = _factor(schema)
        occurrences = (
            None if self.occurrences is None or factor is None else min(self.occurrences * factor, _LARGEST)
        )
        return replace(self, path=f"{self.path}.{step}", root=False, occurrences=occurrences)


def check_rules(schema: Schema, path: str, faulty: Collection[str] = ()) -> list[FieldError]:
    """Return the errors for rules that do not compile or whose cost estimate exceeds the limit.

    Rules of the nodes whose paths are `faulty` are skipped: a schema with errors has no types to check them with.
    """
    total = _Total(faulty)
    errors = _node(schema, _RuleContext(path, root=True), total)
    if total.cost > _SCHEMA_LIMIT:
        text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        errors += [problems.forbidden(location, text) for _, location in total.greatest]
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        errors.append(problems.forbidden(path, _too_expensive(name, total.cost, _SCHEMA_LIMIT)))
    return errors


def _node(schema: Schema, context: _RuleContext, total: _Total) -> list[FieldError]:
    errors: list[FieldError] = []
    other, element = additional(schema), items(schema)
    if other is not None:
        errors += _node(other, context.below("additionalProperties", schema), total)
    for name, sub in properties(schema).items():
        errors += _node(sub, context.below(f"properties[{name}]", schema), total)
    if element is not None:
        below = context.below("items", schema)
        if schema.get("x-kubernetes-list-type") != "map" and not context.uncorrelated:
            below = replace(below, uncorrelated=context.path)
        errors += _node(element, below, total)
    if schema.get("x-kubernetes-validations") and context.path not in total.faulty:
        errors += _rules(schema, context, total)
    return errors


def _rules(schema: Schema, context: _RuleContext, total: _Total) -> list[FieldError]:
    resource = context.root or bool(schema.get("x-kubernetes-embedded-resource"))
    declared = declare(schema, resource=resource, name="selfType")
    if declared is None:
        text = "failed to convert to declType for CEL validation rules"
        return [problems.internal(f"{context.path}.x-kubernetes-validations", text)]
    occurrences = context.occurrences
    if occurrences is None:
        occurrences = MAX_REQUEST_SIZE // (declared.min_size + 1)
    errors: list[FieldError] = []
    for position, rule in enumerate(compile_schema_rules(schema, declared)):
        path = f"{context.path}.x-kubernetes-validations[{position}]"
        errors += _costs(rule, path, occurrences, total)
        errors += _problems(rule, schema["x-kubernetes-validations"][position], path, context)
    return errors


def _costs(rule: CompiledRule, path: str, occurrences: int, total: _Total) -> list[FieldError]:
    errors: list[FieldError] = []
    cost = min(rule.program.greatest_cost * occurrences, _LARGEST) if rule.program is not None else 0
    if cost > _RULE_LIMIT:
        errors.append(
            problems.forbidden(f"{path}.rule", _too_expensive("estimated rule cost", cost, _RULE_LIMIT))
        )
    total.add(f"{path}.rule", cost)
    if rule.message_program is not None:
        cost = rule.message_program.greatest_cost
        if cost > _RULE_LIMIT:
            text = _too_expensive("estimated messageExpression cost", cost, _RULE_LIMIT)
            errors.append(problems.forbidden(f"{path}.messageExpression", text))
        total.add(f"{path}.messageExpression", cost)
    return errors


def _problems(
    rule: CompiledRule, source: dict[str, object], path: str, context: _RuleContext
) -> list[FieldError]:
    errors: list[FieldError] = []
    if rule.problem:
        errors.append(problems.invalid(f"{path}.rule", internal_rule(source), rule.problem))
    if rule.message_problem:
        errors.append(
            problems.invalid(f"{path}.messageExpression", internal_rule(source), rule.message_problem)
        )
    if rule.uses_old:
        if context.uncorrelated:
            text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {context.uncorrelated}"
            errors.append(problems.invalid(f"{path}.rule", source.get("rule"), text))
    elif source.get("optionalOldSelf") is not None:
        text = "may not be set if oldSelf is not used in rule"
        errors.append(problems.invalid(f"{path}.optionalOldSelf", source["optionalOldSelf"], text))
    return errors


def _factor(schema: Schema) -> int | None:
    """Return how many children a value of this schema can have; None if there is no limit."""
    if schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        most = schema.get("maxProperties")
    elif schema.get("type") == "array":
        most = schema.get("maxItems")
    else:
        return 1
    return None if most is None else max(most, 0)


def _too_expensive(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {shown} {_ADVICE}"
