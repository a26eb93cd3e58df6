"""Validating admission policies: what they see, what they say, and how badly written ones are refused."""

from typing import Any

from conformance_exchange import Step

R = "/apis/admissionregistration.k8s.io/v1"
NAMESPACE = "policies"
P = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
MERGE = {"Content-Type": "application/merge-patch+json"}
CONFIG_MAPS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["configmaps"],
}
# With the last policy whose parameters are ConfigMaps the real server ends the watch that all policies share,
# and starts none again: later policies never find their parameters. So one of them is kept.
BUT_ONE_BINDING = "fieldSelector=metadata.name!=policies-params-allowed-b"
BUT_ONE_POLICY = "fieldSelector=metadata.name!=policies-params-allowed"


def policy(name: str, *validations: Any, **more: Any) -> dict[str, Any]:
    rules = [item if isinstance(item, dict) else {"expression": item} for item in validations]
    spec: dict[str, Any] = {
        "matchConstraints": {"resourceRules": [CONFIG_MAPS]},
        "validations": rules,
        **more,
    }
    return {"metadata": {"name": f"policies-{name}"}, "spec": spec}


def binding(name: str, *actions: str, label: str = "", suffix: str = "", **more: Any) -> dict[str, Any]:
    spec = {
        "policyName": f"policies-{name}",
        "validationActions": list(actions) or ["Deny"],
        "matchResources": {"objectSelector": {"matchLabels": {"policy": label or name}}},
        **more,
    }
    return {"metadata": {"name": f"policies-{name}{suffix}-b"}, "spec": spec}


def add(
    name: str, *validations: Any, actions: tuple[str, ...] = (), bound: Any = None, **more: Any
) -> list[Step]:
    return [
        Step(
            f"policy-{name}",
            "POST",
            f"{R}/validatingadmissionpolicies",
            policy(name, *validations, **more),
            compared=False,
        ),
        Step(
            f"binding-{name}",
            "POST",
            f"{R}/validatingadmissionpolicybindings",
            binding(name, *actions, **(bound or {})),
            compared=False,
        ),
    ]


def create(name: str, step: str = "", **more: Any) -> Step:
    body = {"metadata": {"name": f"c-{step or name}", "labels": {"policy": name}}, **more}
    return Step(f"create-{step or name}", "POST", P, body)


def bad(name: str, *validations: Any, **more: Any) -> Step:
    return Step(
        f"bad-{name}", "POST", f"{R}/validatingadmissionpolicies", policy(f"bad-{name}", *validations, **more)
    )


def bad_binding(name: str, **more: Any) -> Step:
    body = binding(name, **more)
    return Step(f"bad-binding-{name}", "POST", f"{R}/validatingadmissionpolicybindings", body)


def denied(status: int, body: Any) -> bool:
    return status == 422


PARAMS = {"apiVersion": "v1", "kind": "ConfigMap"}

STEPS = [
    Step(
        "namespace",
        "POST",
        "/api/v1/namespaces",
        {"metadata": {"name": NAMESPACE, "labels": {"env": "test"}}},
    ),
    Step(
        "param",
        "POST",
        P,
        {"metadata": {"name": "limits", "labels": {"limits": "1"}}, "data": {"max": "3"}},
        compared=False,
    ),
    Step(
        "existing",
        "POST",
        P,
        {"metadata": {"name": "existing", "labels": {"policy": "update"}}},
        compared=False,
    ),
    Step(
        "deletable",
        "POST",
        P,
        {"metadata": {"name": "deletable", "labels": {"policy": "deletion"}}},
        compared=False,
    ),
    *add("plain", "object.metadata.name == 'never'"),
    *add("message", {"expression": "false", "message": "custom message"}),
    *add(
        "spoken",
        {"expression": "false", "message": "plain", "messageExpression": "'name is ' + object.metadata.name"},
    ),
    *add(
        "spoken-badly",
        {"expression": "false", "message": "plain", "messageExpression": "string(object.metadata.none)"},
    ),
    *add("spoken-lines", {"expression": "false", "message": "plain", "messageExpression": "'a\\nb'"}),
    *add("reason", {"expression": "false", "reason": "Forbidden", "message": "not allowed"}),
    *add("reason-large", {"expression": "false", "reason": "RequestEntityTooLarge"}),
    *add("error", "object.data.none == 'x'"),
    *add("error-ignored", "object.data.none == 'x'", failurePolicy="Ignore"),
    *add(
        "several",
        {"expression": "true"},
        {"expression": "false", "message": "second"},
        {"expression": "false", "message": "third"},
    ),
    *add("warn", {"expression": "false", "message": "careful"}, actions=("Warn",)),
    *add("audit", {"expression": "false", "message": "noted"}, actions=("Audit",)),
    *add("warn-audit", {"expression": "false", "message": "both"}, actions=("Warn", "Audit")),
    *add(
        "variables",
        {"expression": "variables.long.size() < 3", "messageExpression": "'long is ' + variables.long"},
        variables=[
            {"name": "base", "expression": "object.metadata.name"},
            {"name": "long", "expression": "variables.base + '!'"},
        ],
    ),
    *add(
        "variable-error",
        "variables.bad == 'x'",
        variables=[{"name": "bad", "expression": "object.data.none"}],
    ),
    *add(
        "condition",
        {"expression": "false", "message": "conditional"},
        matchConditions=[{"name": "c", "expression": "object.metadata.name == 'c-condition'"}],
    ),
    *add(
        "condition-error",
        {"expression": "false"},
        matchConditions=[{"name": "c", "expression": "object.data.none == 'x'"}],
    ),
    *add(
        "namespaced",
        {"expression": "namespaceObject.metadata.labels['env'] == 'prod'", "message": "only in production"},
    ),
    *add(
        "user",
        {
            "expression": "!('system:masters' in request.userInfo.groups)",
            "messageExpression": "request.operation + ' ' + request.resource.resource",
        },
    ),
    *add(
        "authorized",
        {
            "expression": "!authorizer.group('').resource('pods').namespace('x').check('get').allowed()",
            "message": "you may",
        },
    ),
    *add(
        "update",
        {"expression": "oldObject == null || object.data == oldObject.data", "message": "data is fixed"},
    ),
    *add("deletion", {"expression": "request.operation != 'DELETE'", "message": "may not go"}),
    *add(
        "excluded",
        "false",
        matchConstraints={
            "resourceRules": [CONFIG_MAPS],
            "excludeResourceRules": [{**CONFIG_MAPS, "resourceNames": ["c-excluded"]}],
        },
    ),
    *add(
        "named", "false", matchConstraints={"resourceRules": [{**CONFIG_MAPS, "resourceNames": ["c-other"]}]}
    ),
    *add(
        "params",
        {"expression": "size(object.data) <= int(params.data.max)", "message": "too much"},
        paramKind=PARAMS,
        bound={"paramRef": {"name": "limits", "namespace": NAMESPACE, "parameterNotFoundAction": "Deny"}},
    ),
    *add(
        "params-selected",
        {"expression": "params.data.max == '4'"},
        paramKind=PARAMS,
        bound={"paramRef": {"selector": {"matchLabels": {"limits": "1"}}, "parameterNotFoundAction": "Deny"}},
    ),
    *add(
        "params-missing",
        "true",
        paramKind=PARAMS,
        bound={"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
    ),
    *add(
        "params-allowed",
        "false",
        paramKind=PARAMS,
        bound={"paramRef": {"name": "none", "parameterNotFoundAction": "Allow"}},
    ),
    *add(
        "params-unknown",
        "true",
        paramKind={"apiVersion": "none.ex.io/v1", "kind": "None"},
        matchConstraints={
            "resourceRules": [CONFIG_MAPS],
            "objectSelector": {"matchLabels": {"policy": "params-unknown"}},
        },
        bound={"paramRef": {"name": "x", "parameterNotFoundAction": "Deny"}},
    ),
    *add(
        "protobuf",
        {
            "expression": "variables.name == 'never'",
            "messageExpression": "'waited ' + string(google.protobuf.Duration{seconds: 5}) + ' for ' + variables.name",
        },
        "google.protobuf.Struct{fields: {'a': 1}}.a == 1.0",
        "google.protobuf.Int32Value{value: 3000000000 + size(object.metadata.name)} > 0",
        variables=[
            {"name": "name", "expression": "google.protobuf.StringValue{value: object.metadata.name}"}
        ],
    ),
    *add("annotated", "true", auditAnnotations=[{"key": "k", "valueExpression": "'v'"}]),
    *add("probe", "false"),
    Step(
        "active",
        "POST",
        f"{P}?dryRun=All",
        {"metadata": {"name": "p", "labels": {"policy": "probe"}}},
        until=denied,
        compared=False,
    ),
    # The real server fills its copies of parameters in its own time, after it knows the policies.
    *(
        Step(
            f"active-{name}",
            "POST",
            f"{P}?dryRun=All",
            {"metadata": {"name": "p", "labels": {"policy": name}}, "data": {"a": "1"}},
            until=lambda status, body: "no params found" not in body.get("message", ""),
            compared=False,
        )
        for name in ("params", "params-selected")
    ),
    *(
        create(name)
        for name in (
            "plain",
            "message",
            "spoken",
            "spoken-badly",
            "spoken-lines",
            "reason",
            "reason-large",
            "error",
            "error-ignored",
            "several",
            "warn",
            "audit",
            "warn-audit",
            "variables",
            "variable-error",
            "condition",
            "condition-error",
            "namespaced",
            "user",
            "authorized",
            "excluded",
            "named",
            "params-selected",
            "params-missing",
            "params-allowed",
            "params-unknown",
            "annotated",
            "protobuf",
        )
    ),
    create("condition", "condition-not-met"),
    create("params", data={"a": "1"}),
    create("params", "params-exceeded", data=dict.fromkeys("abcd", "1")),
    create("plain", "plain-data", data={"a": "b"}),
    Step("generated", "POST", P, {"metadata": {"generateName": "gen-", "labels": {"policy": "plain"}}}),
    Step("update", "PATCH", f"{P}/existing", {"data": {"a": "b"}}, MERGE),
    Step("update-labels", "PATCH", f"{P}/existing", {"metadata": {"labels": {"x": "y"}}}, MERGE),
    Step("delete", "DELETE", f"{P}/deletable"),
    bad("syntax", "object.metadata.name =="),
    bad("reference", "foo.bar"),
    bad("type", "'text'"),
    bad("empty", " "),
    bad("wrapped-is-fine", "google.protobuf.BoolValue{value: true}"),
    bad("wrapped-type", "google.protobuf.Int32Value{value: 'a'} == 1"),
    bad("nothing"),
    bad("message-type", {"expression": "true", "messageExpression": "1"}),
    bad("message-empty", {"expression": "true", "message": " "}),
    bad("message-lines", {"expression": "true", "message": "a\nb"}),
    bad("reason", {"expression": "true", "reason": "Because"}),
    bad("variable-name", "true", variables=[{"name": "a-b", "expression": "1"}]),
    bad("variable-unknown", "variables.none == 1"),
    bad("variable-type", "variables.a == 'x'", variables=[{"name": "a", "expression": "1"}]),
    bad(
        "variable-order",
        "true",
        variables=[{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}],
    ),
    bad("params-undeclared", "params.x == 1"),
    bad("annotation", "true", auditAnnotations=[{"key": "k", "valueExpression": "1"}]),
    bad("annotation-key", "true", auditAnnotations=[{"key": "a b", "valueExpression": "'v'"}]),
    bad("constraints", "true", matchConstraints={}),
    bad("rule", "true", matchConstraints={"resourceRules": [{**CONFIG_MAPS, "operations": ["READ"]}]}),
    bad_binding("actions", validationActions=["Deny", "Warn"]),
    bad_binding("action", validationActions=["Refuse"]),
    bad_binding("no-actions", validationActions=[]),
    bad_binding("no-policy", policyName=""),
    bad_binding("param-both", paramRef={"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"}),
    bad_binding("param-none", paramRef={"parameterNotFoundAction": "Deny"}),
    bad_binding("param-action", paramRef={"name": "a"}),
    Step(
        "end-bindings", "DELETE", f"{R}/validatingadmissionpolicybindings?{BUT_ONE_BINDING}", compared=False
    ),
    Step("end-policies", "DELETE", f"{R}/validatingadmissionpolicies?{BUT_ONE_POLICY}", compared=False),
]
