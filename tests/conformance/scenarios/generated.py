"""The smallest requests on which generated ones (`scripts/compare`) showed a difference."""

from conformance_exchange import Step

NAMESPACE = "generated"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
P = f"{CORE}/configmaps"
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
YAML = {"Content-Type": "application/yaml"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
PARTIAL_LIST = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
ROBOT = {"Impersonate-User": f"system:serviceaccount:{NAMESPACE}:robot"}
JOB = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
BUDGET = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
LIMITS = f"{CORE}/limitranges"
DRY = "dryRun=All"


def limited(name: str, kind: str, **parts: dict[str, str]) -> Step:
    body = {"metadata": {"name": "x"}, "spec": {"limits": [{"type": kind, **parts}]}}
    return Step(f"limit-{name}", "POST", LIMITS, body)


def binding(name: str, role: str) -> dict[str, object]:
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": role},
        "subjects": [{"kind": "Group", "name": f"system:serviceaccounts:{NAMESPACE}", "apiGroup": group}],
    }


def policy(name: str, expression: str) -> dict[str, object]:
    rule = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]}
    return {"metadata": {"name": name}, "spec": spec}


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    # A PUT checks the body before it looks for the object.
    Step("put-other-name-of-nothing", "PUT", f"{P}/none", {"metadata": {"name": "other"}}),
    Step("put-nameless-to-nothing", "PUT", f"{P}/none", {}),
    Step("put-other-namespace-to-nothing", "PUT", f"{P}/none", {"metadata": {"name": "x", "namespace": "y"}}),
    Step("put-uid-of-no-lease", "PUT", f"{LEASES}/x", {"metadata": {"name": "x", "uid": "y"}}),
    Step("put-uid-of-no-lease-dry", "PUT", f"{LEASES}/x?{DRY}", {"metadata": {"name": "x", "uid": "y"}}),
    Step(
        "apply-revision-of-nothing",
        "PATCH",
        f"{P}/none?fieldManager=m",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "none", "resourceVersion": "x"}},
        APPLY,
    ),
    # Times and quantities end decoding; other wrong types do not.
    Step("time-after-wrong-type", "POST", JOB, {"status": {"active": [], "startTime": "50%"}}),
    Step(
        "quantity-after-wrong-type", "POST", LIMITS, {"spec": {"limits": [{"type": 1, "max": {"cpu": "x"}}]}}
    ),
    Step("time-that-is-not-ascii", "POST", P, {"metadata": {"creationTimestamp": 'é\n"'}}),
    # Metadata of some kinds is checked only if the rest is valid.
    Step("budget-with-two-errors", "POST", BUDGET, {"metadata": {}, "spec": {"minAvailable": "200%"}}),
    Step("budget-without-a-name", "POST", BUDGET, {"metadata": {"annotations": {"a=b": ""}}, "spec": {}}),
    Step(
        "event-with-two-errors", "POST", f"{CORE}/events", {"metadata": {"name": "x", "finalizers": ["x y"]}}
    ),
    # Names of apiVersion and kind in any case; what is unknown is reported once, and in order.
    Step("kind-is-capital", "POST", f"{P}?{DRY}", {"metadata": {"name": "x"}, "Kind": "x"}),
    Step("kind-is-capital-number", "POST", f"{P}?{DRY}", {"metadata": {"name": "x"}, "Kind": 1}),
    Step("version-is-capital-list", "POST", f"{P}?{DRY}", {"metadata": {"name": "x"}, "APIVersion": []}),
    Step("repeated-unknown", "POST", f"{P}?{DRY}", '{"metadata":{"name":"x"},"b":1,"b":1,"a":{"c":1,"c":1}}'),
    Step("yaml-unknown", "POST", f"{P}?{DRY}", "b: 1\nmetadata:\n  name: x\n  z: 1\na: 1\n", YAML),
    Step(
        "yaml-repeated-strict",
        "POST",
        f"{P}?{DRY}&fieldValidation=Strict",
        '{"metadata":{"name":"x"},"kind":"ConfigMap","kind":"ConfigMap","a":1}',
        YAML,
    ),
    Step("create", "POST", P, {"metadata": {"name": "made", "selfLink": "/x"}}),
    Step("merge-unknown", "PATCH", f"{P}/made?{DRY}", {"z": 1, "metadata": {"y": 1, "x": 1}, "b": 1}, MERGE),
    Step("merge-kind", "PATCH", f"{P}/made?{DRY}", {"Kind": 1}, MERGE),
    Step("strategic-unknown", "PATCH", f"{P}/made?{DRY}", {"metadata": {"y": 1}, "b": 1, "a": 1}, STRATEGIC),
    Step("merge-self-link", "PATCH", f"{P}/made", {"metadata": {"selfLink": "/y"}}, MERGE),
    Step(
        "apply-repeated-and-undeclared",
        "PATCH",
        f"{P}/made?fieldManager=m&fieldValidation=Strict",
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"made","name":"made"},"bogus":1}',
        APPLY,
    ),
    Step(
        "apply-repeated-and-undeclared-warns",
        "PATCH",
        f"{P}/made?fieldManager=m",
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"made","name":"made"},"bogus":1}',
        APPLY,
    ),
    Step("create-with-both-names", "POST", P, {"metadata": {"name": "made", "generateName": "gen-"}}),
    # Limits name resources that exist.
    limited("unknown-of-container", "Container", max={"cpus": "1"}),
    limited("pods-of-pod", "Pod", min={"pods": "1"}),
    limited("unknown-of-box", "ex.io/box", max={"cpus": "1", "a.b/c": "1"}),
    # Lists read their options before the format of the response is checked.
    Step("list-partial-bad-labels", "GET", f"{P}?labelSelector=a,,b", headers=PARTIAL),
    Step("list-partial-bad-field", "GET", f"{P}?fieldSelector=nope%3D1", headers=PARTIAL),
    Step("list-bad-labels-and-match", "GET", f"{P}?labelSelector=-x&resourceVersionMatch=Exact"),
    Step("list-partial-empty", "GET", f"{CORE}/endpoints", headers=PARTIAL_LIST),
    *(
        Step(f"page-{name}", "POST", f"{CORE}/secrets", {"metadata": {"name": name}}, compared=False)
        for name in "abcde"
    ),
    Step("page-first", "GET", f"{CORE}/secrets?limit=2", save={"token": "metadata.continue"}, compared=False),
    Step("page-from-cache", "GET", f"{CORE}/secrets?limit=2&resourceVersion=0&continue={{token}}"),
    Step(
        "page-labels",
        "PATCH",
        f"{CORE}/secrets/b",
        {"metadata": {"labels": {"l": "b"}}},
        MERGE,
        compared=False,
    ),
    Step("page-full-of-the-last-match", "GET", f"{CORE}/secrets?limit=1&labelSelector=l%3Db"),
    # Scopes of a quota stay; a deprecated type of slices is warned of; used directives are not shown.
    Step("quota", "POST", f"{CORE}/resourcequotas", {"metadata": {"name": "x"}}, compared=False),
    Step(
        "quota-scopes",
        "PATCH",
        f"{CORE}/resourcequotas/x?{DRY}",
        {"spec": {"scopes": ["Terminating", "NotTerminating"]}},
        MERGE,
    ),
    Step("slice-of-names", "POST", f"{SLICES}?{DRY}", {"metadata": {"name": "x"}, "addressType": "FQDN"}),
    Step("lease", "POST", LEASES, {"metadata": {"name": "y"}}, compared=False),
    Step(
        "strategic-replace-shown",
        "PATCH",
        f"{LEASES}/y",
        {"spec": {"renewTime": "-a", "$patch": "replace"}},
        STRATEGIC,
    ),
    # Bindings to roles that do not exist.
    Step("binding-one", "POST", f"{RBAC}/rolebindings", binding("one", "gone"), compared=False),
    Step("binding-two", "POST", f"{RBAC}/rolebindings", binding("two", "gone"), compared=False),
    Step(
        "forbidden-with-a-missing-role",
        "GET",
        f"{P}/made",
        headers=ROBOT,
        until=lambda status, body: "not found" in body["message"],
    ),
    Step(
        "rules-with-a-missing-role",
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        {"spec": {"namespace": NAMESPACE}},
        ROBOT,
        pick=lambda body, values: body["status"]["evaluationError"],
    ),
    # A reserved word of CEL names a field of requests and namespaces.
    Step("policy-request", "POST", f"{POLICIES}?{DRY}", policy("generated-a", "request.namespace == 'x'")),
    Step(
        "policy-namespace",
        "POST",
        f"{POLICIES}?{DRY}",
        policy("generated-b", "namespaceObject.metadata.namespace == ''"),
    ),
    Step(
        "policy-escaped", "POST", f"{POLICIES}?{DRY}", policy("generated-c", "request.__namespace__ == 'x'")
    ),
]
