"""Requests for single kinds that `scripts/compare` found to be answered differently: fields, names and patches."""

from typing import Any

from conformance_exchange import Step

NAMESPACE = "compared-kinds"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
VOLUMES = "/api/v1/persistentvolumes?dryRun=All"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}


def pod(name: str, **container: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", **container}]}}


RESOURCES = (
    "storage",
    "requests.cpu",
    "cpus",
    "hugepages-x",
    "requests.hugepages-1Mi",
    "limits.hugepages-1Mi",
)
RESOURCE_NAMES = [
    *(
        Step(
            f"resource-{name}",
            "POST",
            f"{CORE}/pods?dryRun=All",
            pod("r", resources={"limits": {name: "2Mi"}, "requests": {name: "2Mi"}}),
        )
        for name in (*RESOURCES, "requests.example.com/gpu", "example.com/gpu", "kubernetes.io/gpu")
    ),
    *(
        Step(
            f"quota-{name}",
            "POST",
            f"{CORE}/resourcequotas?dryRun=All",
            {"metadata": {"name": "q"}, "spec": {"hard": {name: "1"}}},
        )
        for name in RESOURCES
    ),
    *(
        Step(
            f"limit-{kind}-{name}",
            "POST",
            f"{CORE}/limitranges?dryRun=All",
            {"metadata": {"name": "l"}, "spec": {"limits": [{"type": kind, "max": {name: "2Mi"}}]}},
        )
        for kind in ("Container", "example.com/kind")
        for name in (*RESOURCES, "requests.example.com/gpu")
    ),
    Step(
        "pod-level-resource",
        "POST",
        f"{CORE}/pods?dryRun=All",
        {
            "metadata": {"name": "r"},
            "spec": {"resources": {"limits": {"storage": "1"}}, "containers": [{"name": "c", "image": "i"}]},
        },
    ),
]
SOURCES: dict[str, Any] = {
    "quobyte-text": {"quobyte": {"registry": " ", "volume": "v"}},
    "quobyte-pairs": {"quobyte": {"registry": "a:1,[::1]:2,a:b:c,[::1],:", "volume": "v"}},
    "quobyte-tenant": {"quobyte": {"registry": "a", "tenant": "x" * 65}},
    "quobyte-empty": {"quobyte": {}},
    "flocker-empty": {"flocker": {}},
    "flocker-both": {"flocker": {"datasetName": "a/b", "datasetUUID": "u"}},
    "photon": {"photonPersistentDisk": {}},
    "storageos": {"storageos": {"secretRef": {}, "volumeNamespace": "A"}},
    "storageos-name": {"storageos": {"volumeName": "A"}},
    "scale-io": {"scaleIO": {}},
    "flex": {"flexVolume": {"driver": "d", "options": {"a.k8s.io/b": "c", "KUBERNETES.IO": "d", "e": "f"}}},
    "cinder": {"cinder": {"secretRef": {}}},
    "gluster": {"glusterfs": {"endpoints": "e", "path": "p", "endpointsNamespace": ""}},
    "gluster-namespace": {"glusterfs": {"endpoints": "e", "path": "p", "endpointsNamespace": "A"}},
    "azure": {"azureFile": {"secretName": "s", "shareName": "n", "secretNamespace": ""}},
    "two": {"nfs": {}, "flexVolume": {}, "quobyte": {}, "csi": {}},
    "flex-and-azure": {"flexVolume": {}, "azureFile": {}},
}
ONLY_IN_CLUSTER = ("gluster", "gluster-namespace", "azure", "two", "flex-and-azure")
VOLUME_SOURCES = [
    *(
        Step(
            f"volume-{name}",
            "POST",
            VOLUMES,
            {
                "metadata": {"name": "v"},
                "spec": {"capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"], **source},
            },
        )
        for name, source in SOURCES.items()
    ),
    *(
        Step(
            f"pod-with-{name}",
            "POST",
            f"{CORE}/pods?dryRun=All",
            {
                "metadata": {"name": "v"},
                "spec": {
                    "containers": [{"name": "c", "image": "i"}],
                    "volumes": [{"name": "v", **source}],
                },
            },
        )
        for name, source in SOURCES.items()
        if name not in ONLY_IN_CLUSTER
    ),
    Step(
        "pod-with-two-sources",
        "POST",
        f"{CORE}/pods?dryRun=All",
        {
            "metadata": {"name": "v"},
            "spec": {
                "containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": "v", "hostPath": {"path": "/x"}, "downwardAPI": {}, "cephfs": {}}],
            },
        },
    ),
]
NODES = [
    Step(
        f"node-networks-{name}",
        "POST",
        "/api/v1/nodes?dryRun=All",
        {"metadata": {"name": "n"}, "spec": {"podCIDRs": networks}},
    )
    for name, networks in {
        "invalid": ["10.0.0.0/33", "10.0.0.0/33"],
        "second": ["10.0.0.0/24", "x"],
        "one": ["x"],
        "three": ["10.0.0.0/24", "fd00::/64", "x"],
    }.items()
]
LIMITS = {
    "metadata": {"name": "limits"},
    "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}, {"type": "Pod", "max": {"cpu": "1"}}]},
}
LIMIT = "/spec/limits/0"
ORDERS: dict[str, list[dict[str, Any]]] = {
    "move-into-the-list": [{"op": "move", "from": f"{LIMIT}/max/cpu", "path": LIMIT}],
    "add-before-reached": [
        {"op": "add", "path": f"{LIMIT}/min", "value": {"memory": "1", "cpu": "1"}},
        {"op": "add", "path": LIMIT, "value": "x"},
    ],
    "reach-an-added": [
        {"op": "add", "path": "/spec/limits/-", "value": {"type": "Pod", "max": {"memory": "1", "cpu": "1"}}},
        {"op": "add", "path": "/spec/limits/2/max/storage", "value": "1"},
        {"op": "add", "path": "/spec/limits/2", "value": "x"},
    ],
    "copy-a-reached": [
        {"op": "add", "path": f"{LIMIT}/max/memory", "value": "1"},
        {"op": "copy", "from": LIMIT, "path": "/spec/limits/-"},
        {"op": "add", "path": "/spec/limits/-", "value": "x"},
    ],
    "test-then-break": [
        {"op": "test", "path": f"{LIMIT}/max", "value": {"cpu": "1"}},
        {"op": "test", "path": "/spec/limits/1/type", "value": "Pod"},
        {"op": "add", "path": "/spec/limits/-", "value": "x"},
    ],
    "remove-before-reached": [
        {"op": "add", "path": "/spec/limits/1/max/memory", "value": "1"},
        {"op": "remove", "path": LIMIT},
        {"op": "add", "path": "/spec/limits/-", "value": "x"},
    ],
}
PATCHES = [
    Step("limits", "POST", f"{CORE}/limitranges", LIMITS, compared=False),
    *(
        Step(f"order-{name}", "PATCH", f"{CORE}/limitranges/limits", operations, JSON_PATCH)
        for name, operations in ORDERS.items()
    ),
]
STATUSES: dict[str, dict[str, Any]] = {
    "qos": {"qosClass": "0", "nominatedNodeName": "None"},
    "claims": {"resourceClaimStatuses": [{}, {"name": "", "resourceClaimName": "A"}]},
    "extended": {"extendedResourceClaimStatus": {}},
    "mappings": {
        "extendedResourceClaimStatus": {
            "resourceClaimName": "A",
            "requestMappings": [
                {"containerName": "c", "resourceName": "cpu", "requestName": "A"},
                {"containerName": "d", "resourceName": "cpu", "requestName": "r"},
                {"containerName": "d", "resourceName": "cpu", "requestName": "r"},
            ],
        }
    },
    "conditions": {
        "observedGeneration": -1,
        "conditions": [
            {"type": "Ready", "status": "True", "observedGeneration": -1},
            {"type": "a b", "status": "True"},
        ],
    },
    "addresses": {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "x"}], "hostIPs": [{"ip": "a"}, {"ip": "b"}]},
    "address": {"podIP": "1.2.3.4", "podIPs": [{"ip": "fd00::1"}], "hostIP": "b"},
    "resumed": {
        "containerStatuses": [{"name": "c", "state": {"running": {}}}, {"name": "c"}],
        "ephemeralContainerStatuses": [{"name": "c", "allocatedResourcesStatus": [{"name": "x"}]}],
    },
    "users": {
        "containerStatuses": [
            {"name": "c", "user": {"linux": {"uid": -1, "gid": -1, "supplementalGroups": [1, 4294967295]}}},
        ]
    },
    "allocated": {
        "containerStatuses": [
            {
                "name": "c",
                "allocatedResourcesStatus": [
                    {
                        "name": "claim:a",
                        "resources": [{"resourceID": "a"}, {"resourceID": "a", "health": "x"}],
                    },
                    {"name": "cpu", "resources": [{"resourceID": "a", "health": "Healthy", "message": ""}]},
                ],
            }
        ]
    },
}
ENDED = [
    {"name": "c", "state": {"terminated": {"exitCode": 1}}, "image": "i", "imageID": "", "restartCount": 0}
]
POD_STATUSES = [
    Step(
        "ended-pod",
        "POST",
        f"{CORE}/pods",
        {"metadata": {"name": "ended"}, "spec": {**pod("ended")["spec"], "restartPolicy": "Never"}},
        compared=False,
    ),
    Step(
        "ended-status",
        "PATCH",
        f"{CORE}/pods/ended/status",
        {
            "status": {
                "containerStatuses": ENDED,
                "observedGeneration": 1,
                "conditions": [{"type": "Ready", "status": "False", "observedGeneration": 1}],
            }
        },
        MERGE,
    ),
    *(
        Step(f"status-{name}", "PATCH", f"{CORE}/pods/ended/status?dryRun=All", {"status": status}, MERGE)
        for name, status in STATUSES.items()
    ),
    Step(
        "status-kept",
        "PATCH",
        f"{CORE}/pods/ended/status?dryRun=All",
        {
            "status": {
                "qosClass": None,
                "observedGeneration": None,
                "conditions": [{"type": "Ready", "status": "True"}],
            }
        },
        MERGE,
    ),
]
ANNOTATIONS = {
    "kubernetes.io/config.mirror": "x",
    "controller.kubernetes.io/pod-deletion-cost": "+1",
    "seccomp.security.alpha.kubernetes.io/pod": "b-c",
    "container.seccomp.security.alpha.kubernetes.io/c": "localhost/../a",
}
ANNOTATED = [
    *(
        Step(
            f"annotation-{name}",
            "POST",
            f"{CORE}/pods?dryRun=All",
            {**pod("a"), "metadata": {"name": "a", "annotations": {name: value}}},
        )
        for name, value in ANNOTATIONS.items()
    ),
    Step(
        "annotated-template",
        "POST",
        f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets?dryRun=All",
        {
            "metadata": {"name": "a"},
            "spec": {
                "updateStrategy": {"rollingUpdate": {"maxUnavailable": "../a"}},
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}, "annotations": ANNOTATIONS},
                    "spec": pod("a")["spec"],
                },
            },
        },
    ),
    Step(
        "annotate-mirror",
        "PATCH",
        f"{CORE}/pods/ended?dryRun=All",
        {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
        MERGE,
    ),
]
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices?dryRun=All"
BUNDLES = "/apis/certificates.k8s.io/v1/clustertrustbundles?dryRun=All"
GENERATED: dict[str, tuple[str, dict[str, Any]]] = {
    "definition": (DEFINITIONS, {}),
    "named-definition": (DEFINITIONS, {"metadata": {"name": "a.b"}}),
    "address": ("/apis/networking.k8s.io/v1/ipaddresses?dryRun=All", {}),
    "service": (
        SERVICES,
        {"metadata": {"name": "v1.example.com"}, "spec": {"group": "example.com", "version": "v1"}},
    ),
    "bundle": (BUNDLES, {"metadata": {"name": "b"}, "spec": {"signerName": "example.com/signer"}}),
    "plain-bundle": (BUNDLES, {"metadata": {"name": "b"}, "spec": {}}),
}
NAMES = [
    Step("nameless-definition", "POST", DEFINITIONS, {}),
    *(
        Step(
            f"generated-{name}",
            "POST",
            path,
            {**body, "metadata": {**body.get("metadata", {}), "generateName": "gen-"}},
        )
        for name, (path, body) in GENERATED.items()
    ),
]
SCHEMA = {
    "type": "object",
    "properties": {
        "a": {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "items": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": {"type": "string"},
                        "a": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 1"}]},
                    },
                    "x-kubernetes-validations": [{"rule": "self.b == 1"}],
                },
                "x-kubernetes-validations": [{"rule": "self == 1"}],
            },
            "x-kubernetes-validations": [{"rule": "self == 1"}],
        },
        "b": {
            "type": "string",
            "default": "x",
            "x-kubernetes-validations": [{"rule": "self == 1"}],
        },
        "c": {"type": "object", "x-kubernetes-validations": [{}]},
    },
    "x-kubernetes-validations": [{"rule": "x"}],
}
FAULTY_SCHEMAS = [
    Step(
        f"schema-{name}",
        "POST",
        DEFINITIONS,
        {
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": schema},
                        **more,
                    }
                ],
                "preserveUnknownFields": True,
            },
        },
    )
    for name, schema, more in (
        ("in-parts", SCHEMA, {}),
        (
            "with-items",
            {"type": "object", "properties": {"a": {"type": "string", "additionalItems": {}}}},
            {},
        ),
        ("with-status", {**SCHEMA, "title": "t"}, {"subresources": {"status": {}}}),
        ("nullable", {**SCHEMA, "nullable": True}, {}),
    )
]
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
OTHERS = [
    Step(
        "both-attributes",
        "POST",
        REVIEWS,
        {"spec": {"nonResourceAttributes": {}, "resourceAttributes": {}, "user": "u"}},
    ),
    Step("empty-attributes", "POST", REVIEWS, {"spec": {"nonResourceAttributes": {}, "user": "u"}}),
    Step(
        "claim-with-a-revision",
        "POST",
        f"{CORE}/persistentvolumeclaims?dryRun=All",
        {"metadata": {"name": "c", "resourceVersion": "1"}, "spec": CLAIM},
    ),
    Step(
        "dry-run-of-a-low-port",
        "POST",
        f"{CORE}/services?dryRun=All",
        {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}},
    ),
    Step(
        "low-port",
        "POST",
        f"{CORE}/services",
        {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}},
    ),
    Step(
        "migration",
        "POST",
        "/apis/storagemigration.k8s.io/v1/storageversionmigrations",
        {"metadata": {"name": NAMESPACE}, "spec": {"resource": {"resource": "configmaps"}}},
        compared=False,
    ),
    Step(
        "migration-conditions",
        "PATCH",
        f"/apis/storagemigration.k8s.io/v1/storageversionmigrations/{NAMESPACE}/status",
        {"status": {"conditions": [{}, {"type": "a b", "status": "x", "reason": "-"}]}},
        MERGE,
    ),
]


def applied(kind: str, api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, **fields}


ACCOUNTS = f"{CORE}/serviceaccounts"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
BINDINGS = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"
APPLIES = [
    Step(
        "key-of-a-map",
        "PATCH",
        f"{CORE}/services/none?fieldManager=a",
        applied("Service", spec={"ports": [{"port": {"name": "a"}}]}),
        APPLY,
    ),
    Step(
        "key-of-a-list",
        "PATCH",
        f"{CORE}/pods/none?fieldManager=a",
        applied("Pod", spec={"containers": [{"name": [{}, 1, "b"]}]}),
        APPLY,
    ),
    Step(
        "status-of-nothing",
        "PATCH",
        f"{CORE}/pods/none/status?fieldManager=a",
        applied("Pod", metadata={"managedFields": []}),
        APPLY,
    ),
    Step("scale-of-nothing", "PATCH", f"{APPS}/deployments/none/scale?fieldManager=a", {}, APPLY),
    Step(
        "account", "PATCH", f"{ACCOUNTS}/a?fieldManager=a", applied("ServiceAccount"), APPLY, compared=False
    ),
    Step("keyless-secret", "PATCH", f"{ACCOUNTS}/a", {"secrets": [{}]}, MERGE),
    Step("apply-to-keyless", "PATCH", f"{ACCOUNTS}/a?fieldManager=b", applied("ServiceAccount"), APPLY),
    Step(
        "apply-with-deletion",
        "PATCH",
        f"{BINDINGS}/b?fieldManager=a",
        applied(
            "RoleBinding",
            "rbac.authorization.k8s.io/v1",
            metadata={"deletionTimestamp": "2020-01-01T00:00:00Z"},
            roleRef={"kind": "Role", "name": "a"},
        ),
        APPLY,
    ),
    Step(
        "quota-of-pages",
        "PATCH",
        f"{CORE}/resourcequotas/q?fieldManager=a",
        applied(
            "ResourceQuota",
            spec={
                "hard": {"hugepages-x": "1", "requests.hugepages-1Mi": "1"},
                "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]},
            },
        ),
        APPLY,
    ),
]
CONTROLLERS = f"{CORE}/replicationcontrollers"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": pod("t")["spec"]}
LATER = [
    Step(
        "restart-policy",
        "POST",
        f"{CONTROLLERS}?dryRun=All",
        {
            "metadata": {"name": "c"},
            "spec": {"template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "a."}}},
        },
    ),
    Step(
        "controller",
        "POST",
        CONTROLLERS,
        {"metadata": {"name": "c"}, "spec": {"template": TEMPLATE}},
        compared=False,
    ),
    *(
        Step(
            f"controller-warning-{name}",
            "PATCH",
            f"{CONTROLLERS}/c",
            {"spec": {"template": {"spec": {"volumes": volumes}}}},
            MERGE,
        )
        for name, volumes in {
            "late": [{"name": "v", "projected": {"sources": [{}]}}],
            "still": [],
        }.items()
    ),
    Step(
        "daemons",
        "POST",
        f"{APPS}/daemonsets",
        {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}},
        compared=False,
    ),
    Step("daemon-status", "PUT", f"{APPS}/daemonsets/d/status?dryRun=All", {"metadata": {"name": "d"}}),
    Step(
        "create-by-dry-run",
        "PUT",
        f"{CORE}/endpoints/e?dryRun=All",
        {"metadata": {"name": "e", "resourceVersion": "1"}},
    ),
    Step(
        "scale-in-another-namespace",
        "PATCH",
        f"{CONTROLLERS}/c/scale",
        {"metadata": {"name": "x", "namespace": "other"}},
        MERGE,
    ),
    *(
        Step(
            f"pod-{name}",
            "POST",
            f"{CORE}/pods",
            {"metadata": {"name": name}, "spec": {**pod(name)["spec"], "nodeName": node}},
            compared=False,
        )
        for name, node in {"n1": "one", "n2": "one", "n3": "two"}.items()
    ),
    Step("page-of-a-node", "GET", f"{CORE}/pods?limit=2&fieldSelector=spec.nodeName%3Done"),
    Step("smaller-page-of-a-node", "GET", f"{CORE}/pods?limit=1&fieldSelector=spec.nodeName%3Done"),
    Step("page-of-other-nodes", "GET", f"{CORE}/pods?limit=2&fieldSelector=spec.nodeName%21%3Dtwo"),
]
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
PARAMS = {"name": "a", "selector": {"matchExpressions": [{"key": "50%", "operator": "In"}]}}
REPEATED = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}
LATEST = [
    Step(
        "claim-templates",
        "POST",
        f"{APPS}/statefulsets?dryRun=All",
        {
            "metadata": {"name": "s"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": TEMPLATE,
                "volumeClaimTemplates": [
                    {"kind": "x", "apiVersion": "y", "metadata": {"name": "v"}, "spec": CLAIM}
                ],
            },
        },
    ),
    Step(
        "name-and-selector",
        "POST",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings?dryRun=All",
        {"metadata": {"name": "b"}, "spec": {"paramRef": PARAMS}},
    ),
    Step(
        "any-name",
        "POST",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests?dryRun=All",
        {"metadata": {"name": "example.com:serving"}},
    ),
    Step(
        "review-with-owners",
        "POST",
        REVIEWS,
        {
            "metadata": {"ownerReferences": [REPEATED, REPEATED]},
            "spec": {"nonResourceAttributes": {}, "user": "u"},
        },
        pick=lambda body, values: body["reason"],
    ),
    Step(
        "replaced-metadata",
        "PATCH",
        f"{CONTROLLERS}/c",
        {"metadata": {"annotations": [], "$patch": "replace", "$retainKeys": []}},
        STRATEGIC,
    ),
    Step(
        "kindless-scale",
        "PATCH",
        f"{CONTROLLERS}/c/scale",
        {"metadata": {"name": "x"}, "$retainKeys": ["metadata"]},
        STRATEGIC,
    ),
]
STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *RESOURCE_NAMES,
    *VOLUME_SOURCES,
    *NODES,
    *PATCHES,
    *POD_STATUSES,
    *ANNOTATED,
    *NAMES,
    *FAULTY_SCHEMAS,
    *OTHERS,
    *APPLIES,
    *LATER,
    *LATEST,
]
