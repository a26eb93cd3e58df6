"""Requests with webhooks, policies, versions and quotas that `scripts/compare` found to be answered differently."""

from typing import Any

from conformance_exchange import Step
from conformance_hooks import hook_server

FIXTURE = hook_server

R = "/apis/admissionregistration.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "compared-admission.ex.io"
NAMESPACE = "compared-admission"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
THINGS = f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/things"
LATER_THINGS = THINGS.replace("/v1/", "/v2/")
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
OWN = {"matchLabels": {"own": NAMESPACE}}


def rule(*resources: str, operations: tuple[str, ...] = ("*",)) -> dict[str, Any]:
    return {
        "operations": list(operations),
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "resources": list(resources),
        "scope": "Namespaced",
    }


def hook(path: str, **more: Any) -> dict[str, Any]:
    return {
        "name": f"{path}.ex.io",
        "clientConfig": {"url": f"https://{{hook}}/{path}", "caBundle": "{ca}"},
        "rules": [rule("configmaps")],
        "namespaceSelector": OWN,
        "objectSelector": {"matchLabels": {"hook": path}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


def configure(kind: str, *hooks: dict[str, Any]) -> Step:
    body = {"metadata": {"name": NAMESPACE}, "webhooks": list(hooks)}
    return Step(f"configure-{kind}", "POST", f"{R}/{kind}webhookconfigurations", body, compared=False)


def labelled(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


def is_denied(status: int, body: Any) -> bool:
    return status >= 400


def is_served(status: int, body: Any) -> bool:
    return status == 200


RESPONSES = (
    *("deny-odd", "deny-details", "warn-empty", "warn-text", "allowed-text", "audit-text", "versionless"),
    *("versionless-pod", "version-number", "truncated", "trailing", "null", "success-status"),
)
CHANGES = (
    *("remove-metadata", "remove-name", "kind-true", "kind-text", "kind-pod", "kind-null"),
    *("version-true", "version-text", "version-gone", "whole-text"),
)
EXISTING = {"name": "existing", "generateName": "existing-"}
GENERATED = [
    Step("denied-name", "POST", MAPS, {"metadata": {**EXISTING, "labels": {"hook": "deny-exists"}}}),
    Step(
        "denied-generated-name",
        "POST",
        MAPS,
        {"metadata": {"generateName": "existing-", "labels": {"hook": "deny-exists"}}},
    ),
    Step(
        "denied-applied-name",
        "PATCH",
        f"{MAPS}/existing?fieldManager=one",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**EXISTING, "labels": {"hook": "deny-exists"}},
        },
        APPLY,
    ),
    Step("existing-name", "POST", MAPS, {"metadata": {**EXISTING, "finalizers": ["ex.io/f"]}}),
    Step("taken-name", "POST", MAPS, {"metadata": EXISTING}),
    Step("delete-existing", "DELETE", f"{MAPS}/existing", compared=False),
    Step("deleted-name", "POST", MAPS, {"metadata": EXISTING}),
]
WEBHOOKS = [
    configure("validating", *map(hook, RESPONSES), hook("deny-exists"), hook("deny")),
    Step(
        "wait-validating",
        "POST",
        f"{MAPS}?dryRun=All",
        labelled("w", hook="deny"),
        until=is_denied,
        compared=False,
    ),
    *(
        Step(f"response-{name}", "POST", f"{MAPS}?dryRun=All", labelled(name, hook=name))
        for name in RESPONSES
    ),
    *GENERATED,
    *(Step(f"map-{name}", "POST", MAPS, labelled(name), compared=False) for name in CHANGES),
    Step("secret", "POST", SECRETS, labelled("s"), compared=False),
    Step("account", "POST", ACCOUNTS, labelled("s", hook="merge"), compared=False),
    configure(
        "mutating",
        *map(hook, CHANGES),
        hook("label", rules=[rule("secrets", operations=("DELETE",))], objectSelector=OWN),
        hook("merge", rules=[rule("serviceaccounts", operations=("DELETE",))], failurePolicy="Ignore"),
        hook("deny"),
    ),
    Step(
        "wait-mutating",
        "POST",
        f"{MAPS}?dryRun=All",
        labelled("w", hook="deny"),
        until=is_denied,
        compared=False,
    ),
    *(
        Step(f"change-{name}", "PATCH", f"{MAPS}/{name}", {"metadata": {"labels": {"hook": name}}}, MERGE)
        for name in CHANGES
    ),
    Step(
        "secret-labels",
        "PATCH",
        f"{SECRETS}/s",
        {"metadata": {"labels": {"own": NAMESPACE}}},
        MERGE,
        compared=False,
    ),
    Step("delete-with-a-patch", "DELETE", f"{SECRETS}/s"),
    Step("delete-all-with-a-patch", "DELETE", SECRETS),
    Step("delete-with-a-patch-of-another-type", "DELETE", f"{ACCOUNTS}/s"),
    Step("delete-validating", "DELETE", f"{R}/validatingwebhookconfigurations/{NAMESPACE}", compared=False),
    Step("delete-mutating", "DELETE", f"{R}/mutatingwebhookconfigurations/{NAMESPACE}", compared=False),
]


def policy(name: str, expression: str, **more: Any) -> dict[str, Any]:
    constraints = {
        "resourceRules": [rule("configmaps", operations=("CREATE",))],
        "namespaceSelector": OWN,
        "objectSelector": {"matchLabels": {"policy": name}},
    }
    spec = {"matchConstraints": constraints, "validations": [{"expression": expression}], **more}
    return {"metadata": {"name": f"{NAMESPACE}-{name}"}, "spec": spec}


def binding(name: str) -> dict[str, Any]:
    spec = {"policyName": f"{NAMESPACE}-{name}", "validationActions": ["Deny"]}
    return {"metadata": {"name": f"{NAMESPACE}-{name}"}, "spec": spec}


POLICIES = {
    "condition": policy(
        "condition",
        "namespaceObject.metadata.name == 'other'",
        matchConditions=[{"name": "c", "expression": "namespaceObject.metadata.name != 'other'"}],
    ),
    "wait": policy("wait", "false"),
}
POLICY_STEPS = [
    *(
        Step(f"policy-{name}", "POST", f"{R}/validatingadmissionpolicies", body, compared=False)
        for name, body in POLICIES.items()
    ),
    *(
        Step(
            f"binding-{name}", "POST", f"{R}/validatingadmissionpolicybindings", binding(name), compared=False
        )
        for name in POLICIES
    ),
    Step(
        "wait-policies",
        "POST",
        f"{MAPS}?dryRun=All",
        labelled("w", policy="wait"),
        until=is_denied,
        compared=False,
    ),
    Step("namespace-in-a-match-condition", "POST", MAPS, labelled("condition", policy="condition")),
    *(
        Step(
            f"delete-{kind}-{name}",
            "DELETE",
            f"{R}/validatingadmission{kind}/{NAMESPACE}-{name}",
            compared=False,
        )
        for kind in ("policies", "policybindings")
        for name in POLICIES
    ),
    Step(
        "annotation-of-unknown-type",
        "POST",
        f"{R}/validatingadmissionpolicies",
        policy(
            "annotation",
            "true",
            auditAnnotations=[{"key": "k", "valueExpression": "{'a': object}['b'.substring(0, int('x'))]"}],
        ),
    ),
    Step(
        "type-of-an-empty-list",
        "POST",
        f"{R}/validatingadmissionpolicies?dryRun=All",
        policy("list", "[].map(x, x + object.kind).all(x, x.size() > 1)"),
    ),
]


def version(name: str, column: str, **fields: Any) -> dict[str, Any]:
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": fields}
    return {
        "name": name,
        "served": True,
        "storage": name == "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        "additionalPrinterColumns": [{"name": column, "type": "string", "jsonPath": ".spec.color"}],
    }


def versions(column: str, **fields: Any) -> list[Any]:
    return [version("v1", column, **fields), version("v2", column)]


def strict(name: str, **fields: Any) -> dict[str, Any]:
    made = version(name, "Fourth", **fields)
    del made["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"]
    return made


def has_column(name: str) -> Any:
    def check(status: int, body: Any) -> bool:
        return status == 200 and any(column["name"] == name for column in body["columnDefinitions"])

    return check


DEFINITION: dict[str, Any] = {
    "metadata": {"name": f"things.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": versions("First"),
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"url": "https://{hook}/convert", "caBundle": "{ca}"},
                "conversionReviewVersions": ["v1"],
            },
        },
    },
}
PLAIN: dict[str, Any] = {
    "spec": {"versions": versions("Second"), "conversion": {"strategy": "None", "webhook": None}}
}
DEFAULTED: dict[str, Any] = {
    "spec": {"versions": versions("Third", color={"type": "string", "default": "red"})}
}
STRICT = {
    "spec": {
        "versions": [
            strict("v1", size={"type": "integer"}),
            strict("v2", dimensions={"type": "object", "properties": {"size": {"type": "integer"}}}),
        ]
    }
}


def applied(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{name}", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}


THING = {
    "apiVersion": f"{GROUP}/v2",
    "kind": "Thing",
    "metadata": {"name": "t"},
    "spec": {"dimensions": {"size": 5}},
}
ONE = f"{DEFINITIONS}/things.{GROUP}"


def wait(column: str) -> Step:
    path = f"/apis/{GROUP}/v1/namespaces/none/things"
    return Step(f"wait-{column}", "GET", path, headers=TABLE, until=has_column(column), compared=False)


VERSIONS = [
    Step("definition", "POST", DEFINITIONS, DEFINITION, compared=False),
    wait("First"),
    Step("thing", "POST", LATER_THINGS, THING, compared=False),
    Step("thing-converted", "GET", f"{LATER_THINGS}/t", pick=lambda body, _: body["spec"]),
    Step("no-conversion", "PATCH", ONE, PLAIN, MERGE, compared=False),
    wait("Second"),
    Step("thing-no-longer-converted", "GET", f"{LATER_THINGS}/t", pick=lambda body, _: body["spec"]),
    Step("new-default", "PATCH", ONE, DEFAULTED, MERGE, compared=False),
    wait("Third"),
    Step(
        "thing-with-a-default-of-its-stored-version",
        "GET",
        f"{LATER_THINGS}/t",
        pick=lambda body, _: body["spec"],
    ),
    Step("strict-schemas", "PATCH", ONE, STRICT, MERGE, compared=False),
    wait("Fourth"),
    Step(
        "apply-a-version",
        "PATCH",
        f"{THINGS}/a?fieldManager=one",
        applied("v1", size=1),
        APPLY,
        compared=False,
    ),
    Step(
        "apply-another-version",
        "PATCH",
        f"{LATER_THINGS}/a?fieldManager=two",
        applied("v2", dimensions={}),
        APPLY,
    ),
    Step(
        "unknown-stored-versions",
        "PATCH",
        f"{ONE}/status",
        {"status": {"storedVersions": ["v1", "v9", "v9"]}},
        MERGE,
    ),
    Step("patch-with-unknown-stored-versions", "PATCH", ONE, {"metadata": {"labels": {"a": "b"}}}, MERGE),
    Step("delete-definition", "DELETE", ONE, compared=False),
]
ROLES = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"
QUOTAS = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"


def quota(name: str, resource: str, *requirements: tuple[str, str, list[str]]) -> Step:
    expressions = [
        {"scopeName": scope, "operator": operator, **({"values": values} if values else {})}
        for scope, operator, values in requirements
    ]
    spec = {"hard": {resource: "1"}, "scopeSelector": {"matchExpressions": expressions}}
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec}
    return Step(f"quota-{name}", "PATCH", f"{QUOTAS}/{name}?fieldManager=one", body, APPLY)


OTHERS = [
    Step(
        "put-with-a-revision",
        "PUT",
        f"{ROLES}/new",
        {
            "metadata": {"name": "new", "resourceVersion": "1"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "none"},
        },
    ),
    quota("class-of-claims", "persistentvolumeclaims", ("PriorityClass", "In", ["a"])),
    quota("claims", "persistentvolumeclaims", ("VolumeAttributesClass", "In", ["a"])),
    quota("pods-of-claims", "pods", ("VolumeAttributesClass", "In", ["a"])),
    quota("ephemeral", "requests.ephemeral-storage", ("NotBestEffort", "Exists", [])),
    quota("best-effort", "pods", ("BestEffort", "In", ["a"])),
    quota("both", "pods", ("BestEffort", "Exists", []), ("NotBestEffort", "Exists", [])),
]
STEPS = [
    Step(
        "namespace",
        "POST",
        "/api/v1/namespaces",
        {"metadata": {"name": NAMESPACE, "labels": {"own": NAMESPACE}}},
        compared=False,
    ),
    *WEBHOOKS,
    *POLICY_STEPS,
    *VERSIONS,
    *OTHERS,
]
