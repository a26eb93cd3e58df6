"""Mutating admission policies as scenarios write them."""

from typing import Any

R = "/apis/admissionregistration.k8s.io/v1"
LABEL = "Object{metadata: Object.metadata{labels: {'seen': 'yes'}}}"


def rule(*resources: str, group: str = "", version: str = "v1") -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": list(resources) or ["configmaps"],
    }


def apply(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patch(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policy(name: str, *mutations: Any, rules: Any = None, **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "matchConstraints": {"resourceRules": rules or [rule()]},
        "mutations": list(mutations),
        "reinvocationPolicy": "Never",
        **more,
    }
    return {"metadata": {"name": f"mutations-{name}"}, "spec": spec}
