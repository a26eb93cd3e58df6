"""Strategic patches that order, keep and delete, what is said of values that do not fit, and checks of updates."""

from typing import Any

from conformance_exchange import Step

N = "/namespaces/directives"
D = f"/apis/apps/v1{N}/deployments"
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "containers": [
            {"name": "one", "image": "x", "args": ["p", "q"], "ports": [{"containerPort": 80}]},
            {"name": "two", "image": "y", "env": [{"name": "E", "value": "1"}]},
        ],
        "tolerations": [{"key": "k", "operator": "Exists"}],
    },
}
DEPLOYMENT = {
    "metadata": {"name": "d", "finalizers": ["ex.io/one", "ex.io/two"]},
    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
}


def strategic(name: str, patch: Any, path: str = f"{D}/d", query: str = "dryRun=All") -> Step:
    return Step(name, "PATCH", f"{path}?{query}", patch, STRATEGIC)


def containers(found: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": found}}}}


def ordered(order: Any, **patch: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"$setElementOrder/containers": order, **patch}}}}


def finalized(name: str, path: str) -> Step:
    return Step(name, "PATCH", f"{path}?dryRun=All", {"metadata": {"finalizers": ["plain"]}}, MERGE)


AUTOSCALER = {
    "metadata": {"name": "h"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 70,
    },
    "status": {"currentReplicas": 2, "desiredReplicas": 3, "currentCPUUtilizationPercentage": 55},
}
H = f"/apis/autoscaling/v1{N}/horizontalpodautoscalers"
EVENT = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "eventTime": "yesterday",
}
SLICE = {"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": [], "ports": []}
S = f"/apis/discovery.k8s.io/v1{N}/endpointslices"
DRIVER = {
    "metadata": {"name": "directives.ex.io"},
    "spec": {"attachRequired": True, "tokenRequests": [{"audience": "a"}]},
}
DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
SET = {
    "metadata": {"name": "ds"},
    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
}
CLASSES = "/apis/storage.k8s.io/v1/volumeattributesclasses"

STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "directives"}}, compared=False),
    Step("create", "POST", D, DEPLOYMENT),
    strategic("order-alone", ordered([{"name": "two"}, {"name": "one"}])),
    strategic(
        "order-with-list",
        ordered([{"name": "two"}, {"name": "one"}], containers=[{"name": "one", "image": "z"}]),
    ),
    strategic(
        "order-with-new",
        ordered([{"name": "new"}, {"name": "one"}], containers=[{"name": "new", "image": "z"}]),
    ),
    strategic(
        "order-with-delete", ordered([{"name": "two"}], containers=[{"name": "one", "$patch": "delete"}])
    ),
    strategic("order-mismatch", ordered([{"name": "one"}], containers=[{"name": "two", "image": "z"}])),
    strategic("order-with-null", ordered([{"name": "one"}], containers=None)),
    strategic("order-of-text", ordered("one")),
    strategic("order-without-key", ordered([{"image": "x"}])),
    strategic("order-with-text", ordered(["one"])),
    strategic("order-of-nothing-known", {"spec": {"$setElementOrder/nothing": []}}),
    strategic("order-without-name", {"spec": {"$setElementOrder": []}}),
    strategic(
        "order-of-primitives", {"metadata": {"$setElementOrder/finalizers": ["ex.io/two", "ex.io/one"]}}
    ),
    strategic(
        "primitives-deleted", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["ex.io/one", "ex.io/no"]}}
    ),
    strategic("primitives-without-name", {"metadata": {"$deleteFromPrimitiveList": ["ex.io/one"]}}),
    strategic("keys-retained", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
    strategic("keys-retained-not-all", {"spec": {"strategy": {"$retainKeys": [], "type": "Recreate"}}}),
    strategic("keys-retained-of-text", {"spec": {"strategy": {"$retainKeys": "type"}}}),
    strategic("list-replaced", containers([{"$patch": "replace"}, {"name": "n", "image": "z"}])),
    strategic("list-of-mixture", containers([{"name": "one"}, "two"])),
    strategic("map-of-unknown-directive", {"spec": {"template": {"$patch": "bogus"}}}),
    strategic("list-of-unknown-directive", containers([{"name": "one", "$patch": "bogus"}])),
    strategic("list-without-key", containers([{"image": "z"}])),
    strategic("root-replaced", {"$patch": "replace", "spec": DEPLOYMENT["spec"]}),
    strategic("root-deleted", {"$patch": "delete"}),
    Step("no-metadata", "PATCH", f"{D}/d?dryRun=All", {"metadata": None}, MERGE),
    Step("put-without-name", "PUT", f"{D}/d", {"spec": DEPLOYMENT["spec"]}),
    # Values that do not fit
    strategic("number-for-text", containers([{"name": "one", "image": 1}])),
    strategic("fraction-for-text", containers([{"name": "one", "image": 1.5}])),
    strategic("text-for-number", {"spec": {"replicas": "3"}}),
    strategic("fraction-for-number", {"spec": {"replicas": 1.5}}),
    strategic("text-for-boolean", {"spec": {"paused": "yes"}}),
    strategic("text-for-list", containers("one")),
    strategic("text-for-struct", {"spec": {"template": "t"}}),
    strategic("text-for-map", {"metadata": {"labels": "a=b"}}),
    strategic("list-for-map", {"metadata": {"labels": ["a"]}}),
    strategic("number-in-map", {"metadata": {"labels": {"a": 1}}}),
    strategic("quantity", containers([{"name": "one", "resources": {"limits": {"cpu": "lots"}}}])),
    strategic("int-or-text", {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}}),
    strategic("strict", {"spec": {"unknown": 1, "strategy": {"more": 2}}}, query="fieldValidation=Strict"),
    strategic("warned", {"spec": {"template": {"odd": 1}, "selector": {"odd": 2}}}),
    Step("apply-time", "PATCH", f"/apis/events.k8s.io/v1{N}/events/e?fieldManager=m", EVENT, APPLY),
    # What updates may not do
    Step("map", "POST", f"/api/v1{N}/configmaps", {"metadata": {"name": "c"}}, compared=False),
    finalized("unqualified-finalizer", f"/api/v1{N}/configmaps/c"),
    finalized("unqualified-finalizer-of-a-deployment", f"{D}/d"),
    Step("lease", "POST", f"/apis/coordination.k8s.io/v1{N}/leases", {"metadata": {"name": "l"}, "spec": {}}),
    finalized("unqualified-finalizer-of-a-lease", f"/apis/coordination.k8s.io/v1{N}/leases/l"),
    Step("slice", "POST", S, SLICE),
    Step("slice-unchanged", "PATCH", f"{S}/s", {"endpoints": [], "ports": []}, MERGE),
    Step("driver", "POST", DRIVERS, DRIVER),
    Step(
        "driver-unchanged",
        "PATCH",
        f"{DRIVERS}/directives.ex.io?dryRun=All",
        {"spec": {"podInfoOnMount": True}},
        MERGE,
    ),
    Step(
        "driver-changed",
        "PATCH",
        f"{DRIVERS}/directives.ex.io?dryRun=All",
        {"spec": {"attachRequired": False}},
        MERGE,
    ),
    # What only the stored form has
    Step("daemons", "POST", f"/apis/apps/v1{N}/daemonsets", SET),
    Step("daemons-metadata", "GET", f"/apis/apps/v1{N}/daemonsets/ds", headers=PARTIAL),
    Step(
        "class",
        "POST",
        CLASSES,
        {"metadata": {"name": "directives"}, "driverName": "d", "parameters": {"a": "b"}},
    ),
    Step("autoscaler", "POST", H, AUTOSCALER),
    Step("autoscaler-status", "PATCH", f"{H}/h/status", {"status": AUTOSCALER["status"]}, MERGE),
    Step("autoscaler-second", "GET", f"/apis/autoscaling/v2{N}/horizontalpodautoscalers/h"),
    # Selectors that a kind does not have
    Step("select-namespace-of-namespace", "GET", "/api/v1/namespaces?fieldSelector=metadata.namespace%3Dx"),
    Step("select-name-of-namespace", "GET", "/api/v1/namespaces?fieldSelector=name%3Dx"),
    Step("select-namespace-of-node", "GET", "/api/v1/nodes?fieldSelector=metadata.namespace%3Dx"),
    Step(
        "select-namespace-of-slice",
        "GET",
        "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=metadata.namespace%3Dx",
    ),
    Step("select-namespace-of-class", "GET", f"{CLASSES}?fieldSelector=metadata.namespace%3Dx"),
]
