"""Webhooks: which writes they see, what they may answer, and what becomes of answers that are none."""

from typing import Any

from conformance_exchange import Step
from conformance_hooks import hook_server

FIXTURE = hook_server

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
NAMESPACE = "webhooks"
P = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
D = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
H1 = f"/apis/autoscaling/v1/namespaces/{NAMESPACE}/horizontalpodautoscalers"
H2 = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
EVERYTHING = {
    "operations": ["*"],
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "resources": ["*/*"],
    "scope": "Namespaced",
}


def hook(path: str, label: str = "", **more: Any) -> dict[str, Any]:
    return {
        "name": f"{label or path}.ex.io",
        "clientConfig": {"url": "https://{hook}/" + path, "caBundle": "{ca}"},
        "rules": [EVERYTHING],
        "objectSelector": {"matchLabels": {"hook": label or path}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


def configuration(kind: str, name: str, *hooks: dict[str, Any]) -> Step:
    body = {"metadata": {"name": f"webhooks-{name}"}, "webhooks": list(hooks)}
    path = f"{REGISTRATION}/{kind}webhookconfigurations"
    return Step(f"configure-{kind}-{name}", "POST", path, body, compared=False)


def labelled(name: str, label: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"hook": label}}, **more}


def create(label: str, *, waits: float = 0, **more: Any) -> Step:
    return Step(f"create-{label}", "POST", P, labelled(f"c-{label}", label, **more), waits=waits)


VALIDATING = (
    "deny",
    "deny-silent",
    "deny-reason",
    "deny-teapot",
    "deny-fields",
    "deny-success",
    "warn",
    "echo",
    "uid",
    "version",
    "absent",
    "kindless",
    "no-json",
    "html",
    "array",
    "empty",
    "not-found",
    "bad-request",
    "forbidden",
    "teapot",
    "failing",
    "failing-json",
    "unavailable",
    "status",
    "other-kind",
)
CHANGING = (
    "label",
    "missing-path",
    "remove-missing",
    "test-fails",
    "wrong-type",
    "unknown-field",
    "rename",
    "invalid",
    "no-operations",
    "patch-object",
    "patch-text",
    "patch-alone",
    "type-alone",
    "type-unknown",
)
CONDITIONS = {
    "condition-true": ["object.metadata.name.startsWith('c-')", "request.operation == 'CREATE'"],
    "condition-false": ["object.metadata.name == 'other'"],
    "condition-error": ["object.metadata.nothing == 'x'"],
    "condition-false-and-error": ["object.metadata.nothing == 'x'", "false"],
    "condition-errors": ["object.data.a == 'x'", "object.metadata.nothing == 'x'"],
    "condition-user": [
        "'system:masters' in request.userInfo.groups",
        "authorizer.path('/x').check('get').allowed()",
    ],
    "condition-old": ["oldObject == null"],
}


def conditional(label: str, **more: Any) -> dict[str, Any]:
    conditions = [{"name": f"c{index}", "expression": text} for index, text in enumerate(CONDITIONS[label])]
    return hook("deny", label, matchConditions=conditions, **more)


def bad_configuration(name: str, **more: Any) -> Step:
    body = {"metadata": {"name": f"webhooks-bad-{name}"}, "webhooks": [hook("deny", **more)]}
    return Step(f"bad-{name}", "POST", f"{REGISTRATION}/validatingwebhookconfigurations", body)


def autoscaler(version: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "labels": {"hook": "equivalent"}},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"},
            "maxReplicas": 3,
        },
    }


DEPLOYMENT = {
    "metadata": {"name": "dep", "labels": {"hook": "deployment"}},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "main", "image": "i"}]},
        },
    },
}


def validated(status: int, body: Any) -> bool:
    return status == 400


def changed(status: int, body: Any) -> bool:
    return status == 201 and "mut" in body["metadata"].get("labels", {})


STEPS = [
    Step(
        "namespace",
        "POST",
        "/api/v1/namespaces",
        {"metadata": {"name": NAMESPACE, "labels": {"team": "red"}}},
    ),
    Step(
        "other-namespace",
        "POST",
        "/api/v1/namespaces",
        {"metadata": {"name": "webhooks-blue"}},
        compared=False,
    ),
    Step("before", "POST", P, labelled("before", "deny"), compared=False),
    Step("sleeping", "POST", P, labelled("sleeping", "delete-echo"), compared=False),
    configuration(
        "validating",
        "a",
        *(hook(name) for name in VALIDATING),
        *(conditional(name) for name in CONDITIONS),
        conditional("condition-error", name="forgiven.ex.io", failurePolicy="Ignore"),
        hook("slow", timeoutSeconds=1),
        hook("slow", "slow-ignored", timeoutSeconds=1, failurePolicy="Ignore"),
        hook("failing", "failing-ignored", failurePolicy="Ignore"),
        hook("label", "judge-patches"),
        hook("allow", "refused", clientConfig={"url": "https://127.0.0.1:1/x", "caBundle": "{ca}"}),
        hook("allow", "untrusted", clientConfig={"url": "https://{hook}/allow", "caBundle": "{otherca}"}),
        hook(
            "allow",
            "unserved",
            clientConfig={"service": {"namespace": NAMESPACE, "name": "none"}, "caBundle": "{ca}"},
        ),
        hook("deny", "cluster", rules=[{**EVERYTHING, "scope": "Cluster"}]),
        hook("deny", "updates", rules=[{**EVERYTHING, "operations": ["UPDATE"]}]),
        hook("deny", "status-only", rules=[{**EVERYTHING, "resources": ["*/status"]}]),
        hook("deny", "team", namespaceSelector={"matchLabels": {"team": "blue"}}),
        hook("deny", "red", namespaceSelector={"matchLabels": {"team": "red"}}),
        hook("echo", "delete-echo", rules=[{**EVERYTHING, "operations": ["DELETE"]}]),
        hook("echo", "update-echo", rules=[{**EVERYTHING, "operations": ["UPDATE"]}]),
        hook(
            "echo", "equivalent", rules=[{**EVERYTHING, "apiGroups": ["autoscaling"], "apiVersions": ["v1"]}]
        ),
        hook(
            "deny",
            "exact",
            matchPolicy="Exact",
            rules=[{**EVERYTHING, "apiGroups": ["autoscaling"], "apiVersions": ["v1"]}],
        ),
    ),
    configuration("validating", "z", hook("deny", "probe")),
    configuration(
        "mutating",
        "a",
        *(hook(name) for name in CHANGING),
        hook("deny", "refuse-first"),
        hook("failing", "broken-ignored", failurePolicy="Ignore"),
        hook("container", "deployment"),
    ),
    configuration("mutating", "b", hook("a", "order"), hook("a", "again", reinvocationPolicy="IfNeeded")),
    configuration("mutating", "c", hook("b", "order"), hook("b", "again")),
    configuration(
        "mutating", "d", hook("label", "deletion", rules=[{**EVERYTHING, "operations": ["DELETE"]}])
    ),
    configuration("mutating", "z", hook("label", "changing")),
    Step("judging", "POST", f"{P}?dryRun=All", labelled("p", "probe"), until=validated, compared=False),
    Step("changing", "POST", f"{P}?dryRun=All", labelled("p", "changing"), until=changed, compared=False),
    *(create(name) for name in VALIDATING),
    *(create(name, data={"a": "1"}) for name in CHANGING),
    *(create(name) for name in CONDITIONS),
    create("slow", waits=1),
    create("slow-ignored", waits=1),
    create("failing-ignored"),
    create("judge-patches"),
    create("refused"),
    create("untrusted"),
    create("unserved"),
    create("cluster"),
    create("updates"),
    create("status-only"),
    create("team"),
    create("red"),
    create("refuse-first"),
    create("broken-ignored"),
    create("order"),
    create("again"),
    Step("update-denied", "PATCH", f"{P}/c-updates", {"data": {"a": "b"}}, MERGE),
    Step("update-leaves-selector", "PATCH", f"{P}/before", {"metadata": {"labels": {"hook": "none"}}}, MERGE),
    Step("dry-run", "POST", f"{P}?dryRun=All", labelled("dry", "echo")),
    Step("generated", "POST", P, {"metadata": {"generateName": "gen-", "labels": {"hook": "echo"}}}),
    Step("delete", "DELETE", f"{P}/sleeping", {"propagationPolicy": "Background"}),
    Step("delete-many", "DELETE", f"{P}?labelSelector=hook=delete-echo"),
    Step("updating", "POST", P, labelled("updating", "update-echo"), compared=False),
    Step("put", "PUT", f"{P}/updating?fieldManager=me", labelled("updating", "update-echo", data={"a": "b"})),
    Step("patch", "PATCH", f"{P}/updating", {"data": {"a": "c"}}, MERGE),
    Step(
        "apply",
        "PATCH",
        f"{P}/updating?fieldManager=me&force=true",
        {"apiVersion": "v1", "kind": "ConfigMap", **labelled("updating", "update-echo", data={"a": "d"})},
        APPLY,
    ),
    Step(
        "apply-new",
        "PATCH",
        f"{P}/applied?fieldManager=me",
        {"apiVersion": "v1", "kind": "ConfigMap", **labelled("applied", "echo")},
        APPLY,
    ),
    Step("deployment", "POST", D, DEPLOYMENT),
    Step("deployment-scale", "PATCH", f"{D}/dep/scale", {"spec": {"replicas": 2}}, MERGE),
    Step("equivalent-v1", "POST", H1, autoscaler("v1", "h1")),
    Step("equivalent-v2", "POST", H2, autoscaler("v2", "h2")),
    Step(
        "exact-v2",
        "POST",
        H2,
        {**autoscaler("v2", "h3"), "metadata": {"name": "h3", "labels": {"hook": "exact"}}},
    ),
    Step("deletion", "POST", P, labelled("deletion", "deletion"), compared=False),
    Step("patch-on-delete", "DELETE", f"{P}/deletion"),
    Step(
        "own-configuration",
        "PATCH",
        f"{REGISTRATION}/validatingwebhookconfigurations/webhooks-z",
        {"metadata": {"labels": {"hook": "deny"}}},
        MERGE,
        compared=False,
    ),
    Step(
        "of-namespace",
        "POST",
        "/api/v1/namespaces",
        {"metadata": {"name": "webhooks-n", "labels": {"hook": "cluster"}}},
    ),
    bad_configuration("expression", matchConditions=[{"name": "c", "expression": "foo.bar"}]),
    bad_configuration("expression-type", matchConditions=[{"name": "c", "expression": "'text'"}]),
    bad_configuration(
        "expression-field", matchConditions=[{"name": "c", "expression": "request.nothing == 'x'"}]
    ),
    bad_configuration("expression-empty", matchConditions=[{"name": "c", "expression": " "}]),
    bad_configuration("condition-name", matchConditions=[{"name": "", "expression": "true"}]),
    bad_configuration("condition-names", matchConditions=[{"name": "c", "expression": "true"}] * 2),
    bad_configuration("condition-badly-named", matchConditions=[{"name": "a b", "expression": "true"}]),
    bad_configuration(
        "conditions", matchConditions=[{"name": f"c{i}", "expression": "true"} for i in range(65)]
    ),
    bad_configuration("bundle", clientConfig={"url": "https://x/", "caBundle": "bm9wZQ=="}),
    bad_configuration("operations", rules=[{**EVERYTHING, "operations": ["*", "CREATE"]}]),
    bad_configuration("operation", rules=[{**EVERYTHING, "operations": ["READ"]}]),
    bad_configuration("groups", rules=[{**EVERYTHING, "apiGroups": ["*", "apps"]}]),
    bad_configuration("resources", rules=[{**EVERYTHING, "resources": ["*", "pods"]}]),
    bad_configuration("resource", rules=[{**EVERYTHING, "resources": ["*/*", "pods"]}]),
    bad_configuration("resource-empty", rules=[{**EVERYTHING, "resources": [""]}]),
    bad_configuration("scope", rules=[{**EVERYTHING, "scope": "Some"}]),
    bad_configuration("side-effects", sideEffects="Some"),
    Step(
        "remove-validating-a",
        "DELETE",
        f"{REGISTRATION}/validatingwebhookconfigurations/webhooks-a",
        compared=False,
    ),
    Step(
        "remove-validating-z",
        "DELETE",
        f"{REGISTRATION}/validatingwebhookconfigurations/webhooks-z",
        compared=False,
    ),
    *(
        Step(
            f"remove-mutating-{name}",
            "DELETE",
            f"{REGISTRATION}/mutatingwebhookconfigurations/webhooks-{name}",
            compared=False,
        )
        for name in "abcdz"
    ),
]
