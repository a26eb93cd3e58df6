"""Objects, definitions and steps that the recorded scenarios are made of."""

import json
from typing import Any

JsonObject = dict[str, Any]

POD_SPEC: JsonObject = {"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]}
WEB: JsonObject = {"app": "web"}


def deployment(**spec: Any) -> JsonObject:
    template = {"metadata": {"labels": WEB}, "spec": POD_SPEC}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "labels": {"tier": "front"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": WEB}, "template": template, **spec},
    }


def template(*containers: JsonObject, **rest: Any) -> JsonObject:
    return {"metadata": {"labels": WEB}, "spec": {"containers": list(containers), **rest}}


def named(value: JsonObject, name: str) -> JsonObject:
    return {**value, "metadata": {**value.get("metadata", {}), "name": name}}


def config_map(name: str, **rest: Any) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **rest}


def step(verb: str, manager: str, body: Any, **rest: Any) -> JsonObject:
    return {"verb": verb, "manager": manager, "body": body, **rest}


def scenario(title: str, path: str, name: str, *steps: JsonObject, **rest: Any) -> JsonObject:
    return {"title": title, "path": path, "name": name, "steps": list(steps), **rest}


MAPS, DEPLOYS = "/api/v1/namespaces/t/configmaps", "/apis/apps/v1/namespaces/t/deployments"
PODS, SERVICES = "/api/v1/namespaces/t/pods", "/api/v1/namespaces/t/services"
THINGS, LOOSE = "/apis/ex.io/v1/namespaces/t/things", "/apis/ex.io/v1/namespaces/t/looses"

THING_SPEC: JsonObject = {
    "type": "object",
    "properties": {
        "min": {"type": "integer"},
        "name": {"type": "string"},
        "port": {"x-kubernetes-int-or-string": True},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "plain": {"type": "array", "items": {"type": "string"}},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "proto"],
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {
                    "port": {"type": "integer"},
                    "proto": {"type": "string", "default": "TCP"},
                    "note": {"type": "string"},
                    "deep": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            },
        },
        "whole": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "raw": {"x-kubernetes-preserve-unknown-fields": True},
        "nest": {
            "type": "object",
            "properties": {"x": {"type": "object", "properties": {"y": {"type": "string"}}}},
        },
    },
}


def crd(kind: str, plural: str, schema: JsonObject, *, status: bool) -> JsonObject:
    version: JsonObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if status:
        version["subresources"] = {"status": {}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


STATUS: JsonObject = {
    "type": "object",
    "properties": {
        "ready": {"type": "integer"},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
            },
        },
    },
}
CRDS = [
    crd(
        "Thing",
        "things",
        {"type": "object", "properties": {"spec": THING_SPEC, "status": STATUS}},
        status=True,
    ),
    crd("Loose", "looses", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, status=False),
]


def thing(name: str, status: JsonObject | None = None, /, **spec: Any) -> JsonObject:
    value: JsonObject = {"apiVersion": "ex.io/v1", "kind": "Thing", "metadata": {"name": name}}
    if spec:
        value["spec"] = spec
    return {**value, "status": status} if status is not None else value


def loose(name: str, **rest: Any) -> JsonObject:
    return {"apiVersion": "ex.io/v1", "kind": "Loose", "metadata": {"name": name}, **rest}


def service(*ports: JsonObject, **spec: Any) -> JsonObject:
    spec = {"selector": WEB, "ports": list(ports), **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}


def pod(**rest: Any) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": POD_SPEC, **rest}


def with_last_applied(value: JsonObject) -> JsonObject:
    text = json.dumps(value, separators=(",", ":")) + "\n"
    annotation = {"kubectl.kubernetes.io/last-applied-configuration": text}
    return {**value, "metadata": {**value["metadata"], "annotations": annotation}}


def cluster_role(*rules: JsonObject) -> JsonObject:
    value: JsonObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "r"},
    }
    return {**value, "rules": list(rules)} if rules else value


def ingress(host: str, service: str) -> JsonObject:
    backend = {"service": {"name": service, "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    spec = {"rules": [{"host": host, "http": {"paths": paths}}]}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": spec}


def stateful_set(replicas: int) -> JsonObject:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": WEB},
        "template": template({"name": "c", "image": "i"}),
        "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": claim}],
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "sts"}, "spec": spec}


HTTP, HTTPS, DNS = (
    {"port": 80, "name": "http"},
    {"port": 443, "name": "https"},
    {"port": 53, "protocol": "UDP", "name": "dns"},
)
SIDE: JsonObject = {"name": "side", "image": "busybox"}
ENV: JsonObject = {
    "name": "c",
    "image": "nginx:2",
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
}
OWNER: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-1"}
