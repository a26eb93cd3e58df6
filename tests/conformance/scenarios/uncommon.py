"""Uncommon writes: missing names, large bodies, repeated keys, revisions where none belong, statuses with defaults."""

import json
import re
from typing import Any

from conformance_exchange import Step

NAMESPACE = "uncommon"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
MAPS = f"{CORE}/configmaps"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
EVENTS = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SIZED = f"/apis/uncommon.example.com/v1/namespaces/{NAMESPACE}/sizeds"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def brief(body: Any, _: Any) -> Any:
    """Compare what failed and why, without the object that failed."""
    return {name: body.get(name) for name in ("kind", "code", "reason", "message", "details")}


LARGE = json.dumps(config_map("large") | {"data": {"text": "x" * 1_600_000}})
SIZE = re.compile(r"\(\d{7}")
LARGE_POD = {
    "metadata": {"name": "large"},
    "spec": {"containers": [{"name": "c", "image": "i", "args": ["LARGE"]}]},
}
LARGE_ROLE = {
    "metadata": {"name": "uncommon-large"},
    "rules": [{"verbs": ["LARGE"], "apiGroups": [""], "resources": ["pods"]}],
}
LARGE_RESOURCE = {
    "apiVersion": "uncommon.example.com/v1",
    "kind": "Sized",
    "metadata": {"name": "large"},
    "spec": {"free": "LARGE"},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "scaled"},
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}
SCALE = {
    "apiVersion": "autoscaling/v1",
    "kind": "Scale",
    "metadata": {"name": "scaled"},
    "spec": {"replicas": 3},
}
REPEATED = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: repeated\ndata:\n  a: '1'\n  a: '2'\n"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "again"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
EVENT = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "good"},
    "eventTime": "2026-01-02T03:04:05.000000Z",
    "reportingController": "example.com/c",
    "reportingInstance": "c-1",
    "action": "Run",
    "reason": "Ran",
    "type": "Normal",
    "note": "fine",
    "regarding": {"kind": "Namespace", "name": NAMESPACE, "namespace": NAMESPACE, "apiVersion": "v1"},
}
SERIES = {"count": 1, "lastObservedTime": "2026-01-02T03:04:06.000000Z"}
DEFINITION = {
    "metadata": {"name": "sizeds.uncommon.example.com"},
    "spec": {
        "group": "uncommon.example.com",
        "scope": "Namespaced",
        "names": {"plural": "sizeds", "singular": "sized", "kind": "Sized"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer"},
                                    "free": {"type": "string"},
                                    "text": {"type": "string", "pattern": "^\\Qa.b\\E?$"},
                                },
                            },
                            "status": {
                                "type": "object",
                                "default": {"observedGeneration": -1},
                                "properties": {
                                    "size": {"type": "integer"},
                                    "observedGeneration": {"type": "integer", "default": -1},
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


def sized(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "uncommon.example.com/v1",
        "kind": "Sized",
        "metadata": {"name": name},
        "spec": spec,
    }


NAMES = [
    Step(
        "apply-without-a-name",
        "PATCH",
        f"{MAPS}/unnamed?fieldManager=m",
        {"apiVersion": "v1", "kind": "ConfigMap"},
        APPLY,
    ),
    Step(
        "apply-without-a-kind",
        "PATCH",
        f"{MAPS}/unnamed?fieldManager=m",
        {"metadata": {"name": "unnamed"}},
        APPLY,
    ),
    Step("apply-with-another-name", "PATCH", f"{MAPS}/unnamed?fieldManager=m", config_map("other"), APPLY),
    Step(
        "apply-of-a-custom-resource-without-a-name",
        "PATCH",
        f"{SIZED}/unnamed?fieldManager=m",
        {"apiVersion": "uncommon.example.com/v1", "kind": "Sized"},
        APPLY,
    ),
    Step(
        "namespace-of-a-cluster-scoped-object",
        "POST",
        "/api/v1/namespaces?dryRun=All",
        {"metadata": {"name": "uncommon-inner", "namespace": "default"}},
    ),
    Step(
        "namespace-of-a-cluster-role",
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All",
        {"metadata": {"name": "uncommon-role", "namespace": "default"}, "rules": []},
    ),
    Step(
        "namespace-of-an-applied-cluster-role",
        "PATCH",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/uncommon-role?dryRun=All&fieldManager=m",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "uncommon-role", "namespace": "default"},
            "rules": [],
        },
        APPLY,
    ),
]
SIZES = [
    Step("large", "POST", MAPS, LARGE, pick=brief),
    Step("large-in-a-dry-run", "POST", f"{MAPS}?dryRun=All", LARGE, pick=brief),
    *(
        Step(
            f"large-{name}",
            "POST",
            f"{path}?dryRun=All" if name.endswith("dry-run") else path,
            json.dumps(obj).replace("LARGE", "x" * size),
            pick=lambda body, _: SIZE.sub("(SIZE", json.dumps(brief(body, None))),
        )
        for name, path, obj, size in (
            ("pod", f"{CORE}/pods", LARGE_POD, 1_600_000),
            ("pod-beyond-a-message", f"{CORE}/pods", LARGE_POD, 2_200_000),
            ("pod-in-a-dry-run", f"{CORE}/pods", LARGE_POD, 2_200_000),
            ("pod-below-the-limit", f"{CORE}/pods", LARGE_POD, 1_560_000),
            ("custom-resource", SIZED, LARGE_RESOURCE, 1_600_000),
            ("custom-resource-beyond-a-message", SIZED, LARGE_RESOURCE, 2_200_000),
            ("custom-resource-in-a-dry-run", SIZED, LARGE_RESOURCE, 1_600_000),
            ("role", "/apis/rbac.authorization.k8s.io/v1/clusterroles", LARGE_ROLE, 1_600_000),
        )
    ),
    Step("large-put", "PUT", f"{MAPS}/plain", LARGE.replace('"large"', '"plain"'), pick=brief),
]
REVISIONS = [
    Step("post-with-a-revision", "POST", MAPS, config_map("revised", resourceVersion="1")),
    Step(
        "post-with-a-revision-in-a-dry-run",
        "POST",
        f"{MAPS}?dryRun=All",
        config_map("revised", resourceVersion="1"),
    ),
    Step(
        "post-of-an-existing-object-with-a-revision", "POST", MAPS, config_map("plain", resourceVersion="1")
    ),
    Step("post-with-revision-zero", "POST", MAPS, config_map("zero", resourceVersion="0")),
    Step("post-with-a-revision-of-letters", "POST", MAPS, config_map("letters", resourceVersion="abc")),
    Step("timeout-of-letters", "GET", f"{MAPS}?timeout=invalid"),
    Step("timeout-of-a-write", "POST", f"{MAPS}?timeout=invalid", config_map("never")),
    Step("timeout-without-a-unit", "GET", f"{MAPS}?timeout=5"),
    Step("timeout-below-zero", "GET", f"{MAPS}?timeout=-5s"),
    Step(
        "timeout-of-a-watch",
        "GET",
        f"{MAPS}?watch=1&timeout=invalid&timeoutSeconds=1&resourceVersion=1",
        compared=False,
    ),
]
REPEATS = [
    Step(
        f"repeated-key-applied-{mode or 'default'}",
        "PATCH",
        f"{MAPS}/repeated-{mode.lower()}?fieldManager=m" + (f"&fieldValidation={mode}" if mode else ""),
        REPEATED.replace("name: repeated", f"name: repeated-{mode.lower()}"),
        APPLY,
    )
    for mode in ("Strict", "Warn", "Ignore", "")
]
SCALES = [
    Step("deployment", "POST", f"{APPS}/deployments", DEPLOYMENT, compared=False),
    Step(
        "apply-to-scale-of-defaulted-replicas",
        "PATCH",
        f"{APPS}/deployments/scaled/scale?fieldManager=m",
        SCALE,
        APPLY,
    ),
    Step(
        "apply-to-scale-by-force",
        "PATCH",
        f"{APPS}/deployments/scaled/scale?fieldManager=m&force=true",
        SCALE,
        APPLY,
    ),
    Step("deployment-after-scale", "GET", f"{APPS}/deployments/scaled"),
]
CUSTOM = [
    Step("definition", "POST", DEFINITIONS, DEFINITION, compared=False),
    Step(
        "created-with-status-default",
        "POST",
        SIZED,
        sized("one", size=5),
        until=lambda status, _: status == 201,
    ),
    Step("read-with-status-default", "GET", f"{SIZED}/one"),
    Step("listed-with-status-default", "GET", SIZED),
    Step("status-given-at-creation", "POST", SIZED, sized("two") | {"status": {"size": 3}}),
    Step("status-of-another-type", "POST", SIZED, sized("typed") | {"status": "text"}),
    Step("status-with-a-wrong-field", "POST", SIZED, sized("wrong") | {"status": {"size": "x"}}),
    Step("put-with-status-default", "PUT", f"{SIZED}/one", sized("one", size=6)),
    Step("status-put-empty", "PUT", f"{SIZED}/one/status", sized("one") | {"status": {}}),
    Step(
        "size-as-a-float",
        "POST",
        SIZED,
        json.dumps(sized("float")).replace('"spec": {}', '"spec": {"size": 5.0}'),
    ),
    Step("size-as-a-float-patched", "PATCH", f"{SIZED}/one", '{"spec":{"size":7.0}}', MERGE),
    Step("quoted-pattern-met-short", "POST", SIZED, sized("short", text="a.")),
    Step("quoted-pattern-met", "POST", SIZED, sized("met", text="a.b")),
    Step("quoted-pattern-empty", "POST", SIZED, sized("empty", text="")),
]
PODS = [
    Step(
        "class",
        "POST",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "uncommon"}, "value": 7},
        compared=False,
    ),
    Step("pod", "POST", f"{CORE}/pods", POD),
    Step("pod-put-again-from-its-manifest", "PUT", f"{CORE}/pods/again", POD),
    Step(
        "classed-pod",
        "POST",
        f"{CORE}/pods",
        POD | {"metadata": {"name": "classed"}, "spec": {**POD["spec"], "priorityClassName": "uncommon"}},
        compared=False,
    ),
    Step(
        "classed-pod-put-again",
        "PUT",
        f"{CORE}/pods/classed",
        POD | {"metadata": {"name": "classed"}, "spec": {**POD["spec"], "priorityClassName": "uncommon"}},
    ),
    Step(
        "toleration-added",
        "PATCH",
        f"{CORE}/pods/again",
        {"spec": {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]}},
        STRATEGIC,
    ),
    Step(
        "service",
        "POST",
        f"{CORE}/services",
        {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "clusterIP": "None"}},
        compared=False,
    ),
    Step(
        "service-condition-without-a-time",
        "PATCH",
        f"{CORE}/services/s/status",
        {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": ""}]}},
        MERGE,
    ),
    Step("class-removed", "DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/uncommon", compared=False),
]
EVENT_CASES = [
    Step("event", "POST", EVENTS, EVENT),
    Step(
        "event-with-a-long-note", "POST", EVENTS, EVENT | {"metadata": {"name": "note"}, "note": "x" * 1025}
    ),
    Step(
        "event-with-a-long-reason",
        "POST",
        EVENTS,
        EVENT | {"metadata": {"name": "reason"}, "reason": "x" * 129},
    ),
    Step(
        "event-with-a-long-action",
        "POST",
        EVENTS,
        EVENT | {"metadata": {"name": "action"}, "action": "x" * 129},
    ),
    Step(
        "event-with-a-series-of-one",
        "POST",
        EVENTS,
        EVENT | {"metadata": {"name": "series"}, "series": SERIES},
    ),
    *(
        Step(f"event-with-a-changed-{field}", "PATCH", f"{EVENTS}/good", {field: value}, MERGE)
        for field, value in (
            ("reason", "Other"),
            ("note", "other"),
            ("regarding", {"name": "other"}),
            ("action", "Walk"),
            ("type", "Warning"),
            ("reportingController", "example.com/d"),
            ("series", {"count": 1, "lastObservedTime": "2026-01-02T03:04:06.000000Z"}),
        )
    ),
    Step(
        "event-with-a-series",
        "PATCH",
        f"{EVENTS}/good",
        {"series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:06.000000Z"}},
        MERGE,
    ),
    Step(
        "event-without-a-time",
        "POST",
        EVENTS,
        {k: v for k, v in EVENT.items() if k != "eventTime"} | {"metadata": {"name": "timeless"}},
    ),
    Step("event-of-another-type", "POST", EVENTS, EVENT | {"metadata": {"name": "typed"}, "type": "Bad"}),
]
EMPTY_ROLE = {"metadata": {"name": "uncommon-empty"}, "rules": []}
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
# Managed fields have times of whole seconds: a watch lets some pass on both servers.
UNCHANGED = [
    Step("role-without-rules", "POST", ROLES, EMPTY_ROLE),
    Step("seconds", "GET", f"{MAPS}?watch=1&timeoutSeconds=2&fieldSelector=metadata.name=no", compared=False),
    Step("patch-of-an-empty-list", "PATCH", f"{ROLES}/uncommon-empty", {"rules": []}, MERGE),
    Step("put-of-an-empty-list", "PUT", f"{ROLES}/uncommon-empty", EMPTY_ROLE),
    Step("patch-of-an-absent-list", "PATCH", f"{ROLES}/uncommon-empty", {"rules": None}, MERGE),
    Step("role-gone", "DELETE", f"{ROLES}/uncommon-empty", compared=False),
]
STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    Step("plain", "POST", MAPS, config_map("plain"), compared=False),
    *CUSTOM,
    *NAMES,
    *SIZES,
    *REVISIONS,
    *REPEATS,
    *SCALES,
    *PODS,
    *EVENT_CASES,
    *UNCHANGED,
]
