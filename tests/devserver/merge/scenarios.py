"""Sequences of writes whose effect on field ownership is recorded from a real server."""

import json
from typing import Any

Wire = dict[str, Any]

POD_SPEC: Wire = {"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]}
WEB: Wire = {"app": "web"}


def _deployment(**spec: Any) -> Wire:
    template = {"metadata": {"labels": WEB}, "spec": POD_SPEC}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "labels": {"tier": "front"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": WEB}, "template": template, **spec},
    }


def _template(*containers: Wire, **rest: Any) -> Wire:
    return {"metadata": {"labels": WEB}, "spec": {"containers": list(containers), **rest}}


def _named(value: Wire, name: str) -> Wire:
    return {**value, "metadata": {**value.get("metadata", {}), "name": name}}


def _config_map(name: str, **rest: Any) -> Wire:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **rest}


def _step(verb: str, manager: str, body: Any, **rest: Any) -> Wire:
    return {"verb": verb, "manager": manager, "body": body, **rest}


def _scenario(title: str, path: str, name: str, *steps: Wire, **rest: Any) -> Wire:
    return {"title": title, "path": path, "name": name, "steps": list(steps), **rest}


MAPS, DEPLOYS = "/api/v1/namespaces/t/configmaps", "/apis/apps/v1/namespaces/t/deployments"
PODS, SERVICES = "/api/v1/namespaces/t/pods", "/api/v1/namespaces/t/services"
THINGS, LOOSE = "/apis/ex.io/v1/namespaces/t/things", "/apis/ex.io/v1/namespaces/t/looses"

_THING_SPEC: Wire = {
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


def _crd(kind: str, plural: str, schema: Wire, *, status: bool) -> Wire:
    version: Wire = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if status:
        version["subresources"] = {"status": {}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


_STATUS: Wire = {
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
    _crd(
        "Thing",
        "things",
        {"type": "object", "properties": {"spec": _THING_SPEC, "status": _STATUS}},
        status=True,
    ),
    _crd("Loose", "looses", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, status=False),
]


def _thing(name: str, status: Wire | None = None, /, **spec: Any) -> Wire:
    value: Wire = {"apiVersion": "ex.io/v1", "kind": "Thing", "metadata": {"name": name}}
    if spec:
        value["spec"] = spec
    return {**value, "status": status} if status is not None else value


def _loose(name: str, **rest: Any) -> Wire:
    return {"apiVersion": "ex.io/v1", "kind": "Loose", "metadata": {"name": name}, **rest}


def _service(*ports: Wire, **spec: Any) -> Wire:
    spec = {"selector": WEB, "ports": list(ports), **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}


def _pod(**rest: Any) -> Wire:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": POD_SPEC, **rest}


def _with_last_applied(value: Wire) -> Wire:
    text = json.dumps(value, separators=(",", ":")) + "\n"
    annotation = {"kubectl.kubernetes.io/last-applied-configuration": text}
    return {**value, "metadata": {**value["metadata"], "annotations": annotation}}


def _cluster_role(*rules: Wire) -> Wire:
    value: Wire = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "r"},
    }
    return {**value, "rules": list(rules)} if rules else value


def _ingress(host: str, service: str) -> Wire:
    backend = {"service": {"name": service, "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    spec = {"rules": [{"host": host, "http": {"paths": paths}}]}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": spec}


def _stateful_set(replicas: int) -> Wire:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": WEB},
        "template": _template({"name": "c", "image": "i"}),
        "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": claim}],
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "sts"}, "spec": spec}


HTTP, HTTPS, DNS = (
    {"port": 80, "name": "http"},
    {"port": 443, "name": "https"},
    {"port": 53, "protocol": "UDP", "name": "dns"},
)
SIDE: Wire = {"name": "side", "image": "busybox"}
ENV: Wire = {
    "name": "c",
    "image": "nginx:2",
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
}
OWNER: Wire = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-1"}

SCENARIOS = [
    _scenario(
        "a config map shared, conflicted and let go",
        MAPS,
        "a",
        _step("apply", "m1", _config_map("a", data={"a": "1", "b": "1"})),
        _step("apply", "m2", _config_map("a", data={"a": "2"})),
        _step("apply", "m2", _config_map("a", data={"b": "1"})),
        _step("apply", "m2", _config_map("a", data={"a": "2"}), force=True),
        _step("apply", "m1", _config_map("a", data={})),
        _step("merge", "upd", {"data": {"q": "1"}}),
        _step("apply", "m2", _config_map("a", data={"q": "3", "a": "9"})),
        _step("apply", "m2", _config_map("a", data={"q": "3", "a": "9"}), force=True),
        _step("apply", "m2", _config_map("a")),
        _step("apply", "m2", _config_map("a")),
    ),
    _scenario(
        "a config map updated by many hands",
        MAPS,
        "b",
        _step("create", "one", _config_map("b", data={"a": "1", "b": "2"}, binaryData={"x": "AA=="})),
        _step("merge", "two", {"data": {"b": "3", "c": "4"}, "metadata": {"labels": {"x": "1"}}}),
        _step("merge", "two", {"data": {"b": "3"}}),
        _step("replace", "three", {"data/a": None, "metadata/annotations": {"k": "v"}}),
        _step("merge", "one", {"data": None}),
        _step("merge", "one", {"metadata": {"finalizers": ["x.io/a", "x.io/b"], "ownerReferences": [OWNER]}}),
        _step("merge", "two", {"metadata": {"finalizers": ["x.io/b"]}}),
        _step("apply", "app", _config_map("b", metadata={"name": "b", "finalizers": ["x.io/c"]})),
        _step("merge", "two", {"metadata": {"finalizers": None}}),
        _step("replace", "two", {"metadata/managedFields": []}),
        _step("merge", "three", {"data": {"n": "1"}}),
        _step("apply", "app", _config_map("b", data={"m": "1"})),
    ),
    _scenario(
        "more updaters than are remembered",
        MAPS,
        "many",
        _step("create", "u00", _config_map("many", data={"k00": "1"})),
        *(_step("merge", f"u{n:02d}", {"data": {f"k{n:02d}": "1"}}) for n in range(1, 14)),
        _step("merge", "u03", {"data": {"k03": "2"}}),
    ),
    _scenario(
        "a deployment created by one and applied to by others",
        DEPLOYS,
        "d",
        _step("create", "kubectl-create", _deployment()),
        _step("merge", "scaler", {"spec": {"replicas": 5}}),
        _step("apply", "app", _deployment(replicas=5)),
        _step("apply", "app", _deployment(replicas=3)),
        _step("apply", "app", _deployment(replicas=3), force=True),
        _step("apply", "side", _deployment(template=_template(SIDE, ENV)), force=True),
        _step("apply", "side", _deployment(template=_template(SIDE))),
        _step("merge", "status", {"status": {"replicas": 3, "observedGeneration": 1}}, subresource="status"),
        _step("merge", "status", {"metadata": {"annotations": {"rev": "1"}}}, subresource="status"),
    ),
    _scenario(
        "a deployment born of apply",
        DEPLOYS,
        "e",
        _step("apply", "app", _named(_deployment(template=_template(ENV, SIDE)), "e")),
        _step("apply", "app", _named(_deployment(template=_template(ENV, SIDE)), "e")),
        _step("apply", "app", _named(_deployment(template=_template(SIDE)), "e")),
        _step(
            "apply",
            "hpa",
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "e"},
                "spec": {"replicas": 7},
            },
        ),
        _step(
            "apply",
            "hpa",
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "e"},
                "spec": {"replicas": 7},
            },
            force=True,
        ),
        _step(
            "apply",
            "app",
            _named(
                {k: v for k, v in _deployment().items() if k != "spec"}
                | {"spec": {k: v for k, v in _deployment()["spec"].items() if k != "replicas"}},
                "e",
            ),
        ),
        _step("apply", "app", _named(_deployment(bogus=1), "e")),
        _step("apply", "app", _named(_deployment(replicas="x"), "e")),
        _step("apply", "app", _named(_deployment(template=_template(SIDE, SIDE)), "e")),
        _step("apply", "app", _named(_deployment(strategy={"type": "Recreate"}), "e"), force=True),
        _step(
            "replace",
            "editor",
            {"spec/template/spec/containers/0/image": "other", "metadata/labels/extra": "1"},
        ),
    ),
    _scenario(
        "a service with ports by two keys",
        SERVICES,
        "s",
        _step("apply", "net", _service(HTTP, DNS)),
        _step("apply", "other", _service(HTTPS)),
        _step("apply", "net", _service(DNS, HTTP, HTTPS)),
        _step("apply", "net", _service(DNS)),
        _step(
            "merge",
            "upd",
            {
                "spec": {
                    "ports": [{"port": 8080, "name": "alt"}, {"port": 53, "protocol": "UDP", "name": "dns"}]
                }
            },
        ),
        _step("apply", "net", _service(DNS, selector={"app": "other"}), force=True),
        _step("apply", "sel", _service(selector={"app": "third"})),
    ),
    _scenario(
        "a pod, its status and its labels",
        PODS,
        "p",
        _step("create", "maker", _pod()),
        _step(
            "merge",
            "kubelet",
            {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
            subresource="status",
        ),
        _step(
            "apply",
            "labeler",
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "1"}}},
        ),
        _step("merge", "labeler", {"metadata": {"labels": {"b": "2"}}}),
        _step("merge", "maker", {"spec": {"activeDeadlineSeconds": 100}}),
        _step(
            "merge",
            "kubelet",
            {
                "status": {
                    "conditions": [{"type": "Ready", "status": "False"}, {"type": "X", "status": "True"}]
                }
            },
            subresource="status",
        ),
    ),
    _scenario(
        "a custom resource with every sort of list and map",
        THINGS,
        "x",
        _step(
            "apply",
            "m1",
            _thing(
                "x",
                min=1,
                tags=["b", "a"],
                ports=[{"port": 81}, {"port": 80, "proto": "UDP", "note": "n"}],
                plain=["1"],
                whole={"a": "1"},
            ),
        ),
        _step(
            "apply",
            "m2",
            _thing("x", tags=["c", "a"], ports=[{"port": 81, "note": "two"}], labels={"k": "v"}),
        ),
        _step("apply", "m2", _thing("x", ports=[{"port": 81, "note": "two"}])),
        _step("apply", "m2", _thing("x", plain=["2"], whole={"b": "2"})),
        _step("apply", "m2", _thing("x", plain=["2"], whole={"b": "2"}), force=True),
        _step(
            "apply",
            "m1",
            _thing(
                "x",
                tags=["a"],
                ports=[],
                any={"q": {"r": 1, "s": [1]}},
                raw=[1],
                port="http",
                nest={"x": {"y": "z"}},
            ),
        ),
        _step("merge", "upd", {"spec": {"any": {"q": {"t": True}}, "raw": {"k": 1}, "port": 8080}}),
        _step("apply", "m1", _thing("x", nest={}, any={}), force=True),
        _step("apply", "m1", _thing("x", bogus=1)),
        _step("apply", "m1", _thing("x", tags=["a", "a"])),
        _step("apply", "m1", _thing("x", ports=[{"note": "no port"}])),
        _step("apply", "m1", _thing("x", min="one")),
        _step("apply", "m1", _thing("x", name=5)),
        _step("apply", "m1", _thing("x", labels="no")),
        _step("apply", "m1", _thing("x", tags={"a": 1})),
    ),
    _scenario(
        "status written apart from spec",
        THINGS,
        "st",
        _step("create", "user", _thing("st", {"ready": 9}, min=1, tags=["a"])),
        _step(
            "apply",
            "ctl",
            _thing("st", {"ready": 1, "conditions": [{"type": "Ready", "status": "True"}]}),
            subresource="status",
        ),
        _step(
            "apply",
            "other",
            _thing("st", {"conditions": [{"type": "Synced", "status": "True"}]}),
            subresource="status",
        ),
        _step(
            "apply",
            "ctl",
            _thing("st", {"conditions": [{"type": "Ready", "status": "False"}]}, min=7),
            subresource="status",
        ),
        _step("apply", "ctl", _thing("st", {"ready": 3}, min=1)),
        _step("merge", "user", {"spec": {"min": 2}, "status": {"ready": 8}}),
        _step("merge", "user", {"spec": {"min": 3}, "status": {"ready": 8}}, subresource="status"),
        _step("replace", "putter", {"status/ready": 4, "spec/min": 9}, subresource="status"),
    ),
    _scenario(
        "a custom resource without a schema",
        LOOSE,
        "l",
        _step("apply", "m1", _loose("l", spec={"a": {"b": 1, "c": [1, {"d": 2}]}, "e": "x"}, top=1)),
        _step("apply", "m2", _loose("l", spec={"a": {"b": 2}})),
        _step("apply", "m2", _loose("l", spec={"a": {"f": None, "g": {}}})),
        _step("merge", "upd", {"spec": {"a": {"c": [2]}, "e": {"now": "map"}}}),
        _step("apply", "m1", _loose("l", spec={"e": {"now": "map", "x": [1]}})),
        _step("apply", "m1", _loose("l")),
    ),
    _scenario(
        "nulls and empties in a custom resource",
        THINGS,
        "n",
        _step("create", "user", _thing("n", min=1, tags=[], labels={}, whole={}, nest={"x": {}})),
        _step("apply", "m1", _thing("n", tags=[], labels={}, nest={"x": {}}, plain=[])),
        _step("apply", "m1", _thing("n", labels={"a": "1"}, ports=[{"port": 1, "deep": {}}])),
        _step("apply", "m1", _thing("n", labels={}, ports=[{"port": 1, "deep": {"a": "b"}}])),
        _step("merge", "user", {"spec": {"labels": {"a": "2", "b": None}}}),
        _step("apply", "m1", _thing("n")),
    ),
    _scenario(
        "a deployment of client-side kubectl that goes over to the server",
        DEPLOYS,
        "k",
        _step("create", "kubectl-client-side-apply", _with_last_applied(_named(_deployment(), "k"))),
        _step("merge", "scaler", {"spec": {"replicas": 9}}),
        _step("apply", "kubectl", _named(_deployment(replicas=4), "k")),
        _step("apply", "kubectl", _named(_deployment(replicas=9, minReadySeconds=3), "k")),
        _step(
            "apply",
            "kubectl",
            _named(_deployment(replicas=9, template=_template({"name": "c", "image": "<new>"})), "k"),
        ),
        _step(
            "apply",
            "other",
            _named(_deployment(replicas=9, template=_template({"name": "c", "image": "x"})), "k"),
        ),
    ),
    _scenario(
        "a config map of client-side kubectl that another changed",
        MAPS,
        "ka",
        _step(
            "create",
            "kubectl-client-side-apply",
            _with_last_applied(_config_map("ka", data={"a": "1", "b": "1"})),
        ),
        _step("apply", "kubectl", _config_map("ka", data={"a": "2", "b": "1"})),
        _step("merge", "edit", {"data": {"b": "7"}}),
        _step("apply", "kubectl", _config_map("ka", data={"a": "3", "b": "8"})),
    ),
    _scenario(
        "a cluster role whose rules are one value",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "r",
        _step("apply", "m1", _cluster_role({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})),
        _step("apply", "m2", _cluster_role({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]})),
        _step("merge", "upd", {"rules": None}),
        _step("apply", "m1", _cluster_role(), force=True),
        _step("replace", "put", {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}),
    ),
    _scenario(
        "a definition applied to by two",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "others.ex.io",
        _step(
            "apply",
            "m1",
            _crd(
                "Other",
                "others",
                {"type": "object", "properties": {"spec": {"type": "object"}}},
                status=False,
            ),
        ),
        _step(
            "apply",
            "m2",
            _crd(
                "Other", "others", {"type": "object", "properties": {"spec": {"type": "object"}}}, status=True
            ),
        ),
        _step(
            "apply",
            "m2",
            _crd(
                "Other", "others", {"type": "object", "properties": {"spec": {"type": "string"}}}, status=True
            ),
        ),
        _step("merge", "upd", {"spec": {"names": {"shortNames": ["ot"]}}}),
    ),
    _scenario(
        "an ingress and its rules",
        "/apis/networking.k8s.io/v1/namespaces/t/ingresses",
        "i",
        _step("apply", "m1", _ingress("a.b", "svc")),
        _step("apply", "m2", _ingress("c.d", "svc")),
        _step("apply", "m1", _ingress("a.b", "other")),
        _step(
            "merge",
            "lb",
            {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
            subresource="status",
        ),
    ),
    _scenario(
        "a stateful set with claims",
        "/apis/apps/v1/namespaces/t/statefulsets",
        "sts",
        _step("create", "maker", _stateful_set(2)),
        _step("apply", "app", _stateful_set(3)),
        _step("apply", "app", _stateful_set(3), force=True),
    ),
    _scenario(
        "a service account and what hangs on it",
        "/api/v1/namespaces/t/serviceaccounts",
        "sa",
        _step(
            "apply",
            "m1",
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "sa"},
                "secrets": [{"name": "b"}, {"name": "a"}],
            },
        ),
        _step(
            "apply",
            "m2",
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "sa"},
                "secrets": [{"name": "c"}],
                "imagePullSecrets": [{"name": "p"}],
            },
        ),
        _step("merge", "m3", {"secrets": [{"name": "a"}], "automountServiceAccountToken": False}),
    ),
    _scenario(
        "a node, its taints and its conditions",
        "/api/v1/nodes",
        "n1",
        _step(
            "create",
            "kubelet",
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "n1"},
                "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
            },
        ),
        _step(
            "merge",
            "kubelet",
            {
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "capacity": {"cpu": "2000m"},
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                }
            },
            subresource="status",
        ),
        _step(
            "apply",
            "cloud",
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "n1"},
                "status": {
                    "addresses": [{"type": "Hostname", "address": "n1"}],
                    "capacity": {"gpu.io/x": "1"},
                },
            },
            subresource="status",
        ),
        _step("merge", "upd", {"spec": {"unschedulable": True}}),
    ),
    _scenario(
        "labels and annotations taken away by null",
        MAPS,
        "nul",
        _step(
            "apply",
            "m1",
            _config_map(
                "nul",
                metadata={"name": "nul", "labels": {"a": "1"}, "annotations": {"x": "y"}},
                data={"k": "v"},
            ),
        ),
        _step("apply", "m1", _config_map("nul", metadata={"name": "nul", "labels": None}, data={"k": None})),
        _step("apply", "m1", _config_map("nul", metadata={"name": "nul", "labels": {}}, data=None)),
    ),
    _scenario(
        "a config map born with a generated name part",
        MAPS,
        "gen",
        _step(
            "create", "g", _config_map("gen", metadata={"name": "gen", "generateName": "ge"}, data={"k": "v"})
        ),
        _step("apply", "m1", _config_map("gen", data={"k": "v"})),
        _step("apply", "m1", _config_map("gen")),
    ),
]
