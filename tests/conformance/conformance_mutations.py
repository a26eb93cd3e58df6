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


DEFINITION = {
    "metadata": {"name": "widgets.mutations.ex.io"},
    "spec": {
        "group": "mutations.ex.io",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer"},
                                    "color": {"type": "string", "default": "red"},
                                    "parts": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string"},
                                                "count": {"type": "integer"},
                                            },
                                        },
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                    },
                                    "tags": {"type": "array", "items": {"type": "string"}},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
