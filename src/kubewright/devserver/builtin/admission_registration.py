"""Webhook configurations, admission policies and their bindings."""

from collections.abc import Callable, Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.printing import AGE, NAME, UNSET, cell, count, printed, selector_text
from kubewright.devserver.expressions import ExpressionError, PolicyCompiler, compile_condition
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Strategy
from kubewright.schema import cel, check_webhook_client

MAX_CONDITIONS = 64
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")

Compile = Callable[[str], cel.Program]
# A deleted object cannot be mutated.
_MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
_PATCH_TYPES = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
ADMISSION = "admissionregistration.k8s.io"
_REVIEWS = ("v1", "v1beta1")
_SECONDS = range(1, 31)


def check_rule(rule: JsonObject, path: str) -> list[FieldError]:
    """Check the operations and resources of a rule."""
    errors = _list_with_wildcard(rule, "operations", path, "operations")
    for index, name in enumerate(items(rule, "operations")):
        errors += check.one_of(f"{path}.operations[{index}]", name, _OPERATIONS)
    errors += _list_with_wildcard(rule, "apiGroups", path, "API groups")
    errors += _list_with_wildcard(rule, "apiVersions", path, "API versions")
    for index, name in enumerate(items(rule, "apiVersions")):
        if not name:
            errors.append(problems.required(f"{path}.apiVersions[{index}]"))
    errors += _check_resources(items(rule, "resources"), f"{path}.resources")
    return errors + check.one_of(f"{path}.scope", rule.get("scope"), _SCOPES)


def _list_with_wildcard(rule: JsonObject, field: str, path: str, title: str) -> list[FieldError]:
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
    """Check match conditions: names, and expressions that return a boolean."""
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
    """Check the kind of a policy's parameters."""
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
    elif reasons := names.dns1035_label(name.lower()):
        text = f"may have mixed case, but should otherwise match: {', '.join(reasons)}"
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
    """Check a variable of a policy, and declare it for the expressions that follow."""
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
    message_expression = rule.get("messageExpression", "")
    errors: list[FieldError] = []
    if not expression.strip():
        errors.append(problems.required(f"{path}.expression", "expression is not specified"))
    else:
        errors += check_expression(expression, f"{path}.expression", compiler.validation)
    if message_expression and not message_expression.strip():
        text = "must be non-empty if specified"
        errors.append(problems.invalid(f"{path}.messageExpression", message_expression, text))
    elif message_expression:
        errors += check_expression(message_expression, f"{path}.messageExpression", compiler.message)
    if message and not message.strip():
        errors.append(problems.invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip():
        errors.append(problems.invalid(f"{path}.message", message, "must not contain line breaks"))
    if rule.get("reason") is not None:
        errors += check.one_of(f"{path}.reason", rule["reason"], _REASONS)
    return errors


def check_param_reference(reference: JsonObject, path: str) -> list[FieldError]:
    """Check the reference of a binding to its parameters."""
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
    return errors + check.one_of(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))


def check_match(match: JsonObject, path: str) -> list[FieldError]:
    """Check the requests that a policy or binding matches."""
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


def check_mutating_policy(spec: JsonObject) -> list[FieldError]:
    """Check the expressions of a mutating policy, and its reinvocation policy."""
    compiler = PolicyCompiler(spec)
    errors = check_conditions(items(spec, "matchConditions"), "spec.matchConditions", compiler.condition)
    for index, variable in enumerate(items(spec, "variables")):
        errors += check_variable(variable, f"spec.variables[{index}]", compiler)
    if not items(spec, "mutations"):
        errors.append(problems.required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(items(spec, "mutations")):
        errors += _check_mutation(mutation, f"spec.mutations[{index}]", compiler)
    if not spec.get("reinvocationPolicy"):
        return [*errors, problems.required("spec.reinvocationPolicy")]
    return errors + check.one_of("spec.reinvocationPolicy", spec["reinvocationPolicy"], ("IfNeeded", "Never"))


def check_mutating_match(match: JsonObject, path: str) -> list[FieldError]:
    """Check the requests that a mutating policy or its binding matches."""
    errors = check_match(match, path)
    for rule in items(match, "resourceRules"):
        for operation in items(rule, "operations"):
            errors += check.one_of(f"{path}.resourceRules.operations", operation, _MUTATING_OPERATIONS)
    return errors


def _check_mutation(mutation: JsonObject, path: str, compiler: PolicyCompiler) -> list[FieldError]:
    form = mutation.get("patchType", "")
    if not form:
        return [problems.required(f"{path}.patchType")]
    if form not in _PATCH_TYPES:
        return [problems.not_supported(f"{path}.patchType", form, tuple(_PATCH_TYPES))]
    field = _PATCH_TYPES[form]
    compiles = compiler.patch if form == "JSONPatch" else compiler.configuration
    errors: list[FieldError] = []
    if mutation.get(field) is None:
        text = f"must be specified when patchType is {form}"
        errors.append(problems.required(f"{path}.{field}", text))
    else:
        place, expression = f"{path}.{field}.expression", mutation[field].get("expression", "").strip()
        errors += check_expression(expression, place, compiles) if expression else [problems.required(place)]
    for other in _PATCH_TYPES.values():
        if other != field and mutation.get(other) is not None:
            text = f"must not be specified when patchType is {form}"
            errors.append(problems.invalid(f"{path}.{other}", f"{{{other}}}", text))
    return errors


def _default_webhooks(obj: JsonObject) -> None:
    mutating = obj["kind"] == "MutatingWebhookConfiguration"
    for hook in items(obj, "webhooks"):
        for name, value in (("failurePolicy", "Fail"), ("matchPolicy", "Equivalent"), ("timeoutSeconds", 10)):
            if hook.get(name) is None:
                hook[name] = value
        for name in ("namespaceSelector", "objectSelector"):
            if hook.get(name) is None:
                hook[name] = {}
        if mutating and hook.get("reinvocationPolicy") is None:
            hook["reinvocationPolicy"] = "Never"
        service: JsonObject | None = section(hook, "clientConfig").get("service")
        if service is not None and service.get("port") is None:
            service["port"] = 443
        _default_rules(items(hook, "rules"))


def _default_rules(rules: Sequence[JsonObject]) -> None:
    for rule in rules:
        if rule.get("scope") is None:
            rule["scope"] = "*"


def _validate_webhooks(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, hook in enumerate(items(obj, "webhooks")):
        path = f"webhooks[{index}]"
        errors += _check_webhook(hook, path)
        reviews: list[str] = items(hook, "admissionReviewVersions")
        if not reviews:
            text = f"must specify one of {', '.join(_REVIEWS)}"
            errors.append(problems.required(f"{path}.admissionReviewVersions", text))
        errors += _check_reviews(reviews, f"{path}.admissionReviewVersions")
        if reviews and not set(reviews) & set(_REVIEWS):
            text = f"must include at least one of {', '.join(_REVIEWS)}"
            errors.append(problems.invalid(f"{path}.admissionReviewVersions", reviews, text))
        name = hook.get("name", "")
        if name and name in seen:
            errors.append(problems.duplicate(f"{path}.name", name))
        seen.add(name)
    return errors


def _check_reviews(versions: Sequence[str], path: str) -> Iterator[FieldError]:
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield problems.invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        yield from check.named(f"{path}[{index}]", version, names.dns1035_label(version))


def _check_webhook(hook: JsonObject, path: str) -> list[FieldError]:
    name = hook.get("name", "")
    if not name:
        errors = [problems.required(f"{path}.name")]
    else:
        errors = check.named(f"{path}.name", name, names.dns1123_subdomain(name))
    if not errors and name.count(".") < 2:
        text = "should be a domain with at least three segments separated by dots"
        errors.append(problems.invalid(f"{path}.name", name, text))
    for index, rule in enumerate(items(hook, "rules")):
        errors += check_rule(rule, f"{path}.rules[{index}]")
    errors += check.one_of(f"{path}.failurePolicy", hook.get("failurePolicy"), ("Fail", "Ignore"))
    errors += check.one_of(f"{path}.matchPolicy", hook.get("matchPolicy"), ("Equivalent", "Exact"))
    effects = hook.get("sideEffects")
    if effects is None:
        text = "must specify one of None, NoneOnDryRun"
        errors.append(problems.required(f"{path}.sideEffects", text))
    else:
        errors += check.one_of(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun"))
    if "reinvocationPolicy" in hook:
        choices = ("IfNeeded", "Never")
        errors += check.one_of(f"{path}.reinvocationPolicy", hook["reinvocationPolicy"], choices)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and seconds not in _SECONDS:
        text = "the timeout value must be between 1 and 30 seconds"
        errors.append(problems.invalid(f"{path}.timeoutSeconds", seconds, text))
    for part in ("namespaceSelector", "objectSelector"):
        errors += check.label_selector(f"{path}.{part}", hook.get(part))
    errors += check_webhook_client(section(hook, "clientConfig"), f"{path}.clientConfig")
    return errors + check_conditions(items(hook, "matchConditions"), f"{path}.matchConditions")


def _default_policy(obj: JsonObject) -> None:
    spec: JsonObject = obj.setdefault("spec", {})
    if spec.get("failurePolicy") is None:
        spec["failurePolicy"] = "Fail"
    if spec.get("matchConstraints") is not None:
        _default_match(spec["matchConstraints"])


def _default_match(match: JsonObject) -> None:
    for name in ("namespaceSelector", "objectSelector"):
        if match.get(name) is None:
            match[name] = {}
    if match.get("matchPolicy") is None:
        match["matchPolicy"] = "Equivalent"
    for name in ("resourceRules", "excludeResourceRules"):
        _default_rules(items(match, name))


def _default_binding(obj: JsonObject) -> None:
    match: JsonObject | None = section(obj, "spec").get("matchResources")
    if match is not None:
        _default_match(match)


def _validate_policy(obj: JsonObject) -> list[FieldError]:
    spec: JsonObject = section(obj, "spec")
    errors = check.one_of("spec.failurePolicy", spec.get("failurePolicy"), ("Fail", "Ignore"))
    validating = obj["kind"] == "ValidatingAdmissionPolicy"
    if (parameters := spec.get("paramKind")) is not None:
        errors += check_param_kind(parameters, "spec.paramKind")
    if spec.get("matchConstraints") is None:
        errors.append(problems.required("spec.matchConstraints"))
    else:
        matches = check_match if validating else check_mutating_match
        errors += matches(spec["matchConstraints"], "spec.matchConstraints")
        if not spec["matchConstraints"].get("resourceRules"):
            errors.append(problems.required("spec.matchConstraints.resourceRules"))
    if validating:
        errors += check_policy(spec, obj["metadata"].get("name", ""))
        if not spec.get("validations") and not spec.get("auditAnnotations"):
            text = "validations or auditAnnotations must contain at least one item"
            errors += [
                problems.required(f"spec.{name}", text) for name in ("validations", "auditAnnotations")
            ]
        return errors
    return errors + check_mutating_policy(spec)


def _validate_binding(obj: JsonObject) -> list[FieldError]:
    spec: JsonObject = section(obj, "spec")
    name, validating = spec.get("policyName", ""), obj["kind"] == "ValidatingAdmissionPolicyBinding"
    errors: list[FieldError] = [] if name else [problems.required("spec.policyName")]
    if name:
        errors += check.named("spec.policyName", name, names.dns1123_subdomain(name))
    if spec.get("paramRef") is not None:
        errors += check_param_reference(spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        matches = check_match if validating else check_mutating_match
        errors += matches(spec["matchResources"], "spec.matchResources")
    if validating and not spec.get("validationActions"):
        text = "at least one validation action is required"
        errors.append(problems.required("spec.validationActions", text))
    return errors + _check_actions(items(spec, "validationActions"), "spec.validationActions")


def _check_actions(actions: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, action in enumerate(actions):
        errors += check.one_of(f"{path}[{index}]", action, ("Audit", "Deny", "Warn"))
        if action in actions[:index]:
            errors.append(problems.duplicate(f"{path}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        text = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        errors.append(problems.invalid(path, list(actions), text))
    return errors


def _param_kind(obj: JsonObject) -> str:
    kind: JsonObject | None = section(obj, "spec").get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def _param_reference(obj: JsonObject) -> str:
    found: JsonObject | None = section(obj, "spec").get("paramRef")
    if found and found.get("name"):
        return f"{found.get('namespace') or '*'}/{found['name']}"
    if found and found.get("selector") is not None:
        return selector_text(found["selector"])
    return UNSET


def _webhooks() -> Strategy:
    return Strategy(
        default=_default_webhooks,
        validate=_validate_webhooks,
        validate_update=lambda new, old: _validate_webhooks(new),
        has_generation=True,
        allow_unconditional_update=False,
        **printed(NAME, cell("Webhooks", count("webhooks"), kind="integer"), AGE),
    )


def _policy(column: str, field: str) -> Strategy:
    return Strategy(
        default=_default_policy,
        validate=_validate_policy,
        validate_update=lambda new, old: _validate_policy(new),
        has_generation=True,
        allow_unconditional_update=False,
        **printed(NAME, cell(column, count(field), kind="integer"), cell("ParamKind", _param_kind), AGE),
    )


def _binding() -> Strategy:
    return Strategy(
        default=_default_binding,
        validate=_validate_binding,
        validate_update=lambda new, old: _validate_binding(new),
        has_generation=True,
        allow_unconditional_update=False,
        **printed(NAME, cell("PolicyName", "spec.policyName"), cell("ParamRef", _param_reference), AGE),
    )


STRATEGIES = {
    (ADMISSION, "ValidatingWebhookConfiguration"): _webhooks(),
    (ADMISSION, "MutatingWebhookConfiguration"): _webhooks(),
    (ADMISSION, "ValidatingAdmissionPolicy"): _policy("Validations", "spec.validations"),
    (ADMISSION, "MutatingAdmissionPolicy"): _policy("Mutations", "spec.mutations"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"): _binding(),
    (ADMISSION, "MutatingAdmissionPolicyBinding"): _binding(),
}
