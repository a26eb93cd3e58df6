"""Warnings about objects that are valid: deprecated labels, annotations and plugins, addresses, fractions of bytes."""

from typing import Any

from conformance_exchange import Step

NAMESPACE = "warnings"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
NETWORKING = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}"
STORAGE = "/apis/storage.k8s.io/v1"
MERGE = {"Content-Type": "application/merge-patch+json"}
ZONE = "failure-domain.beta.kubernetes.io/zone"
REQUIREMENTS = [
    {"key": ZONE, "operator": "Exists"},
    {"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["a b"]},
]
REQUIRED = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}]}
ADDRESS = "2001:DB8::1"
CONTAINER = {"name": "c", "image": "i"}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}}


def named(name: str, annotations: Any = None, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name} if annotations is None else {"name": name, "annotations": annotations}
    return {"metadata": metadata, **fields}


def create(name: str, collection: str, body: Any) -> Step:
    return Step(name, "POST", f"{collection}?dryRun=All", body)


def volume(name: str, annotations: Any = None, **source: Any) -> Step:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
    return create(f"volume-{name}", "/api/v1/persistentvolumes", named("v", annotations, spec=spec))


def pod(name: str, annotations: Any = None, **spec: Any) -> list[Step]:
    """Create a Pod, and a Deployment with it as its template."""
    spec = {"containers": [CONTAINER], **spec}
    template = {"metadata": {"labels": {"a": "b"}, "annotations": annotations or {}}, "spec": spec}
    return [
        create(f"pod-{name}", f"{CORE}/pods", named("p", annotations, spec=spec)),
        create(
            f"template-{name}",
            f"{APPS}/deployments",
            named("d", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template}),
        ),
    ]


def projected(name: str, *sources: Any) -> Step:
    return pod(name, volumes=[{"name": "v", "projected": {"sources": sources}}])[1]


def bundle(**source: Any) -> dict[str, Any]:
    return {"clusterTrustBundle": source}


def certificate(**source: Any) -> dict[str, Any]:
    return {"podCertificate": {"signerName": "a.b/c", "keyType": "ED25519", **source}}


FILES = [{"key": "a", "path": "x"}, {"key": "b", "path": "x/y"}, {"key": "c", "path": "x"}]
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
PODS = [
    *pod("label", nodeSelector={ZONE: "a"}),
    *pod(
        "affinity",
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": REQUIRED,
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": REQUIREMENTS}}
                ],
            }
        },
    ),
    *pod(
        "spread",
        topologySpreadConstraints=[{"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
    ),
    *pod(
        "annotations",
        {
            "scheduler.alpha.kubernetes.io/critical-pod": "",
            "security.alpha.kubernetes.io/sysctls": "a=b",
            "seccomp.security.alpha.kubernetes.io/pod": "runtime/default",
            "container.seccomp.security.alpha.kubernetes.io/c": "runtime/default",
        },
    ),
    pod("apparmor", {"container.apparmor.security.beta.kubernetes.io/c": "runtime/default"})[1],
    pod(
        "apparmor-as-the-field",
        {"container.apparmor.security.beta.kubernetes.io/c": "runtime/default"},
        securityContext={"appArmorProfile": {"type": "RuntimeDefault"}},
    )[1],
    *pod(
        "plugins",
        volumes=[
            {"name": "v", "storageos": {"volumeName": "x"}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}},
            {"name": "w", "rbd": {"monitors": ["a"], "image": "i"}},
        ],
    ),
    *pod(
        "paths",
        volumes=[
            {"name": "v", "configMap": {"name": "cm", "items": FILES}},
            {"name": "s", "secret": {"secretName": "sec", "items": [*FILES[:1], {"key": "b", "path": "x/"}]}},
            {"name": "d", "downwardAPI": {"items": [{"path": "x", **FIELD}, {"path": "x", **FIELD}]}},
        ],
    ),
    *pod("host-address", containers=[{**CONTAINER, "ports": [{"containerPort": 80, "hostIP": "1.2.3.4"}]}]),
    *pod("addresses", hostAliases=[{"ip": ADDRESS, "hostnames": ["a"]}]),
    projected("no-source", {}),
    projected(
        "sources",
        {"configMap": {"name": "cm", "items": FILES[:1]}},
        {"secret": {"name": "sec", "items": FILES[1:2]}},
        {"downwardAPI": {"items": [{"path": "x/q", **FIELD}]}},
        {"serviceAccountToken": {"path": "x"}},
    ),
    projected("same-bundles", bundle(name="b", path="x"), bundle(name="b", path="x")),
    projected("bundles", bundle(name="", path="x"), bundle(name="a:b:C", path="y"), bundle(path="z")),
    projected("signers", bundle(signerName="", path="a"), bundle(signerName="a", path="../x")),
    projected("bundle-twice", bundle(name="a", signerName="a.b/c", path="x")),
    projected("bundle-selected", bundle(name="a", path="x", labelSelector={"matchLabels": {"a": "c"}})),
    projected("certificate", certificate(keyPath="k", certificateChainPath="k/l")),
    projected("certificates", certificate(keyPath="k"), certificate(keyPath="k", maxExpirationSeconds=5)),
    projected("no-file", certificate(keyType="X", maxExpirationSeconds=2**30)),
    projected("annotated", certificate(keyPath="k", userAnnotations={"a": "b"})),
    projected(
        "kubernetes-signer",
        certificate(signerName="kubernetes.io/x", keyPath="..k", maxExpirationSeconds=100_000),
    ),
]
STORED = [
    volume("recycled", hostPath={"path": "/x"}, persistentVolumeReclaimPolicy="Recycle"),
    volume("affine", hostPath={"path": "/x"}, nodeAffinity={"required": REQUIRED}),
    volume(
        "annotated",
        {"volume.beta.kubernetes.io/storage-class": "a", "volume.beta.kubernetes.io/mount-options": "x"},
        cephfs={"monitors": ["a"]},
    ),
    volume("photon", photonPersistentDisk={"pdID": "a"}),
    volume("storageos", storageos={"volumeName": "a"}),
    volume("glusterfs", glusterfs={"endpoints": "a", "path": "x"}),
    Step("claim", "POST", f"{CORE}/persistentvolumeclaims", named("c", spec=CLAIM)),
    Step(
        "claim-changed",
        "PATCH",
        f"{CORE}/persistentvolumeclaims/c",
        {"metadata": {"labels": {"a": "b"}}},
        MERGE,
    ),
    Step(
        "claim-status",
        "PATCH",
        f"{CORE}/persistentvolumeclaims/c/status",
        {"status": {"phase": "Bound"}},
        MERGE,
    ),
    create(
        "class",
        f"{STORAGE}/storageclasses",
        named(
            "c",
            provisioner="x",
            allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}],
        ),
    ),
    create(
        "capacity",
        f"{STORAGE}/namespaces/{NAMESPACE}/csistoragecapacities",
        named(
            "c",
            storageClassName="x",
            nodeTopology={"matchLabels": {ZONE: "a"}, "matchExpressions": REQUIREMENTS[:1]},
        ),
    ),
    create(
        "set",
        f"{APPS}/statefulsets",
        named(
            "s",
            spec={
                "serviceName": "a",
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}},
                "volumeClaimTemplates": [{"metadata": {"name": "x"}, "spec": CLAIM}],
            },
        ),
    ),
]
STATUS_ADDRESS = {"status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}}
OTHERS = [
    create(
        "runtime-class",
        "/apis/node.k8s.io/v1/runtimeclasses",
        named("c", handler="h", scheduling={"nodeSelector": {ZONE: "a"}}),
    ),
    create(
        "node",
        "/api/v1/nodes",
        named("n", spec={"podCIDR": "FE80::/64", "podCIDRs": ["FE80::/64"], "externalID": "x"}),
    ),
    Step(
        "account",
        "POST",
        f"{CORE}/serviceaccounts",
        named("a", {"kubernetes.io/enforce-mountable-secrets": "true"}),
    ),
    Step(
        "account-changed", "PATCH", f"{CORE}/serviceaccounts/a", {"metadata": {"labels": {"a": "b"}}}, MERGE
    ),
    create(
        "network-policy",
        f"{NETWORKING}/networkpolicies",
        named(
            "p",
            spec={
                "podSelector": {},
                "egress": [{"to": [{"ipBlock": {"cidr": "FE80::/64", "except": ["FE80::0:0/96"]}}]}],
            },
        ),
    ),
    Step(
        "service",
        "POST",
        f"{CORE}/services",
        named(
            "s",
            spec={
                "ports": [{"port": 80}],
                "type": "LoadBalancer",
                "externalIPs": [ADDRESS],
                "loadBalancerIP": ADDRESS,
                "loadBalancerSourceRanges": ["2001:DB8::/64"],
            },
        ),
    ),
    Step("service-status", "PATCH", f"{CORE}/services/s/status", STATUS_ADDRESS, MERGE),
    Step(
        "ingress",
        "POST",
        f"{NETWORKING}/ingresses",
        named("i", spec={"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}}),
        compared=False,
    ),
    Step("ingress-status", "PATCH", f"{NETWORKING}/ingresses/i/status", STATUS_ADDRESS, MERGE),
    Step("pod", "POST", f"{CORE}/pods", named("q", spec={"containers": [CONTAINER]}), compared=False),
    Step(
        "pod-status",
        "PATCH",
        f"{CORE}/pods/q/status",
        {
            "status": {
                "podIP": ADDRESS,
                "podIPs": [{"ip": ADDRESS}],
                "hostIP": ADDRESS,
                "hostIPs": [{"ip": ADDRESS}],
            }
        },
        MERGE,
    ),
]
STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *PODS,
    *STORED,
    *OTHERS,
]
