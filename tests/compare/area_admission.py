"""Admission: webhooks, validating and mutating policies with drawn rules, match conditions and CEL."""

import random
from typing import Any

from compare_case import APPLY_PATCH, MERGE_PATCH, CaseBuilder, query
from compare_cel import draw_expression
from conformance_hooks import hook_server

R = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/{ns}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
_NAMESPACE = {"matchLabels": {"run": "{run}"}}
_VALIDATING = (
    "deny",
    "deny-reason",
    "deny-teapot",
    "deny-silent",
    "warn",
    "allow",
    "failing",
    "teapot",
    "uid",
    "deny-fields",
    "echo",
)
_MUTATING = (
    "label",
    "a",
    "b",
    "missing-path",
    "test-fails",
    "invalid",
    "unknown-field",
    "wrong-type",
    "no-operations",
    "replicas",
    "deny",
)
_PARTS = {
    "bool": (
        "has(object.data)",
        "has(object.metadata.labels)",
        "request.dryRun",
        "oldObject == null",
        "object == null",
        "'a' in object.metadata.labels",
    ),
    "int": ("size(object.metadata.name)", "size(object.metadata.labels)"),
    "string": (
        *(
            "object.metadata.name",
            "request.operation",
            "request.name",
            "request.namespace",
            "request.userInfo.username",
        ),
        *(
            "request.kind.kind",
            "request.resource.resource",
            "object.metadata.labels['a']",
            "object.metadata.?labels['a'].orValue('')",
        ),
        *("namespaceObject.metadata.name", "object.data.k", "oldObject.metadata.name", "request.subResource"),
    ),
    "list": ("request.userInfo.groups", "object.metadata.?finalizers.orValue([])"),
    "map": ("object.metadata.labels", "object.data", "object.metadata.?annotations.orValue({})"),
}
_ACTIONS = (["Deny"], ["Deny"], ["Warn"], ["Audit"], ["Deny", "Audit"], ["Warn", "Audit"])
_MUTATIONS = (
    "Object{metadata: Object.metadata{labels: {'m': %s}}}",
    "Object{metadata: Object.metadata{annotations: {'m': %s}}}",
    "Object{data: {'m': %s}}",
)
_REQUESTS = 9


def admission(case: CaseBuilder) -> None:
    """Configure webhooks or policies for the run's namespace, wait until they are in effect, and send writes."""
    chance = case.random
    case.fixture = hook_server
    case.namespace(labels={"run": "{run}", "team": chance.choice(("x", "y"))})
    kinds = chance.choice(
        (
            ("validating",),
            ("mutating",),
            ("policy",),
            ("policy",),
            ("mutation",),
            ("mutation",),
            ("validating", "mutating"),
            ("policy", "mutating"),
        )
    )
    for kind in kinds:
        {"validating": _webhooks, "mutating": _webhooks, "policy": _policies, "mutation": _mutations}[kind](
            case, kind
        )
    for _ in range(_REQUESTS):
        _write(case)


def _rule(chance: random.Random) -> dict[str, Any]:
    """Draw a rule; it matches no cluster-scoped objects, which belong to other cases too."""
    return {
        "operations": chance.choice(
            (["*"], ["CREATE"], ["CREATE", "UPDATE"], ["UPDATE", "DELETE"], ["DELETE"])
        ),
        "apiGroups": chance.choice(([""], ["*"], ["apps"], ["", "apps"])),
        "apiVersions": chance.choice((["v1"], ["*"], ["v1", "v1beta1"])),
        "resources": chance.choice(
            (
                ["configmaps"],
                ["*"],
                ["*/*"],
                ["deployments", "deployments/scale"],
                ["*/scale"],
                ["configmaps", "deployments"],
            )
        ),
        "scope": "Namespaced",
    }


def _conditions(chance: random.Random) -> list[Any]:
    return [
        {"name": f"c{index}", "expression": draw_expression(chance, _PARTS)}
        for index in range(chance.choice((1, 1, 2)))
    ]


def _webhooks(case: CaseBuilder, kind: str) -> None:
    chance = case.random
    paths = chance.sample(_VALIDATING if kind == "validating" else _MUTATING, chance.choice((1, 2)))
    hooks = [_webhook(chance, kind, path) for path in paths]
    marker = _webhook(chance, kind, "deny") | {
        "name": "marker.ex.io",
        "rules": [
            {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        ],
        "objectSelector": {"matchLabels": {"marker": kind}},
        "failurePolicy": "Fail",
    }
    marker.pop("matchConditions", None)
    path = f"{R}/{kind}webhookconfigurations"
    # The marker comes first: another webhook may deny its object.
    body = {"metadata": {"name": f"{{run}}-{kind}"}, "webhooks": [marker, *hooks]}
    case.clean(f"{path}/{{run}}-{kind}")
    case.send("POST", path, body)
    _wait(case, kind, f"{kind}webhookconfigurations/{{run}}-{kind}")


def _webhook(chance: random.Random, kind: str, path: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": f"{path}.ex.io",
        "clientConfig": {"url": f"https://{{hook}}/{path}", "caBundle": "{ca}"},
        "rules": [_rule(chance) for _ in range(chance.choice((1, 1, 2)))],
        "namespaceSelector": _NAMESPACE,
        "sideEffects": chance.choice(("None", "None", "NoneOnDryRun")),
        "admissionReviewVersions": ["v1"],
    }
    if chance.random() < 0.4:
        made["failurePolicy"] = chance.choice(("Fail", "Ignore"))
    if chance.random() < 0.4:
        made["objectSelector"] = {"matchLabels": {"a": "b"}}
    if chance.random() < 0.4:
        made["matchConditions"] = _conditions(chance)
    if chance.random() < 0.3:
        made["matchPolicy"] = chance.choice(("Exact", "Equivalent"))
    if kind == "mutating" and chance.random() < 0.4:
        made["reinvocationPolicy"] = chance.choice(("Never", "IfNeeded"))
    return made


def _constraints(chance: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {
        "resourceRules": [_rule(chance) for _ in range(chance.choice((1, 1, 2)))],
        "namespaceSelector": _NAMESPACE,
    }
    if chance.random() < 0.2:
        made["objectSelector"] = {"matchLabels": {"a": "b"}}
    if chance.random() < 0.15:
        made["excludeResourceRules"] = [_rule(chance)]
    return made


def _policies(case: CaseBuilder, kind: str) -> None:
    chance = case.random
    validations: list[Any] = []
    for _ in range(chance.choice((1, 1, 2))):
        made: dict[str, Any] = {"expression": draw_expression(chance, _PARTS)}
        if chance.random() < 0.3:
            made["message"] = chance.choice(("no", "not this", "a\nb", ""))
        if chance.random() < 0.3:
            made["messageExpression"] = draw_expression(chance, _PARTS, "string")
        if chance.random() < 0.3:
            made["reason"] = chance.choice(
                ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized", "Nope")
            )
        validations.append(made)
    spec: dict[str, Any] = {"matchConstraints": _constraints(chance), "validations": validations}
    if chance.random() < 0.4:
        spec["failurePolicy"] = chance.choice(("Fail", "Ignore"))
    if chance.random() < 0.3:
        spec["matchConditions"] = _conditions(chance)
    if chance.random() < 0.4:
        spec["variables"] = [{"name": "v", "expression": draw_expression(chance, _PARTS, "string")}]
        validations[0]["expression"] = f"variables.v == {draw_expression(chance, _PARTS, 'string')}"
    _policy(case, "validatingadmissionpolic", spec, {"validationActions": chance.choice(_ACTIONS)}, "policy")


def _mutations(case: CaseBuilder, kind: str) -> None:
    chance = case.random
    mutations: list[Any] = []
    for _ in range(chance.choice((1, 1, 2))):
        text = draw_expression(chance, _PARTS, "string")
        if chance.random() < 0.6:
            expression = chance.choice(_MUTATIONS) % text
            mutations.append(
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
            )
        else:
            path = chance.choice(("/metadata/labels", "/data", "/metadata/labels/x", "/nope/x"))
            operation = chance.choice(("add", "replace", "test", "remove"))
            value = f"{{'m': {text}}}" if path in ("/metadata/labels", "/data") else text
            tail = "" if operation == "remove" else f", value: {value}"
            expression = f'[JSONPatch{{op: "{operation}", path: "{path}"{tail}}}]'
            mutations.append({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
    spec: dict[str, Any] = {
        "matchConstraints": _constraints(chance),
        "mutations": mutations,
        "reinvocationPolicy": chance.choice(("Never", "IfNeeded")),
    }
    for rule in spec["matchConstraints"]["resourceRules"]:
        rule["operations"] = chance.choice((["CREATE"], ["CREATE", "UPDATE"], ["UPDATE"]))
    if chance.random() < 0.4:
        spec["failurePolicy"] = chance.choice(("Fail", "Ignore"))
    if chance.random() < 0.3:
        spec["matchConditions"] = _conditions(chance)
    _policy(case, "mutatingadmissionpolic", spec, {}, "mutation")


def _policy(case: CaseBuilder, stem: str, spec: dict[str, Any], bound: dict[str, Any], marker: str) -> None:
    """Create a policy, its binding, and then the same of a marker that shows when they are in effect."""
    marks: dict[str, Any] = {
        "matchConstraints": {
            "resourceRules": [
                {
                    "operations": ["CREATE"],
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "resources": ["configmaps"],
                }
            ],
            "namespaceSelector": _NAMESPACE,
            "objectSelector": {"matchLabels": {"marker": marker}},
        },
        "failurePolicy": "Fail",
    }
    if marker == "policy":
        marks["validations"] = [{"expression": "false", "message": "nope"}]
        bound_marker: dict[str, Any] = {"validationActions": ["Deny"]}
    else:
        fails = {
            "patchType": "JSONPatch",
            "jsonPatch": {"expression": '[JSONPatch{op: "test", path: "/kind", value: "nope"}]'},
        }
        marks |= {"mutations": [fails], "reinvocationPolicy": "Never"}
        bound_marker = {}
    for name, policy, binding in (("p", spec, bound), ("z-marker", marks, bound_marker)):
        case.clean(f"{R}/{stem}ies/{{run}}-{name}")
        case.clean(f"{R}/{stem}ybindings/{{run}}-{name}")
        send = case.send if name == "p" else case.prepare
        send("POST", f"{R}/{stem}ies", {"metadata": {"name": f"{{run}}-{name}"}, "spec": policy})
        grant = {"policyName": f"{{run}}-{name}", **binding}
        case.prepare("POST", f"{R}/{stem}ybindings", {"metadata": {"name": f"{{run}}-{name}"}, "spec": grant})
    _wait(case, marker, f"{stem}ies/{{run}}-z-marker")


def _wait(case: CaseBuilder, marker: str, created: str) -> None:
    """Wait until an object with the marker is denied; if the configuration was not accepted, its name is invalid."""
    case.prepare("GET", f"{R}/{created}", save={f"found-{marker}": "metadata.name"})
    body = {"metadata": {"name": f"{{found-{marker}}}", "labels": {"marker": marker}}}
    case.prepare("POST", query(CONFIG_MAPS, dryRun="All"), body, until=_is_denied)


def _is_denied(status: int, body: Any) -> bool:
    return status >= 400


def _write(case: CaseBuilder) -> None:
    chance = case.random
    name = chance.choice(("a", "b"))
    metadata: dict[str, Any] = {"name": name}
    if chance.random() < 0.7:
        metadata["labels"] = {key: chance.choice("ab") for key in chance.sample("abc", 2)}
    deployment = chance.random() < 0.3
    path = DEPLOYMENTS if deployment else CONFIG_MAPS
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body: dict[str, Any] = {"metadata": metadata}
    if deployment:
        body["spec"] = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    elif chance.random() < 0.7:
        body["data"] = {"k": chance.choice(("a", "b", ""))}
    applied = {
        "apiVersion": "apps/v1" if deployment else "v1",
        "kind": "Deployment" if deployment else "ConfigMap",
        **body,
    }
    dry = "All" if chance.random() < 0.2 else ""
    way = chance.random()
    if way < 0.45:
        case.send("POST", query(path, dryRun=dry), body)
    elif way < 0.6:
        case.send("PUT", query(f"{path}/{name}", dryRun=dry), body)
    elif way < 0.7:
        case.send(
            "PATCH", query(f"{path}/{name}", dryRun=dry), {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH
        )
    elif way < 0.8:
        case.send("PATCH", query(f"{path}/{name}", fieldManager="one", dryRun=dry), applied, APPLY_PATCH)
    elif way < 0.88 and deployment:
        case.send("PATCH", query(f"{path}/{name}/scale", dryRun=dry), {"spec": {"replicas": 2}}, MERGE_PATCH)
    elif way < 0.95:
        case.send("DELETE", query(f"{path}/{name}", dryRun=dry))
    else:
        case.send("DELETE", query(path, dryRun=dry))
