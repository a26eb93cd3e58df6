"""What admission completes or refuses by looking at other objects: classes of storage, Ingresses, runtimes and priorities."""

from typing import Any

from conformance_exchange import Step

NAMESPACE = "completions"
N = f"/api/v1/namespaces/{NAMESPACE}"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
CLAIMS = f"{N}/persistentvolumeclaims"
INGRESS_CLASSES = "/apis/networking.k8s.io/v1/ingressclasses"
INGRESSES = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/ingresses"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
MERGE = {"Content-Type": "application/merge-patch+json"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
CONTROLLER = {"controller": "ex.io/ingress"}


def storage(name: str, *, default: bool = False, **more: Any) -> Step:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    metadata = {"name": f"completions-{name}", "annotations": annotations}
    return Step(f"class-{name}", "POST", STORAGE, {"metadata": metadata, "provisioner": "ex.io/disk", **more})


def claim(name: str, **spec: Any) -> dict[str, Any]:
    found = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {**found, **spec}}


def grow(name: str, size: str, step: str = "") -> Step:
    body = {"spec": {"resources": {"requests": {"storage": size}}}}
    return Step(f"grow-{step or name}", "PATCH", f"{CLAIMS}/{name}", body, MERGE)


def bound(name: str) -> Step:
    status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    return Step(f"bind-{name}", "PATCH", f"{CLAIMS}/{name}/status", {"status": status}, MERGE, compared=False)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def ingress(name: str, **more: Any) -> dict[str, Any]:
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    metadata = {"name": name, "annotations": more.pop("annotations", {})}
    return {"metadata": metadata, "spec": {"defaultBackend": backend, **more}}


def create(name: str, where: str, body: Any) -> Step:
    return Step(name, "POST", where, body)


def seen(field: str) -> Any:
    """Ask, without leaving anything, until the server has learned of what decides."""
    return lambda status, body: status == 201 and bool(body["spec"].get(field))


def end(name: str, path: str) -> Step:
    return Step(f"end-{name}", "DELETE", path, compared=False)


CLAIM_STEPS = [
    storage("fixed", default=True),
    storage("growing", allowVolumeExpansion=True),
    # Only the table of a list shows which class is the default one.
    Step("class-table", "GET", f"{STORAGE}/completions-fixed", headers=TABLE),
    Step("class-tables", "GET", f"{STORAGE}?fieldSelector=metadata.name%3Dcompletions-fixed", headers=TABLE),
    Step(
        "class-known",
        "POST",
        f"{CLAIMS}?dryRun=All",
        claim("probe"),
        until=seen("storageClassName"),
        compared=False,
    ),
    create("claim-without-class", CLAIMS, claim("plain")),
    create("claim-with-class", CLAIMS, claim("growing", storageClassName="completions-growing")),
    create("claim-of-no-class", CLAIMS, claim("none", storageClassName="")),
    grow("plain", "2Gi", "unbound"),
    *(bound(name) for name in ("plain", "growing", "none")),
    grow("plain", "2Gi"),
    grow("none", "2Gi"),
    Step(
        "growing-known",
        "PATCH",
        f"{CLAIMS}/growing?dryRun=All",
        {"spec": {"resources": {"requests": {"storage": "2Gi"}}}},
        MERGE,
        until=lambda status, body: status == 200,
        compared=False,
    ),
    grow("growing", "2Gi"),
    grow("growing", "1Gi", "shrinks"),
    Step("grown", "GET", f"{CLAIMS}/growing"),
    create(
        "volume",
        "/api/v1/persistentvolumes",
        {
            "metadata": {"name": "completions"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/x"},
            },
        },
    ),
    Step("delete-used-claim", "DELETE", f"{CLAIMS}/growing"),
    Step("release-claim", "PATCH", f"{CLAIMS}/growing", {"metadata": {"finalizers": None}}, MERGE),
]
INGRESS_STEPS = [
    create("ingress-without-class", INGRESSES, ingress("early")),
    create("ingress-class", INGRESS_CLASSES, {"metadata": {"name": "completions-other"}, "spec": CONTROLLER}),
    create(
        "ingress-class-default",
        INGRESS_CLASSES,
        {
            "metadata": {
                "name": "completions",
                "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"},
            },
            "spec": CONTROLLER,
        },
    ),
    Step(
        "ingress-class-known",
        "POST",
        f"{INGRESSES}?dryRun=All",
        ingress("probe"),
        until=seen("ingressClassName"),
        compared=False,
    ),
    create("ingress-completed", INGRESSES, ingress("completed")),
    create("ingress-own-class", INGRESSES, ingress("own", ingressClassName="completions-other")),
    create(
        "ingress-old-class", INGRESSES, ingress("old", annotations={"kubernetes.io/ingress.class": "nginx"})
    ),
]
RUNTIME = {
    "metadata": {"name": "completions"},
    "handler": "h",
    "overhead": {"podFixed": {"cpu": "100m", "memory": "64Mi"}},
    "scheduling": {
        "nodeSelector": {"runtime": "h"},
        "tolerations": [{"key": "runtime", "operator": "Exists"}],
    },
}
RUNTIME_STEPS = [
    create("runtime", RUNTIMES, RUNTIME),
    Step(
        "runtime-known",
        "POST",
        f"{N}/pods?dryRun=All",
        pod("probe", runtimeClassName="completions"),
        until=seen("overhead"),
        compared=False,
    ),
    create("runtime-applied", f"{N}/pods", pod("applied", runtimeClassName="completions")),
    create(
        "runtime-same-overhead",
        f"{N}/pods",
        pod("same", runtimeClassName="completions", overhead={"cpu": "0.1", "memory": "64Mi"}),
    ),
    create(
        "runtime-other-overhead",
        f"{N}/pods",
        pod("other", runtimeClassName="completions", overhead={"cpu": "1"}),
    ),
    create("runtime-overhead-alone", f"{N}/pods", pod("alone", overhead={"cpu": "1"})),
    create(
        "runtime-other-node",
        f"{N}/pods",
        pod("node", runtimeClassName="completions", nodeSelector={"runtime": "x", "disk": "ssd"}),
    ),
]
PRIORITY_STEPS = [
    create("priority", PRIORITIES, {"metadata": {"name": "completions-high"}, "value": 1000}),
    create(
        "priority-never",
        PRIORITIES,
        {
            "metadata": {"name": "completions-default"},
            "value": 7,
            "globalDefault": True,
            "preemptionPolicy": "Never",
        },
    ),
    Step(
        "priority-known",
        "POST",
        f"{N}/pods?dryRun=All",
        pod("probe"),
        until=seen("priorityClassName"),
        compared=False,
    ),
    create(
        "priority-second-default",
        PRIORITIES,
        {"metadata": {"name": "completions-second"}, "value": 8, "globalDefault": True},
    ),
    create("priority-default", f"{N}/pods", pod("usual")),
    create("priority-high", f"{N}/pods", pod("high", priorityClassName="completions-high")),
    create("priority-missing", f"{N}/pods", pod("missing", priorityClassName="none")),
    create("priority-given", f"{N}/pods", pod("given", priority=5)),
    create("priority-system", f"{N}/pods", pod("system", priorityClassName="system-node-critical")),
    Step("priority-change", "PATCH", f"{PRIORITIES}/completions-high", {"value": 5}, MERGE),
]

STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *CLAIM_STEPS,
    *INGRESS_STEPS,
    *RUNTIME_STEPS,
    *PRIORITY_STEPS,
    *(end(f"class-{name}", f"{STORAGE}/completions-{name}") for name in ("fixed", "growing")),
    *(
        end(f"ingress-class-{name}", f"{INGRESS_CLASSES}/{name}")
        for name in ("completions", "completions-other")
    ),
    end("runtime", f"{RUNTIMES}/completions"),
    *(end(f"priority-{name}", f"{PRIORITIES}/completions-{name}") for name in ("high", "default")),
    Step(
        "defaults-forgotten",
        "POST",
        f"{N}/pods?dryRun=All",
        pod("probe"),
        until=lambda status, body: not body["spec"].get("priorityClassName"),
        compared=False,
    ),
    Step(
        "storage-forgotten",
        "POST",
        f"{CLAIMS}?dryRun=All",
        claim("probe"),
        until=lambda status, body: not body["spec"].get("storageClassName"),
        compared=False,
    ),
    Step(
        "ingress-class-forgotten",
        "POST",
        f"{INGRESSES}?dryRun=All",
        ingress("probe"),
        until=lambda status, body: not body["spec"].get("ingressClassName"),
        compared=False,
    ),
]
