"""Statuses, scales and other parts of objects that controllers write, and patches of what cannot be read."""

from typing import Any

from conformance_exchange import Step
from conformance_objects import BUDGET, DEPLOYMENT, INGRESS, JOB, POD_OBJECT, PVC, SCALER, bent

NAMESPACE = "statuses"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
KINDS = {
    "merge": {"Content-Type": "application/merge-patch+json"},
    "json": {"Content-Type": "application/json-patch+json"},
    "strategic": {"Content-Type": "application/strategic-merge-patch+json"},
    "apply": {"Content-Type": "application/apply-patch+yaml"},
}
TIME = "2026-01-01T00:00:00Z"
OBJECTS: dict[str, tuple[str, Any]] = {
    "job": (f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", JOB),
    "budget": (f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets", BUDGET),
    "pod": (f"{CORE}/pods", POD_OBJECT),
    "claim": (f"{CORE}/persistentvolumeclaims", PVC),
    "deployment": (f"{APPS}/deployments", DEPLOYMENT),
    "ingress": (f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/ingresses", INGRESS),
    "scaler": (f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers", SCALER),
    "node": ("/api/v1/nodes", {"metadata": {"name": NAMESPACE}, "spec": {"podCIDR": "10.0.0.0/24"}}),
    "namespaced": ("/api/v1/namespaces", {"metadata": {"name": f"{NAMESPACE}-other"}}),
}


def condition(**change: Any) -> dict[str, Any]:
    whole = {"type": "A", "status": "True", "reason": "R", "message": "", "lastTransitionTime": TIME}
    return {"conditions": [{**whole, **change}]}


def holding(*kinds: str, **more: Any) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": "True"} for kind in kinds], **more}


STATUSES: dict[str, dict[str, Any]] = {
    "job": {
        "negative": {"active": -1},
        "more-ready-than-active": {"active": 1, "ready": 2},
        "uncounted-alike": {"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["a"]}},
        "uncounted-nobody": {"uncountedTerminatedPods": {"failed": [""]}},
        "complete-of-itself": holding("Complete", startTime=TIME, completionTime=TIME),
        "complete": holding("SuccessCriteriaMet", "Complete", startTime=TIME, completionTime=TIME),
        "complete-without-a-time": holding("SuccessCriteriaMet", "Complete", startTime=TIME),
        "failed-of-itself": holding("Failed", startTime=TIME),
        "failed-and-fine": holding("SuccessCriteriaMet", "FailureTarget"),
        "ended-and-running": holding("FailureTarget", "Failed", startTime=TIME, active=1),
        "ended-unbegun": holding("FailureTarget", "Failed"),
        "time-of-no-end": {"completionTime": TIME},
        "indexes-of-none": {"completedIndexes": "0"},
    },
    "budget": {
        "negative": {"disruptionsAllowed": -1},
        "fine": {**condition(), "disruptionsAllowed": 1},
        "type": condition(type="-1"),
        "status": condition(status="a b!"),
        "reason": condition(reason="a b"),
        "no-reason": condition(reason=""),
        "no-time": condition(lastTransitionTime=None),
    },
    "claim": {"no-phase": {"phase": ""}},
    "pod": {
        "no-address": {"podIPs": [{"ip": "-1"}]},
        "address": {"podIP": "1.2.3.4"},
        "addresses": {"podIPs": [{"ip": "1.2.3.4"}]},
        "two-of-a-family": {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]},
        "two-words": {"podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.5"}]},
        "node-to-be": {"nominatedNodeName": "A_"},
        "generation": {"observedGeneration": -1},
        "hosts": {"hostIPs": [{"ip": "x"}]},
        "type": {"conditions": [{"type": "a b", "status": "True"}]},
    },
}
Ways = dict[str, tuple[str, str, str, Any]]
PATCHES: Ways = {
    "policy-of-a-number": (
        "deployment",
        "",
        "json",
        [{"op": "add", "path": "/spec/template/spec/containers/0/imagePullPolicy", "value": 5}],
    ),
    "policy-unknown": (
        "deployment",
        "",
        "merge",
        {"spec": {"template": {"spec": {"restartPolicy": "x"}}}},
    ),
    "moved": (
        "ingress",
        "",
        "json",
        [
            {
                "op": "move",
                "from": "/spec/rules/0/http/paths/0/backend/service/port",
                "path": "/spec/rules/0/host",
            }
        ],
    ),
    "list": (
        "scaler",
        "",
        "merge",
        {"spec": {"metrics": [{"type": "Resource", "resource": ["x"]}]}},
    ),
    "list-of-conditions": (
        "scaler",
        "status",
        "merge",
        {"status": {"conditions": [{"type": "A", "status": 5}], "currentReplicas": 1}},
    ),
    "fraction-applied": (
        "deployment",
        "status",
        "apply",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "x"},
            "status": {"replicas": 1.5},
        },
    ),
    "scale-of-a-number": ("deployment", "scale", "merge", {"spec": -1}),
    "scale-of-another-kind": ("deployment", "scale", "merge", {"kind": "Foo"}),
    "scale-of-text": ("deployment", "scale", "merge", {"spec": {"replicas": "x"}}),
    "scale-of-nobody": ("deployment", "scale", "json", [{"op": "remove", "path": "/metadata/name"}]),
    "scale-applied-wrong": (
        "deployment",
        "scale",
        "apply",
        {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"}, "spec": {"bogus": 1}},
    ),
    "scale-applied-of-another-kind": (
        "deployment",
        "scale",
        "apply",
        {"apiVersion": "autoscaling/v1", "kind": "Foo", "metadata": {"name": "x"}},
    ),
    "ephemeral-probed": (
        "pod",
        "ephemeralcontainers",
        "strategic",
        {"spec": {"ephemeralContainers": [{"name": "e", "image": "i", "livenessProbe": {}}]}},
    ),
    "resize-by-policy": (
        "pod",
        "resize",
        "strategic",
        {
            "spec": {
                "containers": [
                    {"name": "c", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}
                ]
            }
        },
    ),
    "resize-of-another": (
        "pod",
        "resize",
        "strategic",
        {"spec": {"containers": [{"name": "d", "image": "i"}]}},
    ),
    "claim-of-a-mode": ("claim", "", "merge", {"spec": {"volumeMode": "Block"}}),
    "taint": ("node", "", "merge", {"spec": {"taints": [{"key": "a"}]}}),
}


def patch(name: str, kind: str, part: str, way: str, body: Any) -> Step:
    path, obj = OBJECTS[kind]
    query = "dryRun=All&fieldManager=m2&force=true" if way == "apply" else "dryRun=All"
    own = f"{path}/{obj['metadata']['name']}" + (f"/{part}" if part else "")
    return Step(name, "PATCH", f"{own}?{query}", body, KINDS[way])


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *(
        Step(f"{name}-of", "POST", f"{path}?fieldManager=m1", obj, compared=False)
        for name, (path, obj) in OBJECTS.items()
    ),
    *(
        patch(f"{kind}-{name}", kind, "status", "merge", {"status": status})
        for kind, statuses in STATUSES.items()
        for name, status in statuses.items()
    ),
    *(patch(name, *way) for name, way in PATCHES.items()),
    Step(
        "finalizer-of-a-namespace",
        "PUT",
        f"/api/v1/namespaces/{NAMESPACE}-other/finalize?dryRun=All",
        bent(OBJECTS["namespaced"][1], apiVersion="v1", kind="Namespace", spec={"finalizers": ["a b"]}),
    ),
    Step(
        "ranges-of-a-node",
        "PATCH",
        f"/api/v1/nodes/{NAMESPACE}?dryRun=All",
        {"spec": {"podCIDRs": ["10.1.0.0/24"]}},
        KINDS["strategic"],
        pick=lambda body, _: [body["spec"]["podCIDR"], body["spec"]["podCIDRs"]],
    ),
    Step("node-gone", "DELETE", f"/api/v1/nodes/{NAMESPACE}", compared=False),
]
