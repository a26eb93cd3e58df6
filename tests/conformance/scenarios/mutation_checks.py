"""Mutating admission policies that are badly written, and how they are refused."""

from typing import Any

from conformance_exchange import Step
from conformance_mutations import LABEL, R, apply, patch, policy, rule


def bad(name: str, *mutations: Any, **more: Any) -> Step:
    body = policy(f"bad-{name}", *mutations, **more)
    return Step(f"bad-{name}", "POST", f"{R}/mutatingadmissionpolicies", body)


def bad_binding(name: str, **more: Any) -> Step:
    body = {
        "metadata": {"name": f"mutations-bad-{name}"},
        "spec": {"policyName": "mutations-apply", **more},
    }
    return Step(f"bad-binding-{name}", "POST", f"{R}/mutatingadmissionpolicybindings", body)


STEPS = [
    bad("empty"),
    bad("syntax", apply("Object{")),
    bad("type", apply("'text'")),
    bad("patch-type", patch("JSONPatch{op: 'add'}")),
    bad("patch-list", patch("['a']")),
    bad("patch-field", patch("[JSONPatch{nonsense: 'add'}]")),
    bad("blank", apply("  ")),
    bad("blank-patch", patch("")),
    bad("kind", {"patchType": "Merge"}),
    bad("no-kind", {"applyConfiguration": {"expression": LABEL}}),
    bad("no-apply", {"patchType": "ApplyConfiguration"}),
    bad("no-patch", {"patchType": "JSONPatch"}),
    bad("both", {**apply(LABEL), "jsonPatch": {"expression": "[]"}}),
    bad("both-patch", {**patch("[JSONPatch{op: 'add'}]"), "applyConfiguration": {"expression": LABEL}}),
    bad("variable-name", apply(LABEL), variables=[{"name": "not ok", "expression": "1"}]),
    bad("variable-literal", apply(LABEL), variables=[{"name": "v", "expression": "Object{a: 1}"}]),
    bad(
        "condition-literal",
        apply(LABEL),
        matchConditions=[{"name": "c", "expression": "Object{} == Object{}"}],
    ),
    bad("undeclared", apply("Object{data: variables.none}")),
    bad("params", apply("Object{data: params.data}")),
    bad("reinvocation", apply(LABEL), reinvocationPolicy="Sometimes"),
    bad("no-reinvocation", apply(LABEL), reinvocationPolicy=""),
    bad("no-rules", apply(LABEL), matchConstraints={}),
    bad("no-constraints", apply(LABEL), matchConstraints=None),
    bad("delete", apply(LABEL), rules=[{**rule(), "operations": ["DELETE"]}]),
    bad("every-operation", apply(LABEL), rules=[{**rule(), "operations": ["*"]}]),
    bad("failure-policy", apply(LABEL), failurePolicy="Maybe"),
    bad_binding("name", policyName=""),
    bad_binding("odd-name", policyName="Not OK"),
    bad_binding("param", paramRef={"name": "x"}),
    bad_binding("delete", matchResources={"resourceRules": [{**rule(), "operations": ["DELETE"]}]}),
]
