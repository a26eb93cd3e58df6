"""Admission beyond plain writes: connections to Pods, bindings, evictions, tokens, and kinds that are never stored."""

from typing import Any

from conformance_exchange import Step
from conformance_hooks import hook_server

FIXTURE = hook_server

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
PARTS = ["exec", "attach", "portforward", "proxy", "binding", "eviction"]
RULE = {
    "operations": ["*"],
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "resources": [
        *(f"pods/{part}" for part in PARTS),
        "serviceaccounts/token",
        "services/proxy",
        "bindings",
        "localsubjectaccessreviews",
    ],
    "scope": "Namespaced",
}
CLUSTER_RULE = {
    **RULE,
    "resources": ["nodes/proxy", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"],
    "scope": "Cluster",
}
PODS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["pods"],
}
# Cluster-wide requests carry no namespace to choose by, and other scenarios ask some of the same questions.
OURS = (
    "request.name == 'connections' || (has(object.spec) && "
    "(has(object.spec.token) && object.spec.token == 'connections' || "
    "has(object.spec.user) && object.spec.user == 'connections' || "
    "has(object.spec.resourceAttributes) && object.spec.resourceAttributes.name == 'connections'))"
)


def hook(path: str, namespace: str, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": f"{path}.{namespace}.ex.io",
        "clientConfig": {"url": "https://{hook}/" + path, "caBundle": "{ca}"},
        "rules": list(rules) or [RULE],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


def configuration(kind: str, *hooks: dict[str, Any]) -> Step:
    body = {"metadata": {"name": "connections"}, "webhooks": list(hooks)}
    path = f"{REGISTRATION}/{kind}webhookconfigurations"
    return Step(f"configure-{kind}", "POST", path, body, compared=False)


def remove(plural: str) -> Step:
    return Step(f"remove-{plural}", "DELETE", f"{REGISTRATION}/{plural}/connections", compared=False)


def furnish(namespace: str) -> list[Step]:
    """Make a namespace with two Pods, a ServiceAccount and a Service."""
    place = f"/api/v1/namespaces/{namespace}"
    spec = {"containers": [{"name": "main", "image": "i"}]}
    return [
        Step(f"{namespace}", "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}, compared=False),
        *(
            Step(
                f"{namespace}-{name}",
                "POST",
                f"{place}/pods",
                {"metadata": {"name": name}, "spec": spec},
                compared=False,
            )
            for name in ("pod", "other")
        ),
        Step(
            f"{namespace}-account",
            "POST",
            f"{place}/serviceaccounts",
            {"metadata": {"name": "robot"}},
            compared=False,
        ),
        Step(
            f"{namespace}-service",
            "POST",
            f"{place}/services",
            {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}},
            compared=False,
        ),
    ]


def ask(namespace: str) -> list[Step]:
    """Ask for everything that is no plain write, once each."""
    place = f"/api/v1/namespaces/{namespace}"
    binding = {
        "metadata": {"name": "pod", "labels": {"given": "by-binding"}},
        "target": {"kind": "Node", "name": "nowhere"},
    }
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other", "labels": {}}}
    review = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": namespace}}

    def step(name: str, method: str, path: str, body: Any = None) -> Step:
        return Step(f"{namespace}-{name}", method, f"{place}/{path}", body)

    return [
        step("exec", "POST", "pods/pod/exec?command=ls&command=-l&stdout=true&container=main"),
        step("exec-by-get", "GET", "pods/pod/exec?command=ls&stdin=true&tty=true"),
        step("attach", "GET", "pods/pod/attach?stdout=1&container=main"),
        step("portforward", "POST", "pods/pod/portforward?ports=80"),
        step("proxy", "GET", "pods/pod/proxy"),
        step("proxy-path", "DELETE", "pods/pod/proxy/some/where?x=y"),
        step("proxy-service", "POST", "services/web/proxy/a"),
        step("exec-nobody", "GET", "pods/nobody/exec?command=ls"),
        step("binding-dry", "POST", "pods/pod/binding?dryRun=All", binding),
        step("binding-wrong", "POST", "pods/pod/binding", {**binding, "metadata": {"name": "other"}}),
        step("binding-aimless", "POST", "pods/pod/binding", {**binding, "target": {"name": ""}}),
        step("binding", "POST", "pods/pod/binding", binding),
        step("bindings", "POST", "bindings", {**binding, "metadata": {"name": "other"}}),
        step("eviction-dry", "POST", "pods/other/eviction?dryRun=All", eviction),
        step("eviction-wrong", "POST", "pods/pod/eviction", eviction),
        step("eviction", "POST", "pods/other/eviction", eviction),
        step("log", "GET", "pods/other/log"),
        step("token", "POST", "serviceaccounts/robot/token", {"spec": {"audiences": ["a"]}}),
        step("token-nobody", "POST", "serviceaccounts/nobody/token", {"spec": {"audiences": ["a"]}}),
        step(
            "token-short",
            "POST",
            "serviceaccounts/robot/token",
            {"spec": {"audiences": ["a"], "expirationSeconds": 1}},
        ),
        Step(
            f"{namespace}-local-review",
            "POST",
            f"/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews",
            {"spec": {**review, "user": "jane"}},
        ),
        step("after", "GET", "pods/pod"),
    ]


def validated(status: int, body: Any) -> bool:
    return status == 400 and "exec" in body["message"]


_NAMED = {"metadata": {"name": "connections-guarded"}}
_NOTHING = {**PODS, "operations": ["CREATE"], "resources": ["nothing"]}
GUARDED: dict[str, dict[str, Any]] = {
    "mutatingwebhookconfigurations": _NAMED,
    "validatingwebhookconfigurations": _NAMED,
    "validatingadmissionpolicies": {
        **_NAMED,
        "spec": {
            "matchConstraints": {"resourceRules": [_NOTHING]},
            "validations": [{"expression": "true"}],
        },
    },
    "validatingadmissionpolicybindings": {
        **_NAMED,
        "spec": {"policyName": "none", "validationActions": ["Deny"]},
    },
    "mutatingadmissionpolicies": {
        **_NAMED,
        "spec": {
            "matchConstraints": {"resourceRules": [_NOTHING]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'test'}]"}}],
            "reinvocationPolicy": "Never",
        },
    },
    "mutatingadmissionpolicybindings": {**_NAMED, "spec": {"policyName": "none"}},
}
MUTATED, VALIDATED, PASSED, RULED = "connections-a", "connections-b", "connections-c", "connections-d"

STEPS = [
    *furnish(MUTATED),
    *furnish(VALIDATED),
    *furnish(PASSED),
    *furnish(RULED),
    configuration(
        "mutating",
        hook("echo", MUTATED),
        hook("label", PASSED, {**RULE, "resources": ["pods/binding", "bindings"]}),
    ),
    configuration(
        "validating",
        hook("echo", VALIDATED),
        hook(
            "echo",
            "everywhere",
            CLUSTER_RULE,
            namespaceSelector={},
            matchConditions=[{"name": "ours", "expression": OURS}],
        ),
        # Webhooks are not called for webhook configurations: one that denies everything could never be deleted.
        hook(
            "deny",
            "guards",
            {**RULE, "apiGroups": ["admissionregistration.k8s.io"], "resources": ["*/*"], "scope": "*"},
            namespaceSelector={},
        ),
        # Evicting and binding are not deleting and updating.
        hook("deny", PASSED, PODS),
    ),
    Step(
        "wait-mutating",
        "POST",
        f"/api/v1/namespaces/{MUTATED}/pods/pod/exec?command=ls",
        until=validated,
        compared=False,
    ),
    Step(
        "wait-validating",
        "POST",
        f"/api/v1/namespaces/{VALIDATED}/pods/pod/exec?command=ls",
        until=validated,
        compared=False,
    ),
    *ask(MUTATED),
    *ask(VALIDATED),
    # Without endpoints there is nothing to compare behind a Service.
    *(step for step in ask(PASSED) if not step.name.endswith("proxy-service")),
    *(
        step
        for plural, body in GUARDED.items()
        for step in (
            Step(f"guarded-{plural}", "POST", f"{REGISTRATION}/{plural}", body),
            Step(
                f"guarded-change-{plural}",
                "PATCH",
                f"{REGISTRATION}/{plural}/connections-guarded",
                {"metadata": {"labels": {"a": "b"}}},
                {"Content-Type": "application/merge-patch+json"},
            ),
            Step(f"guarded-delete-{plural}", "DELETE", f"{REGISTRATION}/{plural}/connections-guarded"),
        )
    ),
    Step("node-proxy", "GET", "/api/v1/nodes/connections/proxy/metrics"),
    Step(
        "token-review",
        "POST",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"spec": {"token": "connections"}},
    ),
    Step(
        "access-review",
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {"spec": {"user": "connections", "resourceAttributes": {"verb": "get", "resource": "pods"}}},
    ),
    Step(
        "own-access-review",
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "name": "connections"}}},
    ),
    Step(
        "policy",
        "POST",
        f"{REGISTRATION}/validatingadmissionpolicies",
        {
            "metadata": {"name": "connections"},
            "spec": {
                "matchConstraints": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": RULED}},
                    "resourceRules": [RULE],
                },
                "validations": [
                    {
                        "expression": "false",
                        "messageExpression": (
                            "request.operation + ' ' + request.subResource + ' ' + request.kind.kind + "
                            "(has(object.container) ? ' in ' + object.container : '') + "
                            "(has(object.target) ? ' on ' + object.target.name : '')"
                        ),
                    }
                ],
            },
        },
        compared=False,
    ),
    Step(
        "policy-binding",
        "POST",
        f"{REGISTRATION}/validatingadmissionpolicybindings",
        {
            "metadata": {"name": "connections"},
            "spec": {"policyName": "connections", "validationActions": ["Deny"]},
        },
        compared=False,
    ),
    Step(
        "wait-policy",
        "POST",
        f"/api/v1/namespaces/{RULED}/pods/pod/exec?command=ls",
        until=lambda status, body: status == 422,
        compared=False,
    ),
    *ask(RULED),
    remove("mutatingwebhookconfigurations"),
    remove("validatingwebhookconfigurations"),
    remove("validatingadmissionpolicybindings"),
    remove("validatingadmissionpolicies"),
]
