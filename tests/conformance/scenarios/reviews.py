"""Questions about access, tokens that are bound to something, evictions, and odd ways to list and watch."""

from typing import Any

from conformance_exchange import Step

N = "/namespaces/reviews"
P = f"/api/v1{N}/pods"
S = f"/api/v1{N}/serviceaccounts"
A = "/apis/authorization.k8s.io/v1"
B = f"/apis/policy/v1{N}/poddisruptionbudgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
C = f"/apis/reviews.ex.io/v1{N}/rows"
MERGE = {"Content-Type": "application/merge-patch+json"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
INITIAL = "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
OTHER_VERSION = "eyJ2IjoieCIsInJ2IjoxLCJzdGFydCI6ImEifQ"


def access(name: str, **spec: Any) -> Step:
    return Step(name, "POST", f"{A}/subjectaccessreviews", {"spec": {"user": "jane", **spec}})


def resource(**attributes: Any) -> dict[str, Any]:
    return {"namespace": "reviews", "verb": "list", "resource": "pods", **attributes}


def token(name: str, body: Any = None, **spec: Any) -> Step:
    return Step(name, "POST", f"{S}/bot/token", {"spec": spec, **(body or {})})


def bound(kind: str, name: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": kind, "name": name}


def evict(name: str, pod: str, **more: Any) -> Step:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}, **more}
    return Step(name, "POST", f"{P}/{pod}/eviction", body)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "x"}]
    return {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": {"containers": containers, **spec}}


def column(name: str, kind: str, path: str) -> dict[str, str]:
    return {"name": name, "type": kind, "jsonPath": path}


COLUMNS = [
    column("Text", "string", ".spec.text"),
    column("Whole", "integer", ".spec.number"),
    column("Number", "number", ".spec.number"),
    column("Flag", "boolean", ".spec.flag"),
    column("Date", "date", ".spec.date"),
    column("List", "string", ".spec.list"),
    column("Last", "string", ".spec.list[-1]"),
    column("Ready", "string", '.spec.list[?(@.type=="Ready")].status'),
    column("Age", "date", ".metadata.creationTimestamp"),
]
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN}}}
VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": SCHEMA,
    "additionalPrinterColumns": COLUMNS,
}
CRD = {
    "metadata": {"name": "rows.reviews.ex.io"},
    "spec": {
        "group": "reviews.ex.io",
        "scope": "Namespaced",
        "names": {"plural": "rows", "kind": "Row"},
        "versions": [VERSION],
    },
}
ROWS: dict[str, Any] = {
    "full": {
        "text": "x",
        "number": 3,
        "flag": True,
        "date": "2020-01-01T00:00:00Z",
        "list": [{"type": "Ready", "status": "True"}],
    },
    "empty": {},
    "null": {"text": None, "number": None, "flag": None, "date": None, "list": [None]},
    "wrong": {"text": 3, "number": "x", "flag": "y", "date": 5, "list": "z"},
    "odd": {"text": True, "number": 1.5, "date": "garbage", "list": []},
}

STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "reviews"}}, compared=False),
    Step("account", "POST", S, {"metadata": {"name": "bot"}}, compared=False),
    Step("pod", "POST", P, pod("one", serviceAccountName="bot"), compared=False),
    # Access
    access(
        "both-attributes", resourceAttributes=resource(), nonResourceAttributes={"path": "/x", "verb": "get"}
    ),
    access("field-selector", resourceAttributes=resource(fieldSelector={"rawSelector": "metadata.name=x"})),
    access("empty-selector", resourceAttributes=resource(labelSelector={})),
    access(
        "two-selectors",
        resourceAttributes=resource(
            labelSelector={"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]}
        ),
    ),
    Step(
        "rules",
        "POST",
        f"{A}/selfsubjectrulesreviews",
        {"spec": {"namespace": "reviews"}},
        user="mallory",
        # The rules themselves come in no fixed order.
        pick=lambda body, _: {name: body[name] for name in ("metadata", "spec")},
    ),
    # Tokens
    token("token", expirationSeconds=600),
    token("token-too-long", expirationSeconds=2**33),
    token("token-of-another-name", {"metadata": {"name": "other"}}),
    token("token-bound-to-pod", boundObjectRef=bound("Pod", "one")),
    token("token-bound-to-no-node", boundObjectRef=bound("Node", "nope")),
    token("token-bound-to-a-map", boundObjectRef=bound("ConfigMap", "x")),
    # Evictions
    Step(
        "budget",
        "POST",
        B,
        {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}},
    ),
    Step(
        "runs",
        "PATCH",
        f"{P}/one/status",
        {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
        MERGE,
        compared=False,
    ),
    evict("evict-unseen-budget", "one"),
    Step(
        "budget-allows",
        "PATCH",
        f"{B}/b/status",
        {
            "status": {
                "observedGeneration": 1,
                "disruptionsAllowed": 1,
                "currentHealthy": 2,
                "desiredHealthy": 1,
                "expectedPods": 2,
            }
        },
        MERGE,
        compared=False,
    ),
    evict("evict-rehearsed", "one", deleteOptions={"dryRun": ["All"]}),
    evict(
        "evict-by-the-first-version", "one", apiVersion="policy/v1beta1", deleteOptions={"dryRun": ["All"]}
    ),
    evict("evict-of-another-uid", "one", deleteOptions={"preconditions": {"uid": "x"}}),
    # Lists and watches
    Step("watch-begins-with-state", "GET", f"{P}?{INITIAL}&allowWatchBookmarks=true"),
    Step("watch-table-begins-with-state", "GET", f"{P}?{INITIAL}&allowWatchBookmarks=true", headers=TABLE),
    Step("watch-continued", "GET", f"{P}?watch=1&continue=x"),
    Step("list-continued-in-another-version", "GET", f"{P}?continue={OTHER_VERSION}"),
    evict("evict", "one"),
    Step("budget-spent", "GET", f"{B}/b"),
    # Columns
    Step("definition", "POST", CRDS, CRD, compared=False),
    Step("rows-served", "GET", C, until=lambda status, _: status == 200, compared=False),
    *(
        Step(
            f"row-{name}",
            "POST",
            C,
            {"apiVersion": "reviews.ex.io/v1", "kind": "Row", "metadata": {"name": name}, "spec": spec},
            until=lambda status, _: status != 429,
        )
        for name, spec in ROWS.items()
    ),
    Step("rows", "GET", f"{C}?includeObject=None", headers=TABLE),
]
