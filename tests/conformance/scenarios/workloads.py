"""Workloads: generations, zero values, strategic patches, scales, grace, evictions, bindings."""

from typing import Any

from conformance_exchange import Step

NAMESPACE = "workloads"
N = f"/api/v1/namespaces/{NAMESPACE}"
D = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
J = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
B = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
E = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
LABELS = {"app": "web"}
CONTAINER = {"name": "c", "image": "i:1"}


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": LABELS}, "template": template, **spec},
    }


def pod(name: str, container: Any = None, labels: Any = None, **spec: Any) -> dict[str, Any]:
    containers = [{**CONTAINER, **(container or {})}]
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": containers, **spec}}


def strategic(name: str, body: Any, target: str = "web") -> Step:
    return Step(name, "PATCH", f"{D}/{target}", body, STRATEGIC)


def containers(*items: Any, **more: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": list(items), **more}}}}


def budget(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}


def eviction(name: str, **more: Any) -> Step:
    body = {"metadata": {"name": name, "namespace": NAMESPACE}, **more}
    return Step(f"evict-{name}", "POST", f"{N}/pods/{name}/eviction", body)


def bind(name: str, target: str = "node-1", step: str = "") -> Step:
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": target}}
    return Step(step or f"bind-{name}", "POST", f"{N}/pods/{name}/binding", body)


GENERATIONS = [
    Step("deployment", "POST", D, deployment("web")),
    Step("label", "PATCH", f"{D}/web", {"metadata": {"labels": {"x": "1"}}}, MERGE),
    Step("annotation", "PATCH", f"{D}/web", {"metadata": {"annotations": {"x": "1"}}}, MERGE),
    Step("spec", "PATCH", f"{D}/web", {"spec": {"replicas": 2}}, MERGE),
    Step("status-through-main", "PATCH", f"{D}/web", {"status": {"replicas": 2}}, MERGE),
    Step(
        "status",
        "PATCH",
        f"{D}/web/status",
        {"status": {"replicas": 2}, "spec": {"replicas": 9}, "metadata": {"labels": {"via": "status"}}},
        MERGE,
    ),
    Step("selector", "PATCH", f"{D}/web", {"spec": {"selector": {"matchLabels": {"app": "x"}}}}, MERGE),
    Step("replicas-zero", "POST", D, deployment("zero", replicas=0)),
    Step("replicas-null", "POST", D, deployment("null", replicas=None)),
    Step("empty-strategy", "POST", D, deployment("empty", strategy={"type": ""}, paused=False)),
    Step("selector-missing", "POST", D, {"metadata": {"name": "no"}, "spec": {"template": {"spec": {}}}}),
]
STRATEGIC_PATCHES = [
    strategic("new-container", containers({"name": "d", "image": "d"})),
    strategic("changed-container", containers({"name": "c", "image": "i:2"})),
    strategic(
        "ordered-containers",
        containers(
            {"name": "e", "image": "e"},
            **{"$setElementOrder/containers": [{"name": "c"}, {"name": "e"}, {"name": "d"}]},
        ),
    ),
    strategic("deleted-container", containers({"name": "d", "$patch": "delete"})),
    strategic("replaced-containers", containers({"name": "only", "image": "o"}, {"$patch": "replace"})),
    strategic("retained-keys", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
    strategic("finalizers", {"metadata": {"finalizers": ["x.io/a", "x.io/b"]}}),
    strategic("finalizer-gone", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a"]}}),
    strategic("finalizers-gone", {"metadata": {"finalizers": None}}),
    strategic("element-without-key", containers({"image": "nameless"})),
]
SCALES = [
    Step("scale", "GET", f"{D}/web/scale"),
    Step("scale-table", "GET", f"{D}/web/scale", headers=TABLE),
    Step("scale-metadata", "GET", f"{D}/web/scale", headers=METADATA),
    Step("scale-patch", "PATCH", f"{D}/web/scale", {"spec": {"replicas": 5}}, MERGE),
    Step(
        "scale-put",
        "PUT",
        f"{D}/web/scale",
        {"metadata": {"name": "web", "namespace": NAMESPACE}, "spec": {"replicas": 6}},
    ),
    Step("scale-negative", "PATCH", f"{D}/web/scale", {"spec": {"replicas": -1}}, MERGE),
    Step("scaled", "GET", f"{D}/web"),
]
PODS = [
    Step(
        "quantities",
        "POST",
        f"{N}/pods",
        pod(
            "quantities",
            {
                "resources": {
                    "requests": {"cpu": "0.5", "memory": "1024Mi", "ephemeral-storage": 1048576},
                    "limits": {"cpu": 1, "memory": "2048Mi", "ephemeral-storage": "0.001Ti"},
                }
            },
        ),
    ),
    Step(
        "quantities-rounded",
        "POST",
        f"{N}/pods",
        pod(
            "rounded",
            {
                "resources": {
                    "requests": {"cpu": "1n", "memory": "1.23456789012345"},
                    "limits": {"cpu": "1.0001", "memory": "0.0001Ki", "example.com/thing": "1500u"},
                }
            },
            volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1n"}}],
        ),
    ),
    Step(
        "quota-rounded",
        "POST",
        f"{N}/resourcequotas",
        {
            "metadata": {"name": "rounded"},
            "spec": {"hard": {"requests.cpu": "1000.0001", "limits.memory": "1Ti"}},
        },
    ),
    Step("quota-gone", "DELETE", f"{N}/resourcequotas/rounded", compared=False),
    *(
        Step(
            f"generated-{name}",
            "POST",
            f"{N}/pods",
            {**pod("x", **spec), "metadata": {"generateName": "gen-"}},
        )
        for name, spec in {
            "account-missing": {"serviceAccountName": "nobody"},
            "class-missing": {"priorityClassName": "nope"},
            "priority-given": {"priority": 7},
        }.items()
    ),
    Step("latest-tag", "POST", f"{N}/pods", pod("latest", {"image": "i", "ports": [{"containerPort": 80}]})),
    Step(
        "warned",
        "POST",
        f"{N}/pods",
        pod(
            "warned.pod",
            {
                "resources": {"requests": {"memory": "100m"}},
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "A", "value": "$(A)2"},
                    {"name": "A", "value": "3"},
                    {"name": "B"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "ports": [
                    {"containerPort": 80, "name": "http"},
                    {"containerPort": 80},
                    {"containerPort": 80, "hostPort": 80},
                ],
            },
            terminationGracePeriodSeconds=-1,
            imagePullSecrets=[{"name": "a"}, {"name": "a"}, {}],
            hostAliases=[{"ip": "10.1.1.1", "hostnames": ["a"]}, {"ip": "10.1.1.1", "hostnames": ["b"]}],
            topologySpreadConstraints=[
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
            ],
        ),
    ),
    Step("warned-change", "PATCH", f"{N}/pods/warned.pod", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    Step(
        "warned-deployment",
        "POST",
        D,
        deployment(
            "warned.deployment",
            template={
                "metadata": {"labels": LABELS},
                "spec": {"containers": [{**CONTAINER, "resources": {"limits": {"memory": "1.5"}}}]},
            },
        ),
    ),
    Step(
        "warned-deployment-label",
        "PATCH",
        f"{D}/warned.deployment",
        {"metadata": {"labels": {"a": "b"}}},
        MERGE,
    ),
    Step("warned-deployment-change", "PATCH", f"{D}/warned.deployment", {"spec": {"replicas": 3}}, MERGE),
    Step("unscheduled", "POST", f"{N}/pods", pod("unscheduled"), compared=False),
    Step("delete-unscheduled", "DELETE", f"{N}/pods/unscheduled"),
    Step("unscheduled-gone", "GET", f"{N}/pods/unscheduled"),
    Step("scheduled", "POST", f"{N}/pods", pod("scheduled", nodeName="node-1"), compared=False),
    Step("delete-gracefully", "DELETE", f"{N}/pods/scheduled"),
    Step("delete-sooner", "DELETE", f"{N}/pods/scheduled?gracePeriodSeconds=5"),
    Step("delete-later", "DELETE", f"{N}/pods/scheduled?gracePeriodSeconds=60"),
    Step("still-running", "GET", f"{N}/pods/scheduled"),
    Step("delete-now", "DELETE", f"{N}/pods/scheduled?gracePeriodSeconds=0"),
    Step("running-gone", "GET", f"{N}/pods/scheduled"),
    Step("ended", "POST", f"{N}/pods", pod("ended", nodeName="node-1"), compared=False),
    Step("end", "PATCH", f"{N}/pods/ended/status", {"status": {"phase": "Succeeded"}}, MERGE),
    Step("delete-ended", "DELETE", f"{N}/pods/ended"),
    Step("ended-gone", "GET", f"{N}/pods/ended"),
    Step("own-grace", "POST", f"{N}/pods", pod("own", nodeName="n", terminationGracePeriodSeconds=7)),
    Step("delete-own-grace", "DELETE", f"{N}/pods/own"),
]
BINDINGS = [
    Step("waiting", "POST", f"{N}/pods", pod("waiting"), compared=False),
    bind("waiting"),
    Step("bound", "GET", f"{N}/pods/waiting"),
    bind("waiting", "node-2", "bind-again"),
    bind("nobody"),
    Step("pods-of-node", "GET", f"{N}/pods?fieldSelector=spec.nodeName%3Dnode-1"),
]
EVICTIONS = [
    *(
        Step(f"make-{name}", "POST", f"{N}/pods", pod(name, labels={"guard": name}), compared=False)
        for name in ("free", "unseen", "guarded", "allowed")
    ),
    *(
        Step(f"budget-{name}", "POST", B, budget(name, {"guard": name}))
        for name in ("unseen", "guarded", "allowed")
    ),
    *(
        Step(
            f"status-{name}",
            "PATCH",
            f"{B}/{name}/status",
            {
                "status": {
                    "observedGeneration": 1,
                    "disruptionsAllowed": count,
                    "currentHealthy": 1 + count,
                    "desiredHealthy": 1,
                    "expectedPods": 1 + count,
                }
            },
            MERGE,
            compared=False,
        )
        for name, count in (("guarded", 0), ("allowed", 1))
    ),
    *(
        Step(
            f"ready-{name}",
            "PATCH",
            f"{N}/pods/{name}/status",
            {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
            MERGE,
            compared=False,
        )
        for name in ("unseen", "guarded", "allowed")
    ),
    eviction("free", deleteOptions={"dryRun": ["All"]}),
    Step("free-there", "GET", f"{N}/pods/free", pick=lambda body, _: body["metadata"]["name"]),
    Step("evict-free-for-good", "POST", f"{N}/pods/free/eviction", {"metadata": {"name": "free"}}),
    Step("free-gone", "GET", f"{N}/pods/free"),
    eviction("unseen"),
    eviction("guarded"),
    eviction("allowed"),
    eviction("missing"),
    Step("budget-spent", "GET", f"{B}/allowed"),
]
JOB = {
    "metadata": {"name": "job"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}},
}
JOBS = [
    Step("job", "POST", J, JOB),
    Step("delete-job", "DELETE", f"{J}/job"),
    Step("job-waits-for-orphans", "GET", f"{J}/job"),
    Step("job-again", "POST", J, {**JOB, "metadata": {"name": "again"}}, compared=False),
    Step("delete-job-background", "DELETE", f"{J}/again?propagationPolicy=Background"),
]
EVENT = {
    "metadata": {"name": "event"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": NAMESPACE, "uid": "u-1"},
    "reason": "Because",
    "type": "Normal",
    "message": "so it is",
    "source": {"component": "test"},
    "firstTimestamp": "2024-01-01T00:00:00Z",
    "lastTimestamp": "2024-01-01T00:00:00Z",
    "count": 1,
}
EVENTS = [
    Step("event", "POST", f"{N}/events", EVENT),
    Step("event-elsewhere", "GET", f"{E}/event"),
    *(
        Step(f"events-by-{name.split('.')[-1]}", "GET", f"{N}/events?fieldSelector={name}%3D{value}")
        for name, value in (
            ("involvedObject.uid", "u-1"),
            ("involvedObject.name", "other"),
            ("reason", "Because"),
            ("type", "Normal"),
            ("source", "test"),
        )
    ),
    Step("events-by-nonsense", "GET", f"{N}/events?fieldSelector=message%3Dx"),
]

STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *GENERATIONS,
    *STRATEGIC_PATCHES,
    *SCALES,
    *PODS,
    *BINDINGS,
    *EVICTIONS,
    *JOBS,
    *EVENTS,
    Step(
        "service",
        "POST",
        f"{N}/services",
        {"metadata": {"name": "s"}, "spec": {"selector": LABELS, "ports": [{"port": 80}]}},
    ),
    Step(
        "headless",
        "POST",
        f"{N}/services",
        {"metadata": {"name": "h"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}},
    ),
    Step(
        "node-port",
        "POST",
        f"{N}/services",
        {"metadata": {"name": "np"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}},
    ),
]
