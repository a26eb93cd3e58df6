"""Admission policies: validating and mutating ones with parameters, variables, messages, annotations and bindings."""

import random
from typing import Any

from compare_admission import (
    CONFIG_MAPS,
    MISTAKES,
    OWN_NAMESPACE,
    PARTS,
    R,
    create_objects,
    draw_conditions,
    draw_labels,
    draw_rule,
    draw_write,
)
from compare_case import NAMESPACES, CaseBuilder, query
from compare_cel import draw_expression

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_REQUESTS = 16
_MARKER = "marker-is-in-effect"
_ACTIONS = (
    ["Deny"],
    ["Deny"],
    ["Warn"],
    ["Audit"],
    ["Deny", "Audit"],
    ["Warn", "Audit"],
    ["Deny", "Warn"],
    [],
)
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MUTATIONS = (
    "Object{metadata: Object.metadata{labels: {'m': %s}}}",
    "Object{metadata: Object.metadata{annotations: {'m': %s}}}",
    "Object{data: {'m': %s}}",
)
_PARAM_PARTS = {
    "bool": ("params == null", "has(params.data)", "'k' in params.data", "params.data.k == object.data.k"),
    "int": ("size(params.data)", "int(params.data.n)"),
    "string": ("params.data.k", "params.data.n", "params.metadata.labels['p']", "params.kind"),
    "map": ("params.data", "params.metadata.labels"),
    "list": ("params.data.map(key, key)",),
}
_CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
_SETTING = {"apiVersion": "{run}.ex.io/v1", "kind": "Setting"}
_UNKNOWN = {"apiVersion": "none.ex.io/v1", "kind": "None"}


def policies(case: CaseBuilder) -> None:
    """Create policies with bindings and parameters, wait until they are in effect, and send writes."""
    chance = case.random
    case.namespace(labels={"run": "{run}", "team": chance.choice(("x", "y"))})
    create_objects(case)
    mutating = chance.choice(((False,), (False,), (True,), (True,), (False, True)))
    # Parameters come first: the policies may deny them.
    kind = _param_kind(case) if chance.random() < 0.6 else None
    count = chance.choice((1, 3))
    for each in mutating:
        for index in range(count):
            _policy(case, kind, index, mutating=each, alone=count == 1)
        _wait_until_in_effect(case, kind, mutating=each)
    for _ in range(_REQUESTS + 4 * count):
        draw_write(case, count)


def _policy(
    case: CaseBuilder, kind: dict[str, str] | None, index: int, *, mutating: bool, alone: bool
) -> None:
    """Create a policy and its bindings; of several policies, only one applies to an object, as they have no order."""
    chance = case.random
    if kind == _CONFIG_MAP:
        _keep_informer(case, mutating=mutating)
    parts = {name: (*own, *_PARAM_PARTS[name]) for name, own in PARTS.items()} if kind else PARTS
    spec: dict[str, Any] = {"matchConstraints": _constraints(chance)}
    if kind is not None:
        spec["paramKind"] = kind
    if chance.random() < 0.4:
        spec["failurePolicy"] = chance.choice(("Fail", "Ignore"))
    if chance.random() < 0.3:
        spec["matchConditions"] = draw_conditions(chance)
    if chance.random() < 0.4:
        spec["variables"], parts = _variables(chance, parts)
    if mutating:
        spec |= _mutations(chance, parts)
        for rule in spec["matchConstraints"]["resourceRules"]:
            rule["operations"] = chance.choice((["CREATE"], ["CREATE", "UPDATE"], ["UPDATE"]))
    else:
        spec |= _validations(chance, parts)
    if not alone:
        selector = dict(spec["matchConstraints"].get("objectSelector", {}))
        labels = {**selector.get("matchLabels", {}), "policy": str(index)}
        spec["matchConstraints"]["objectSelector"] = {**selector, "matchLabels": labels}
    stem, name = _stem(mutating=mutating), f"{{run}}-p{index}"
    case.clean(f"{R}/{stem}ies/{name}")
    case.send("POST", f"{R}/{stem}ies", {"metadata": {"name": name}, "spec": spec})
    for binding in ("a", "b")[: chance.choice((0, 1, 1, 1, 1, 1, 2))]:
        bound = _binding(chance, kind, mutating=mutating, first=binding == "a")
        case.clean(f"{R}/{stem}ybindings/{name}-{binding}")
        body = {"metadata": {"name": f"{name}-{binding}"}, "spec": {"policyName": name, **bound}}
        case.send("POST", f"{R}/{stem}ybindings", body)


def _stem(*, mutating: bool) -> str:
    return f"{'mutating' if mutating else 'validating'}admissionpolic"


def _constraints(chance: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {
        "resourceRules": [draw_rule(chance) for _ in range(chance.choice((1, 1, 2)))],
        "namespaceSelector": OWN_NAMESPACE,
    }
    if chance.random() < 0.2:
        made["objectSelector"] = draw_labels(chance)
    if chance.random() < 0.15:
        made["excludeResourceRules"] = [draw_rule(chance)]
    if chance.random() < 0.2:
        made["matchPolicy"] = chance.choice(("Exact", "Equivalent"))
    for rule in made["resourceRules"]:
        if chance.random() < 0.1:
            rule["resourceNames"] = ["a"]
    return made


def _variables(chance: random.Random, parts: Any) -> tuple[list[Any], Any]:
    """Draw variables, each of which may use those before it, and the parts of expressions that may use them."""
    made: list[Any] = []
    for name in ("v", "w", "x")[: chance.choice((1, 2, 3))]:
        kind = chance.choice(("string", "string", "bool", "int", "list"))
        made.append({"name": name, "expression": draw_expression(chance, parts, kind, MISTAKES)})
        use = f"variables.{name}"
        parts = {**parts, kind: (*parts.get(kind, ()), *(use,) * 4)}
    return made, parts


def _validations(chance: random.Random, parts: Any) -> dict[str, Any]:
    validations: list[Any] = []
    for _ in range(chance.choice((1, 1, 2))):
        made: dict[str, Any] = {"expression": draw_expression(chance, parts, mistakes=MISTAKES)}
        if chance.random() < 0.3:
            made["message"] = chance.choice(("no", "not this", "no", "", "a\nb")[: chance.choice((4, 4, 5))])
        if chance.random() < 0.4:
            made["messageExpression"] = draw_expression(chance, parts, "string", MISTAKES)
        if chance.random() < 0.3:
            made["reason"] = chance.choice(_REASONS) if chance.random() > 0.05 else "Unauthorized"
        validations.append(made)
    spec: dict[str, Any] = {"validations": validations}
    if chance.random() < 0.3:
        spec["auditAnnotations"] = [
            {
                "key": chance.choice(("k", "k", "a-b", "a-b", "bad key")) if index else "first",
                "valueExpression": draw_expression(chance, parts, "string", MISTAKES)
                if chance.random() > 0.2
                else "null",
            }
            for index in range(chance.choice((1, 1, 2)))
        ]
    return spec


def _mutations(chance: random.Random, parts: Any) -> dict[str, Any]:
    mutations: list[Any] = []
    for _ in range(chance.choice((1, 1, 2))):
        text = draw_expression(chance, parts, "string", MISTAKES)
        if chance.random() < 0.6:
            expression = chance.choice(_MUTATIONS) % text
            made = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
        else:
            path = chance.choice(
                ("/metadata/labels", "/data", "/metadata/labels/x", "/nope/x", "/spec/replicas")
            )
            operation = chance.choice(("add", "add", "replace", "test", "remove"))
            value = f"{{'m': {text}}}" if path in ("/metadata/labels", "/data") else text
            tail = "" if operation == "remove" else f", value: {value}"
            expression = f'[JSONPatch{{op: "{operation}", path: "{path}"{tail}}}]'
            made = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
        mutations.append(made)
    return {"mutations": mutations, "reinvocationPolicy": chance.choice(("Never", "IfNeeded"))}


def _binding(chance: random.Random, kind: Any, *, mutating: bool, first: bool) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if not mutating:
        made["validationActions"] = chance.choice(_ACTIONS)
        if not first:
            # Which of two bindings denies first is a matter of chance.
            made["validationActions"] = ["Audit"]
    if chance.random() < 0.25:
        made["matchResources"] = {"objectSelector": draw_labels(chance)}
    elif chance.random() < 0.15:
        made["matchResources"] = {"resourceRules": [draw_rule(chance)]}
    elif chance.random() < 0.1:
        made["matchResources"] = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
    if kind is not None or chance.random() < 0.05:
        made["paramRef"] = _param_ref(chance, kind)
        if chance.random() < 0.1:
            made.pop("paramRef")
    return made


def _param_ref(chance: random.Random, kind: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"parameterNotFoundAction": chance.choice(("Deny", "Allow"))}
    if chance.random() < 0.6:
        made["name"] = chance.choice(("one", "one", "two", "missing"))
    else:
        # More than one parameter would be taken in no fixed order.
        made["selector"] = chance.choice(
            (
                *({"matchLabels": {"p": "1"}}, {"matchLabels": {"p": "2"}}, {"matchLabels": {"p": "none"}}),
                {"matchExpressions": [{"key": "p", "operator": "In", "values": ["2", "none"]}]},
            )
        )
    if chance.random() < (0.4 if kind == _CONFIG_MAP else 0.1):
        made["namespace"] = chance.choice(("{ns}", "{ns}-params", "{ns}-missing"))
    mistake = chance.random()
    if mistake < 0.03:
        made.pop("parameterNotFoundAction")
    elif mistake < 0.05:
        made["parameterNotFoundAction"] = "Nope"
    elif mistake < 0.07:
        made |= {"name": "one", "selector": {}}
    elif mistake < 0.09:
        made.pop("name", None)
        made.pop("selector", None)
    return made


def _param_kind(case: CaseBuilder) -> dict[str, str]:
    """Draw the kind of the parameters, and create some of it."""
    chance = case.random
    kind = chance.choice((_CONFIG_MAP, _CONFIG_MAP, _CONFIG_MAP, _SETTING, _SETTING, _UNKNOWN))
    if kind == _CONFIG_MAP:
        case.prepare("POST", NAMESPACES, {"metadata": {"name": "{ns}-params"}})
        _params(case, CONFIG_MAPS.replace("{ns}", "{ns}-params"))
        _params(case, CONFIG_MAPS)
    elif kind == _SETTING:
        _define_settings(case)
        _params(case, "/apis/{run}.ex.io/v1/settings", apiVersion="{run}.ex.io/v1", kind="Setting")
    return kind


def _params(case: CaseBuilder, path: str, **identity: str) -> None:
    chance = case.random
    for name, label in (("one", "1"), ("two", "2")):
        if chance.random() < 0.85:
            data = {"k": chance.choice(("a", "b")), "n": chance.choice(("1", "2", "x"))}
            metadata = {"name": name, "labels": {"p": label}}
            case.prepare("POST", path, {**identity, "metadata": metadata, "data": data})
    case.prepare("POST", path, {**identity, "metadata": {"name": _MARKER}})


def _keep_informer(case: CaseBuilder, *, mutating: bool) -> None:
    """Create a policy with ConfigMaps as parameters that stays.

    With the last such policy, kube-apiserver ends the watch of the parameters that all policies share, and does not
    start it again: later policies would not find their parameters.
    """
    stem = _stem(mutating=mutating)
    rule = {
        "operations": ["CREATE"],
        "apiGroups": ["none.ex.io"],
        "apiVersions": ["v1"],
        "resources": ["none"],
    }
    spec: dict[str, Any] = {"paramKind": _CONFIG_MAP, "matchConstraints": {"resourceRules": [rule]}}
    if mutating:
        change = {"expression": "Object{metadata: Object.metadata{labels: {'m': 'n'}}}"}
        spec["mutations"] = [{"patchType": "ApplyConfiguration", "applyConfiguration": change}]
        spec["reinvocationPolicy"] = "Never"
    else:
        spec["validations"] = [{"expression": "true"}]
    case.prepare("POST", f"{R}/{stem}ies", {"metadata": {"name": "keeps-informer"}, "spec": spec})
    reference = {"name": "none", "parameterNotFoundAction": "Allow"}
    bound: dict[str, Any] = {"policyName": "keeps-informer", "paramRef": reference}
    if not mutating:
        bound["validationActions"] = ["Deny"]
    case.prepare("POST", f"{R}/{stem}ybindings", {"metadata": {"name": "keeps-informer"}, "spec": bound})


def _define_settings(case: CaseBuilder) -> None:
    """Define a cluster-scoped kind of parameters."""
    schema = {
        "type": "object",
        "properties": {"data": {"type": "object", "additionalProperties": {"type": "string"}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "settings", "kind": "Setting"}
    spec = {"group": "{run}.ex.io", "scope": "Cluster", "names": names, "versions": [version]}
    case.clean(f"{DEFINITIONS}/settings.{{run}}.ex.io")
    case.prepare("POST", DEFINITIONS, {"metadata": {"name": "settings.{run}.ex.io"}, "spec": spec})
    case.prepare("GET", "/apis/{run}.ex.io/v1/settings", until=_is_found)


def _is_found(status: int, body: Any) -> bool:
    return status == 200


def _wait_until_in_effect(case: CaseBuilder, kind: Any, *, mutating: bool) -> None:
    """Create a last policy, whose parameter was created last, and wait until it acts on an object with its label."""
    stem, marker = _stem(mutating=mutating), "mutation" if mutating else "validation"
    name = f"{{run}}-z-{marker}"
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    constraints = {
        "resourceRules": [rule],
        "namespaceSelector": OWN_NAMESPACE,
        "objectSelector": {"matchLabels": {"marker": marker}},
    }
    spec: dict[str, Any] = {"matchConstraints": constraints, "failurePolicy": "Fail"}
    bound: dict[str, Any] = {"policyName": name}
    if mutating:
        # A mutation that fails is reported together with those of other policies.
        fails = f'[JSONPatch{{op: "remove", path: "/metadata/labels/{_MARKER}"}}]'
        spec |= {"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": fails}}]}
        spec["reinvocationPolicy"] = "Never"
    else:
        spec["validations"] = [{"expression": "false", "message": _MARKER}]
        bound["validationActions"] = ["Warn"]
    if kind is not None and kind != _UNKNOWN:
        spec["paramKind"] = kind
        bound["paramRef"] = {"name": _MARKER, "parameterNotFoundAction": "Allow"}
    case.clean(f"{R}/{stem}ies/{name}")
    case.clean(f"{R}/{stem}ybindings/{name}")
    case.prepare("POST", f"{R}/{stem}ies", {"metadata": {"name": name}, "spec": spec})
    case.prepare("POST", f"{R}/{stem}ybindings", {"metadata": {"name": name}, "spec": bound})
    body = {"metadata": {"name": "marker", "labels": {"marker": marker}}}
    if mutating:
        case.prepare("POST", query(CONFIG_MAPS, dryRun="All"), body, until=_is_denied_by_marker)
    else:
        case.prepare("POST", query(CONFIG_MAPS, dryRun="All"), body, warned=_MARKER)


def _is_denied_by_marker(status: int, body: Any) -> bool:
    return status >= 400 and _MARKER in str(body)
