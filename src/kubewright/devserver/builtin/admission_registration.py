"""Webhook configurations, admission policies and their bindings."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.printing import AGE, NAME, UNSET, Cell, cell, count, printed, selector_text
from kubewright.devserver.builtin.rules import (
    FieldRule,
    Rules,
    absent,
    between,
    defaults,
    each_once,
    first,
    fits,
    given,
    missing,
    named,
    one_of,
    required,
    rules,
    unique,
    validated,
)
from kubewright.devserver.expressions import (
    ExpressionError,
    InstantiationError,
    PolicyCompiler,
    compile_condition,
)
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Strategy
from kubewright.schema import cel, check_webhook_client

ADMISSION = "admissionregistration.k8s.io"
_MAX_CONDITIONS = 64
_REVIEWS = ("v1", "v1beta1")
_PATCH_TYPES = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_Compile = Callable[[str], cel.Program]


# What a webhook or policy applies to


def _only_wildcard(title: str) -> FieldRule:
    """Make the rule that a list is not empty, and that "*" stands alone in it."""
    text = f"if '*' is present, must not specify other {title}"
    return first(required(), fits(lambda values: len(values) == 1 or "*" not in values, text))


def _resources(path: str, given: Sequence[str] | None) -> Iterator[FieldError]:
    resources = list(given or ())
    if not resources:
        yield problems.required(path)
    all_parts, parts_of_all = set[str](), set[str]()
    plain = False
    for index, text in enumerate(resources):
        if not text:
            yield problems.required(f"{path}[{index}]")
            continue
        resource, slash, part = text.partition("/")
        if not slash:
            plain = text != "*"
            continue
        for known, name, shown in ((all_parts, resource, f"{resource}/*"), (parts_of_all, part, f"*/{part}")):
            if name in known:
                why = f"if '{shown}' is present, must not specify {text}"
                yield problems.invalid(f"{path}[{index}]", text, why)
        if part == "*":
            all_parts.add(resource)
        if resource == "*":
            parts_of_all.add(part)
    if len(resources) > 1 and "*/*" in resources:
        yield problems.invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and plain:
        why = "if '*' is present, must not specify other resources without subresources"
        yield problems.invalid(path, resources, why)


_RULE = rules(
    ("operations", _only_wildcard("operations")),
    ("operations[]", one_of("*", "CONNECT", "CREATE", "DELETE", "UPDATE")),
    ("apiGroups", _only_wildcard("API groups")),
    ("apiVersions", _only_wildcard("API versions")),
    ("apiVersions[]", required()),
    ("resources", _resources),
    ("scope", one_of("*", "Cluster", "Namespaced")),
)
_MATCH = rules(
    ("matchPolicy", one_of("Equivalent", "Exact")),
    ("namespaceSelector", check.label_selector),
    ("objectSelector", check.label_selector),
    *(
        row
        for field in ("resourceRules[]", "excludeResourceRules[]")
        for row in (
            (f"{field}.resourceNames", each_once(named(names.path_segment, empty=True))),
            (field, _RULE),
        )
    ),
)


def _mutating_match(path: str, match: JsonObject) -> list[FieldError]:
    # A deleted object cannot be mutated. The real server leaves the indexes out of the path.
    allowed = one_of("*", "CONNECT", "CREATE", "UPDATE")
    operations = [item for rule in items(match, "resourceRules") for item in items(rule, "operations")]
    unknown = [error for item in operations for error in allowed(f"{path}.resourceRules.operations", item)]
    return _MATCH(path, match) + unknown


def _match_defaults(path: str) -> list[tuple[str, object]]:
    return [
        (f"{path}.namespaceSelector", {}),
        (f"{path}.objectSelector", {}),
        (f"{path}.matchPolicy", "Equivalent"),
        (f"{path}.resourceRules[].scope", "*"),
        (f"{path}.excludeResourceRules[].scope", "*"),
    ]


# Expressions


def _expression(path: str, expression: str, compiler: _Compile, text: str = "") -> list[FieldError]:
    """Check that an expression is set, else report it in these words, and that it compiles."""
    if not expression.strip():
        return [problems.required(path, text)]
    try:
        compiler(expression)
    except InstantiationError as error:
        return [problems.internal(path, str(error))]
    except ExpressionError as error:
        return [problems.invalid(path, expression, str(error))]
    return []


def _conditions(
    path: str, conditions: Sequence[JsonObject] | None, compiler: _Compile = compile_condition
) -> Iterator[FieldError]:
    """Check match conditions: names, and expressions that return a boolean."""
    found = conditions or ()
    if len(found) > _MAX_CONDITIONS:
        yield problems.too_many(path, len(found), _MAX_CONDITIONS)
    seen: set[str] = set()
    for index, condition in enumerate(found):
        where, name = f"{path}[{index}]", condition.get("name", "")
        yield from _expression(f"{where}.expression", condition.get("expression", "").strip(), compiler)
        yield from check.name(f"{where}.name", name, names.qualified_name)
        if name and name in seen:
            yield problems.duplicate(f"{where}.name", name)
        seen.add(name)


def _policy_expressions(path: str, spec: JsonObject, compiler: PolicyCompiler) -> Iterator[FieldError]:
    """Check match conditions and variables; the variables are declared for the expressions that follow."""
    yield from _conditions(f"{path}.matchConditions", spec.get("matchConditions"), compiler.condition)
    for index, variable in enumerate(items(spec, "variables")):
        where, name = f"{path}.variables[{index}]", variable.get("name", "")
        if not name.strip():
            yield problems.required(f"{where}.name", "name is not specified")
        elif not cel.is_identifier(name):
            yield problems.invalid(f"{where}.name", name, "must be a valid CEL identifier")
        yield from _expression(
            f"{where}.expression",
            variable.get("expression", ""),
            lambda text, name=name: compiler.variable(name, text),
            "expression is not specified",
        )


def _validations(path: str, policy: JsonObject) -> Iterator[FieldError]:
    spec, name, compiler = section(policy, "spec"), policy["metadata"].get("name", ""), _compiler(policy)
    yield from _policy_expressions("spec", spec, compiler)
    for index, rule in enumerate(items(spec, "validations")):
        yield from _validation(f"spec.validations[{index}]", rule, compiler)
    keys: set[str] = set()
    for index, annotation in enumerate(items(spec, "auditAnnotations")):
        where, key = f"spec.auditAnnotations[{index}]", annotation.get("key", "")
        if name:
            yield from check.named(f"{where}.key", f"{name}/{key}", names.qualified_name(f"{name}/{key}"))
        else:
            yield problems.invalid(f"{where}.key", key, "requires metadata.name be non-empty")
        value, text = annotation.get("valueExpression", "").strip(), "valueExpression is not specified"
        yield from _expression(f"{where}.valueExpression", value, compiler.annotation, text)
        if key in keys:
            yield problems.duplicate(f"{where}.key", key)
        keys.add(key)


def _validation(path: str, rule: JsonObject, compiler: PolicyCompiler) -> Iterator[FieldError]:
    text = "expression is not specified"
    yield from _expression(f"{path}.expression", rule.get("expression", ""), compiler.validation, text)
    message, dynamic = rule.get("message", ""), rule.get("messageExpression", "")
    if dynamic and not dynamic.strip():
        yield problems.invalid(f"{path}.messageExpression", dynamic, "must be non-empty if specified")
    elif dynamic:
        yield from _expression(f"{path}.messageExpression", dynamic, compiler.message)
    if message and not message.strip():
        yield problems.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield problems.invalid(f"{path}.message", message, "must not contain line breaks")
    yield from check.optional(
        f"{path}.reason", rule.get("reason"), ("Forbidden", "Invalid", "RequestEntityTooLarge")
    )


def _mutations(path: str, policy: JsonObject) -> Iterator[FieldError]:
    spec, compiler = section(policy, "spec"), _compiler(policy)
    yield from _policy_expressions("spec", spec, compiler)
    if not items(spec, "mutations"):
        yield problems.required("spec.mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(items(spec, "mutations")):
        yield from _mutation(f"spec.mutations[{index}]", mutation, compiler)


def _mutation(path: str, mutation: JsonObject, compiler: PolicyCompiler) -> Iterator[FieldError]:
    form = mutation.get("patchType", "")
    if form not in _PATCH_TYPES:
        yield from check.choice(f"{path}.patchType", form, tuple(_PATCH_TYPES))
        return
    field = _PATCH_TYPES[form]
    if mutation.get(field) is None:
        yield problems.required(f"{path}.{field}", f"must be specified when patchType is {form}")
    else:
        compiles = compiler.patch if form == "JSONPatch" else compiler.configuration
        expression = mutation[field].get("expression", "").strip()
        yield from _expression(f"{path}.{field}.expression", expression, compiles)
    for other in _PATCH_TYPES.values():
        if other != field and mutation.get(other) is not None:
            text = f"must not be specified when patchType is {form}"
            yield problems.invalid(f"{path}.{other}", f"{{{other}}}", text)


def _compiler(policy: JsonObject) -> PolicyCompiler:
    return PolicyCompiler(section(policy, "spec"))


# Webhooks


def _review_versions(path: str, versions: Sequence[str] | None) -> Iterator[FieldError]:
    found = list(versions or ())
    if not found:
        yield problems.required(path, f"must specify one of {', '.join(_REVIEWS)}")
        return
    for index, version in enumerate(found):
        if version in found[:index]:
            yield problems.invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            yield from check.named(f"{path}[{index}]", version, names.dns1035_label(version))
    if not set(found) & set(_REVIEWS):
        yield problems.invalid(path, found, f"must include at least one of {', '.join(_REVIEWS)}")


_WEBHOOK = rules(
    (
        "name",
        first(
            named(names.dns1123_subdomain, required=True),
            fits(
                lambda name: name.count(".") > 1,
                "should be a domain with at least three segments separated by dots",
            ),
        ),
    ),
    ("rules[]", _RULE),
    ("failurePolicy", one_of("Fail", "Ignore")),
    ("matchPolicy", one_of("Equivalent", "Exact")),
    ("sideEffects", given(one_of("None", "NoneOnDryRun"), "must specify one of None, NoneOnDryRun")),
    ("reinvocationPolicy?", one_of("IfNeeded", "Never")),
    ("timeoutSeconds?", between(1, 30, "the timeout value must be between 1 and 30 seconds")),
    ("namespaceSelector", check.label_selector),
    ("objectSelector", check.label_selector),
    ("clientConfig", lambda path, config: check_webhook_client(config or {}, path)),
    ("matchConditions", _conditions),
    ("admissionReviewVersions", _review_versions),
)
_WEBHOOKS = rules(("webhooks", unique("name", before=_WEBHOOK, empty=False)))
_WEBHOOK_DEFAULTS: tuple[tuple[str, object], ...] = (
    ("webhooks[].failurePolicy", "Fail"),
    ("webhooks[].matchPolicy", "Equivalent"),
    ("webhooks[].timeoutSeconds", 10),
    ("webhooks[].namespaceSelector", {}),
    ("webhooks[].objectSelector", {}),
    ("webhooks[].clientConfig?.service?.port", 443),
    ("webhooks[].rules[].scope", "*"),
)


# Policies and their bindings


def _group_version(path: str, version: str | None) -> Iterator[FieldError]:
    if not version:
        yield problems.required(path)
    elif version.count("/") > 1:
        yield problems.invalid(path, version, f"unexpected GroupVersion string: {version}")
    else:
        group, _, number = version.rpartition("/")
        yield from named(names.dns1123_subdomain)(path, group)
        yield from check.named(path, number, names.dns1035_label(number))


def _kind_name(path: str, name: str) -> Iterator[FieldError]:
    if reasons := names.dns1035_label(name.lower()):
        text = f"may have mixed case, but should otherwise match: {', '.join(reasons)}"
        yield problems.invalid(path, name, text)


_EXCLUSIVE = "name and selector are mutually exclusive"
_PARAM_REFERENCE = rules(
    ("name", named(names.path_segment)),
    ("{name}{selector}.name", absent(_EXCLUSIVE)),
    ("{name}{selector}.selector", absent(_EXCLUSIVE)),
    ("{!name}{!selector}", missing("one of name or selector must be specified")),
    ("selector", check.label_selector),
    ("parameterNotFoundAction", one_of("Deny", "Allow", required=True)),
)
_NO_RULE = missing("validations or auditAnnotations must contain at least one item")


def _policy_rows(matches: FieldRule) -> Rules:
    return rules(
        ("spec.failurePolicy", one_of("Fail", "Ignore")),
        ("spec.paramKind?.apiVersion", _group_version),
        ("spec.paramKind?.kind", first(required(), _kind_name)),
        ("spec.matchConstraints", given(matches)),
        ("spec.matchConstraints?.resourceRules", required()),
    )


_VALIDATING_POLICY = rules(
    ("", _policy_rows(_MATCH), _validations),
    ("spec{!validations}{!auditAnnotations}.validations", _NO_RULE),
    ("spec{!validations}{!auditAnnotations}.auditAnnotations", _NO_RULE),
)
_MUTATING_POLICY = rules(
    ("", _policy_rows(_mutating_match), _mutations),
    ("spec.reinvocationPolicy", one_of("IfNeeded", "Never", required=True)),
)


def _binding_rows(matches: FieldRule, policy_name: FieldRule) -> Rules:
    return rules(
        ("spec.policyName", policy_name),
        ("spec.paramRef?", _PARAM_REFERENCE),
        ("spec.matchResources?", matches),
    )


def _deny_or_warn(path: str, actions: Sequence[str] | None) -> Iterator[FieldError]:
    if {"Deny", "Warn"} <= set(actions or ()):
        text = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        yield problems.invalid(path, actions, text)


_VALIDATING_BINDING = rules(
    ("", _binding_rows(_MATCH, named(names.dns1123_subdomain))),
    ("spec.validationActions", each_once(one_of("Audit", "Deny", "Warn")), _deny_or_warn),
    # Declared.
    ("spec.policyName", required()),
    ("spec.validationActions", required()),
)
_MUTATING_BINDING = _binding_rows(_mutating_match, named(names.dns1123_subdomain, required=True))


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


def _strategy(checks: Rules, filled: Iterable[tuple[str, object]], *cells: Cell) -> Strategy:
    return Strategy(
        default=defaults(*filled),
        **validated(checks),
        has_generation=True,
        allow_unconditional_update=False,
        **printed(NAME, *cells, AGE),
    )


def _policy(checks: Rules, column: str) -> Strategy:
    counted = cell(column, count(f"spec.{column.lower()}"), kind="integer")
    filled = [("spec.failurePolicy", "Fail"), *_match_defaults("spec.matchConstraints?")]
    return _strategy(checks, filled, counted, cell("ParamKind", _param_kind))


def _binding(checks: Rules) -> Strategy:
    cells = cell("PolicyName", "spec.policyName"), cell("ParamRef", _param_reference)
    return _strategy(checks, _match_defaults("spec?.matchResources?"), *cells)


_COUNT = cell("Webhooks", count("webhooks"), kind="integer")
_REINVOKED = ("webhooks[].reinvocationPolicy", "Never")

STRATEGIES = {
    (ADMISSION, "ValidatingWebhookConfiguration"): _strategy(_WEBHOOKS, _WEBHOOK_DEFAULTS, _COUNT),
    (ADMISSION, "MutatingWebhookConfiguration"): _strategy(
        _WEBHOOKS, (*_WEBHOOK_DEFAULTS, _REINVOKED), _COUNT
    ),
    (ADMISSION, "ValidatingAdmissionPolicy"): _policy(_VALIDATING_POLICY, "Validations"),
    (ADMISSION, "MutatingAdmissionPolicy"): _policy(_MUTATING_POLICY, "Mutations"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"): _binding(_VALIDATING_BINDING),
    (ADMISSION, "MutatingAdmissionPolicyBinding"): _binding(_MUTATING_BINDING),
}
