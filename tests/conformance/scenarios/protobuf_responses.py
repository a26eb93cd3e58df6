"""Responses in protobuf, as Go clients request them: objects, lists, watches, errors, and what is negotiated."""

from typing import Any

from conformance_exchange import PROTOBUF, Step
from conformance_objects import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    INGRESS,
    JOB,
    LIMITS,
    POD_OBJECT,
    PVC,
    QUOTA,
    SCALER,
    SERVICE,
    STATEFUL_SET,
    named,
)

NAMESPACE = "protobuf-responses"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
MAPS = f"{CORE}/configmaps"
BINARY = {"Accept": PROTOBUF}
EITHER = {"Accept": f"{PROTOBUF},application/json"}
AS = "as={};g=meta.k8s.io;v=v1"
METADATA = f"{PROTOBUF};{AS.format('PartialObjectMetadata')}"
METADATA_LIST = f"{PROTOBUF};{AS.format('PartialObjectMetadataList')}"
TABLE = f"{PROTOBUF};{AS.format('Table')}"
CUSTOM = f"/apis/protobuf.ex.io/v1/namespaces/{NAMESPACE}/messages"
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
DEFINITION = {
    "metadata": {"name": "messages.protobuf.ex.io"},
    "spec": {
        "group": "protobuf.ex.io",
        "scope": "Namespaced",
        "names": {"plural": "messages", "singular": "message", "kind": "Message"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "additionalProperties": {"x-kubernetes-int-or-string": True},
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            "list": {
                                "type": "array",
                                "default": [{"b": "<x>", "a": 1.5}],
                                "maximum": 3.5,
                                "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            },
                        },
                    }
                },
            }
        ],
    },
}
POD: dict[str, Any] = {
    **POD_OBJECT,
    "spec": {
        "volumes": [
            {"name": "e", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "p", "projected": {"sources": [{"configMap": {"name": "m"}}]}},
        ],
        "tolerations": [{"operator": "Exists", "tolerationSeconds": -1, "effect": "NoExecute"}],
        "containers": [
            {
                "name": "c",
                "image": "i",
                "args": ["", "ü"],
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "resources": {"limits": {"memory": "1Gi", "cpu": "1500m"}},
                "ports": [{"containerPort": 80}],
                "livenessProbe": {"httpGet": {"port": "http", "path": "/"}},
                "readinessProbe": {"tcpSocket": {"port": 80}},
                "securityContext": {"runAsUser": 0, "capabilities": {"add": ["A"]}},
            }
        ],
    },
}
OBJECTS: dict[str, tuple[str, Any]] = {
    "pod": (f"{CORE}/pods", POD),
    "secret": (f"{CORE}/secrets", {**named(), "data": {"b": "AP8=", "a": ""}, "immutable": False}),
    "service": (f"{CORE}/services", SERVICE),
    "claim": (f"{CORE}/persistentvolumeclaims", PVC),
    "limits": (f"{CORE}/limitranges", LIMITS),
    "quota": (f"{CORE}/resourcequotas", QUOTA),
    "account": (f"{CORE}/serviceaccounts", named()),
    "deployment": (f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", DEPLOYMENT),
    "stateful-set": (f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets", STATEFUL_SET),
    "daemon-set": (f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets", DAEMON_SET),
    "revision": (
        f"/apis/apps/v1/namespaces/{NAMESPACE}/controllerrevisions",
        # Without spaces: the message contains the client's bytes.
        '{"metadata":{"name":"x"},"revision":3,"data":{"b":1,"a":["<",null]}}',
    ),
    "job": (f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", JOB),
    "cron-job": (f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs", CRON_JOB),
    "ingress": (f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/ingresses", INGRESS),
    "scaler": (f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers", SCALER),
    "scaler-of-version-1": (
        f"/apis/autoscaling/v1/namespaces/{NAMESPACE}/horizontalpodautoscalers",
        {**SCALER, "metadata": {"name": "y"}, "spec": {**SCALER["spec"], "metrics": None}},
    ),
    "lease": (
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases",
        named({"renewTime": "2026-01-02T03:04:05.678901Z", "acquireTime": "1969-12-31T23:59:59.500000Z"}),
    ),
    "role": (
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
        {**named(), "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    ),
    "event": (
        f"{CORE}/events",
        {
            **named(),
            "involvedObject": {"namespace": NAMESPACE, "kind": "Pod", "name": "x"},
            "lastTimestamp": "2026-01-02T03:04:05Z",
            "count": 3,
        },
    ),
}
WATCH = f"{MAPS}?watch=1&timeoutSeconds=2&fieldSelector=metadata.name=m"


def brief(body: Any, _: Any) -> Any:
    """Compare what a document is, where its content is compared elsewhere."""
    found = body.get("document", body)
    return [found.get("kind"), found.get("apiVersion"), body.get("rewritten")]


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, BINARY, pick=brief),
    *(
        step
        for name, (path, obj) in OBJECTS.items()
        for step in (
            Step(f"create-{name}", "POST", path, obj, EITHER),
            Step(f"get-{name}", "GET", f"{path}/{'y' if name.endswith('1') else 'x'}", None, BINARY),
            Step(f"list-{name}", "GET", path, None, BINARY),
        )
    ),
    Step("create-map", "POST", MAPS, {**named(), "data": {"b": "1", "a": "", "z": "é"}}, BINARY),
    Step("put-map", "PUT", f"{MAPS}/x", {**named(), "data": {"a": "2"}}, BINARY),
    Step("patch-map", "PATCH", f"{MAPS}/x", {"data": {"a": "3"}}, {**BINARY, **STRATEGIC}),
    Step(
        "apply-map",
        "PATCH",
        f"{MAPS}/y?fieldManager=m",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y"}, "data": {"a": "3"}},
        {**BINARY, "Content-Type": "application/apply-patch+yaml"},
    ),
    Step("list-empty", "GET", f"{CORE}/podtemplates", None, BINARY),
    Step("list-first-page", "GET", f"{MAPS}?limit=1", None, BINARY),
    Step("scale", "GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/x/scale", None, BINARY),
    Step(
        "token",
        "POST",
        f"{CORE}/serviceaccounts/x/token",
        {"spec": {}},
        BINARY,
        pick=lambda body, _: [*body["document"]["status"], body["rewritten"]],
    ),
    Step(
        "access-review",
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
        BINARY,
    ),
    Step("roles", "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", None, BINARY, pick=brief),
    Step("api-services", "GET", "/apis/apiregistration.k8s.io/v1/apiservices", None, BINARY, pick=brief),
    Step("missing", "GET", f"{MAPS}/nope", None, BINARY),
    Step("missing-either", "GET", f"{MAPS}/nope", None, EITHER),
    Step("invalid", "POST", f"{CORE}/pods", named({}), BINARY),
    Step("forbidden", "GET", f"{MAPS}/m", None, BINARY, user="jane"),
    Step("unauthorized", "GET", f"{MAPS}/m", None, BINARY, user="wrong"),
    Step("no-such-resource", "GET", f"{CORE}/nope", None, BINARY),
    Step("deleted", "DELETE", f"{MAPS}/y", None, BINARY),
    # Metadata and Tables
    Step("metadata", "GET", f"{MAPS}/x", None, {"Accept": METADATA}),
    Step("metadata-list", "GET", MAPS, None, {"Accept": METADATA_LIST}),
    Step("metadata-for-a-list", "GET", MAPS, None, {"Accept": METADATA}),
    Step(
        "metadata-v1beta1",
        "GET",
        f"{MAPS}/x",
        None,
        {"Accept": METADATA.replace("v=v1", "v=v1beta1")},
    ),
    Step("table", "GET", f"{MAPS}/x", None, {"Accept": TABLE}),
    Step("table-or-json", "GET", f"{MAPS}/x", None, {"Accept": f"{TABLE},application/json"}),
    Step(
        "table-of-json-first",
        "GET",
        f"{MAPS}/x",
        None,
        {"Accept": f"{TABLE},{TABLE.replace(PROTOBUF, 'application/json')}"},
    ),
    Step(
        "missing-as-table",
        "GET",
        f"{MAPS}/nope",
        None,
        {"Accept": TABLE.replace(PROTOBUF, "application/json")},
    ),
    # What is preferred
    Step("preferred-by-quality", "GET", f"{MAPS}/x", None, {"Accept": f"application/json;q=0.1,{PROTOBUF}"}),
    Step("preferred-by-order", "GET", f"{MAPS}/x", None, {"Accept": f"application/json,{PROTOBUF}"}),
    Step("not-preferred", "GET", f"{MAPS}/x", None, {"Accept": f"{PROTOBUF};q=0.5,*/*"}),
    Step("parameters", "GET", f"{MAPS}/x", None, {"Accept": f"{PROTOBUF};charset=x"}),
    Step("pretty", "GET", f"{MAPS}/x?pretty=1", None, BINARY),
    Step("any-application", "GET", MAPS, None, {"Accept": "application/*"}),
    Step("cbor", "GET", MAPS, None, {"Accept": "application/cbor"}),
    # Watches
    Step(
        "watch",
        "GET",
        f"{WATCH}&resourceVersion=0",
        None,
        BINARY,
        during=(
            Step("watched-create", "POST", MAPS, {"metadata": {"name": "m"}}, compared=False),
            Step("watched-update", "PATCH", f"{MAPS}/m", {"data": {"a": "1"}}, STRATEGIC, compared=False),
            Step("watched-delete", "DELETE", f"{MAPS}/m", compared=False),
        ),
    ),
    Step(
        "watch-with-bookmark",
        "GET",
        f"{MAPS}?watch=1&timeoutSeconds=2&allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan",
        None,
        {"Accept": f"{PROTOBUF};stream=watch"},
        pick=lambda body, _: {"first": body["frames"][:3]},
    ),
    Step("watch-metadata", "GET", f"{MAPS}?watch=1&timeoutSeconds=1", None, {"Accept": METADATA}),
    Step("watch-table", "GET", f"{MAPS}?watch=1&timeoutSeconds=1", None, {"Accept": TABLE}),
    Step("watch-yaml", "GET", f"{MAPS}?watch=1&timeoutSeconds=1", None, {"Accept": "application/yaml"}),
    Step(
        "watch-yaml-first",
        "GET",
        f"{MAPS}?watch=1&timeoutSeconds=1",
        None,
        {"Accept": "application/yaml,application/json"},
    ),
    Step("watch-of-the-past", "GET", f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion=abc", None, BINARY),
    # Custom resources have no messages
    Step("definition", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION, BINARY),
    Step(
        "custom",
        "POST",
        CUSTOM,
        {"apiVersion": "protobuf.ex.io/v1", "kind": "Message", "metadata": {"name": "x"}, "spec": {"n": 1}},
        EITHER,
        until=lambda status, _: status == 201,
    ),
    Step(
        "get-definition",
        "GET",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/messages.protobuf.ex.io",
        None,
        BINARY,
        pick=lambda body, _: [body["document"]["spec"], body["rewritten"]],
    ),
    Step("custom-only", "GET", f"{CUSTOM}/x", None, BINARY),
    Step("custom-either", "GET", f"{CUSTOM}/x", None, EITHER),
    Step("custom-list", "GET", CUSTOM, None, BINARY),
    Step("custom-missing", "GET", f"{CUSTOM}/nope", None, EITHER),
    Step("custom-metadata", "GET", f"{CUSTOM}/x", None, {"Accept": METADATA}),
    Step("custom-metadata-list", "GET", CUSTOM, None, {"Accept": METADATA_LIST}),
    Step("custom-table", "GET", CUSTOM, None, {"Accept": TABLE}),
    Step("custom-scale", "GET", f"{CUSTOM}/x/scale", None, BINARY),
    Step("custom-watch", "GET", f"{CUSTOM}?watch=1&timeoutSeconds=1", None, BINARY),
    Step(
        "custom-watch-yaml", "GET", f"{CUSTOM}?watch=1&timeoutSeconds=1", None, {"Accept": "application/yaml"}
    ),
    Step("custom-watch-metadata", "GET", f"{CUSTOM}?watch=1&timeoutSeconds=1", None, {"Accept": METADATA}),
    Step("custom-deleted", "DELETE", f"{CUSTOM}/x", None, BINARY),
    Step("custom-deleted-either", "DELETE", f"{CUSTOM}/x", None, EITHER),
    # Discovery
    Step("versions", "GET", "/api", None, BINARY),
    Step("groups", "GET", "/apis", None, BINARY, pick=brief),
    Step("group", "GET", "/apis/apps", None, BINARY),
    Step("resources", "GET", "/api/v1", None, BINARY, pick=brief),
    Step("resources-of-a-group", "GET", "/apis/apps/v1", None, BINARY),
    Step("resources-in-yaml", "GET", "/apis/batch/v1", None, {"Accept": "application/yaml"}),
    Step("resources-in-html", "GET", "/apis/batch/v1", None, {"Accept": "text/html"}),
    Step("version", "GET", "/version", None, BINARY),
]
