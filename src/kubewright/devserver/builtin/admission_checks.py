"""What the registrations of webhooks and policies have in common: rules on resources, match conditions."""

from collections.abc import Callable, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.reading import items
from kubewright.devserver.expressions import ExpressionError, compile_condition
from kubewright.devserver.objects import Wire
from kubewright.schema import cel

MAX_CONDITIONS = 64
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")

Compile = Callable[[str], cel.Program]


def check_rule(rule: Wire, path: str) -> list[FieldError]:
    """Check which operations on which resources a rule is about."""
    errors = _wildcards(rule, "operations", path, "operations")
    for index, name in enumerate(items(rule, "operations")):
        errors += check.one_of(f"{path}.operations[{index}]", name, _OPERATIONS)
    errors += _wildcards(rule, "apiGroups", path, "API groups")
    errors += _wildcards(rule, "apiVersions", path, "API versions")
    for index, name in enumerate(items(rule, "apiVersions")):
        if not name:
            errors.append(problems.required(f"{path}.apiVersions[{index}]"))
    errors += _check_resources(items(rule, "resources"), f"{path}.resources")
    return errors + check.one_of(f"{path}.scope", rule.get("scope"), _SCOPES)


def _wildcards(rule: Wire, field: str, path: str, title: str) -> list[FieldError]:
    found = items(rule, field)
    if not found:
        return [problems.required(f"{path}.{field}")]
    if len(found) > 1 and "*" in found:
        text = f"if '*' is present, must not specify other {title}"
        return [problems.invalid(f"{path}.{field}", found, text)]
    return []


def _check_resources(resources: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = [] if resources else [problems.required(path)]
    all_parts, parts_of_all = set[str](), set[str]()
    plain = False
    for index, text in enumerate(resources):
        if not text:
            errors.append(problems.required(f"{path}[{index}]"))
            continue
        resource, slash, part = text.partition("/")
        if not slash:
            plain = text != "*"
            continue
        for known, name, shown in ((all_parts, resource, f"{resource}/*"), (parts_of_all, part, f"*/{part}")):
            if name in known:
                why = f"if '{shown}' is present, must not specify {text}"
                errors.append(problems.invalid(f"{path}[{index}]", text, why))
        if part == "*":
            all_parts.add(resource)
        if resource == "*":
            parts_of_all.add(part)
    if len(resources) > 1 and "*/*" in resources:
        why = "if '*/*' is present, must not specify other resources"
        errors.append(problems.invalid(path, list(resources), why))
    if "*" in resources and plain:
        why = "if '*' is present, must not specify other resources without subresources"
        errors.append(problems.invalid(path, list(resources), why))
    return errors


def check_conditions(
    conditions: Sequence[Wire], path: str, compiler: Compile = compile_condition
) -> list[FieldError]:
    """Check match conditions: names, and expressions that tell yes or no."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    if len(conditions) > MAX_CONDITIONS:
        errors.append(problems.too_many(path, len(conditions), MAX_CONDITIONS))
    for index, condition in enumerate(conditions):
        place, name = f"{path}[{index}]", condition.get("name", "")
        expression = condition.get("expression", "").strip()
        if not expression:
            errors.append(problems.required(f"{place}.expression"))
        else:
            errors += check_expression(expression, f"{place}.expression", compiler)
        if not name:
            errors.append(problems.required(f"{place}.name"))
        else:
            errors += [problems.invalid(f"{place}.name", name, text) for text in names.qualified_name(name)]
            if name in seen:
                errors.append(problems.duplicate(f"{place}.name", name))
        seen.add(name)
    return errors


def check_expression(expression: str, path: str, compiler: Compile) -> list[FieldError]:
    """Check that an expression compiles."""
    try:
        compiler(expression)
    except ExpressionError as error:
        return [problems.invalid(path, expression, str(error))]
    return []
