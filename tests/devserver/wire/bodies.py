"""Request bodies whose reading is recorded from a real server."""

import json
from typing import Any

JSON, YAML = "application/json", "application/yaml"
MAPS, PODS = "/api/v1/namespaces/t/configmaps", "/api/v1/namespaces/t/pods"
DEPLOYS, SECRETS = "/apis/apps/v1/namespaces/t/deployments", "/api/v1/namespaces/t/secrets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/t/leases"


def _pod(container: Any = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", **(container or {})}]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


def _crd(**schema: Any) -> dict[str, Any]:
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", **schema}},
    }
    return {
        "metadata": {"name": "things.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


_LABELS = {"app": "x"}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def _deployment(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE, **spec},
    }


_OBJECTS: list[tuple[str, Any]] = [
    (MAPS, []),
    (MAPS, 5),
    (MAPS, {"metadata": {"name": True}}),
    (MAPS, {"metadata": {"name": "a"}, "data": {"a": 1}}),
    (MAPS, {"metadata": {"name": "a"}, "data": {"a": None}}),
    (MAPS, {"metadata": {"name": "a"}, "data": ["x"]}),
    (MAPS, {"metadata": [], "data": {}}),
    (MAPS, {"metadata": {"name": "a", "labels": {"a": {}}}}),
    (MAPS, {"metadata": {"name": "a", "finalizers": "x"}}),
    (MAPS, {"metadata": {"name": "a", "ownerReferences": [{"controller": "yes"}]}}),
    (MAPS, {"metadata": {"name": "a", "generation": "1"}}),
    (MAPS, {"metadata": {"name": "a", "creationTimestamp": "yesterday"}}),
    (MAPS, {"metadata": {"name": "a", "creationTimestamp": "2026-01-02T03:04:05.678+02:00"}}),
    (MAPS, {"metadata": {"name": "a"}, "binaryData": {"a": "YQ=="}}),
    (MAPS, {"metadata": {"name": "a"}, "binaryData": {"a": "Y!=="}}),
    (MAPS, {"metadata": {"name": "a"}, "binaryData": {"a": "YWI"}}),
    (MAPS, {"metadata": {"name": "a"}, "binaryData": {"a": "YW=I"}}),
    (MAPS, {"metadata": {"name": "a"}, "binaryData": {"a": "Y"}}),
    (MAPS, {"metadata": {"name": "a"}, "binaryData": {"a": "YQ=\n="}}),
    (MAPS, {"metadata": {"name": "a"}, "binaryData": {"a": "YWJj="}}),
    (MAPS, {"metadata": {"name": "a"}, "binaryData": {"a": "YQ==x"}}),
    (MAPS, {"metadata": {"name": "a"}, "binaryData": {"a": 5}}),
    (MAPS, {"metadata": {"name": "a"}, "immutable": "true"}),
    (
        MAPS,
        {
            "metadata": {"name": "a", "bogus": 1, "Labels": {}},
            "data": {"b": "1", "a": "2"},
            "bogus": {"x": 1},
        },
    ),
    (
        MAPS,
        {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": "a", "annotations": {"k": "<&>\u2028é"}},
        },
    ),
    (PODS, _pod({"ports": [{"containerPort": "80"}]})),
    (PODS, _pod({"ports": [{"containerPort": 80.5}]})),
    (PODS, _pod({"ports": [{"containerPort": 99999999999}]})),
    (PODS, _pod({"ports": [{"protocol": 1}]})),
    (PODS, _pod({"env": {"a": "b"}})),
    (PODS, _pod({"env": [{"name": "A", "value": 1}]})),
    (PODS, _pod({"resources": {"limits": {"cpu": "x"}}})),
    (PODS, _pod({"resources": {"limits": {"cpu": True}}})),
    (PODS, _pod({"resources": {"limits": {"cpu": {}}}})),
    (
        PODS,
        _pod(
            {
                "resources": {
                    "limits": {"cpu": 0.25, "memory": 1024},
                    "requests": {"memory": "0.5Ki", "cpu": "1e-1"},
                }
            }
        ),
    ),
    (PODS, _pod({"resources": {"limits": {"memory": "1024Mi", "hugepages-2Mi": "1e6", "cpu": "1500m"}}})),
    (PODS, _pod({"livenessProbe": {"httpGet": {"port": True}}})),
    (PODS, _pod({"livenessProbe": {"httpGet": {"port": 1.5}}})),
    (
        PODS,
        _pod(
            {
                "livenessProbe": {"httpGet": {"port": 80, "path": "/"}},
                "readinessProbe": {"tcpSocket": {"port": "http"}},
            }
        ),
    ),
    (
        PODS,
        _pod(
            {
                "foo": 1,
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "x": 1}}}],
            }
        ),
    ),
    (PODS, _pod(volumes=[{"name": "v", "emptyDir": "x"}])),
    (
        PODS,
        _pod(
            volumes=[
                {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}},
                {"name": "w", "secret": {"secretName": "s"}},
            ]
        ),
    ),
    (PODS, _pod(volumes={"name": "v"})),
    (PODS, _pod(hostNetwork="yes")),
    (PODS, _pod(securityContext={"runAsUser": "0"})),
    (PODS, _pod(securityContext={"runAsUser": 0, "fsGroup": 9223372036854775807})),
    (PODS, _pod(securityContext={"runAsUser": 9223372036854775808})),
    (PODS, _pod(affinity=[])),
    (PODS, _pod(overhead={"cpu": "1"}, nodeSelector={"a": 1})),
    (PODS, _pod(ephemeralContainers=[{"name": 5}])),
    (PODS, {"metadata": {"name": "p"}, "spec": {"containers": [None]}}),
    (PODS, {"metadata": {"name": "p"}, "spec": {"containers": ["x"]}}),
    (PODS, {"metadata": {"name": "p"}, "spec": None}),
    (DEPLOYS, _deployment(replicas="1")),
    (DEPLOYS, _deployment(replicas=1.0)),
    (DEPLOYS, _deployment(replicas=None)),
    (DEPLOYS, _deployment(replicas=0, paused=False, minReadySeconds=0)),
    (
        DEPLOYS,
        _deployment(unk=1, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": "50%", "x": 1}}),
    ),
    (DEPLOYS, _deployment(strategy={"rollingUpdate": {"maxSurge": []}})),
    (SECRETS, {"metadata": {"name": "s"}, "data": {"a": "", "b": "YWI="}, "stringData": {"c": "x"}}),
    (SECRETS, {"metadata": {"name": "s"}, "data": {"a": "not base64!"}}),
    (LEASES, {"metadata": {"name": "l"}, "spec": {"renewTime": "2024-01-01T00:00:00Z"}}),
    (LEASES, {"metadata": {"name": "l"}, "spec": {"renewTime": "2024-01-01T00:00:00.123Z"}}),
    (LEASES, {"metadata": {"name": "l"}, "spec": {"renewTime": "2024-01-01T00:00:00.123456789Z"}}),
    (
        LEASES,
        {
            "metadata": {"name": "l"},
            "spec": {"renewTime": "2024-01-01T02:00:00.123456+02:00", "holderIdentity": "h"},
        },
    ),
    (LEASES, {"metadata": {"name": "l"}, "spec": {"acquireTime": 5}}),
    (LEASES, {"metadata": {"name": "l"}, "spec": {"acquireTime": "2024-13-01T00:00:00.000000Z"}}),
    (LEASES, {"metadata": {"name": "l"}, "spec": {"acquireTime": "2024-02-30T00:00:00.000000Z"}}),
    (LEASES, {"metadata": {"name": "l"}, "spec": {"acquireTime": "2024-02-03 00:00:00.000000Z"}}),
    (
        CRDS,
        _crd(
            properties={
                "spec": {"type": "object", "properties": {}, "x-kubernetes-preserve-unknown-fields": True}
            }
        ),
    ),
    (
        CRDS,
        _crd(properties={"a": {"type": "object", "additionalProperties": {"type": "string", "bogus": 1}}}),
    ),
    (CRDS, _crd(properties={"a": {"type": "object", "additionalProperties": 1}})),
    (
        CRDS,
        _crd(
            properties={
                "a": {
                    "type": "object",
                    "default": {"b": 1, "a": 2},
                    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                }
            }
        ),
    ),
    (CRDS, _crd(properties={"a": {"type": "string", "enum": ["b", "a"], "default": "b", "nullable": True}})),
    (
        CRDS,
        _crd(
            properties={"a": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 1.5}}
        ),
    ),
    (CRDS, _crd(properties={"a": {"type": "number", "minimum": 1, "maximum": 2.5, "multipleOf": 1e-7}})),
    (CRDS, _crd(properties="x")),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "r"}, "rules": []}),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        {"metadata": {"name": "r"}, "rules": [{"verbs": "get"}]},
    ),
    (
        "/apis/batch/v1/namespaces/t/cronjobs",
        {
            "metadata": {"name": "c"},
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {
                    "spec": {
                        "template": {
                            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
                        }
                    }
                },
            },
        },
    ),
    (
        "/api/v1/namespaces/t/services",
        {
            "metadata": {"name": "s"},
            "spec": {"ports": [{"port": 80, "targetPort": "http"}], "clusterIP": "None"},
        },
    ),
    (
        "/api/v1/namespaces/t/events",
        {
            "metadata": {"name": "e", "namespace": "t"},
            "involvedObject": {"namespace": "t", "name": "x"},
            "count": 1,
        },
    ),
    (
        "/apis/policy/v1/namespaces/t/poddisruptionbudgets",
        {"metadata": {"name": "b"}, "spec": {"maxUnavailable": "50%", "selector": {}}},
    ),
    (
        "/apis/discovery.k8s.io/v1/namespaces/t/endpointslices",
        {
            "metadata": {"name": "e"},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": False}}],
            "ports": [],
        },
    ),
    (
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {
            "spec": {
                "user": "u",
                "extra": {"a": ["b"]},
                "resourceAttributes": {"verb": "get", "resource": "pods"},
            }
        },
    ),
]
_TEXTS = [
    (MAPS, JSON, "{bad json"),
    (MAPS, JSON, ""),
    (MAPS, JSON, '{"metadata":{"name":"a","name":"b"},"bogus":1,"data":{"a":"1","a":"2"}}'),
    (MAPS, JSON, '{"bogus":1,"metadata":{"name":"a","name":"b"}}'),
    (MAPS, JSON, '{"metadata":{"name":"a"},"data":{"a":"\\ud800"}}'),
    (MAPS, JSON, '{"metadata":{"name":"a"}} trailing'),
    (MAPS, YAML, "metadata: {name: y}\n"),
    (MAPS, YAML, "metadata: {name: a}\ndata: {a: 010}\n"),
    (MAPS, YAML, "metadata: {name: a}\ndata: {a: '010', yes: b, 1: c}\n"),
    (MAPS, YAML, "metadata: {name: a}\ndata: {a: 2001-01-01}\n"),
    (MAPS, YAML, "metadata: {name: a}\nmetadata: {name: b}\n"),
    (MAPS, YAML, "a: b: c"),
    (MAPS, YAML, "a: ["),
    (MAPS, YAML, "\ta: 1"),
    (MAPS, YAML, "a: *x"),
    (MAPS, YAML, "- a\n- b\n"),
    (MAPS, YAML, "base: &b {k: v}\nmetadata: {name: a}\ndata: {<<: *b, x: z}\n"),
]
BODIES = [(path, JSON, json.dumps(body)) for path, body in _OBJECTS] + _TEXTS
