"""What hooks into the server itself: webhooks and admission policies."""

from collections.abc import Iterator, Sequence
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.admission_checks import (
    check_conditions,
    check_match,
    check_param_kind,
    check_param_reference,
    check_policy,
    check_rule,
)
from kubewright.devserver.builtin.cells import AGE, NAME, integer, object_age, selector_text
from kubewright.devserver.builtin.mutation_checks import check_mutating_match, check_mutating_policy
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column, Strategy
from kubewright.schema import check_webhook_client

ADMISSION = "admissionregistration.k8s.io"
_REVIEWS = ("v1", "v1beta1")
_SECONDS = range(1, 31)


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
        elif not set(reviews) & set(_REVIEWS):
            text = f"must include at least one of {', '.join(_REVIEWS)}"
            errors.append(problems.invalid(f"{path}.admissionReviewVersions", reviews, text))
        errors += _check_reviews(reviews, f"{path}.admissionReviewVersions")
        if hook.get("name") in seen:
            errors.append(problems.duplicate(f"{path}.name", hook["name"]))
        seen.add(hook.get("name", ""))
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
    errors += check_conditions(items(hook, "matchConditions"), f"{path}.matchConditions")
    return [*errors, *check_webhook_client(section(hook, "clientConfig"), f"{path}.clientConfig")]


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
    judging = obj["kind"] == "ValidatingAdmissionPolicy"
    if (parameters := spec.get("paramKind")) is not None:
        errors += check_param_kind(parameters, "spec.paramKind")
    if spec.get("matchConstraints") is None:
        errors.append(problems.required("spec.matchConstraints"))
    else:
        find_fault = check_match if judging else check_mutating_match
        errors += find_fault(spec["matchConstraints"], "spec.matchConstraints")
        if not spec["matchConstraints"].get("resourceRules"):
            errors.append(problems.required("spec.matchConstraints.resourceRules"))
    if judging:
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
    name, judging = spec.get("policyName", ""), obj["kind"] == "ValidatingAdmissionPolicyBinding"
    errors: list[FieldError] = [] if name else [problems.required("spec.policyName")]
    if name:
        errors += check.named("spec.policyName", name, names.dns1123_subdomain(name))
    if judging and not spec.get("validationActions"):
        text = "at least one validation action is required"
        errors.append(problems.required("spec.validationActions", text))
    if spec.get("paramRef") is not None:
        errors += check_param_reference(spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        find_fault = check_match if judging else check_mutating_match
        errors += find_fault(spec["matchResources"], "spec.matchResources")
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


def _count_row(obj: JsonObject, now: float) -> list[Any]:
    return [obj["metadata"]["name"], len(items(obj, "webhooks")), object_age(obj, now)]


def _policy_row(obj: JsonObject, now: float) -> list[Any]:
    spec: JsonObject = section(obj, "spec")
    kind: JsonObject | None = spec.get("paramKind")
    shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else "<unset>"
    rules = spec.get("validations") if obj["kind"].startswith("Validating") else spec.get("mutations")
    return [obj["metadata"]["name"], len(rules or ()), shown, object_age(obj, now)]


def _binding_row(obj: JsonObject, now: float) -> list[Any]:
    spec: JsonObject = section(obj, "spec")
    found: JsonObject | None = spec.get("paramRef")
    shown = "<unset>"
    if found and found.get("name"):
        shown = f"{found.get('namespace') or '*'}/{found['name']}"
    elif found and found.get("selector") is not None:
        shown = selector_text(found["selector"])
    return [obj["metadata"]["name"], spec.get("policyName", ""), shown, object_age(obj, now)]


def _webhooks() -> Strategy:
    return Strategy(
        default=_default_webhooks,
        validate=_validate_webhooks,
        validate_update=lambda new, old: _validate_webhooks(new),
        has_generation=True,
        allow_unconditional_update=False,
        columns=(NAME, integer("Webhooks"), AGE),
        row=_count_row,
    )


def _policy(column: str) -> Strategy:
    return Strategy(
        default=_default_policy,
        validate=_validate_policy,
        validate_update=lambda new, old: _validate_policy(new),
        has_generation=True,
        allow_unconditional_update=False,
        columns=(NAME, integer(column), Column("ParamKind"), AGE),
        row=_policy_row,
    )


def _binding() -> Strategy:
    return Strategy(
        default=_default_binding,
        validate=_validate_binding,
        validate_update=lambda new, old: _validate_binding(new),
        has_generation=True,
        allow_unconditional_update=False,
        columns=(NAME, Column("PolicyName"), Column("ParamRef"), AGE),
        row=_binding_row,
    )


STRATEGIES = {
    (ADMISSION, "ValidatingWebhookConfiguration"): _webhooks(),
    (ADMISSION, "MutatingWebhookConfiguration"): _webhooks(),
    (ADMISSION, "ValidatingAdmissionPolicy"): _policy("Validations"),
    (ADMISSION, "MutatingAdmissionPolicy"): _policy("Mutations"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"): _binding(),
    (ADMISSION, "MutatingAdmissionPolicyBinding"): _binding(),
}
