"""What the registrations of webhooks and policies have in common: rules on resources, match conditions."""

from collections.abc import Callable, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.expressions import ExpressionError, PolicyCompiler, compile_condition
from kubewright.devserver.objects import JsonObject, items
from kubewright.schema import cel

MAX_CONDITIONS = 64
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")

Compile = Callable[[str], cel.Program]


def check_rule(rule: JsonObject, path: str) -> list[FieldError]:
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


def _wildcards(rule: JsonObject, field: str, path: str, title: str) -> list[FieldError]:
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
    conditions: Sequence[JsonObject], path: str, compiler: Compile = compile_condition
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


def check_param_kind(kind: JsonObject, path: str) -> list[FieldError]:
    """Check of what kind a policy's parameters are."""
    version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    errors: list[FieldError] = []
    if not version:
        errors.append(problems.required(f"{path}.apiVersion"))
    elif version.count("/") > 1:
        text = f"unexpected GroupVersion string: {version}"
        errors.append(problems.invalid(f"{path}.apiVersion", version, text))
    else:
        group, _, number = version.rpartition("/")
        if group:
            errors += check.named(f"{path}.apiVersion", group, names.dns1123_subdomain(group))
        errors += check.named(f"{path}.apiVersion", number, names.dns1035_label(number))
    if not name:
        errors.append(problems.required(f"{path}.kind"))
    elif troubles := names.dns1035_label(name.lower()):
        text = f"may have mixed case, but should otherwise match: {', '.join(troubles)}"
        errors.append(problems.invalid(f"{path}.kind", name, text))
    return errors


def check_policy(spec: JsonObject, name: str) -> list[FieldError]:
    """Check the expressions of a validating policy: match conditions, variables, rules and annotations."""
    compiler = PolicyCompiler(spec)
    errors = check_conditions(items(spec, "matchConditions"), "spec.matchConditions", compiler.condition)
    for index, variable in enumerate(items(spec, "variables")):
        errors += check_variable(variable, f"spec.variables[{index}]", compiler)
    for index, rule in enumerate(items(spec, "validations")):
        errors += _check_validation(rule, f"spec.validations[{index}]", compiler)
    keys: set[str] = set()
    for index, annotation in enumerate(items(spec, "auditAnnotations")):
        path, key = f"spec.auditAnnotations[{index}]", annotation.get("key", "")
        errors += [
            problems.invalid(f"{path}.key", f"{name}/{key}", text)
            for text in names.qualified_name(f"{name}/{key}")
        ]
        value = annotation.get("valueExpression", "").strip()
        if not value:
            text = "valueExpression is not specified"
            errors.append(problems.required(f"{path}.valueExpression", text))
        else:
            errors += check_expression(value, f"{path}.valueExpression", compiler.annotation)
        if key in keys:
            errors.append(problems.duplicate(f"{path}.key", key))
        keys.add(key)
    return errors


def check_variable(variable: JsonObject, path: str, compiler: PolicyCompiler) -> list[FieldError]:
    """Check a variable of a policy, and let the expressions that follow know it."""
    name, expression = variable.get("name", ""), variable.get("expression", "")
    errors: list[FieldError] = []
    if not name.strip():
        errors.append(problems.required(f"{path}.name", "name is not specified"))
    elif not cel.is_identifier(name):
        errors.append(problems.invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    if not expression.strip():
        errors.append(problems.required(f"{path}.expression", "expression is not specified"))
        return errors
    return errors + check_expression(
        expression, f"{path}.expression", lambda text: compiler.variable(name, text)
    )


def _check_validation(rule: JsonObject, path: str, compiler: PolicyCompiler) -> list[FieldError]:
    expression, message = rule.get("expression", ""), rule.get("message", "")
    spoken = rule.get("messageExpression", "")
    errors: list[FieldError] = []
    if not expression.strip():
        errors.append(problems.required(f"{path}.expression", "expression is not specified"))
    else:
        errors += check_expression(expression, f"{path}.expression", compiler.validation)
    if spoken and not spoken.strip():
        text = "must be non-empty if specified"
        errors.append(problems.invalid(f"{path}.messageExpression", spoken, text))
    elif spoken:
        errors += check_expression(spoken, f"{path}.messageExpression", compiler.message)
    if message and not message.strip():
        errors.append(problems.invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip():
        errors.append(problems.invalid(f"{path}.message", message, "must not contain line breaks"))
    if rule.get("reason") is not None:
        errors += check.one_of(f"{path}.reason", rule["reason"], _REASONS)
    return errors


def check_param_reference(reference: JsonObject, path: str) -> list[FieldError]:
    """Check how a binding names its parameters."""
    errors: list[FieldError] = []
    name, selector = reference.get("name", ""), reference.get("selector")
    if name:
        errors += [problems.invalid(f"{path}.name", name, text) for text in names.path_segment(name)]
        if selector is not None:
            text = "name and selector are mutually exclusive"
            errors += [problems.forbidden(f"{path}.{part}", text) for part in ("name", "selector")]
    elif selector is None:
        errors.append(problems.required(path, "one of name or selector must be specified"))
    else:
        errors += check.label_selector(f"{path}.selector", selector)
    action = reference.get("parameterNotFoundAction")
    if action is None:
        errors.append(problems.required(f"{path}.parameterNotFoundAction"))
        return errors
    return errors + check.one_of(f"{path}.parameterNotFoundAction", action, ("Allow", "Deny"))


def check_match(match: JsonObject, path: str) -> list[FieldError]:
    """Check which writes a policy or binding is about."""
    errors = check.one_of(f"{path}.matchPolicy", match.get("matchPolicy"), ("Equivalent", "Exact"))
    for part in ("namespaceSelector", "objectSelector"):
        errors += check.label_selector(f"{path}.{part}", match.get(part))
    for part in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(items(match, part)):
            errors += _check_resource_names(
                items(rule, "resourceNames"), f"{path}.{part}[{index}].resourceNames"
            )
            errors += check_rule(rule, f"{path}.{part}[{index}]")
    return errors


def _check_resource_names(given: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, name in enumerate(given):
        errors += check.named(f"{path}[{index}]", name, names.path_segment(name))
        if name in given[:index]:
            errors.append(problems.duplicate(f"{path}[{index}]", name))
    return errors


def check_expression(expression: str, path: str, compiler: Compile) -> list[FieldError]:
    """Check that an expression compiles."""
    try:
        compiler(expression)
    except ExpressionError as error:
        return [problems.invalid(path, expression, str(error))]
    return []
