"""Deleting: preconditions, finalizers, propagation, collections."""

from conformance_exchange import Step

P = "/api/v1/namespaces/deletions/configmaps"
MERGE = {"Content-Type": "application/merge-patch+json"}


def make(name: str, **meta: object) -> Step:
    return Step(f"make-{name}", "POST", P, {"metadata": {"name": name, **meta}}, compared=False)


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "deletions"}}, compared=False),
    make("s1"),
    Step("missing", "DELETE", f"{P}/nope"),
    Step(
        "other-uid",
        "DELETE",
        f"{P}/s1",
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "zz"}},
    ),
    Step("other-version", "DELETE", f"{P}/s1", {"preconditions": {"resourceVersion": "1"}}),
    Step("bad-propagation", "DELETE", f"{P}/s1", {"propagationPolicy": "Bogus"}),
    Step("two-policies", "DELETE", f"{P}/s1", {"propagationPolicy": "Background", "orphanDependents": True}),
    Step("bad-dry-run", "DELETE", f"{P}/s1?dryRun=Foo"),
    Step("bad-grace", "DELETE", f"{P}/s1?gracePeriodSeconds=x"),
    Step("bad-body", "DELETE", f"{P}/s1", "{bad"),
    Step("wrong-kind-body", "DELETE", f"{P}/s1", {"kind": "ConfigMap", "apiVersion": "v1"}),
    Step("dry-run", "DELETE", f"{P}/s1?dryRun=All"),
    Step("dry-run-in-body", "DELETE", f"{P}/s1", {"dryRun": ["All"]}),
    Step("still-there", "GET", f"{P}/s1"),
    Step("delete", "DELETE", f"{P}/s1"),
    Step("gone", "GET", f"{P}/s1"),
    make("f1", finalizers=["x.io/f"]),
    Step("with-finalizer", "DELETE", f"{P}/f1"),
    Step("with-finalizer-again", "DELETE", f"{P}/f1"),
    Step("create-while-deleting", "POST", P, {"metadata": {"name": "f1"}}),
    Step("add-finalizer", "PATCH", f"{P}/f1", {"metadata": {"finalizers": ["x.io/f", "x.io/g"]}}, MERGE),
    Step("undelete", "PATCH", f"{P}/f1", {"metadata": {"deletionTimestamp": None}}, MERGE),
    Step("change-while-deleting", "PATCH", f"{P}/f1", {"data": {"a": "b"}}, MERGE),
    Step("last-finalizer", "PATCH", f"{P}/f1", {"metadata": {"finalizers": None}}, MERGE),
    Step("gone-with-it", "GET", f"{P}/f1"),
    make("f3"),
    Step("foreground", "DELETE", f"{P}/f3?propagationPolicy=Foreground"),
    Step("waiting", "GET", f"{P}/f3"),
    Step("foreground-then-background", "DELETE", f"{P}/f3?propagationPolicy=Background"),
    make("f4"),
    Step("orphan", "DELETE", f"{P}/f4?propagationPolicy=Orphan"),
    make("f5"),
    Step("background", "DELETE", f"{P}/f5?propagationPolicy=Background&gracePeriodSeconds=0"),
    make("f6"),
    Step("old-orphan", "DELETE", f"{P}/f6?orphanDependents=true"),
    make("f7"),
    Step("old-cascade", "DELETE", f"{P}/f7?orphanDependents=false"),
    make("f8", finalizers=["x.io/f"]),
    Step("old-cascade-waiting", "DELETE", f"{P}/f8?orphanDependents=false"),
    make("f9", finalizers=["x.io/f"]),
    Step("dry-run-with-finalizer", "DELETE", f"{P}/f9?dryRun=All"),
    Step("not-marked", "GET", f"{P}/f9"),
    Step(
        "set-deletion", "PATCH", f"{P}/f9", {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}, MERGE
    ),
    make("c1", labels={"g": "l"}),
    make("c2", labels={"g": "l"}),
    make("c3", labels={"g": "l"}, finalizers=["x.io/f"]),
    Step("collection", "DELETE", f"{P}?labelSelector=g%3Dl"),
    Step("collection-left", "GET", f"{P}?labelSelector=g%3Dl"),
    Step("collection-dry-run", "DELETE", f"{P}?dryRun=All"),
    Step("collection-bad-selector", "DELETE", f"{P}?labelSelector=g%20in"),
    Step("collection-everywhere", "DELETE", "/api/v1/configmaps"),
    Step("collection-of-namespaces", "DELETE", "/api/v1/namespaces"),
    Step("immortal", "DELETE", "/api/v1/namespaces/default"),
    Step("make-nd", "POST", "/api/v1/namespaces", {"metadata": {"name": "nd"}}, compared=False),
    Step("namespace-delete", "DELETE", "/api/v1/namespaces/nd"),
    Step("create-in-terminating", "POST", "/api/v1/namespaces/nd/configmaps", {"metadata": {"name": "x"}}),
    Step("namespace-delete-again", "DELETE", "/api/v1/namespaces/nd"),
    Step(
        "finalize",
        "PUT",
        "/api/v1/namespaces/nd/finalize",
        {"metadata": {"name": "nd"}, "spec": {"finalizers": []}},
    ),
    Step("namespace-gone", "GET", "/api/v1/namespaces/nd"),
]
