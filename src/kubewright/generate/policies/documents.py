"""Render translated functions as ValidatingAdmissionPolicies and MutatingAdmissionPolicies, with their bindings.

Each expression is compiled twice: as the API server does, with an object of any type, and with the types of the kind. The
second compilation finds errors that the API server would find only at evaluation, and estimates the cost.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import msgspec

from kubewright.api import JsonObject
from kubewright.api.patches.json import pointer
from kubewright.generate.names import Names
from kubewright.generate.policies.functions import DefaultedField, PolicyFinding, TranslatedFunction
from kubewright.generate.policies.values import (
    JsonPath,
    Untranslatable,
    bare,
    conjunction,
    disjunction,
    literal,
    negation,
)
from kubewright.generate.rbac import named
from kubewright.schema import cel
from kubewright.schema.structural import structural
from kubewright.webhook import Admission, WebhookEndpoint
from kubewright.webhook.configurations import GROUP, match_conditions, matched

# Loaded only for policies: importing the embedded server takes longer than most commands.
EXPRESSIONS = "kubewright.devserver.expressions"
API_VERSION = f"{GROUP}/v1"
TERMINATING = "not-only-metadata-of-a-terminating-object"
"""The name of the match condition that exempts removals of finalizers, as webhooks do."""
_TEXT: JsonObject = {"type": "string"}
_SHORT: JsonObject = {"type": "string", "maxLength": 253}
_NUMBER: JsonObject = {"type": "integer"}
_TIME: JsonObject = {"type": "string", "format": "date-time"}
_TEXTS: JsonObject = {"type": "object", "additionalProperties": _TEXT}
_METADATA: JsonObject = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("name", "namespace", "generateName", "uid", "resourceVersion"), _SHORT),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _NUMBER),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
        "finalizers": {"type": "array", "items": _TEXT},
    },
}
"""The schema of the metadata fields that expressions may read; the length of labels and lists is not limited."""


@dataclass(frozen=True, slots=True)
class PolicyExpression:
    """An expression of a policy, and the type that it must have."""

    text: str
    type: cel.Type


def policies(endpoint: WebhookEndpoint, translated: TranslatedFunction, names: Names) -> list[JsonObject]:
    """Render the policies of a webhook, each with its binding; raise Untranslatable if an expression does not compile."""
    webhook = endpoint.webhook
    if webhook.mutates:
        text = patch(translated.changes)
        _check(webhook, [PolicyExpression(text, cel.list_of(cel.JSON_PATCH.type))])
        mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
        spec = {"mutations": [mutation], "reinvocationPolicy": webhook.reinvocation}
        return _policy(
            "MutatingAdmissionPolicy", f"{names.operator}-{endpoint.name}", webhook, spec, {}, names
        )
    documents: list[JsonObject] = []
    for prefix, action, chosen in (
        ("", "Deny", [each for each in translated.findings if each.kind != "Warning"]),
        ("warnings-", "Warn", [each for each in translated.findings if each.kind == "Warning"]),
    ):
        if chosen:
            rules = [_validation(each) for each in chosen]
            _check(webhook, [each for rule in rules for each in _expressions(rule)])
            name = f"{names.operator}-{prefix}{endpoint.name}"
            binding: JsonObject = {"validationActions": [action]}
            documents += _policy(
                "ValidatingAdmissionPolicy", name, webhook, {"validations": rules}, binding, names
            )
    return documents


def _policy(
    kind: str, name: str, webhook: Admission[Any], spec: JsonObject, binding: JsonObject, names: Names
) -> list[JsonObject]:
    match = matched(webhook, names.namespace)
    constraints: JsonObject = {
        "matchPolicy": webhook.match_policy,
        "resourceRules": match.pop("rules"),
        **match,
    }
    conditions = [*match_conditions(webhook), *_terminating(webhook)]
    policy: JsonObject = {
        "failurePolicy": webhook.failure_policy,
        "matchConstraints": constraints,
        **({"matchConditions": conditions} if conditions else {}),
        **spec,
    }
    return [
        {**named(API_VERSION, kind, name, names), "spec": policy},
        {**named(API_VERSION, f"{kind}Binding", name, names), "spec": {"policyName": name, **binding}},
    ]


def _terminating(webhook: Admission[Any]) -> list[JsonObject]:
    """Render the match condition that exempts updates of an object that is being deleted."""
    if webhook.terminating or "update" not in webhook.on or webhook.subresources:
        return []
    fields = [name for name in webhook.kind.__struct_encode_fields__ if name != "metadata"]
    same = [f"object.?{name} == oldObject.?{name}" for name in fields]
    only_metadata = conjunction(
        ["request.operation == 'UPDATE'", "has(oldObject.metadata.deletionTimestamp)", *same]
    )
    return [{"name": TERMINATING, "expression": negation(only_metadata)}]


def _validation(finding: PolicyFinding) -> JsonObject:
    rule: JsonObject = {"expression": bare(negation(finding.when))}
    if finding.constant is not None:
        rule["message"] = finding.constant
    else:
        rule["messageExpression"] = finding.message
    return {**rule, "reason": "Forbidden" if finding.kind == "Forbidden" else "Invalid"}


def _expressions(rule: JsonObject) -> Iterable[PolicyExpression]:
    yield PolicyExpression(rule["expression"], cel.BOOL)
    if "messageExpression" in rule:
        yield PolicyExpression(rule["messageExpression"], cel.STRING)


def patch(changes: Sequence[DefaultedField]) -> str:
    """Return the CEL expression of a JSON patch that makes these changes, in order."""
    parents: dict[JsonPath, tuple[str, list[str]]] = {}
    for change in changes:
        for path, there in change.missing_parents:
            parents.setdefault(path, (there, []))[1].append(change.when)
    parts = [
        _operation(conjunction([disjunction(when), negation(there)]), path, "{}")
        for path, (there, when) in parents.items()
    ]
    parts += [_operation(change.when, change.path, change.value) for change in changes]
    return " + ".join(parts) if len(parts) > 1 else bare(parts[0])


def _operation(when: str, path: JsonPath, value: str) -> str:
    made = f"[JSONPatch{{op: 'add', path: {literal(pointer(*path[1:]))}, value: {value}}}]"
    return f"({when} ? {made} : [])" if when != "true" else made


def _check(webhook: Admission[Any], expressions: Sequence[PolicyExpression]) -> None:
    """Compile expressions without and with the types of the kind; raise Untranslatable if one is too expensive."""
    expressions_of: Any = import_module(EXPRESSIONS)
    plain = expressions_of.environment(mutating=webhook.mutates)
    typed = expressions_of.environment(mutating=webhook.mutates, kind=_declared(webhook))
    total = 0
    for each in expressions:
        try:
            expressions_of.compile_in(plain, each.text, each.type)
            cost: int = expressions_of.compile_in(typed, each.text, each.type).greatest_cost
        except expressions_of.ExpressionError as error:
            raise Untranslatable(
                f"the expression `{each.text}` is invalid: {str(error).partition(chr(10))[0]}"
            ) from None
        if each.type == cel.STRING:
            # A message expression is evaluated only for a write that is denied anyway.
            continue
        if cost > cel.CALL_LIMIT:
            raise Untranslatable(_too_expensive(cost, cel.CALL_LIMIT))
        total += cost
    if total > expressions_of.POLICY_BUDGET:
        raise Untranslatable(_too_expensive(total, expressions_of.POLICY_BUDGET))


def _too_expensive(cost: int, limit: int) -> str:
    return (
        f"the API server would stop its evaluation, which may cost {cost} of {limit} units: "
        "give lists and dicts a size, kw.Field(max_items=...) or kw.Field(max_properties=...), and texts a max_length"
    )


def _declared(webhook: Admission[Any]) -> cel.DeclaredType:
    kind = cast("type[msgspec.Struct]", webhook.kind)
    schema = structural(kind)
    properties: Mapping[str, Any] = schema["properties"]
    declared = cel.declare(
        {**schema, "properties": {**properties, "metadata": _METADATA}}, name=kind.__name__
    )
    assert declared is not None
    _spell_out(declared)
    return declared


def _spell_out(declared: cel.DeclaredType) -> None:
    """Replace escaped field names by the names in JSON: fields of an object of any type are not escaped."""
    for escaped, name in list(declared.names.items()):
        if escaped != name:
            declared.fields[name] = declared.fields.pop(escaped)
            declared.names[name] = declared.names.pop(escaped)
    for below in (*declared.fields.values(), declared.element):
        if below is not None:
            _spell_out(below)
