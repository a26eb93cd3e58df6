"""Requests that `scripts/compare` found to be answered differently, each as the smallest that shows its cause."""

from collections.abc import Iterator
from typing import Any

from conformance_exchange import Step

NAMESPACE = "compared"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
BATCH = f"/apis/batch/v1/namespaces/{NAMESPACE}"
SCALERS = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
NODES = "/api/v1/nodes"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = f"/apis/compared.example.com/v1/namespaces/{NAMESPACE}/things"
LATER_THINGS = THINGS.replace("/v1/", "/v2/")
APPLY = {"Content-Type": "application/apply-patch+yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


def named(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **fields}


def applied(kind: str, name: str, api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def template(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers, **spec}}


def selected(name: str, **spec: Any) -> dict[str, Any]:
    return named(name, spec={"selector": {"matchLabels": {"a": "b"}}, "template": template(), **spec})


def events(body: Any, _: Any) -> Any:
    """Compare the events of the Pod, without bookmarks."""
    return [event for event in body if event["type"] != "BOOKMARK"]


PORTS = [{"port": 80}]
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
DELETIONS = [
    Step("before", "GET", f"{CORE}/pods?limit=1", save={"rv": "metadata.resourceVersion"}, compared=False),
    Step("pod", "POST", f"{CORE}/pods", named("gone", spec=template()["spec"]), compared=False),
    Step("pod-gone-at-once", "DELETE", f"{CORE}/pods/gone", {"gracePeriodSeconds": 0}),
    Step(
        "orphaning",
        "POST",
        f"{CORE}/pods",
        {"metadata": {"name": "orphaning", "finalizers": ["orphan"]}, "spec": template()["spec"]},
        compared=False,
    ),
    Step(
        "pod-gone-without-orphaning",
        "DELETE",
        f"{CORE}/pods/orphaning",
        {"gracePeriodSeconds": 0, "propagationPolicy": "Background"},
    ),
    Step(
        "watch-of-deletions",
        "GET",
        f"{CORE}/pods?watch=1&timeoutSeconds=1&resourceVersion={{rv}}",
        pick=events,
    ),
    Step(
        "map-of-deletion",
        "POST",
        f"{CORE}/configmaps",
        {"metadata": {"name": "orphaning", "finalizers": ["orphan"]}},
        save={"map": "metadata.resourceVersion"},
        compared=False,
    ),
    Step(
        "map-gone-without-orphaning",
        "DELETE",
        f"{CORE}/configmaps/orphaning",
        {"propagationPolicy": "Background"},
    ),
    Step(
        "watch-of-a-map",
        "GET",
        f"{CORE}/configmaps?watch=1&timeoutSeconds=1&resourceVersion={{map}}&fieldSelector=metadata.name=orphaning",
        pick=events,
    ),
    Step(
        "first-bookmark-as-a-table",
        "GET",
        f"{CORE}/secrets?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        headers=TABLE,
    ),
]
SERVICES = [
    Step(
        "status-creates", "PUT", f"{CORE}/services/new/status", named("new", spec={"clusterIP": "10.0.0.9"})
    ),
    Step(
        "status-applied-creates",
        "PATCH",
        f"{CORE}/services/new/status?fieldManager=one",
        applied("Service", "new", spec={"clusterIP": "nope", "ports": PORTS}),
        APPLY,
    ),
    Step(
        "address-outside",
        "POST",
        f"{CORE}/services",
        named("out", spec={"clusterIP": "172.16.0.1", "ports": PORTS}),
    ),
    Step(
        "address-outside-and-no-ports",
        "POST",
        f"{CORE}/services",
        named("out", spec={"clusterIP": "172.16.0.1"}),
    ),
    Step(
        "address-outside-in-a-dry-run",
        "POST",
        f"{CORE}/services?dryRun=All",
        named("out", spec={"clusterIP": "172.16.0.1", "ports": PORTS}),
    ),
    Step(
        "address-of-the-network",
        "POST",
        f"{CORE}/services",
        named("out", spec={"clusterIP": "10.0.0.0", "ports": PORTS}),
    ),
    Step(
        "address-in-use",
        "POST",
        f"{CORE}/services",
        named("out", spec={"clusterIP": "10.0.0.1", "ports": PORTS}),
    ),
    Step(
        "address-in-use-in-a-dry-run",
        "POST",
        f"{CORE}/services?dryRun=All",
        named("out", spec={"clusterIP": "10.0.0.1", "ports": PORTS}),
    ),
    Step("service", "POST", f"{CORE}/services", named("s", spec={"ports": PORTS}), compared=False),
    Step("address-invalid", "PATCH", f"{CORE}/services/s", {"spec": {"clusterIP": "x"}}, MERGE),
    Step("address-changed", "PATCH", f"{CORE}/services/s", {"spec": {"clusterIP": "172.16.0.1"}}, MERGE),
    Step("addresses-changed", "PATCH", f"{CORE}/services/s", {"spec": {"clusterIPs": ["10.0.0.77"]}}, MERGE),
    Step("address-none", "PATCH", f"{CORE}/services/s", {"spec": {"clusterIP": "None"}}, MERGE),
    Step(
        "finalizer-through-the-status",
        "PATCH",
        f"{CORE}/services/s/status",
        {"metadata": {"finalizers": ["x y"]}},
        MERGE,
    ),
    Step(
        "source-ranges-annotated",
        "POST",
        f"{CORE}/services",
        {
            "metadata": {
                "name": "ranges",
                "annotations": {"service.beta.kubernetes.io/load-balancer-source-ranges": "10.0.0.0/8, x"},
            },
            "spec": {"ports": PORTS},
        },
    ),
    Step(
        "topology-annotated-twice",
        "POST",
        f"{CORE}/services",
        {
            "metadata": {
                "name": "topology",
                "annotations": {
                    "service.kubernetes.io/topology-aware-hints": "auto",
                    "service.kubernetes.io/topology-mode": "Auto",
                },
            },
            "spec": {"ports": PORTS},
        },
    ),
]
WORKLOADS = [
    Step("set", "POST", f"{APPS}/statefulsets?fieldManager=one", selected("set"), compared=False),
    Step("scale-without-a-spec", "PATCH", f"{APPS}/statefulsets/set/scale", {"spec": None}, STRATEGIC),
    Step("owners-after-scaling-to-zero", "GET", f"{APPS}/statefulsets/set"),
    Step("scale-of-a-number", "PATCH", f"{APPS}/statefulsets/set/scale", {"spec": 7}, STRATEGIC),
    Step(
        "scale-beyond-32-bits",
        "PATCH",
        f"{APPS}/statefulsets/set/scale",
        {"spec": {"replicas": 2**32 + 3}},
        STRATEGIC,
    ),
    Step(
        "job",
        "POST",
        f"{BATCH}/jobs",
        named("job", spec={"template": template(restartPolicy="Never")}),
        compared=False,
    ),
    Step("job-status-without-labels", "PUT", f"{BATCH}/jobs/job/status", named("job")),
    Step("revision", "POST", f"{APPS}/controllerrevisions", named("r", data={}), compared=False),
    Step("revision-without-data", "PUT", f"{APPS}/controllerrevisions/r", named("r")),
    Step(
        "windows-user",
        "POST",
        f"{CORE}/pods",
        named(
            "windows",
            spec=template(securityContext={"windowsOptions": {"runAsUserName": "https://a.b/c"}})["spec"],
        ),
    ),
    Step(
        "windows-users",
        "POST",
        f"{CORE}/pods",
        named(
            "windows",
            spec={
                "securityContext": {"windowsOptions": {"hostProcess": True, "gmsaCredentialSpecName": "A"}},
                "containers": [
                    {"name": f"c{index}", "image": "i", "securityContext": {"windowsOptions": options}}
                    for index, options in enumerate(
                        (
                            {"runAsUserName": ""},
                            {"runAsUserName": "a\\b\\c"},
                            {"runAsUserName": "-.\\. ."},
                            {"runAsUserName": "d\\", "gmsaCredentialSpec": ""},
                            {"runAsUserName": "a\tb", "hostProcess": False},
                            {"runAsUserName": "x" * 105},
                        )
                    )
                ],
            },
        ),
    ),
]
SCALING = [
    Step(
        "scaler",
        "POST",
        SCALERS,
        named("s", spec={"scaleTargetRef": TARGET, "maxReplicas": 3}),
        compared=False,
    ),
    Step(
        "target-without-a-group",
        "PUT",
        f"{SCALERS}/s?dryRun=All",
        named("s", spec={"scaleTargetRef": {"kind": "ReplicationController", "name": "x"}, "maxReplicas": 3}),
    ),
    Step(
        "other-target-without-a-group",
        "PUT",
        f"{SCALERS}/s?dryRun=All",
        named("s", spec={"scaleTargetRef": {"kind": "Deployment", "name": "x"}, "maxReplicas": 3}),
    ),
    Step(
        "negative-replicas-in-the-status",
        "PATCH",
        f"{SCALERS}/s/status",
        {"status": {"currentReplicas": -1, "desiredReplicas": -2}},
        MERGE,
    ),
]
CLUSTER = [
    Step(
        "class",
        "POST",
        CLASSES,
        named("compared", handler="h"),
        save={"class": "metadata.resourceVersion"},
        compared=False,
    ),
    Step(
        "class-without-a-handler",
        "PUT",
        f"{CLASSES}/compared?dryRun=All",
        {"metadata": {"name": "compared", "resourceVersion": "{class}"}},
    ),
    Step(
        "class-with-a-selector",
        "PUT",
        f"{CLASSES}/compared?dryRun=All",
        {
            "metadata": {"name": "compared", "resourceVersion": "{class}", "selfLink": "/x"},
            "handler": "h",
            "scheduling": {"nodeSelector": {"a": "a=b"}},
        },
    ),
    Step(
        "link-in-a-dry-run",
        "PUT",
        f"{CLASSES}/compared?dryRun=All",
        {"metadata": {"name": "compared", "resourceVersion": "{class}", "selfLink": "/x"}, "handler": "h"},
    ),
    Step("class-gone", "DELETE", f"{CLASSES}/compared", compared=False),
    Step(
        "address",
        "POST",
        ADDRESSES,
        named("2001:db8::7", spec={"parentRef": {"resource": "services", "name": "a"}}),
        compared=False,
    ),
    Step(
        "address-without-a-parent",
        "PUT",
        f"{ADDRESSES}/2001:db8::7?dryRun=All",
        named("2001:db8::7", spec={"parentRef": {}}),
    ),
    Step("address-gone", "DELETE", f"{ADDRESSES}/2001:db8::7", compared=False),
    Step("node", "POST", NODES, named("compared", spec={"podCIDRs": ["fd00::/64"]}), compared=False),
    Step(
        "node-with-an-id", "PUT", f"{NODES}/compared?dryRun=All", named("compared", spec={"externalID": "a"})
    ),
    Step(
        "node-with-taints-and-networks",
        "PUT",
        f"{NODES}/compared?dryRun=All",
        named("compared", spec={"podCIDRs": ["x"], "taints": [{"key": "a", "effect": "Nope"}]}),
    ),
    Step(
        "node-status",
        "PATCH",
        f"{NODES}/compared/status?dryRun=All",
        {
            "status": {
                "capacity": {"cpu": "-1"},
                "declaredFeatures": ["B", "A", "A", "b"],
                "config": {"error": "x"},
            }
        },
        MERGE,
    ),
    Step("node-gone", "DELETE", f"{NODES}/compared", compared=False),
    Step(
        "binding-without-an-action",
        "POST",
        f"{BINDINGS}?dryRun=All",
        named(
            "b",
            spec={
                "policyName": "p",
                "validationActions": ["Deny"],
                "paramRef": {"name": "x", "parameterNotFoundAction": ""},
            },
        ),
    ),
]
WIDE = applied(
    "Deployment",
    "wide",
    "apps/v1",
    spec={"replicas": 2**32 + 1, "selector": {"matchLabels": {"a": "b"}}, "template": template()},
)
ENTRIES: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("readable", [{"manager": "x"}], {}),
    ("empty", [], {}),
    ("of-another-type", "x", {}),
    ("at-a-wrong-time", [{"time": "50%"}], {}),
    ("at-a-wrong-time-and-a-field", [{"time": "::1"}], {"bogus": 1}),
)
APPLIES = [
    Step("numbers-beyond-32-bits", "PATCH", f"{APPS}/deployments/wide?fieldManager=one", WIDE, APPLY),
    Step(
        "numbers-beyond-64-bits",
        "PATCH",
        f"{APPS}/deployments/wide?fieldManager=one&dryRun=All",
        WIDE | {"spec": WIDE["spec"] | {"replicas": 2**63}},
        APPLY,
    ),
    Step(
        "patched-beyond-32-bits",
        "PATCH",
        f"{APPS}/deployments/wide",
        {"spec": {"replicas": 2**33 + 2}},
        STRATEGIC,
    ),
    *(
        Step(
            f"managed-fields-{name}",
            "PATCH",
            f"{CORE}/configmaps/entries?fieldManager=one",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "entries", "managedFields": entries},
                **more,
            },
            APPLY,
        )
        for name, entries, more in ENTRIES
    ),
]
EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}


def definition(name: str, *versions: dict[str, Any]) -> dict[str, Any]:
    return named(
        f"{name}s.compared.example.com",
        spec={
            "group": "compared.example.com",
            "scope": "Namespaced",
            "names": {
                "plural": f"{name}s",
                "singular": name,
                "kind": name.title(),
                "listKind": f"{name.title()}List",
            },
            "versions": [
                {
                    "name": f"v{index}",
                    "served": True,
                    "storage": index == 1,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
                for index, spec in enumerate(versions, 1)
            ],
        },
    )


def definition_with(*schemas: Any) -> dict[str, Any]:
    """Return a definition with whole schemas."""
    made = definition("whole", *schemas)
    for version, schema in zip(made["spec"]["versions"], schemas, strict=True):
        version["schema"] = {"openAPIV3Schema": schema}
    return made


OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
FIRST = {
    "type": "object",
    "properties": {"size": OPEN, "any": {"x-kubernetes-preserve-unknown-fields": True}},
}
RULED = {
    "type": "object",
    "nullable": True,
    "properties": {"size": {"type": "integer"}, "any": OPEN},
    "x-kubernetes-validations": [{"rule": "false", "message": "never", "reason": "FieldValueForbidden"}],
}


def is_established(status: int, body: Any) -> bool:
    conditions = (body.get("status", {}).get("conditions") if status == 200 else None) or ()
    return any(item["type"] == "Established" and item["status"] == "True" for item in conditions)


def custom() -> Iterator[Step]:
    wrong = {"type": "array", "items": EMBEDDED, "default": [{}, {"apiVersion": "v1", "kind": "Pod"}]}
    yield Step("embedded-defaults", "POST", f"{DEFINITIONS}?dryRun=All", definition("odd", wrong))
    yield Step("definition", "POST", DEFINITIONS, definition("thing", FIRST, RULED), compared=False)
    found = f"{DEFINITIONS}/things.compared.example.com"
    yield Step("established", "GET", found, until=is_established, compared=False)
    yield Step("served", "GET", THINGS, until=lambda status, body: status == 200, compared=False)
    thing = applied("Thing", "x", "compared.example.com/v1", spec={"any": None, "size": {}})
    path = f"{THINGS}/x?fieldManager=one"
    yield Step("null-in-a-dry-run", "PATCH", f"{path}&dryRun=All", thing, APPLY)
    yield Step("null", "PATCH", path, thing, APPLY)
    later = thing | {"apiVersion": "compared.example.com/v2"}
    yield Step(
        "applied-to-a-mismatch",
        "PATCH",
        f"{LATER_THINGS}/x?fieldManager=two",
        later | {"spec": {"any": {}}},
        APPLY,
    )
    yield Step(
        "unchanged-and-mismatched", "PATCH", f"{LATER_THINGS}/x", {"metadata": {"labels": {"a": "b"}}}, MERGE
    )
    yield Step(
        "applied-to-a-mismatch-without-owners",
        "PATCH",
        f"{LATER_THINGS}/x?fieldManager=two",
        later | {"spec": {"any": {}}},
        APPLY,
    )
    yield Step("definition-gone", "DELETE", found, compared=False)


SELECTABLE = definition("odd", *([{"type": "object", "properties": {"a": {"type": "string"}}}] * 2))
SELECTABLE["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": ".spec.a"}]
SELECTABLE["spec"]["versions"][1]["selectableFields"] = [{"jsonPath": ".spec.b"}]
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
EXPRESSIONS = (
    "object.data.k.x == 'a'",
    "oldObject.metadata.name.lowerAscii() == 'a'",
    "object.metadata.finalizers.x == 'a'",
    "has(object.data.k.x)",
    "has(oldObject.x)",
    "has(object.metadata.finalizers.x)",
    "object.data.k['x'] == 'a'",
    "object.data.k[0] == 'a'",
    "oldObject['metadata'] == 1",
)


def is_denied(status: int, body: Any) -> bool:
    return status >= 400


def policies() -> Iterator[Step]:
    """Evaluate expressions that select from what is not a map."""
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    for index, expression in enumerate(EXPRESSIONS):
        selector = {"matchLabels": {"compared": f"e{index}"}}
        spec = {
            "matchConstraints": {"resourceRules": [rule], "objectSelector": selector},
            "failurePolicy": "Fail",
            "validations": [{"expression": expression}, {"expression": "false", "message": "no"}],
        }
        name = f"compared-{index}"
        yield Step(f"policy-{index}", "POST", POLICIES, named(name, spec=spec), compared=False)
        bound = {"policyName": name, "validationActions": ["Deny"]}
        yield Step(f"bound-{index}", "POST", BINDINGS, named(name, spec=bound), compared=False)
        labels = {"compared": f"e{index}"}
        body = {
            "metadata": {"name": "denied", "labels": labels, "finalizers": ["example.com/f"]},
            "data": {"k": "v"},
        }
        yield Step(f"expression-{index}", "POST", f"{CORE}/configmaps?dryRun=All", body, until=is_denied)
        yield Step(f"bound-{index}-gone", "DELETE", f"{BINDINGS}/{name}", compared=False)
        yield Step(f"policy-{index}-gone", "DELETE", f"{POLICIES}/{name}", compared=False)


ROLES = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
GROUP = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "compared-people"}
RIGHTS = [
    Step(
        "role",
        "POST",
        f"{ROLES}/roles",
        named("r", rules=[{"verbs": ["compare"], "apiGroups": [""], "resources": ["pods"]}]),
        compared=False,
    ),
    Step(
        "role-bound-twice-to-a-group",
        "POST",
        f"{ROLES}/rolebindings",
        named(
            "r",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            subjects=[GROUP, GROUP],
        ),
        compared=False,
    ),
    Step(
        "rules-of-a-repeated-subject",
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        {"spec": {"namespace": NAMESPACE}},
        {"Impersonate-User": "john", "Impersonate-Group": "compared-people"},
        until=lambda status, body: bool(body),
        pick=lambda body, _: [rule for rule in body["status"]["resourceRules"] if "compare" in rule["verbs"]],
    ),
]
LIMITED = "/api/v1/namespaces/compared-quota"
DEVICES = "/apis/resource.k8s.io/v1/namespaces/compared-quota/resourceclaims"
LIMITS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "gold": (
        {"persistentvolumeclaims": "1", "requests.storage": "1Gi"},
        {
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}
                ]
            }
        },
    ),
    "classes": (
        {"persistentvolumeclaims": "2"},
        {
            "scopeSelector": {
                "matchExpressions": [{"scopeName": "VolumeAttributesClass", "operator": "Exists"}]
            }
        },
    ),
    "devices": ({"gpu.deviceclass.resource.k8s.io/devices": "3"}, {}),
}


def volume_claim(name: str, size: str, attributes: str | None = None) -> dict[str, Any]:
    requests = {"requests": {"storage": size}}
    chosen = {"volumeAttributesClassName": attributes} if attributes else {}
    return named(name, spec={"accessModes": ["ReadWriteOnce"], "resources": requests, **chosen})


def device_claim(name: str, **request: Any) -> dict[str, Any]:
    return named(name, spec={"devices": {"requests": [{"name": "r", **request}]}})


def quotas() -> Iterator[Step]:
    """Count claims by the class of their attributes, and devices by their class."""
    space = {"metadata": {"name": "compared-quota"}}
    yield Step("quota-namespace", "POST", "/api/v1/namespaces", space, compared=False)
    for name, (hard, scope) in LIMITS.items():
        path = f"{LIMITED}/resourcequotas"
        yield Step(f"quota-{name}", "POST", path, named(name, spec={"hard": hard, **scope}), compared=False)
        used = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
        yield Step(f"quota-{name}-used", "PATCH", f"{path}/{name}/status", used, MERGE, compared=False)
    claims, dry = f"{LIMITED}/persistentvolumeclaims", f"{LIMITED}/persistentvolumeclaims?dryRun=All"
    yield Step("quota-in-effect", "POST", dry, volume_claim("a", "2Gi", "gold"), until=is_denied)
    yield Step("quota-of-another-class", "POST", dry, volume_claim("a", "2Gi", "silver"))
    yield Step("quota-of-no-class", "POST", dry, volume_claim("a", "2Gi"))
    yield Step("quota-first", "POST", claims, volume_claim("a", "1Gi", "gold"), compared=False)
    yield Step("quota-second", "POST", claims, volume_claim("b", "1Gi", "gold"))
    yield Step("quota-silver", "POST", claims, volume_claim("b", "1Gi", "silver"), compared=False)
    yield Step("quota-silver-exceeded", "POST", claims, volume_claim("c", "1Gi", "silver"))
    gpu = {"deviceClassName": "gpu"}
    wait = device_claim("a", exactly={**gpu, "count": 4})
    yield Step("quota-of-devices", "POST", f"{DEVICES}?dryRun=All", wait, until=is_denied)
    whole = device_claim("a", exactly={**gpu, "allocationMode": "All"})
    yield Step("quota-of-all-devices", "POST", DEVICES, whole)
    choices = [
        {"name": "a", **gpu, "count": 1},
        {"name": "b", **gpu, "count": 2},
        {"name": "c", "deviceClassName": "tpu", "allocationMode": "All"},
    ]
    yield Step(
        "quota-of-alternatives", "POST", DEVICES, device_claim("a", firstAvailable=choices), compared=False
    )
    yield Step("quota-of-devices-exceeded", "POST", DEVICES, device_claim("b", exactly={**gpu, "count": 2}))
    yield Step("quota-of-devices-left", "POST", DEVICES, device_claim("b", exactly=gpu), compared=False)
    yield Step(
        "quotas-used",
        "GET",
        f"{LIMITED}/resourcequotas",
        pick=lambda body, _: {item["metadata"]["name"]: item["status"] for item in body["items"]},
    )


LATEST = [
    Step(
        "job-without-labels",
        "POST",
        f"{BATCH}/jobs",
        named("plain", spec={"template": {"spec": template(restartPolicy="Never")["spec"]}}),
    ),
    Step("job-without-labels-unchanged", "PATCH", f"{BATCH}/jobs/plain", {}, MERGE),
    Step("job-without-labels-unchanged-again", "PATCH", f"{BATCH}/jobs/plain", {}, MERGE),
    *(
        Step(
            f"applied-metadata-{name}",
            "PATCH",
            f"{CORE}/configmaps/odd?fieldManager=one",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata},
            APPLY,
        )
        for name, metadata in (("list", [""]), ("text", "x"), ("name", {"name": ["x"]}))
    ),
    Step(
        "fields-that-were-moved",
        "PATCH",
        f"{CORE}/configmaps/page-a",
        [
            {"op": "add", "path": "/data", "value": {"z": "1", "b": "2"}},
            {"op": "add", "path": "/data/a", "value": "3"},
            {"op": "move", "path": "/spec", "from": "/data"},
            {"op": "copy", "path": "/more", "from": "/metadata"},
        ],
        JSON_PATCH,
    ),
]
WITHOUT_KEY = applied("ServiceAccount", "keyless")
MORE = [
    Step(
        "claim-status",
        "PATCH",
        f"{CORE}/persistentvolumeclaims/c/status?dryRun=All",
        {
            "status": {
                "capacity": {"storage": "-1"},
                "allocatedResourceStatuses": {"b-c": "x", "storage": "NodeResizePending"},
                "allocatedResources": {"pods": "1"},
            }
        },
        MERGE,
    ),
    Step("definition-without-a-spec", "POST", f"{DEFINITIONS}?dryRun=All", named("empty.example.com")),
    Step(
        "definition-with-a-version-twice",
        "POST",
        f"{DEFINITIONS}?dryRun=All",
        named("empty.example.com", spec={"versions": [{"name": "v1"}, {"name": "v1", "storage": True}]}),
        pick=lambda body, _: [cause["message"] for cause in body["details"]["causes"]],
    ),
    Step("account", "POST", f"{CORE}/serviceaccounts", named("keyless"), compared=False),
    Step(
        "account-with-a-secret-without-a-name",
        "PUT",
        f"{CORE}/serviceaccounts/keyless",
        named("keyless", secrets=[{}]),
    ),
    Step(
        "applied-to-a-list-without-keys",
        "PATCH",
        f"{CORE}/serviceaccounts/keyless?fieldManager=two",
        WITHOUT_KEY,
        APPLY,
    ),
    Step(
        "policy-with-a-wrong-constant",
        "POST",
        f"{POLICIES}?dryRun=All",
        named(
            "constant",
            spec={
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "operations": ["CREATE"],
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "resources": ["pods"],
                        }
                    ]
                },
                "validations": [{"expression": "int('1.2.3.4') == 1"}],
            },
        ),
    ),
    Step(
        "quota-of-a-scope-with-values",
        "POST",
        f"{CORE}/resourcequotas?dryRun=All",
        named(
            "scoped",
            spec={
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "Exists", "values": ["x"]}
                    ]
                }
            },
        ),
    ),
]
NAMED = "fieldSelector=metadata.name%3Dpage-a&limit=1"
LATER = [
    *(
        Step(f"page-{name}", "POST", f"{CORE}/configmaps", named(f"page-{name}"), compared=False)
        for name in ("a", "b")
    ),
    Step("page-of-one-object", "GET", f"{CORE}/configmaps?{NAMED}"),
    Step("page-of-one-object-now", "GET", f"{CORE}/configmaps?{NAMED}&resourceVersion=0"),
    Step("page-of-one-namespace", "GET", "/api/v1/namespaces?fieldSelector=metadata.name%3Dcompared&limit=1"),
    Step("binding-to-another-kind", "POST", f"{CORE}/bindings", {"target": {"kind": "Pod"}}),
    Step("binding-without-a-name", "POST", f"{CORE}/bindings", {"target": {"name": "n"}}),
    Step("no-such-job", "DELETE", f"{BATCH}/jobs/none"),
    Step("no-jobs", "DELETE", f"{BATCH}/jobs?labelSelector=no%3Dsuch&dryRun=All"),
    Step(
        "claim",
        "POST",
        f"{CORE}/persistentvolumeclaims",
        named("c", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
    ),
    Step("claim-unchanged", "PATCH", f"{CORE}/persistentvolumeclaims/c", {}, MERGE),
    Step("claim-unchanged-again", "PATCH", f"{CORE}/persistentvolumeclaims/c", {}, MERGE),
    Step("job-status-without-labels-again", "PUT", f"{BATCH}/jobs/job/status", named("job")),
    Step("job-unchanged", "PATCH", f"{BATCH}/jobs/job", {}, MERGE),
    Step(
        "default-of-a-number-or-text",
        "POST",
        f"{DEFINITIONS}?dryRun=All",
        definition(
            "odd",
            {
                "type": "object",
                "properties": {"port": {"x-kubernetes-int-or-string": True, "default": [{"c": 2}]}},
            },
        ),
        pick=lambda body, _: body.get("message"),
    ),
    Step(
        "selectable",
        "POST",
        f"{DEFINITIONS}?dryRun=All",
        SELECTABLE,
        pick=lambda body, _: body.get("message"),
    ),
]
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
NUMBERS = {
    "type": "object",
    "properties": {"n": {"type": "number"}, "size": {"x-kubernetes-int-or-string": True}},
}
SCALED = definition("measure", NUMBERS)
SCALED["spec"]["versions"][0]["subresources"] = {
    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
}
SIZED = f"/apis/compared.example.com/v1/namespaces/{NAMESPACE}/measures"


def sized(**spec: Any) -> dict[str, Any]:
    return applied("Measure", "s", "compared.example.com/v1", spec=spec)


def suspended(name: str, **template: Any) -> Step:
    return Step(
        f"suspended-{name}",
        "PATCH",
        f"{BATCH}/jobs/suspended?dryRun=All",
        {"spec": {"template": template}},
        MERGE,
        pick=_template_errors,
    )


def _template_errors(body: Any, _: Any) -> Any:
    """Leave out the values in messages, which are Go structs."""
    if body["kind"] != "Status":
        return body
    return [[cause["field"], cause["message"].rpartition(": ")[2]] for cause in body["details"]["causes"]]


NODE_AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
        }
    }
}
NEWEST = [
    Step("service-without-a-name", "POST", "/apis/apiregistration.k8s.io/v1/apiservices?dryRun=All", {}),
    Step(
        "bundle-without-a-name",
        "POST",
        "/apis/certificates.k8s.io/v1/clustertrustbundles?dryRun=All",
        {"spec": {"signerName": "example.com/serving"}},
    ),
    Step(
        "binding-of-no-pod", "POST", f"{CORE}/bindings", named("none", target={"kind": "Node", "name": "A B"})
    ),
    Step("binding-without-a-kind", "POST", f"{CORE}/bindings", named("none", target={"name": "A B"})),
    Step(
        "claim-with-tolerations",
        "POST",
        f"{CLAIMS}?dryRun=All",
        named(
            "tolerant",
            spec={
                "devices": {
                    "requests": [
                        {"name": "r", "exactly": {"deviceClassName": "c", "tolerations": [{"key": "a"}]}},
                        {
                            "name": "s",
                            "firstAvailable": [
                                {"name": "x", "deviceClassName": "c", "tolerations": [{"key": "a"}]}
                            ],
                        },
                    ]
                }
            },
        ),
    ),
    Step("sized", "POST", DEFINITIONS, SCALED, compared=False),
    Step("sized-served", "GET", SIZED, until=lambda status, body: status == 200, compared=False),
    Step("large-number", "PATCH", f"{SIZED}/s?fieldManager=one", sized(n=2**63), APPLY),
    Step("largest-number", "PATCH", f"{SIZED}/s?fieldManager=one", sized(n=1e22), APPLY),
    Step("small-number", "PATCH", f"{SIZED}/s?fieldManager=one", sized(n=0.0000025), APPLY),
    Step("size-of-a-list", "PATCH", f"{SIZED}/s?fieldManager=one", sized(size=[1, 2.5]), APPLY),
    Step(
        "suspended",
        "POST",
        f"{BATCH}/jobs",
        named("suspended", spec={"suspend": True, "template": template(restartPolicy="Never")}),
        compared=False,
    ),
    suspended("selector", spec={"nodeSelector": {"a": "b"}}),
    suspended("tolerations", spec={"tolerations": [{"operator": "Exists"}]}),
    suspended("affinity", spec={"affinity": NODE_AFFINITY}),
    suspended("gates", spec={"schedulingGates": [{"name": "a.b/c"}]}),
    suspended("labels", metadata={"labels": {"x": "y"}}),
    suspended(
        "resources",
        spec={"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
    ),
    suspended("image", spec={"containers": [{"name": "c", "image": "j"}]}),
    suspended("priority", spec={"priorityClassName": "system-node-critical"}),
]


def created(name: str, collection: str, body: Any) -> Step:
    return Step(name, "POST", f"{collection}?dryRun=All", body)


def probed(**probe: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", "livenessProbe": probe}]}


def pages(name: str, amount: Any) -> Step:
    limits = {"hugepages-2Mi": amount, "memory": "1Gi"}
    containers = [{"name": "c", "image": "i", "resources": {"limits": limits}}]
    return created(f"pages-{name}", f"{CORE}/pods", named("pages", spec={"containers": containers}))


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}
ISCSI = {"targetPortal": "a" * 64, "iqn": "iqn.2000-01.a:b", "lun": 0, "initiatorName": "iqn.2000-01.a:b"}
HTTP2 = {"httpGet": {"port": 80, "protocol": "HTTP2"}}
# Fields whose feature gates are off are dropped after their managers were recorded.
DISABLED = [
    created("disabled-probe", f"{CORE}/pods", named("d", spec=probed(**HTTP2))),
    created("disabled-mode", f"{CORE}/pods", named("d", spec=probed(grpc={"port": 80, "mode": "TLS"}))),
    created("disabled-template", f"{APPS}/deployments", selected("d", template=template(**probed(**HTTP2)))),
    created(
        "disabled-group",
        f"{CORE}/pods",
        named("d", spec={**template()["spec"], "schedulingGroup": {"podGroupName": "a"}}),
    ),
    created(
        "disabled-user",
        f"{CORE}/pods",
        named(
            "d",
            spec=template(volumes=[{"name": "v", "secret": {"secretName": "a", "defaultUser": 5}}])["spec"],
        ),
    ),
    created(
        "disabled-scheduling",
        f"{BATCH}/jobs",
        named("d", spec={"scheduling": {}, "template": template(restartPolicy="Never")}),
    ),
    Step(
        "disabled-health",
        "PATCH",
        f"{CORE}/persistentvolumeclaims/c/status?dryRun=All",
        {"status": {"healthStatus": {}}},
        MERGE,
    ),
    created(
        "disabled-attributes",
        CLAIMS,
        named(
            "d",
            spec={
                "devices": {
                    "requests": [
                        {"name": "r", "exactly": {"deviceClassName": "c", "derivedAttributes": [{}]}}
                    ]
                }
            },
        ),
    ),
]
FURTHER = [
    created("controller-without-a-name", f"{CORE}/replicationcontrollers", {}),
    created("bundle-with-a-slash", "/apis/certificates.k8s.io/v1/clustertrustbundles", named("/")),
    created("two-sources", "/api/v1/persistentvolumes", {"spec": {"hostPath": {"path": "/x"}, "cephfs": {}}}),
    created("schema-without-a-type", DEFINITIONS, definition_with({})),
    created("schemas-without-types", DEFINITIONS, definition_with({}, {})),
    Step(
        "headless", "POST", f"{CORE}/services", named("headless", spec={"clusterIP": "None"}), compared=False
    ),
    Step(
        "family-released",
        "PUT",
        f"{CORE}/services/headless?dryRun=All",
        named("headless", spec={"ipFamilies": ["IPv6"]}),
    ),
    Step(
        "owners-of-nothing",
        "PUT",
        "/apis/storage.k8s.io/v1/csinodes/none?dryRun=All",
        {"metadata": {"name": "none", "ownerReferences": [OWNER, OWNER]}},
    ),
    created("bytes", f"{CORE}/secrets", named("b", data={"a": [1, None, 255], "b": [], "c": None})),
    created("large-byte", f"{CORE}/secrets", named("b", data={"a": [256]})),
    created("byte-of-text", f"{CORE}/secrets", named("b", data={"a": ["x"]})),
    pages("of-two-bytes", 2),
    pages("whole", "4Mi"),
    created(
        "long-target",
        f"{CORE}/pods",
        named("t", spec=template(volumes=[{"name": "v", "iscsi": ISCSI}])["spec"]),
    ),
    created("finalizers", "/api/v1/namespaces", named("finalized", spec={"finalizers": ["orphan", "x"]})),
    created(
        "long-image", f"{CORE}/pods", named("i", spec={"containers": [{"name": "c", "image": "x" * 254}]})
    ),
    created(
        "condition-without-a-status",
        f"{BATCH}/cronjobs",
        named(
            "c",
            spec={
                "schedule": "* * * * *",
                "jobTemplate": {
                    "spec": {
                        "podFailurePolicy": {
                            "rules": [{"action": "Ignore", "onPodConditions": [{"type": "a"}]}]
                        },
                        "template": template(restartPolicy="Never"),
                    }
                },
            },
        ),
    ),
    created(
        "restart-rules",
        f"{CORE}/pods",
        named("r", spec={"containers": [{"name": "c", "image": "i", "restartPolicyRules": [{}]}]}),
    ),
    created("long-handler", CLASSES, named("h", handler="x" * 64)),
    Step(
        "claim-annotated",
        "PATCH",
        f"{CORE}/persistentvolumeclaims/c?dryRun=All",
        {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "a"}}},
        MERGE,
    ),
    created(
        "taint-without-a-time",
        "/apis/resource.k8s.io/v1/devicetaintrules",
        named("t", spec={"taint": {"key": "a", "effect": "NoSchedule"}}),
    ),
]
STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *DELETIONS,
    *SERVICES,
    *WORKLOADS,
    *SCALING,
    *CLUSTER,
    *APPLIES,
    *custom(),
    *policies(),
    *LATER,
    *RIGHTS,
    *quotas(),
    *MORE,
    *LATEST,
    *NEWEST,
    *DISABLED,
    *FURTHER,
]
