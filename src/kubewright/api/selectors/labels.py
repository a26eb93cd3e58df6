"""Label selectors: what they mean, and the structured form with matchLabels and matchExpressions."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from kubewright.api import problems
from kubewright.api.codec import to_wire
from kubewright.api.errors import SelectorError
from kubewright.api.names import label_value, qualified_name
from kubewright.api.selectors.grammar import parse_terms

SelectorOperator = Literal["in", "notin", "=", "==", "!=", "exists", "!", "gt", "lt"]
_STRUCTURED: dict[str, SelectorOperator] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
}
_SIGNS = {"=": "=", "==": "==", "!=": "!=", "gt": ">", "lt": "<"}
_MAX_INT64 = 2**63


class Requirement(msgspec.Struct, frozen=True):
    """One condition on one label."""

    key: str
    operator: SelectorOperator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        errors = _requirement_problems(self)
        if errors:
            raise SelectorError(problems.aggregate(errors))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return True if the labels meet the condition."""
        value = labels.get(self.key)
        match self.operator:
            case "in" | "=" | "==":
                return value is not None and value in self.values
            case "notin" | "!=":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "gt" | "lt":
                number, bound = _integer(value or ""), cast(int, _integer(self.values[0]))
                return number is not None and (number > bound if self.operator == "gt" else number < bound)

    def __str__(self) -> str:
        if self.operator in ("exists", "!"):
            return f"{'!' if self.operator == '!' else ''}{self.key}"
        listed = ",".join(sorted(self.values))
        if self.operator in ("in", "notin"):
            return f"{self.key} {self.operator} ({listed})"
        return f"{self.key}{_SIGNS[self.operator]}{listed}"


class LabelMatcher(msgspec.Struct, frozen=True):
    """All requirements combined; without any it matches everything, or nothing if constructed so."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return True if the labels are selected."""
        return not self.nothing and all(requirement.matches(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements) or self.nothing

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse_labels(text: str) -> LabelMatcher:
    """Read a label selector: `app=web,tier in (a,b),!canary,weight>3`."""
    return _ordered(parse_terms(text, _check_key, _requirement))


def label_selector(selector: Mapping[str, Any] | msgspec.Struct | None) -> LabelMatcher:
    """Read the structured form; none at all selects nothing, an empty one everything."""
    if selector is None:
        return LabelMatcher(nothing=True)
    wire = to_wire(selector) if isinstance(selector, msgspec.Struct) else selector
    pairs: Mapping[str, str] = wire.get("matchLabels") or {}
    found = [Requirement(key, "=", (value,)) for key, value in pairs.items()]
    for expression in wire.get("matchExpressions") or ():
        operator = expression.get("operator", "")
        if operator not in _STRUCTURED:
            raise SelectorError(f"{problems.quoted(operator)} is not a valid label selector operator")
        values = tuple(expression.get("values") or ())
        found.append(Requirement(expression.get("key", ""), _STRUCTURED[operator], values))
    return _ordered(found)


def _ordered(requirements: Sequence[Requirement]) -> LabelMatcher:
    return LabelMatcher(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    return Requirement(key, cast(SelectorOperator, operator), values)


def _check_key(key: str) -> None:
    troubles = qualified_name(key)
    if troubles:
        # The real parser has no path here and prints Go's nil.
        raise SelectorError(str(problems.invalid("<nil>", key, "; ".join(troubles))))


def _integer(text: str) -> int | None:
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        return None
    number = int(text) if len(text) < 25 else _MAX_INT64
    return number if -_MAX_INT64 <= number < _MAX_INT64 else None


def _requirement_problems(requirement: Requirement) -> list[problems.FieldError]:
    key, values = requirement.key, requirement.values
    found: list[problems.FieldError] = []
    troubles = qualified_name(key)
    if troubles:
        found.append(problems.invalid("key", key, "; ".join(troubles)))
    detail = _count_problem(requirement)
    if detail:
        found.append(problems.invalid("values", list(values), detail))
    for index, value in enumerate(values):
        if requirement.operator in ("gt", "lt") and _integer(value) is None:
            text = "for 'Gt', 'Lt' operators, the value must be an integer"
            found.append(problems.invalid(f"values[{index}]", value, text))
    for index, value in enumerate(values):
        troubles = label_value(value)
        if troubles:
            found.append(problems.invalid(f"values[{index}][{key}]", value, "; ".join(troubles)))
    return found


def _count_problem(requirement: Requirement) -> str:
    count = len(requirement.values)
    match requirement.operator:
        case "in" | "notin":
            return "" if count else "for 'in', 'notin' operators, values set can't be empty"
        case "=" | "==" | "!=":
            return "" if count == 1 else "exact-match compatibility requires one single value"
        case "exists" | "!":
            return "values set must be empty for exists and does not exist" if count else ""
        case "gt" | "lt":
            return "" if count == 1 else "for 'Gt', 'Lt' operators, exactly one value is required"
