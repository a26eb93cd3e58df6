"""Objects that are wrong in one place: what the server says of them, and what it lets pass."""

from typing import Any

from conformance_exchange import Step
from conformance_objects import (
    ADMISSION_POLICY,
    BACKEND,
    BUDGET,
    CLAIM,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    GONE,
    HOOKS,
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
from conformance_pods import PODS, C

NAMESPACE = "refusals"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
BATCH = f"/apis/batch/v1/namespaces/{NAMESPACE}"
NETWORK = "/apis/networking.k8s.io/v1"
HERE = f"{NETWORK}/namespaces/{NAMESPACE}"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MERGE = {"Content-Type": "application/merge-patch+json"}


def metric(**source: Any) -> dict[str, Any]:
    (kind,) = source
    return {"spec__metrics": [{"type": kind[0].upper() + kind[1:], **source}]}


OTHERS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "deployment-strategy": (f"{APPS}/deployments", DEPLOYMENT, {"spec__strategy": {"type": "Slow"}}),
    "deployment-amounts": (
        f"{APPS}/deployments",
        DEPLOYMENT,
        {
            "spec__strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "x", "maxUnavailable": 0},
            }
        },
    ),
    "deployment-owner-version": (
        f"{APPS}/deployments",
        DEPLOYMENT,
        {"metadata__ownerReferences": [{"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "u"}]},
    ),
    "deployment-finalizer": (f"{APPS}/deployments", DEPLOYMENT, {"metadata__finalizers": ["bad name"]}),
    "stateful-name": (f"{APPS}/statefulsets", STATEFUL_SET, {"metadata__name": "a.b"}),
    "stateful-service": (f"{APPS}/statefulsets", STATEFUL_SET, {"spec__serviceName": "Bad_"}),
    "stateful-ordinals": (f"{APPS}/statefulsets", STATEFUL_SET, {"spec__ordinals": {"start": -1}}),
    "stateful-retention": (
        f"{APPS}/statefulsets",
        STATEFUL_SET,
        {"spec__persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Keep", "whenScaled": "Drop"}},
    ),
    # One claim at a time: the real server takes several in an order of its own.
    "stateful-claim": (
        f"{APPS}/statefulsets",
        STATEFUL_SET,
        {"spec__volumeClaimTemplates": [{"metadata": {"name": "Bad_"}, "spec": CLAIM}]},
    ),
    "stateful-claim-empty": (f"{APPS}/statefulsets", STATEFUL_SET, {"spec__volumeClaimTemplates": [{}]}),
    "stateful-strategy": (f"{APPS}/statefulsets", STATEFUL_SET, {"spec__updateStrategy": {"type": "Slow"}}),
    "stateful-strategy-without-parameters": (
        f"{APPS}/statefulsets",
        STATEFUL_SET,
        {"spec__updateStrategy": {"type": "RollingUpdate"}},
    ),
    "stateful-history-warned": (f"{APPS}/statefulsets", STATEFUL_SET, {"spec__revisionHistoryLimit": -1}),
    "stateful-labels-twice": (
        f"{APPS}/statefulsets",
        STATEFUL_SET,
        {"spec__template__metadata__labels": {"app": "a", "bad key": "v"}},
    ),
    "daemon-strategy": (f"{APPS}/daemonsets", DAEMON_SET, {"spec__updateStrategy": {"type": "Slow"}}),
    "daemon-surge": (
        f"{APPS}/daemonsets",
        DAEMON_SET,
        {
            "spec__updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "150%", "maxUnavailable": 1},
            }
        },
    ),
    "revision-data": (f"{APPS}/controllerrevisions", named(), {"revision": -1, "data": "x"}),
    "revision-nothing": (f"{APPS}/controllerrevisions", named(), {}),
    "job-labels-of-its-own": (
        f"{BATCH}/jobs",
        JOB,
        {"metadata__labels": {"a": "b"}, "spec__template__metadata": {"labels": {"a": "b"}}},
    ),
    "job-indexes": (
        f"{BATCH}/jobs",
        JOB,
        {
            "metadata__name": "a.b",
            "spec__completionMode": "Indexed",
            "spec__completions": 2,
            "spec__parallelism": 200000,
            "spec__maxFailedIndexes": 3,
            "spec__successPolicy": {
                "rules": [{"succeededIndexes": "0,0-5", "succeededCount": 3}, {}, {"succeededIndexes": "1-x"}]
            },
        },
    ),
    "job-unindexed": (
        f"{BATCH}/jobs",
        JOB,
        {"spec__successPolicy": {"rules": [{"succeededCount": 1}]}, "spec__backoffLimitPerIndex": 1},
    ),
    "job-failure-policy": (
        f"{BATCH}/jobs",
        JOB,
        {
            "spec__podReplacementPolicy": "TerminatingOrFailed",
            "spec__podFailurePolicy": {
                "rules": [
                    {"action": "Stop", "onExitCodes": {"operator": "In", "values": [3, 0, 3]}},
                    {"action": "FailIndex", "onPodConditions": [{"type": "a b", "status": "Maybe"}]},
                    {
                        "action": "FailJob",
                        "onExitCodes": {"containerName": "x", "operator": "Near", "values": []},
                        "onPodConditions": [{"type": "A"}],
                    },
                    {},
                ]
            },
        },
    ),
    "job-manager": (f"{BATCH}/jobs", JOB, {"spec__managedBy": "nobody"}),
    "job-restart-policy": (f"{BATCH}/jobs", JOB, {"spec__template__spec__restartPolicy": "Maybe"}),
    "cron-job-zone": (f"{BATCH}/cronjobs", CRON_JOB, {"spec__timeZone": "x" * 300}),
    "service-affinity": (
        f"{CORE}/services",
        SERVICE,
        {
            "spec__sessionAffinity": "ClientIP",
            "spec__sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}},
        },
    ),
    "service-affinity-of-none": (
        f"{CORE}/services",
        SERVICE,
        {"spec__sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}},
    ),
    "service-unbalanced": (
        f"{CORE}/services",
        SERVICE,
        {
            "spec__loadBalancerClass": "a",
            "spec__loadBalancerSourceRanges": ["x"],
            "spec__allocateLoadBalancerNodePorts": False,
            "spec__externalTrafficPolicy": "Local",
            "spec__healthCheckNodePort": 30000,
            "spec__internalTrafficPolicy": "Inside",
            "spec__trafficDistribution": "Far",
        },
    ),
    "service-balanced": (
        f"{CORE}/services",
        SERVICE,
        {"spec__type": "LoadBalancer", "spec__loadBalancerClass": "a b", "spec__clusterIP": "None"},
    ),
    "service-families": (
        f"{CORE}/services",
        SERVICE,
        {"spec__ipFamilies": ["IPv4", "IPv4", "IPX"], "spec__ipFamilyPolicy": "Triple"},
    ),
    "service-addresses": (
        f"{CORE}/services",
        SERVICE,
        {"spec__clusterIP": "x", "spec__clusterIPs": ["y"], "spec__externalIPs": ["127.0.0.1", "0.0.0.0"]},
    ),
    "service-protocol": (f"{CORE}/services", SERVICE, {"spec__ports__0__appProtocol": "a b"}),
    "service-local": (
        f"{CORE}/services",
        SERVICE,
        {"spec__type": "LoadBalancer", "spec__externalTrafficPolicy": "Local"},
    ),
    "ingress-class-empty": (f"{HERE}/ingresses", INGRESS, {"spec__ingressClassName": ""}),
    "ingress-path": (f"{HERE}/ingresses", INGRESS, {"spec__rules__0__http__paths__0__path": "/a//b/.."}),
    "ingress-paths-type": (f"{HERE}/ingresses", INGRESS, {"spec__rules__0__http__paths__0": {}}),
    "ingress-secret": (f"{HERE}/ingresses", INGRESS, {"spec__tls": [{"secretName": "Bad_"}]}),
    "ingress-resource": (
        f"{HERE}/ingresses",
        INGRESS,
        {"spec__defaultBackend": {"resource": {"apiGroup": "Bad_", "kind": "a/b"}}},
    ),
    "ingress-both": (
        f"{HERE}/ingresses",
        INGRESS,
        {"spec__defaultBackend": {**BACKEND, "resource": {"kind": "K", "name": "n"}}},
    ),
    "ingress-service": (
        f"{HERE}/ingresses",
        INGRESS,
        {"spec__defaultBackend": {"service": {"name": "1.2", "port": {"number": 1, "name": "a"}}}},
    ),
    "ingress-address": (f"{HERE}/ingresses", INGRESS, {"spec__rules__0__host": "::1"}),
    "class-controller": (f"{NETWORK}/ingressclasses", INGRESS_CLASS, {"spec__controller": "plain"}),
    "class-scope": (f"{NETWORK}/ingressclasses", INGRESS_CLASS, {"spec__parameters__scope": "Wide"}),
    "class-namespace": (f"{NETWORK}/ingressclasses", INGRESS_CLASS, {"spec__parameters__namespace": "n"}),
    "class-namespace-missing": (
        f"{NETWORK}/ingressclasses",
        INGRESS_CLASS,
        {"spec__parameters__scope": "Namespace"},
    ),
    "policy-types": (f"{HERE}/networkpolicies", POLICY, {"spec__policyTypes": ["Ingress", "a", "b"]}),
    "policy-end-port": (
        f"{HERE}/networkpolicies",
        POLICY,
        {
            "spec__ingress": [
                {
                    "ports": [
                        {"endPort": 5},
                        {"port": "http", "endPort": 5},
                        {"port": 9, "endPort": 5},
                    ],
                    "from": [{"ipBlock": {}}],
                }
            ]
        },
    ),
    "claim-sources": (
        f"{CORE}/persistentvolumeclaims",
        PVC,
        {
            "spec__dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
            "spec__dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "b"},
        },
    ),
    "claim-source-of-any-kind": (
        f"{CORE}/persistentvolumeclaims",
        PVC,
        {"spec__dataSource": {"apiGroup": "ex.io", "kind": "Any", "name": "a"}},
    ),
    "claim-source-group": (
        f"{CORE}/persistentvolumeclaims",
        PVC,
        {"spec__dataSourceRef": {"apiGroup": "Bad_", "kind": "Any", "name": ""}},
    ),
    "claim-modes": (
        f"{CORE}/persistentvolumeclaims",
        PVC,
        {"spec__accessModes": ["ReadWriteOncePod", "ReadWriteMany", "x"], "spec__volumeMode": "Tape"},
    ),
    "storage-class-topologies": (
        "/apis/storage.k8s.io/v1/storageclasses",
        STORAGE_CLASS,
        {
            "allowedTopologies": [
                {"matchLabelExpressions": [{"key": "a b", "values": ["x", "x"]}, {"key": "c"}]},
            ],
            "volumeBindingMode": "",
        },
    ),
    "scaler-bounds": (
        f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers",
        SCALER,
        {
            "spec__maxReplicas": -1,
            "spec__scaleTargetRef": {"apiVersion": "a/b/c", "kind": "a/b", "name": ".."},
        },
    ),
    "scaler-behavior": (
        f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers",
        SCALER,
        {
            "spec__behavior": {
                "scaleUp": {
                    "stabilizationWindowSeconds": 3601,
                    "selectPolicy": "Some",
                    "policies": [{"type": "All", "value": 0, "periodSeconds": 1801}],
                }
            }
        },
    ),
    **{
        f"scaler-{name}": (
            f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers",
            SCALER,
            change,
        )
        for name, change in {
            "pods": metric(pods={"metric": {"name": ""}, "target": {"type": "Value", "value": "-1"}}),
            "object": metric(object={"describedObject": {"kind": ""}, "target": {}}),
            "external": metric(
                external={
                    "metric": {"name": "a/b"},
                    "target": {"type": "Value", "value": "1", "averageValue": "1"},
                }
            ),
            "container": metric(
                containerResource={
                    "name": "zzz",
                    "container": "Bad_",
                    "target": {"type": "Utilization", "averageUtilization": 0},
                }
            ),
            "wrong-source": {"spec__metrics": [{"type": "Pods", "resource": {"name": "cpu"}}]},
            "no-source": {"spec__metrics": [{}]},
        }.items()
    },
    "budget-name": (
        f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
        BUDGET,
        {"metadata__name": "Any Name"},
    ),
    "quota-scopes": (f"{CORE}/resourcequotas", QUOTA, {"spec__scopes": ["BestEffort", "Other"]}),
    "quota-conflict": (
        f"{CORE}/resourcequotas",
        QUOTA,
        {"spec__hard": {"pods": "1"}, "spec__scopes": ["Terminating", "NotTerminating"]},
    ),
    "quota-selector": (
        f"{CORE}/resourcequotas",
        QUOTA,
        {"spec__scopeSelector": {"matchExpressions": [{"scopeName": "Other", "operator": "In"}]}},
    ),
    "limits-type": (f"{CORE}/limitranges", LIMITS, {"spec__limits__0__type": "Box"}),
    "namespace-finalizer": ("/api/v1/namespaces", named(), {"spec": {"finalizers": ["a b", "ex.io/x/y"]}}),
    "account-secret-of-no-name": (f"{CORE}/serviceaccounts", named(), {"secrets": [{}]}),
    "lease-of-elections": (
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases",
        named({"strategy": "OldestEmulationVersion", "preferredHolder": "p"}),
        {},
    ),
    "hook-name": (f"{ADMISSION}/validatingwebhookconfigurations", HOOKS, {"webhooks__0__name": ""}),
    "hook-reviews": (
        f"{ADMISSION}/validatingwebhookconfigurations",
        HOOKS,
        {"webhooks__0__admissionReviewVersions": ["v1", "v1", "Bad_"]},
    ),
    "policy-parameters": (
        f"{ADMISSION}/validatingadmissionpolicies",
        ADMISSION_POLICY,
        {"spec__paramKind": {"apiVersion": "a/b/c", "kind": "a b"}},
    ),
    "policy-parameters-empty": (
        f"{ADMISSION}/validatingadmissionpolicies",
        ADMISSION_POLICY,
        {"spec__paramKind": {}},
    ),
    "access-of-nobody": ("/apis/authorization.k8s.io/v1/subjectaccessreviews", named(), {}),
}
STATUSES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "stateful": (
        f"{APPS}/statefulsets",
        STATEFUL_SET,
        {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "collisionCount": -1},
    ),
    "daemon": (
        f"{APPS}/daemonsets",
        DAEMON_SET,
        {
            "currentNumberScheduled": -1,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": -2,
            "numberUnavailable": -3,
        },
    ),
    "deployment": (f"{APPS}/deployments", DEPLOYMENT, {"updatedReplicas": 1, "unavailableReplicas": -1}),
    "service": (
        f"{CORE}/services",
        SERVICE,
        {"loadBalancer": {"ingress": [{"ip": "1.2.3.4", "ipMode": "VIP"}]}},
    ),
}

RANGES = f"/api/v1/namespaces/{NAMESPACE}-ranges"


def limit(name: str, **limits: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"limits": [{"type": "Container", **limits}]}}


def resources(body: Any, _: Any) -> Any:
    return body["spec"]["containers"][0]["resources"] if "spec" in body else body


def limited(status: int, body: Any) -> bool:
    """Return True if the server has loaded both ranges, which takes a moment."""
    found = resources(body, {}).get("limits", {}) if status == 201 else {}
    return {"cpu", "memory"} <= found.keys()


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *(
        Step(f"pod-{name}", "POST", f"{CORE}/pods?dryRun=All", bent(POD_OBJECT, **change))
        for name, change in PODS.items()
    ),
    *(
        Step(name, "POST", f"{path}?dryRun=All", bent(obj, **change))
        for name, (path, obj, change) in OTHERS.items()
    ),
    *(
        step
        for name, (path, obj, status) in STATUSES.items()
        for step in (
            Step(f"status-{name}-of", "POST", path, obj, compared=False),
            Step(f"status-{name}", "PATCH", f"{path}/x/status", {"status": status}, MERGE),
        )
    ),
    Step(
        "ranges",
        "POST",
        "/api/v1/namespaces",
        named() | {"metadata": {"name": f"{NAMESPACE}-ranges"}},
        compared=False,
    ),
    Step(
        "range-of-processors",
        "POST",
        f"{RANGES}/limitranges",
        limit("a", default={"cpu": "1"}, max={"cpu": "2"}, min={"cpu": "1m"}),
        compared=False,
    ),
    Step(
        "range-of-memory",
        "POST",
        f"{RANGES}/limitranges",
        limit("b", default={"memory": "1Gi"}, max={"memory": "2Gi"}, min={"memory": "1Mi"}),
        compared=False,
    ),
    Step("ranges-known", "POST", f"{RANGES}/pods?dryRun=All", POD_OBJECT, until=limited, compared=False),
    Step("ranges-of-both", "POST", f"{RANGES}/pods?dryRun=All", POD_OBJECT, pick=resources),
    Step(
        "range-above",
        "POST",
        f"{RANGES}/pods?dryRun=All",
        bent(POD_OBJECT, **{f"{C}resources": {"limits": {"memory": "3Gi"}}}),
    ),
    Step(
        "range-below-and-above",
        "POST",
        f"{RANGES}/pods?dryRun=All",
        bent(POD_OBJECT, **{f"{C}resources": {"limits": {"cpu": "3"}, "requests": {"cpu": "0"}}}),
    ),
    Step(
        "balanced",
        "POST",
        f"{CORE}/services",
        bent(
            SERVICE,
            metadata__name="lb",
            spec__type="LoadBalancer",
            spec__externalTrafficPolicy="Local",
            spec__loadBalancerClass="ex.io/lb",
        ),
        compared=False,
    ),
    Step("service-of-another-type", "PATCH", f"{CORE}/services/lb", {"spec": {"type": "NodePort"}}, MERGE),
    Step("service-of-a-plain-type", "PATCH", f"{CORE}/services/lb", {"spec": {"type": "ClusterIP"}}, MERGE),
    Step(
        "stateful-change-of-bad-service",
        "PATCH",
        f"{APPS}/statefulsets/x",
        {"spec": {"serviceName": "Bad_", "replicas": -1}},
        MERGE,
    ),
    Step(
        "limits-nobody-named",
        "POST",
        f"{CORE}/limitranges?dryRun=All",
        bent(LIMITS, metadata__name=GONE),
        pick=lambda body, _: [body["kind"], len(body["metadata"]["name"])],
    ),
]
