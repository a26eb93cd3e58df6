"""Changes that are refused or followed: metadata of each kind, Services of another sort, Pods as a whole, definitions."""

from typing import Any

from conformance_exchange import Step
from conformance_objects import (
    ADMISSION_POLICY,
    BUDGET,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    INGRESS,
    INGRESS_CLASS,
    JOB,
    LIMITS,
    POD_OBJECT,
    POLICY,
    PVC,
    QUOTA,
    SCALER,
    SERVICE,
    STATEFUL_SET,
    STORAGE_CLASS,
    bent,
    named,
)

NAMESPACE = "changes"
MERGE = {"Content-Type": "application/merge-patch+json"}
CORE = f"/api/v1/namespaces/{NAMESPACE}"


def here(group: str, resource: str) -> str:
    return f"/apis/{group}/namespaces/{NAMESPACE}/{resource}"


KINDS: dict[str, tuple[str, Any]] = {
    "map": (f"{CORE}/configmaps", named()),
    "secret": (f"{CORE}/secrets", named()),
    "account": (f"{CORE}/serviceaccounts", named()),
    "pod": (f"{CORE}/pods", POD_OBJECT),
    "service": (f"{CORE}/services", SERVICE),
    "claim": (f"{CORE}/persistentvolumeclaims", PVC),
    "quota": (f"{CORE}/resourcequotas", QUOTA),
    "limits": (f"{CORE}/limitranges", LIMITS),
    "endpoints": (f"{CORE}/endpoints", named()),
    "event": (f"{CORE}/events", named(involvedObject={"namespace": NAMESPACE})),
    "namespaced": ("/api/v1/namespaces", {"metadata": {"name": f"{NAMESPACE}-other"}}),
    "node": ("/api/v1/nodes", {"metadata": {"name": NAMESPACE}}),
    "deployment": (here("apps/v1", "deployments"), DEPLOYMENT),
    "stateful": (here("apps/v1", "statefulsets"), STATEFUL_SET),
    "daemon": (here("apps/v1", "daemonsets"), DAEMON_SET),
    "job": (here("batch/v1", "jobs"), JOB),
    "cron": (here("batch/v1", "cronjobs"), CRON_JOB),
    "scaler": (here("autoscaling/v2", "horizontalpodautoscalers"), SCALER),
    "budget": (here("policy/v1", "poddisruptionbudgets"), BUDGET),
    "lease": (here("coordination.k8s.io/v1", "leases"), named({"holderIdentity": "a"})),
    "role": (here("rbac.authorization.k8s.io/v1", "roles"), named()),
    "ingress": (here("networking.k8s.io/v1", "ingresses"), INGRESS),
    "network": (here("networking.k8s.io/v1", "networkpolicies"), POLICY),
    "slice": (here("discovery.k8s.io/v1", "endpointslices"), named(addressType="IPv4", endpoints=[])),
    "ingress-class": ("/apis/networking.k8s.io/v1/ingressclasses", INGRESS_CLASS),
    "storage-class": ("/apis/storage.k8s.io/v1/storageclasses", STORAGE_CLASS),
    "runtime-class": ("/apis/node.k8s.io/v1/runtimeclasses", named(handler="a")),
    "priority-class": ("/apis/scheduling.k8s.io/v1/priorityclasses", named(value=5)),
    "hooks": ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", named()),
    "policy": ("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", ADMISSION_POLICY),
}
OWNER = {"apiVersion": "v1", "kind": "A", "name": "x", "uid": "a"}
METADATA: dict[str, Any] = {
    "label": {"labels": {"a b": "c"}},
    "finalizer": {"finalizers": ["x y"]},
    "owner": {"ownerReferences": [{**OWNER, "name": ""}]},
    "uid": {"uid": "other"},
    "base-of-name": {"generateName": "A_"},
}
GROUP = "changes.ex.io"


def definition(name: str, schema: Any, names: Any = None, **version: Any) -> dict[str, Any]:
    """Return a CRD with the given schema, names or version."""
    kind = name.title()
    own = {"plural": f"{name}s", "singular": name, "kind": kind, "listKind": f"{kind}List", **(names or {})}
    served = {"name": "v1", "served": True, "storage": True, **version}
    if schema is not None:
        served["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}}
    return {
        "metadata": {"name": f"{name}s.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": own, "versions": [served]},
    }


FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITIONS: dict[str, dict[str, Any]] = {
    "unknown-format": definition("format", {"type": "string", "format": "weird"}),
    "unknown-format-of-numbers": definition("number", {"type": "integer", "format": "int128"}),
    "unknown-format-within": definition(
        "inner", {"type": "object", "additionalProperties": {"type": "string", "format": "Date"}}
    ),
    "known-format": definition("known", {"type": "string", "format": "date-time"}),
    "empty-short-name": definition("short", FREE, {"shortNames": [""]}),
    "empty-category": definition("category", FREE, {"categories": [""]}),
    "selectable-and-no-schema": definition("select", None, selectableFields=[{"jsonPath": ".spec.a"}]),
}
SERVICES: dict[str, dict[str, Any]] = {
    "ports-allocated": {"spec__allocateLoadBalancerNodePorts": True},
    "both-families-required": {"spec__ipFamilyPolicy": "RequireDualStack"},
    "other-family": {"spec__ipFamilies": ["IPv6"]},
    "two-families-of-one": {"spec__ipFamilies": ["IPv4", "IPv6"]},
    "two-families": {"spec__ipFamilies": ["IPv4", "IPv6"], "spec__ipFamilyPolicy": "PreferDualStack"},
    "address-of-other-family": {"spec__clusterIP": "2001:db8::1"},
    "address-of-no-family": {"spec__clusterIP": "10.0.0.200", "spec__ipFamilies": ["IPv6"]},
    "headless-for-all": {"spec__clusterIP": "None", "spec__selector": None, "spec__ipFamilies": ["IPv6"]},
    "headless-affine": {"spec__clusterIP": "None", "spec__sessionAffinity": "ClientIP"},
    "headless-outside": {"spec__clusterIP": "None", "spec__externalIPs": ["1.2.3.4"]},
    "name-without-use": {"spec__externalName": "a.b"},
    "capitals": {"spec__externalIPs": ["2001:DB8::1"]},
    "octal": {"spec__externalIPs": ["010.1.1.1"]},
    "hints": {"metadata__annotations": {"service.kubernetes.io/topology-aware-hints": "auto"}},
}
TURNS: dict[str, Any] = {
    "balanced": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False},
    "plain-again": {"type": "ClusterIP"},
    "ports-for-no-balancer": {"allocateLoadBalancerNodePorts": True},
    "headless": {"clusterIP": "None"},
    "other-address": {"clusterIP": "10.0.0.77"},
    "address-left-out": {"clusterIP": "", "clusterIPs": []},
    "both-families": {"ipFamilyPolicy": "RequireDualStack"},
    "other-family": {"ipFamilies": ["IPv6"]},
    "on-nodes": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30123}]},
    "on-another-port": {"ports": [{"port": 81}]},
    "named": {"type": "ExternalName", "externalName": "a.b"},
    "unnamed": {"type": "ClusterIP"},
    "balanced-by-class": {"type": "LoadBalancer", "loadBalancerClass": "a/b"},
    "other-class": {"loadBalancerClass": "a/c"},
    "other-type": {"type": "Foo"},
}
BLOCKS: dict[str, dict[str, Any]] = {
    "beside": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]},
    "all": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]},
    "wider": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/7"]},
    "other-family": {"cidr": "10.0.0.0/8", "except": ["2001:db8::/64"]},
    "within": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]},
    "host": {"cidr": "10.0.0.1/8"},
    "octal": {"cidr": "010.0.0.0/8"},
    "octal-length": {"cidr": "10.0.0.0/08"},
    "mapped": {"cidr": "::ffff:10.0.0.0/104"},
    "mask": {"cidr": "10.0.0.0/255.0.0.0"},
}
INNER = "spec__containers__0__resources"
HUGE = {"hugepages-2Mi": "8Mi", "cpu": "1"}
WHOLES: dict[str, dict[str, Any]] = {
    "less-than-its-parts": {"spec__resources": {"requests": {"cpu": "1"}}, INNER: {"requests": {"cpu": "2"}}},
    "below-a-limit": {"spec__resources": {"limits": {"cpu": "1"}}, INNER: {"limits": {"cpu": "2"}}},
    "asked-by-parts": {"spec__resources": {"limits": {"cpu": "4"}}, INNER: {"requests": {"cpu": "1"}}},
    "asked-by-nobody": {"spec__resources": {"limits": {"cpu": "4"}}},
    "huge": {"spec__resources": {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}, INNER: {"limits": HUGE}},
    "huge-by-parts": {"spec__resources": {"requests": {"cpu": "1"}}, INNER: {"limits": HUGE}},
    "claims": {"spec__resources": {"claims": [{"name": "a"}]}},
    "on-windows": {"spec__resources": {"requests": {"cpu": "1"}}, "spec__os": {"name": "windows"}},
}
RESIZES: dict[str, Any] = {
    "more": {"limits": {"cpu": "5"}},
    "less-than-asked": {"limits": {"cpu": "500m"}},
    "memory-too": {"limits": {"memory": "1Gi"}},
    "none": None,
    "no-limit": {"limits": {"cpu": None}},
    "negative": {"requests": {"cpu": "-1"}},
}
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All"
SELECTORS: dict[str, Any] = {
    "label": {"matchLabels": {"a b": "c"}},
    "operator": {"matchExpressions": [{"key": "a", "operator": "Near"}]},
    "values": {"matchExpressions": [{"key": "a", "operator": "In"}]},
}
WHOLE_POD = bent(
    POD_OBJECT,
    metadata__name="whole",
    spec__resources={"limits": {"cpu": "4"}},
    **{INNER: {"requests": {"cpu": "1"}}},
)


def metadata_steps(name: str, path: str, obj: Any) -> list[Step]:
    own = f"{path}/{obj['metadata']['name']}"
    return [
        Step(f"{name}-new-finalizer", "POST", f"{path}?dryRun=All", bent(obj, metadata__finalizers=["x y"])),
        Step(f"{name}-of", "POST", path, obj, compared=False),
        *(
            Step(f"{name}-{way}", "PATCH", own, {"metadata": change}, MERGE)
            for way, change in METADATA.items()
            # A Job's uid is in its labels: the errors that follow from another uid have no fixed order.
            if (name, way) not in (("job", "uid"), ("event", "base-of-name"))
        ),
        # What is in no namespace would be seen by others.
        *([] if f"/{NAMESPACE}/" in path else [Step(f"{name}-gone", "DELETE", own, compared=False)]),
    ]


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *(step for name, (path, obj) in KINDS.items() for step in metadata_steps(name, path, obj)),
    *(
        Step(
            f"definition-{name}",
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All",
            crd,
        )
        for name, crd in DEFINITIONS.items()
    ),
    *(
        Step(
            f"service-{name}",
            "POST",
            f"{CORE}/services?dryRun=All",
            bent(SERVICE, metadata__name="y", **change),
        )
        for name, change in SERVICES.items()
    ),
    Step("turning", "POST", f"{CORE}/services", bent(SERVICE, metadata__name="turning"), compared=False),
    *(
        Step(f"turn-{name}", "PATCH", f"{CORE}/services/turning", {"spec": change}, MERGE)
        for name, change in TURNS.items()
    ),
    *(
        Step(
            f"block-{name}",
            "POST",
            f"{KINDS['network'][0]}?dryRun=All",
            bent(POLICY, metadata__name="y", spec__ingress=[{"from": [{"ipBlock": block}]}]),
        )
        for name, block in BLOCKS.items()
    ),
    *(
        Step(
            f"whole-{name}", "POST", f"{CORE}/pods?dryRun=All", bent(POD_OBJECT, metadata__name="y", **change)
        )
        for name, change in WHOLES.items()
    ),
    Step("whole", "POST", f"{CORE}/pods", WHOLE_POD, compared=False),
    *(
        Step(f"resize-{name}", "PATCH", f"{CORE}/pods/whole/resize", {"spec": {"resources": change}}, MERGE)
        for name, change in RESIZES.items()
    ),
    *(
        Step(
            f"aggregated-{name}",
            "POST",
            ROLES,
            {"metadata": {"name": "y"}, "aggregationRule": {"clusterRoleSelectors": [selector]}},
        )
        for name, selector in SELECTORS.items()
    ),
]
