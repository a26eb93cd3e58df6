"""Updates, applies and statuses that `scripts/compare` found to be answered differently."""

from typing import Any

from conformance_exchange import Step

NAMESPACE = "compared-updates"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
PODS = f"{CORE}/pods"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
CRON_JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}
CONTAINER = {"name": "c", "image": "i"}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}


def named(name: str, **parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **parts}


def applied(kind: str, version: str = "v1", **parts: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, **parts}


# Elements of lists without their keys, which have defaults.

DEBUGGER = {"image": "i", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]}
EPHEMERAL = [
    Step("template", "POST", f"{CORE}/podtemplates", named("t", template=TEMPLATE), compared=False),
    Step(
        "apply-ephemeral-container-without-name",
        "PATCH",
        f"{CORE}/podtemplates/t?fieldManager=one",
        applied("PodTemplate", template={"spec": {"ephemeralContainers": [DEBUGGER]}}),
        APPLY,
    ),
    Step("debugged", "POST", PODS, named("debugged", spec={"containers": [CONTAINER]}), compared=False),
    Step(
        "add-ephemeral-container",
        "PATCH",
        f"{PODS}/debugged/ephemeralcontainers?fieldManager=one",
        {
            "spec": {
                "ephemeralContainers": [
                    {
                        "name": "d",
                        "image": "i",
                        "env": [{"name": "A", "value": "1"}],
                        "command": ["sh"],
                        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                    }
                ]
            }
        },
        MERGE,
    ),
    Step(
        "apply-ephemeral-container",
        "PATCH",
        f"{PODS}/debugged/ephemeralcontainers?fieldManager=two",
        applied(
            "Pod",
            spec={"ephemeralContainers": [{"name": "e", "image": "i", "env": [{"name": "A", "value": "1"}]}]},
        ),
        APPLY,
    ),
]

# Pods.

DEADLINE = {"containers": [CONTAINER], "activeDeadlineSeconds": 10}
TERMS = [
    {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
]


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"nodeAffinity": required}


GATED = {
    "containers": [CONTAINER],
    "schedulingGates": [{"name": "example.com/g"}],
    "nodeSelector": {"a": "b"},
    "affinity": affinity(*TERMS),
}
GATED_CHANGES: dict[str, Any] = {
    "add-node-selector": {"nodeSelector": {"a": "b", "c": "d"}},
    "change-node-selector": {"nodeSelector": {"a": "c"}},
    "remove-node-selector": {"nodeSelector": None},
    "add-requirement": {
        "affinity": affinity(
            {"matchExpressions": [*TERMS[0]["matchExpressions"], {"key": "b", "operator": "Exists"}]},
            TERMS[1],
        )
    },
    "change-requirement": {
        "affinity": affinity({"matchExpressions": [{"key": "b", "operator": "Exists"}]}, TERMS[1])
    },
    "remove-term": {"affinity": affinity(TERMS[0])},
    "remove-affinity": {"affinity": None},
    "add-gate": {"schedulingGates": [{"name": "example.com/g"}, {"name": "example.com/h"}]},
}
POD_UPDATES = [
    Step(
        "negative-grace-period",
        "POST",
        f"{PODS}?fieldManager=one",
        named("grace", spec={"containers": [CONTAINER], "terminationGracePeriodSeconds": -1}),
    ),
    Step(
        "negative-grace-period-again",
        "PUT",
        f"{PODS}/grace?fieldManager=two",
        named("grace", spec={"containers": [CONTAINER], "terminationGracePeriodSeconds": -1}),
    ),
    Step("deadline", "POST", PODS, named("deadline", spec=DEADLINE), compared=False),
    *(
        Step(f"deadline-{name}", "PATCH", f"{PODS}/deadline?dryRun=All", {"spec": spec}, MERGE)
        for name, spec in {
            "earlier": {"activeDeadlineSeconds": 5},
            "later": {"activeDeadlineSeconds": 11, "hostname": "h"},
            "negative": {"activeDeadlineSeconds": -1, "hostname": "h"},
            "zero": {"activeDeadlineSeconds": 0, "hostname": "h"},
            "large": {"activeDeadlineSeconds": 2**31, "hostname": "h"},
            "removed": {"activeDeadlineSeconds": None},
            "removed-and-more": {"activeDeadlineSeconds": None, "hostname": "h"},
        }.items()
    ),
    Step(
        "update-to-no-image",
        "PATCH",
        f"{PODS}/deadline?dryRun=All",
        {"spec": {"containers": [{"name": "c"}]}},
        MERGE,
    ),
    Step("gated", "POST", PODS, named("gated", spec=GATED), compared=False),
    *(
        Step(f"gated-{name}", "PATCH", f"{PODS}/gated?dryRun=All", {"spec": spec}, MERGE)
        for name, spec in GATED_CHANGES.items()
    ),
]

# Workloads.

ON_DELETE = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": TEMPLATE,
    "updateStrategy": {"type": "OnDelete", "rollingUpdate": {}},
}
WORKLOADS = [
    Step("daemons-on-delete", "POST", f"{APPS}/daemonsets?dryRun=All", named("d", spec=ON_DELETE)),
    Step(
        "apply-daemons-on-delete",
        "PATCH",
        f"{APPS}/daemonsets/d?dryRun=All&fieldManager=one",
        applied("DaemonSet", "apps/v1", **named("d", spec=ON_DELETE)),
        APPLY,
    ),
]

# Metadata in writes of a status.

CRON_JOB = {
    "schedule": "* * * * *",
    "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}},
}
STATUS_METADATA = [
    Step("cron-job", "POST", CRON_JOBS, named("c", spec=CRON_JOB), compared=False),
    Step("budget", "POST", BUDGETS, named("b"), compared=False),
    *(
        Step(
            f"{name}-status-{part}",
            "PATCH",
            f"{path}/status?dryRun=All",
            {"metadata": metadata},
            MERGE,
        )
        for name, path in {
            "cron-job": f"{CRON_JOBS}/c",
            "budget": f"{BUDGETS}/b",
            "pod": f"{PODS}/deadline",
        }.items()
        for part, metadata in {
            "finalizers": {"finalizers": ["x y"]},
            "unqualified-finalizers": {"finalizers": ["x"]},
            "labels": {"labels": {"a b": "c"}},
            "annotations": {"annotations": {"a b": "c"}},
        }.items()
    ),
]

# Services.

SERVICES = f"{CORE}/services"
FAMILIES = [
    Step("headless", "POST", SERVICES, named("headless", spec={"clusterIP": "None"}), compared=False),
    *(
        Step(f"headless-{name}", "PATCH", f"{SERVICES}/headless?dryRun=All", {"spec": spec}, MERGE)
        for name, spec in {
            "unknown-family": {"ipFamilies": ["1.2.3.4"]},
            "one-family": {"ipFamilies": ["IPv4"]},
            "single-stack": {"ipFamilyPolicy": "SingleStack"},
            "single-stack-other-family": {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv6"]},
            "single-stack-other-order": {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv6", "IPv4"]},
            "other-order": {"ipFamilies": ["IPv6", "IPv4"]},
        }.items()
    ),
    Step(
        "repeated-ports",
        "POST",
        f"{SERVICES}?dryRun=All",
        named("ports", spec={"ports": [{}, {}], "type": "LoadBalancer"}),
    ),
]

# Other kinds.

SLICE = {
    "driver": "d.example.com",
    "nodeName": "n",
    "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1},
}
EXPRESSIONS = {
    "two-dots": "../a",
    "dot": ".",
    "dot-and-end": "object.",
    "dot-and-space": "1 + . ",
    "dot-and-number": ". 1",
    "dot-and-keyword": ".true",
    "dot-and-text": ".'a'",
    "optional-number": "object.?1",
    "undeclared-root": ".a.b",
}
RULES = {
    "resourceRules": [
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]},
    ]
}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}
OTHERS = [
    Step("slice", "POST", SLICES, named("compared-updates", spec=SLICE), compared=False),
    *(
        Step(
            f"slice-{name}",
            "PUT",
            f"{SLICES}/compared-updates?dryRun=All",
            named("compared-updates", spec={**SLICE, **spec}),
        )
        for name, spec in {
            "unchanged": {},
            "dropped-field": {"partitionTypeAttribute": "a"},
            "with-empty-list": {"devices": []},
        }.items()
    ),
    *(
        Step(
            f"expression-{name}",
            "POST",
            f"{POLICIES}?dryRun=All",
            named("p", spec={"matchConstraints": RULES, "validations": [{"expression": text}]}),
        )
        for name, text in EXPRESSIONS.items()
    ),
    Step(
        "webhook-path-of-one-character",
        "POST",
        HOOKS,
        named("w", webhooks=[{"name": "a.b.c", "clientConfig": {"service": {"path": "é"}}}]),
    ),
    Step(
        "list-in-place-of-a-map",
        "PATCH",
        f"{PODS}/gated?dryRun=All",
        {"spec": {"nodeSelector": [{"name": "r", "exactly": {}}], "tolerations": {"b": 1, "a": 2}}},
        MERGE,
    ),
    *(
        Step(
            f"repeated-owners-{name}",
            "PATCH",
            f"{BUDGETS}/b?dryRun=All&fieldValidation=Ignore",
            {"metadata": {"ownerReferences": [OWNER, OWNER], **metadata}},
            MERGE,
        )
        for name, metadata in {
            "accepted": {},
            "refused": {"labels": {"a b": "c"}},
            "with-grace-period": {"deletionGracePeriodSeconds": 65536},
        }.items()
    ),
    *(
        Step(
            f"{name}-repeated-owners",
            method,
            f"{path}?dryRun=All&fieldManager=one",
            {"metadata": {"name": target, "ownerReferences": [OWNER, OWNER]}},
        )
        for name, method, path, target in (
            ("create", "POST", BUDGETS, "new"),
            ("replace", "PUT", f"{BUDGETS}/b", "b"),
        )
    ),
]
STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", named(NAMESPACE), compared=False),
    *EPHEMERAL,
    *POD_UPDATES,
    *WORKLOADS,
    *STATUS_METADATA,
    *FAMILIES,
    *OTHERS,
]
