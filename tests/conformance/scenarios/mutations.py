"""Mutating admission policies: what they change, what they see of each other, and how they fail."""

from typing import Any

from conformance_exchange import Step
from conformance_hooks import hook_server
from conformance_mutations import DEFINITION, LABEL, R, apply, patch, policy, rule

FIXTURE = hook_server

NAMESPACE = "mutations"
P = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
D = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
H2 = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
W = f"/apis/mutations.ex.io/v1/namespaces/{NAMESPACE}/widgets"
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
IN_NAMESPACE = {"kubernetes.io/metadata.name": NAMESPACE}
PARAMS = {"apiVersion": "v1", "kind": "ConfigMap"}


def add(name: str, *mutations: Any, label: str = "", bound: Any = None, **more: Any) -> list[Step]:
    selector = {"matchLabels": {"mutation": label or name}}
    spec = {
        "policyName": f"mutations-{name}",
        "matchResources": {"objectSelector": selector},
        **(bound or {}),
    }
    binding = {"metadata": {"name": f"mutations-{name}-b"}, "spec": spec}
    return [
        Step(
            f"policy-{name}",
            "POST",
            f"{R}/mutatingadmissionpolicies",
            policy(name, *mutations, **more),
            compared=False,
        ),
        Step(f"binding-{name}", "POST", f"{R}/mutatingadmissionpolicybindings", binding, compared=False),
    ]


def create(name: str, step: str = "", **more: Any) -> Step:
    body = {"metadata": {"name": f"c-{step or name}", "labels": {"mutation": name}}, **more}
    return Step(f"create-{step or name}", "POST", P, body)


def deployment(name: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": "i", "args": ["a"]}]
    return {
        "metadata": {"name": name, "labels": {"mutation": name}},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}},
        },
    }


def pod(name: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": "i", "env": [{"name": "A", "value": "1"}]}]
    return {"metadata": {"name": name, "labels": {"mutation": name}}, "spec": {"containers": containers}}


def changed(status: int, body: Any) -> bool:
    return status == 201 and "probed" in (body.get("data") or {})


DATA = "Object{data: {'added': object.metadata.name}}"


def append(letter: str) -> dict[str, Any]:
    return apply(f"Object{{data: {{'seen': object.?data[?'seen'].orValue('') + '{letter}'}}}}")


STEPS = [
    Step(
        "namespace",
        "POST",
        "/api/v1/namespaces",
        {"metadata": {"name": NAMESPACE, "labels": {"env": "test"}}},
        compared=False,
    ),
    Step(
        "definition",
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        DEFINITION,
        compared=False,
    ),
    Step(
        "existing",
        "POST",
        P,
        {"metadata": {"name": "existing", "labels": {"mutation": "updated"}}, "data": {"a": "1"}},
        compared=False,
    ),
    *(
        Step(f"param-{name}", "POST", P, body, compared=False)
        for name, body in {
            "one": {"metadata": {"name": "one", "labels": {"params": "yes"}}, "data": {"value": "1"}},
            "two": {"metadata": {"name": "two", "labels": {"params": "yes"}}, "data": {"value": "2"}},
        }.items()
    ),
    *add("apply", apply(LABEL), apply(DATA)),
    *add("patch", patch("[JSONPatch{op: 'add', path: '/data', value: {'added': 'x'}}]")),
    *add(
        "patch-many",
        patch(
            "[JSONPatch{op: 'test', path: '/data/a', value: '1'},"
            " JSONPatch{op: 'replace', path: '/data/a', value: '2'},"
            " JSONPatch{op: 'copy', from: '/data/a', path: '/data/b'},"
            " JSONPatch{op: 'move', from: '/data/m', path: '/data/n'},"
            " JSONPatch{op: 'remove', path: '/data/gone'},"
            " JSONPatch{op: 'add', path: '/metadata/annotations', value: {'ex.io/note': 'n'}},"
            " JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('ex.io/other'), value: 'e'}]"
        ),
    ),
    *add(
        "test-fails",
        patch(
            "[JSONPatch{op: 'test', path: '/data/a', value: 'other'},"
            " JSONPatch{op: 'remove', path: '/data/a'}]"
        ),
    ),
    *add("missing-path", patch("[JSONPatch{op: 'add', path: '/a/b/c', value: 1}]")),
    *add("remove-missing", patch("[JSONPatch{op: 'remove', path: '/data/none'}]")),
    *add("odd-operation", patch("[JSONPatch{op: 'jump', path: '/data/none'}]")),
    *add("wrong-type", patch("[JSONPatch{op: 'add', path: '/data', value: {'a': 1}}]")),
    *add("nothing", patch("[]")),
    *add("unknown-field", apply("Object{nonsense: 1}")),
    *add("unknown-path", patch("[JSONPatch{op: 'add', path: '/nonsense', value: 1}]")),
    *add("apply-type", apply("Object{data: {'a': 1}}")),
    *add("misnamed", apply("Object{metadata: Object.spec{labels: {'a': 'b'}}}")),
    *add("renamed", apply("Object{metadata: Object.metadata{name: 'other'}}")),
    *add("error", apply("Object{data: {'a': object.data.none}}")),
    *add("error-ignored", apply("Object{data: {'a': object.data.none}}"), failurePolicy="Ignore"),
    *add("half", apply(LABEL), apply("Object{data: {'a': object.data.none}}"), failurePolicy="Ignore"),
    *add(
        "two-errors", apply("Object{data: {'a': object.data.x}}"), apply("Object{data: {'a': object.data.y}}")
    ),
    *add(
        "variables",
        apply("Object{data: {'long': variables.long}}"),
        variables=[
            {"name": "base", "expression": "object.metadata.name"},
            {"name": "long", "expression": "variables.base + '!'"},
        ],
    ),
    *add(
        "variable-seen",
        append("a"),
        apply("Object{data: {'copy': variables.found}}"),
        variables=[{"name": "found", "expression": "object.?data[?'seen'].orValue('nothing')"}],
    ),
    *add(
        "variable-error",
        apply("Object{data: {'a': variables.bad}}"),
        variables=[{"name": "bad", "expression": "object.data.none"}],
    ),
    *add(
        "condition",
        apply(DATA),
        matchConditions=[{"name": "c", "expression": "object.metadata.name == 'c-condition'"}],
    ),
    *add(
        "condition-error",
        apply(DATA),
        matchConditions=[{"name": "c", "expression": "object.data.none == 'x'"}],
    ),
    *add(
        "condition-ignored",
        apply(DATA),
        failurePolicy="Ignore",
        matchConditions=[{"name": "c", "expression": "object.data.none == 'x'"}],
    ),
    *add(
        "context",
        apply(
            "Object{data: {'operation': request.operation, 'user': request.userInfo.username,"
            " 'env': namespaceObject.metadata.labels['env'], 'old': string(oldObject == null),"
            " 'may': string(authorizer.group('').resource('pods').check('get').allowed())}}"
        ),
    ),
    *add(
        "param",
        apply("Object{data: {'p': params.data.value}}"),
        paramKind=PARAMS,
        bound={"paramRef": {"name": "one", "namespace": NAMESPACE, "parameterNotFoundAction": "Deny"}},
    ),
    *add(
        "params",
        apply("Object{data: {'p' + params.data.value: params.metadata.name}}"),
        paramKind=PARAMS,
        bound={
            "paramRef": {
                "selector": {"matchLabels": {"params": "yes"}},
                "namespace": NAMESPACE,
                "parameterNotFoundAction": "Deny",
            }
        },
    ),
    *add(
        "param-typed",
        apply("Object{data: {'p': string(has(params.kind) || has(params.apiVersion))}}"),
        paramKind=PARAMS,
        bound={"paramRef": {"name": "one", "namespace": NAMESPACE, "parameterNotFoundAction": "Deny"}},
    ),
    *add(
        "param-missing",
        apply(DATA),
        paramKind=PARAMS,
        bound={"paramRef": {"name": "none", "namespace": NAMESPACE, "parameterNotFoundAction": "Deny"}},
    ),
    *add(
        "param-allowed",
        apply(DATA),
        paramKind=PARAMS,
        bound={"paramRef": {"name": "none", "namespace": NAMESPACE, "parameterNotFoundAction": "Allow"}},
    ),
    *add("param-unbound", apply("Object{data: {'p': string(params == null)}}"), paramKind=PARAMS),
    *add(
        "param-kind",
        apply(DATA),
        # A policy without its parameters refuses all it matches, however it is bound.
        matchConstraints={
            "resourceRules": [rule()],
            "objectSelector": {"matchLabels": {"mutation": "param-kind"}},
        },
        paramKind={"apiVersion": "none.ex.io/v1", "kind": "Nothing"},
        bound={"paramRef": {"name": "x", "namespace": NAMESPACE, "parameterNotFoundAction": "Deny"}},
    ),
    # The real server asks several policies in no fixed order.
    *add("two-a", apply("Object{data: {'a': '1'}}"), label="two"),
    *add("two-b", apply("Object{data: {'b': '2'}}"), label="two"),
    *add("again-a", append("a"), label="again", reinvocationPolicy="IfNeeded"),
    *add("again-b", apply("Object{data: {'b': '2'}}"), label="again"),
    *add("alone", append("a"), reinvocationPolicy="IfNeeded"),
    *add("hooked", append("p"), reinvocationPolicy="IfNeeded"),
    *add("updated", apply("Object{data: {'old': oldObject.?data.a.orValue('none')}}")),
    *add(
        "deployment",
        apply("Object{spec: Object.spec{replicas: 3}}"),
        rules=[rule("deployments", group="apps")],
    ),
    *add(
        "scaled",
        apply("Object{spec: Object.spec{replicas: 5}}"),
        rules=[rule("deployments/scale", group="apps")],
        bound={"matchResources": {"namespaceSelector": {"matchLabels": IN_NAMESPACE}}},
    ),
    *add(
        "sidecar",
        apply(
            "Object{spec: Object.spec{initContainers: ["
            "Object.spec.initContainers{name: 'side', image: 's', restartPolicy: 'Always'}],"
            " containers: [Object.spec.containers{name: 'main', env: ["
            "Object.spec.containers.env{name: 'B', value: '2'}]}]}}"
        ),
        rules=[rule("pods")],
    ),
    *add(
        "atomic",
        apply("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'main', args: ['x']}]}}"),
        rules=[rule("pods")],
    ),
    *add(
        "patched-pod",
        patch(
            "[JSONPatch{op: 'add', path: '/spec/containers/-', value:"
            " Object.spec.containers{name: 'side', image: 's'}}]"
        ),
        rules=[rule("pods")],
    ),
    *add("binding", apply(LABEL), rules=[rule("pods/binding")]),
    *add(
        "equivalent",
        apply("Object{spec: Object.spec{minReplicas: 2}}"),
        rules=[rule("horizontalpodautoscalers", group="autoscaling", version="v1")],
    ),
    *add(
        "widget",
        apply("Object{spec: Object.spec{size: 3, parts: [Object.spec.parts{name: 'b', count: 2}]}}"),
        patch("[JSONPatch{op: 'remove', path: '/spec/color'}]"),
        rules=[rule("widgets", group="mutations.ex.io")],
    ),
    *add(
        "widget-tags",
        apply("Object{spec: Object.spec{tags: ['x']}}"),
        rules=[rule("widgets", group="mutations.ex.io")],
    ),
    *add(
        "widget-wrong",
        apply("Object{spec: Object.spec{size: 'many'}}"),
        rules=[rule("widgets", group="mutations.ex.io")],
    ),
    *add("probe", apply("Object{data: {'probed': 'yes'}}")),
    Step(
        "hooks",
        "POST",
        f"{R}/mutatingwebhookconfigurations",
        {
            "metadata": {"name": "mutations"},
            "webhooks": [
                {
                    "name": "hooked.ex.io",
                    "clientConfig": {"url": "https://{hook}/a", "caBundle": "{ca}"},
                    "rules": [rule()],
                    "objectSelector": {"matchLabels": {"mutation": "hooked"}},
                    "namespaceSelector": {"matchLabels": IN_NAMESPACE},
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
            ],
        },
        compared=False,
    ),
    Step(
        "probing",
        "POST",
        f"{P}?dryRun=All",
        {"metadata": {"name": "p", "labels": {"mutation": "probe"}}},
        until=changed,
        compared=False,
    ),
    Step(
        "probing-hook",
        "POST",
        f"{P}?dryRun=All",
        {"metadata": {"name": "p", "labels": {"mutation": "hooked"}}},
        until=lambda status, body: "a" in (body.get("data") or {}).get("seen", ""),
        compared=False,
    ),
    # The real server fills its copies of parameters in its own time, after it knows the policies.
    *(
        Step(
            f"probing-{name}",
            "POST",
            f"{P}?dryRun=All",
            {"metadata": {"name": "p", "labels": {"mutation": name}}},
            until=lambda status, body: status == 201,
            compared=False,
        )
        for name in ("param", "params")
    ),
    create("apply"),
    create("patch"),
    create("patch-many", data={"a": "1", "m": "3", "gone": "4"}),
    create("test-fails", data={"a": "1"}),
    create("missing-path"),
    create("remove-missing", data={}),
    create("odd-operation"),
    create("wrong-type"),
    create("nothing"),
    create("unknown-field"),
    create("unknown-path"),
    create("apply-type"),
    create("misnamed"),
    create("renamed"),
    create("error"),
    create("error", "error-avoided", data={"none": "x"}),
    create("error-ignored"),
    create("half"),
    create("two-errors"),
    create("variables"),
    create("variable-seen"),
    create("variable-error"),
    create("condition"),
    create("condition", "condition-false"),
    create("condition-error"),
    create("condition-ignored"),
    create("context"),
    create("param"),
    create("params"),
    create("param-typed"),
    create("param-missing"),
    create("param-allowed"),
    create("param-unbound"),
    create("param-kind"),
    create("two"),
    create("again"),
    create("alone"),
    create("hooked"),
    Step(
        "dry",
        "POST",
        f"{P}?dryRun=All",
        {"metadata": {"name": "dry", "labels": {"mutation": "apply"}}},
    ),
    Step("update", "PATCH", f"{P}/existing", {"data": {"a": "2"}}, MERGE),
    Step(
        "applied",
        "PATCH",
        f"{P}/applied?fieldManager=m",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "applied", "labels": {"mutation": "apply"}},
            "data": {"mine": "1"},
        },
        APPLY,
    ),
    Step(
        "applied-again",
        "PATCH",
        f"{P}/applied?fieldManager=m",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "applied", "labels": {"mutation": "apply"}},
            "data": {"mine": "2"},
        },
        APPLY,
    ),
    Step("create-deployment", "POST", D, deployment("deployment")),
    Step("scale", "PATCH", f"{D}/deployment/scale", {"spec": {"replicas": 1}}, MERGE),
    *(Step(f"create-{name}", "POST", PODS, pod(name)) for name in ("sidecar", "atomic", "patched-pod")),
    Step(
        "create-equivalent",
        "POST",
        H2,
        {
            "metadata": {"name": "equivalent", "labels": {"mutation": "equivalent"}},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"},
                "maxReplicas": 3,
            },
        },
    ),
    Step(
        "bind",
        "POST",
        f"{PODS}/sidecar/binding",
        {"metadata": {"name": "sidecar", "labels": {"mutation": "binding"}}, "target": {"name": "n"}},
    ),
    Step("bound", "GET", f"{PODS}/sidecar"),
    Step(
        "create-widget",
        "POST",
        W,
        {
            "apiVersion": "mutations.ex.io/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "labels": {"mutation": "widget"}},
            "spec": {"size": 1, "color": "blue", "parts": [{"name": "a", "count": 1}, {"name": "b"}]},
        },
        until=lambda status, body: status == 201,
    ),
    *(
        Step(
            f"create-{name}",
            "POST",
            W,
            {
                "apiVersion": "mutations.ex.io/v1",
                "kind": "Widget",
                "metadata": {"name": name, "labels": {"mutation": name}},
                "spec": {"size": 1},
            },
        )
        for name in ("widget-tags", "widget-wrong")
    ),
    Step(
        "table",
        "GET",
        f"{R}/mutatingadmissionpolicies/mutations-apply",
        headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
    ),
    Step("remove-hooks", "DELETE", f"{R}/mutatingwebhookconfigurations/mutations", compared=False),
]
