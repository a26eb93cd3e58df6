"""Rules for single fields that are easily missed: claims of devices, node networks, empty enumerations, removed parts."""

from typing import Any

from conformance_exchange import Step
from conformance_objects import POD_OBJECT, POLICY, PVC, SCALER, bent, named

NAMESPACE = "field-rules"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
NETWORK = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}"
SCALERS = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
C = "spec__containers__0__"
PODS: dict[str, dict[str, Any]] = {
    "claim-without-a-source": {"spec__resourceClaims": [{"name": "a"}]},
    "claim-with-two-sources": {
        "spec__resourceClaims": [
            {"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"},
        ]
    },
    "claim-names": {
        "spec__resourceClaims": [
            {"name": "Bad_", "resourceClaimName": "Bad_"},
            {"name": "a", "resourceClaimTemplateName": "b c"},
            {"name": "a", "resourceClaimName": "x"},
            {"name": "", "resourceClaimName": "x"},
        ]
    },
    "claim-used": {
        "spec__resourceClaims": [{"name": "a", "resourceClaimName": "x"}],
        f"{C}resources": {"claims": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
    },
    "claim-requests": {
        "spec__resourceClaims": [{"name": "a", "resourceClaimName": "x"}],
        f"{C}resources": {
            "claims": [
                {"name": "a", "request": "r"},
                {"name": "a", "request": "r"},
                {"name": "a", "request": "Bad_"},
            ]
        },
    },
    "claim-whole-and-part": {
        "spec__resourceClaims": [{"name": "a", "resourceClaimName": "x"}],
        f"{C}resources": {"claims": [{"name": "a"}, {"name": "a", "request": "r"}]},
    },
    "claim-part-and-whole": {
        "spec__resourceClaims": [
            {"name": "b", "resourceClaimName": "x"},
            {"name": "a", "resourceClaimName": "x"},
        ],
        f"{C}resources": {
            "claims": [
                {"name": "a", "request": "r"},
                {"name": "a", "request": "s"},
                {"name": "a"},
                {"name": "c"},
            ]
        },
    },
    "claim-of-the-pod": {
        "spec__resourceClaims": [{"name": "b", "resourceClaimName": "x"}],
        "spec__resources": {"claims": [{"name": "c"}], "limits": {"cpu": "1"}},
    },
    "claim-good": {
        "spec__resourceClaims": [{"name": "a", "resourceClaimName": "x"}],
        f"{C}resources": {"claims": [{"name": "a"}]},
    },
    "claim-unused": {"spec__resourceClaims": [{"name": "a", "resourceClaimName": "x"}]},
    "claim-unknown": {f"{C}resources": {"claims": [{"name": "b"}, {"name": ""}]}},
}
QUALITIES: dict[str, Any] = {
    "limit-zero": {"limits": {"cpu": "0"}},
    "limit-zero-of-both": {"limits": {"cpu": "0", "memory": "0"}},
    "limit-zero-of-one": {"limits": {"cpu": "0", "memory": "1Gi"}},
    "request-zero": {"requests": {"cpu": "0"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    "request-zero-alone": {"requests": {"cpu": "0"}},
    "guaranteed": {"limits": {"cpu": "1", "memory": "1Gi"}},
    "storage-only": {"limits": {"ephemeral-storage": "1Gi"}},
    "pages-only": {"limits": {"hugepages-2Mi": "2Mi"}, "requests": {"memory": "1Gi"}},
}
LIMITS: dict[str, Any] = {
    "nothing": {},
    "maximum": {"max": {"storage": "2Gi"}},
    "minimum-above": {"min": {"storage": "3Gi"}, "max": {"storage": "2Gi"}},
    "default": {"max": {"storage": "2Gi"}, "default": {"storage": "1Gi"}},
    "default-request": {"max": {"storage": "2Gi"}, "defaultRequest": {"storage": "1Gi"}},
    "ratio": {"max": {"storage": "2Gi"}, "maxLimitRequestRatio": {"storage": "2"}},
    "other": {"max": {"cpu": "2"}},
}
TOLERATIONS: dict[str, Any] = {
    "key": {"key": "bad key", "operator": "Exists"},
    "value": {"key": "a", "operator": "Exists", "value": "x"},
    "operator": {"key": "a", "operator": "Near"},
    "effect": {"key": "a", "operator": "Exists", "effect": "Never"},
    "seconds": {"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5},
    "empty-key": {"operator": "Equal", "value": "x"},
    "wrong-value": {"key": "a", "value": "b c"},
}
RUNTIME_CLASS = {"metadata": {"name": "x"}, "handler": "h"}
POLICIES = [{"type": "Pods", "value": 1, "periodSeconds": 60}]
SCALED = {
    **SCALER,
    "spec": {
        **SCALER["spec"],
        "behavior": {"scaleUp": {"policies": POLICIES}, "scaleDown": {"policies": POLICIES}},
    },
}
OLD_CLAIM = {
    **PVC,
    "spec": {
        **PVC["spec"],
        "volumeName": "v",
        "storageClassName": "s",
        "dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
    },
}
ENDPOINTS = {
    "metadata": {"name": "x"},
    "subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}],
}
SLICE = {
    "metadata": {"name": "x"},
    "addressType": "IPv4",
    "endpoints": [{"addresses": ["1.2.3.4"]}],
    "ports": [{"port": 80}],
}
NODES: dict[str, Any] = {
    "bad-network": {"podCIDR": "10.0.0.0"},
    "bad-networks": {"podCIDRs": ["10.0.0.0/33"]},
    "two-of-a-family": {"podCIDRs": ["10.1.0.0/24", "10.2.0.0/24"]},
    "three": {"podCIDRs": ["10.1.0.0/24", "fd00::/64", "10.3.0.0/24"]},
    "two": {"podCIDRs": ["10.1.0.0/24", "fd00::/64"]},
    "differing": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.2.0.0/24"]},
    "one": {"podCIDR": "10.1.0.0/24"},
    "host-bits": {"podCIDR": "10.1.0.1/24"},
    "taints": {
        "taints": [
            {"key": "a", "effect": "Never"},
            {"key": "b", "effect": "NoSchedule"},
            {"key": "b", "effect": "NoSchedule"},
        ]
    },
    "provider": {"providerID": "a://b", "unschedulable": True},
}
STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *(
        Step(f"pod-{name}", "POST", f"{CORE}/pods?dryRun=All", bent(POD_OBJECT, **change))
        for name, change in PODS.items()
    ),
    *(
        Step(
            f"quality-{name}",
            "POST",
            f"{CORE}/pods?dryRun=All",
            bent(POD_OBJECT, **{f"{C}resources": resources}),
            pick=lambda body, _: body.get("status", {}).get("qosClass") if body["kind"] == "Pod" else body,
        )
        for name, resources in QUALITIES.items()
    ),
    *(
        Step(
            f"limits-of-claims-{name}",
            "POST",
            f"{CORE}/limitranges?dryRun=All",
            named({"limits": [{"type": "PersistentVolumeClaim", **limits}]}),
        )
        for name, limits in LIMITS.items()
    ),
    Step(
        "limits",
        "POST",
        f"{CORE}/limitranges",
        named(
            {
                "limits": [
                    {"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}, "min": {"storage": "1Gi"}}
                ]
            }
        ),
        compared=False,
    ),
    *(
        Step(
            f"claim-{name}",
            "POST",
            f"{CORE}/persistentvolumeclaims?dryRun=All",
            bent(PVC, spec__resources=resources),
            until=(lambda status, _: status == 403) if name == "above" else None,
        )
        for name, resources in {
            "above": {"requests": {"storage": "3Gi"}},
            "below": {"requests": {"storage": "1Mi"}},
            "limit-above": {"requests": {"storage": "1Gi"}, "limits": {"storage": "3Gi"}},
            "within": {"requests": {"storage": "2Gi"}},
        }.items()
    ),
    Step("limits-gone", "DELETE", f"{CORE}/limitranges/x", compared=False),
    Step("policy", "POST", f"{NETWORK}/networkpolicies", POLICY, compared=False),
    *(
        Step(
            f"policy-end-port-{name}",
            "PATCH",
            f"{NETWORK}/networkpolicies/x?dryRun=All",
            {"spec": {"ingress": [{"ports": [port]}], "egress": [{"ports": [port]}]}},
            MERGE,
        )
        for name, port in {
            "below": {"port": 9, "endPort": 5},
            "alone": {"endPort": 5},
            "of-a-name": {"port": "http", "endPort": 5},
            "good": {"port": 5, "endPort": 9},
            "too-large": {"port": 5, "endPort": 70000},
            "zero": {"port": 0},
        }.items()
    ),
    Step(
        "policy-block",
        "PATCH",
        f"{NETWORK}/networkpolicies/x?dryRun=All",
        {"spec": {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16", "x"]}}]}]}},
        MERGE,
    ),
    *(
        Step(
            f"runtime-class-toleration-{name}",
            "POST",
            "/apis/node.k8s.io/v1/runtimeclasses?dryRun=All",
            {**RUNTIME_CLASS, "scheduling": {"tolerations": [toleration]}},
        )
        for name, toleration in TOLERATIONS.items()
    ),
    Step(
        "runtime-class-toleration-twice",
        "POST",
        "/apis/node.k8s.io/v1/runtimeclasses?dryRun=All",
        {**RUNTIME_CLASS, "scheduling": {"tolerations": [{"key": "a", "operator": "Exists"}] * 2}},
    ),
    Step(
        "runtime-class-selector",
        "POST",
        "/apis/node.k8s.io/v1/runtimeclasses?dryRun=All",
        {
            **RUNTIME_CLASS,
            "scheduling": {"nodeSelector": {"bad key": "b c"}},
            "overhead": {"podFixed": {"cpu": "-1"}},
        },
    ),
    *(Step(f"node-{name}", "POST", "/api/v1/nodes?dryRun=All", named(spec)) for name, spec in NODES.items()),
    Step("node", "POST", "/api/v1/nodes", named({"podCIDR": "10.1.0.0/24"}), compared=False),
    *(
        Step(f"node-{name}", "PATCH", "/api/v1/nodes/x?dryRun=All", {"spec": spec}, MERGE)
        for name, spec in {
            "network-changed": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]},
            "network-changed-in-one": {"podCIDR": "10.2.0.0/24"},
            "network-removed": {"podCIDR": None, "podCIDRs": None},
            "network-added": {"podCIDRs": ["10.1.0.0/24", "fd00::/64"]},
            "provider-set": {"providerID": "a"},
        }.items()
    ),
    Step("node-provided", "PATCH", "/api/v1/nodes/x", {"spec": {"providerID": "a"}}, MERGE, compared=False),
    Step(
        "node-provider-changed", "PATCH", "/api/v1/nodes/x?dryRun=All", {"spec": {"providerID": "b"}}, MERGE
    ),
    Step(
        "node-addresses-twice",
        "PATCH",
        "/api/v1/nodes/x/status?dryRun=All",
        {
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": "1.2.3.4"},
                    {"type": "ExternalIP", "address": "1.2.3.4"},
                    {"type": "InternalIP", "address": "1.2.3.4"},
                ]
            }
        },
        MERGE,
    ),
    Step("node-gone", "DELETE", "/api/v1/nodes/x", compared=False),
    *(
        Step(
            f"endpoints-{name}",
            "POST",
            f"{CORE}/endpoints?dryRun=All",
            {**ENDPOINTS, "subsets": [{"addresses": [address], "ports": ports}]},
        )
        for name, (address, ports) in {
            "node-name": ({"ip": "1.2.3.4", "nodeName": "Bad_"}, [{"port": 80}]),
            "host-name": ({"ip": "1.2.3.4", "hostname": "Bad_"}, [{"port": 80}]),
            "two-unnamed-ports": ({"ip": "1.2.3.4"}, [{"port": 80}, {"port": 81}]),
            "no-address": ({"ip": ""}, [{"port": 0}]),
            "good-node-name": ({"ip": "1.2.3.4", "nodeName": "n.example.com"}, [{"port": 80}]),
        }.items()
    ),
    Step(
        "endpoints",
        "POST",
        f"{CORE}/endpoints",
        {**ENDPOINTS, "subsets": [{"addresses": [{"ip": "1.2.3.4", "nodeName": "a"}]}]},
        compared=False,
    ),
    Step(
        "endpoints-node-changed",
        "PATCH",
        f"{CORE}/endpoints/x",
        {"subsets": [{"addresses": [{"ip": "1.2.3.4", "nodeName": "b"}]}]},
        MERGE,
    ),
    *(
        Step(f"slice-{name}", "POST", f"{SLICES}?dryRun=All", {**SLICE, **change})
        for name, change in {
            "unnamed-ports": {"ports": [{"port": 80}, {"port": 81}]},
            "one-unnamed-port": {"ports": [{"port": 80}, {"name": "a", "port": 81}]},
            "same-names": {"ports": [{"name": "a", "port": 80}, {"name": "a", "port": 81}]},
            "empty-and-unnamed": {"ports": [{"name": "", "port": 80}, {"port": 81}]},
            "node-name": {"endpoints": [{"addresses": ["1.2.3.4"], "nodeName": "Bad_"}]},
            "protocol": {"ports": [{"port": 80, "protocol": "ICMP"}]},
            "zone-hint": {
                "endpoints": [
                    {
                        "addresses": ["1.2.3.4"],
                        "hints": {"forZones": [{"name": "b c"}, {"name": "a"}, {"name": "a"}]},
                    }
                ]
            },
        }.items()
    ),
    *(
        Step(
            f"priority-class-{name}",
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses?dryRun=All",
            {"metadata": {"name": "x"}, "value": 1, **change},
        )
        for name, change in {
            "empty-policy": {"preemptionPolicy": ""},
            "other-policy": {"preemptionPolicy": "Sometimes"},
            "never": {"preemptionPolicy": "Never"},
            "no-policy": {},
            "high": {"value": 1000000001},
        }.items()
    ),
    *(
        Step(f"revision-{name}", "POST", f"{APPS}/controllerrevisions?dryRun=All", {**named(), **change})
        for name, change in {
            "negative": {"revision": -1, "data": {}},
            "zero": {"data": {}},
            "null": {"revision": 1, "data": None},
        }.items()
    ),
    Step(
        "revision",
        "POST",
        f"{APPS}/controllerrevisions",
        {**named(), "revision": 1, "data": {"a": 1}},
        compared=False,
    ),
    Step(
        "revision-put-negative",
        "PUT",
        f"{APPS}/controllerrevisions/x",
        {**named(), "revision": -1, "data": {"a": 1}},
    ),
    Step(
        "revision-put-data",
        "PUT",
        f"{APPS}/controllerrevisions/x",
        {**named(), "revision": 2, "data": {"a": 2}},
    ),
    Step("scaler", "POST", SCALERS, SCALED, compared=False),
    Step(
        "scaler-last-policy-removed",
        "PATCH",
        f"{SCALERS}/x?dryRun=All",
        [{"op": "remove", "path": "/spec/behavior/scaleUp/policies/0"}],
        JSON_PATCH,
    ),
    Step(
        "scaler-policies-removed",
        "PATCH",
        f"{SCALERS}/x?dryRun=All",
        {"spec": {"behavior": {"scaleUp": {"policies": None}}}},
        MERGE,
    ),
    Step(
        "scaler-policies-emptied",
        "PATCH",
        f"{SCALERS}/x?dryRun=All",
        {"spec": {"behavior": {"scaleDown": {"policies": []}}}},
        MERGE,
    ),
    Step(
        "scaler-without-policies",
        "POST",
        f"{SCALERS}?dryRun=All",
        bent(SCALER, metadata__name="y", spec__behavior={"scaleUp": {"policies": []}}),
    ),
    Step("claim", "POST", f"{CORE}/persistentvolumeclaims", OLD_CLAIM, compared=False),
    *(
        Step(f"claim-{name}", "PATCH", f"{CORE}/persistentvolumeclaims/x?dryRun=All", {"spec": spec}, MERGE)
        for name, spec in {
            "source-removed": {"dataSource": None},
            "sources-removed": {"dataSource": None, "dataSourceRef": None},
            "source-changed": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "b"}},
            "reference-removed": {"dataSourceRef": None},
            "class-removed": {"storageClassName": None},
            "volume-removed": {"volumeName": None},
            "mode-removed": {"volumeMode": None},
            "nothing": {},
            "shrunk": {"resources": {"requests": {"storage": "1Mi"}}},
        }.items()
    ),
]
