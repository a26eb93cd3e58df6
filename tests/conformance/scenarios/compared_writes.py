"""Writes that `scripts/compare` found to be answered differently: versions, field managers, patches and kinds."""

from typing import Any

from conformance_exchange import Step
from conformance_hooks import hook_server

FIXTURE = hook_server

NAMESPACE = "compared-writes"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCALERS = f"/apis/autoscaling/{{}}/namespaces/{NAMESPACE}/horizontalpodautoscalers"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
REVISIONS = f"/apis/apps/v1/namespaces/{NAMESPACE}/controllerrevisions"
CRON_JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
CLAIM_TEMPLATES = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaimtemplates"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}


def named(name: str, **parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **parts}


# Versions of custom resources.


def version(name: str, *, storage: bool = False, **more: Any) -> dict[str, Any]:
    """Return a version whose spec has the field `items` only if it is stored."""
    fields: dict[str, Any] = {"size": {"type": "integer"}}
    if storage:
        fields["items"] = {"type": "object", "additionalProperties": {"type": "string"}, "default": {}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        **more,
    }


def definition(group: str, *versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": list(versions),
            **spec,
        },
    }


def things(group: str, number: str) -> str:
    return f"/apis/{group}/{number}/namespaces/{NAMESPACE}/things"


def thing(group: str, number: str, name: str = "x", **parts: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}/{number}", "kind": "Thing", **named(name, **parts)}


def defined(name: str, group: str, crd: dict[str, Any], *numbers: str) -> list[Step]:
    """Create a definition and wait until its versions are served."""
    return [
        Step(name, "POST", DEFINITIONS, crd, compared=False),
        *(
            Step(
                f"{name}-{number}-served",
                "GET",
                things(group, number),
                until=lambda status, body: status == 200,
                compared=False,
            )
            for number in numbers
        ),
    ]


OTHER = "other.ex.io"
OTHER_VERSION = [
    *defined("other", OTHER, definition(OTHER, version("v1", storage=True), version("v2")), "v1", "v2"),
    Step("stored-version", "POST", things(OTHER, "v1"), thing(OTHER, "v1", spec={})),
    *(
        Step(name, "PATCH", f"{things(OTHER, number)}/x", {}, MERGE)
        for name, number in {
            "stored-version-unchanged": "v1",
            "other-version-changes-storage": "v2",
            "other-version-again": "v2",
            "stored-version-changes-storage": "v1",
            "stored-version-again": "v1",
        }.items()
    ),
]
GONE = "gone.ex.io"
GONE_VERSION = [
    *defined(
        "gone", GONE, definition(GONE, version("v1", storage=True), version("v2"), version("v3")), "v2", "v3"
    ),
    *(
        Step(
            f"apply-in-{number}",
            "PATCH",
            f"{things(GONE, number)}/{name}?fieldManager={number}",
            thing(GONE, number, name, spec={"size": 1}),
            APPLY,
            compared=False,
        )
        for number, name in (("v2", "x"), ("v3", "y"))
    ),
    Step(
        "drop-versions",
        "PATCH",
        f"{DEFINITIONS}/things.{GONE}",
        {"spec": {"versions": [version("v1", storage=True), {**version("v3"), "served": False}]}},
        MERGE,
        compared=False,
    ),
    Step(
        "gone-version-not-served",
        "GET",
        things(GONE, "v2"),
        until=lambda status, body: status == 404,
        compared=False,
    ),
    # The real server may answer requests of other versions by the old definition for a moment longer.
    Step(
        "gone-version-not-converted",
        "PATCH",
        f"{things(GONE, 'v1')}/x?fieldManager=one&force=true&dryRun=All",
        thing(GONE, "v1", "x", spec={"size": 2}),
        APPLY,
        until=lambda status, body: status == 500,
        compared=False,
    ),
    *(
        step
        for name in ("x", "y")
        for step in (
            Step(
                f"apply-after-{name}",
                "PATCH",
                f"{things(GONE, 'v1')}/{name}?fieldManager=one&force=true",
                thing(GONE, "v1", name, spec={"size": 2}),
                APPLY,
            ),
            Step(
                f"update-after-{name}",
                "PATCH",
                f"{things(GONE, 'v1')}/{name}",
                {"metadata": {"labels": {"a": "b"}}, "spec": {"size": 3}},
                MERGE,
            ),
        )
    ),
]
TYPED = "typed.ex.io"


def sized(kind: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a version whose `size` has a type of its own."""
    spec = {"type": "object", "properties": {"size": kind}}
    return {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}


TYPED_VERSIONS = [
    *defined(
        "typed",
        TYPED,
        definition(
            TYPED,
            version("v1", storage=True, schema=sized({"type": "integer"})),
            version("v2", schema=sized({"type": "array", "items": {"type": "integer"}})),
        ),
        "v1",
        "v2",
    ),
    Step(
        "stored-through-another-version",
        "POST",
        things(TYPED, "v2"),
        thing(TYPED, "v2", spec={"size": [1]}),
        compared=False,
    ),
    Step(
        "apply-to-what-another-version-stored",
        "PATCH",
        f"{things(TYPED, 'v1')}/x?fieldManager=one&force=true",
        thing(TYPED, "v1", spec={"size": 1}),
        APPLY,
    ),
]
BROKEN = "broken.ex.io"
WEBHOOK = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {"url": "https://{hook}/convert-nothing", "caBundle": "{ca}"},
        "conversionReviewVersions": ["v1"],
    },
}
BROKEN_CONVERSION = [
    *defined(
        "broken",
        BROKEN,
        definition(BROKEN, version("v1", storage=True), version("v2"), conversion=WEBHOOK),
        "v1",
        "v2",
    ),
    Step("unconverted", "POST", things(BROKEN, "v1"), thing(BROKEN, "v1", spec={}), compared=False),
    Step("existing-and-unconvertible", "POST", things(BROKEN, "v2"), thing(BROKEN, "v2", spec={})),
    Step("existing-in-dry-run", "POST", f"{things(BROKEN, 'v2')}?dryRun=All", thing(BROKEN, "v2", spec={})),
]

# Versions of built-in kinds.
SCALER = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
    "maxReplicas": 3,
    "targetCPUUtilizationPercentage": 70,
}
USED = {"currentReplicas": 2, "desiredReplicas": 3, "currentCPUUtilizationPercentage": 55}
METRICS = [
    {"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {}}},
    {"type": "External", "external": {"metric": {"name": "m"}, "current": {}}},
]
AUTOSCALERS = [
    Step("scaler", "POST", SCALERS.format("v1"), named("s", spec=SCALER), compared=False),
    Step("scaler-status", "PUT", f"{SCALERS.format('v1')}/s/status", named("s", spec=SCALER, status=USED)),
    Step("scaler-spec", "PUT", f"{SCALERS.format('v1')}/s", named("s", spec=SCALER)),
    Step("scaler-in-version-2", "GET", f"{SCALERS.format('v2')}/s"),
    Step("scaler-status-unchanged", "PATCH", f"{SCALERS.format('v1')}/s/status", {}, MERGE),
    Step("scaler-in-version-2-again", "GET", f"{SCALERS.format('v2')}/s"),
    Step("scaler-status-unchanged-again", "PATCH", f"{SCALERS.format('v1')}/s/status", {}, MERGE),
    Step(
        "scaler-other-metrics",
        "PATCH",
        f"{SCALERS.format('v2')}/s/status",
        {"status": {"currentMetrics": METRICS}},
        MERGE,
    ),
    Step("scaler-other-metrics-in-version-1", "GET", f"{SCALERS.format('v1')}/s"),
    Step("scaler-spec-with-other-metrics", "PUT", f"{SCALERS.format('v1')}/s", named("s", spec=SCALER)),
]

# Kinds.
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}

PORTS = {"ports": [{"containerPort": 80}]}
HOST = {
    "hostNetwork": True,
    "containers": [{"name": "c", "image": "i", **PORTS}],
    "initContainers": [{"name": "i", "image": "i", **PORTS}],
}


def job(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"labels": {"a": "b"} if labels is None else labels}
    return named(name, spec={"template": {"metadata": metadata, "spec": POD}, **spec})


def file_variable(volume: str, path: str, key: str) -> dict[str, Any]:
    reference = {"volumeName": volume, "path": path, "key": key}
    return {"name": "V", "valueFrom": {"fileKeyRef": reference}}


FILES = [
    file_variable(*reference)
    for reference in (("2024-A", "a", "b"), ("v", "a/../b", "=x"), ("", "", ""), ("h", "a", "b"))
]
CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "fast",
    "volumeName": "pv",
    "resources": {"requests": {"storage": "1Gi"}},
}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}
KINDS = [
    Step("job-labels", "POST", JOBS, job("labels", {"job-name": "x", "controller-uid": "y"})),
    Step("job-own-labels", "POST", f"{JOBS}?dryRun=All", job("labels", {"job-name": "labels"})),
    Step("job-with-a-long-name", "POST", JOBS, job("l" * 64)),
    *(
        Step(f"job-selecting-{name}", "POST", JOBS, job(name, selector={"matchLabels": labels}))
        for name, labels in {
            "another-uid": {"batch.kubernetes.io/controller-uid": "z"},
            "another-name": {"job-name": "z"},
        }.items()
    ),
    Step(
        "variables-from-files",
        "POST",
        f"{CORE}/pods?dryRun=All",
        named(
            "files",
            spec={
                "containers": [{"name": "c", "image": "i", "env": FILES}],
                "initContainers": [{"name": "i", "image": "i", "env": FILES[-1:]}],
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "h", "hostPath": {"path": "/x"}}],
            },
        ),
    ),
    Step(
        "no-claims-of-a-pod",
        "POST",
        f"{CORE}/pods?dryRun=All",
        named("p", spec={**POD, "resources": {"claims": []}}),
    ),
    *(
        Step(
            f"host-ports-of-a-{kind[:-1]}",
            "POST",
            f"{CORE}/{kind}?dryRun=All",
            named("h", **parts),
        )
        for kind, parts in {"pods": {"spec": HOST}, "podtemplates": {"template": {"spec": HOST}}}.items()
    ),
    *(
        Step(
            f"ephemeral-container-with-{name}",
            "POST",
            f"{CORE}/podtemplates?dryRun=All",
            named(
                "e", template={"spec": {**POD, "ephemeralContainers": [{"name": "e", "image": "i", **more}]}}
            ),
        )
        for name, more in {
            "empty-lists": {"ports": [], "resizePolicy": [], "restartPolicyRules": []},
            "restart-rules": {
                "restartPolicy": "Never",
                "restartPolicyRules": [
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
                ],
            },
        }.items()
    ),
    Step("claim", "POST", f"{CORE}/persistentvolumeclaims", named("c", spec=CLAIM), compared=False),
    Step(
        "bind-claim",
        "PUT",
        f"{CORE}/persistentvolumeclaims/c/status",
        named("c", status={"phase": "Bound"}),
        compared=False,
    ),
    *(
        Step(
            f"bound-claim-{name}",
            "PATCH",
            f"{CORE}/persistentvolumeclaims/c?dryRun=All",
            [operation],
            JSON_PATCH,
        )
        for name, operation in {
            "without-resources": {"op": "remove", "path": "/spec/resources"},
            "with-another-request": {"op": "add", "path": "/spec/resources/requests/cpu", "value": "1"},
            "expanded": {"op": "add", "path": "/spec/resources/requests/storage", "value": "2Gi"},
        }.items()
    ),
    Step(
        "generated-namespace",
        "POST",
        "/api/v1/namespaces?dryRun=All",
        {"metadata": {"generateName": "gen-"}},
    ),
    Step(
        "annotation-of-a-nameless-policy",
        "POST",
        POLICIES,
        {"spec": {"auditAnnotations": [{"key": "a b", "valueExpression": "'x'"}]}},
    ),
    Step(
        "binding-with-repeated-owners",
        "POST",
        "/api/v1/namespaces/compared-none/bindings?dryRun=All",
        {"metadata": {"ownerReferences": [OWNER, OWNER]}},
    ),
    Step("claim-template", "POST", CLAIM_TEMPLATES, named("t", spec={"spec": {}}), compared=False),
    Step(
        "empty-list-in-immutable",
        "PATCH",
        f"{CLAIM_TEMPLATES}/t",
        {"spec": {"spec": {"devices": {"requests": []}}}},
        MERGE,
    ),
    *(
        Step(
            f"constant-{name}",
            "POST",
            HOOKS,
            named(
                "h",
                webhooks=[
                    {
                        "name": "b.ex.io",
                        "clientConfig": {"url": "https://example.com/x"},
                        "sideEffects": "None",
                        "admissionReviewVersions": ["v1"],
                        "matchConditions": [{"name": "c", "expression": expression}],
                    }
                ],
            ),
        )
        for name, expression in {
            "time-of-a-number": "timestamp(string(9223372036854775807)).getFullYear() > 0",
            "number-of-a-text": "int(string('x')) > 0",
            "two-conversions": "int(string(7)) > 0",
        }.items()
    ),
]

SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
ATTACHED = {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}


def service(name: str, *ports: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return named(name, spec={"type": "NodePort", "ports": list(ports), **spec})


def endpoints(**topology: str) -> dict[str, Any]:
    endpoint = {"addresses": ["10.1.1.4"], "deprecatedTopology": topology}
    return named("e", addressType="IPv4", endpoints=[endpoint])


TCP = {"name": "a", "port": 80, "nodePort": 31801}
UDP = {"name": "b", "port": 81, "nodePort": 31801, "protocol": "UDP"}
ALLOCATIONS = [
    Step("nameless-service", "POST", f"{CORE}/services", {"spec": {"ports": [{"port": 80}]}}),
    Step("service", "POST", f"{CORE}/services", service("s", TCP), compared=False),
    Step("service-again", "POST", f"{CORE}/services?dryRun=All", service("s", TCP)),
    *(
        Step(f"service-with-{name}", "POST", f"{CORE}/services?dryRun=All", service("t", *ports))
        for name, ports in {
            "the-node-port-of-another-protocol": [UDP],
            "one-node-port-twice": [{**TCP, "nodePort": 31802}, {**UDP, "nodePort": 31802}],
            "one-port-and-node-port-twice": [{"port": 80, "nodePort": 80}] * 2,
            "one-port-twice": [{**TCP, "nodePort": 31802}, {**UDP, "port": 80, "nodePort": 0}],
        }.items()
    ),
    *(
        Step(f"service-changed-to-{name}", "PUT", f"{CORE}/services/s?dryRun=All", service("s", *ports))
        for name, ports in {
            "both-protocols": [TCP, UDP],
            "one-node-port-twice": [TCP, {**UDP, "protocol": "TCP"}],
        }.items()
    ),
    Step(
        "balancer",
        "POST",
        f"{CORE}/services",
        service("b", {"port": 80}, type="LoadBalancer"),
        compared=False,
    ),
    Step(
        "balancer-without-node-ports",
        "PUT",
        f"{CORE}/services/b?dryRun=All",
        service("b", {"port": 80}, type="LoadBalancer", allocateLoadBalancerNodePorts=False),
    ),
    Step(
        "docker-configuration-of-another-type",
        "POST",
        f"{CORE}/secrets?dryRun=All",
        named(
            "d",
            type="kubernetes.io/tls",
            stringData={"tls.crt": "a", "tls.key": "b", ".dockerconfigjson": "no"},
        ),
    ),
    Step(
        "conversion-with-unknown-fields",
        "POST",
        f"{DEFINITIONS}?dryRun=All",
        {"spec": {"conversion": {}, "preserveUnknownFields": True}},
    ),
    Step(
        "driver-in-capitals",
        "POST",
        "/apis/resource.k8s.io/v1/resourceslices?dryRun=All",
        named(
            "r",
            spec={"driver": "D.example.com", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}},
        ),
    ),
    *(
        Step(
            f"schedule-with-{name}",
            "POST",
            f"{CRON_JOBS}?dryRun=All",
            named("c", spec={"schedule": schedule}),
        )
        for name, schedule in {"no-fields": " ", "wide-spaces": "1  2"}.items()
    ),
    Step("topology-of-a-new-slice", "POST", SLICES, endpoints(zone="a")),
    Step("topology-of-a-slice", "PUT", f"{SLICES}/e", endpoints(zone="b")),
    Step("runtime", "POST", RUNTIMES, named(NAMESPACE, handler="h"), compared=False),
    *(
        Step(
            f"runtime-with-{name}", "PATCH", f"{RUNTIMES}/{NAMESPACE}?dryRun=All", {"handler": handler}, MERGE
        )
        for name, handler in {"a-long-handler": "h" * 64, "a-wrong-handler": "H", "no-handler": ""}.items()
    ),
    Step("delete-runtime", "DELETE", f"{RUNTIMES}/{NAMESPACE}", compared=False),
    Step(
        "long-attacher",
        "POST",
        f"{ATTACHMENTS}?dryRun=All",
        named("a", spec={**ATTACHED, "attacher": "a" * 254}),
    ),
    Step("attachment", "POST", ATTACHMENTS, named(NAMESPACE, spec=ATTACHED), compared=False),
    Step(
        "errors-of-an-attachment",
        "PATCH",
        f"{ATTACHMENTS}/{NAMESPACE}/status",
        {"status": {"attachError": {"message": "m" * 1025}, "detachError": {"errorCode": -1}}},
        MERGE,
    ),
    Step("delete-attachment", "DELETE", f"{ATTACHMENTS}/{NAMESPACE}", compared=False),
    Step(
        "external-service",
        "POST",
        f"{CORE}/services",
        named("x", spec={"type": "ExternalName", "externalName": "example.com"}),
        compared=False,
    ),
    *(
        Step(f"external-service-{name}", "PATCH", f"{CORE}/services/x?dryRun=All", {"spec": spec}, MERGE)
        for name, spec in {
            "with-an-address": {"clusterIP": "None"},
            "to-another-network": {"type": "ClusterIP", "clusterIP": "172.16.0.1", "ports": [{"port": 80}]},
        }.items()
    ),
    Step("quota", "POST", f"{CORE}/resourcequotas", named("q"), compared=False),
    *(
        Step(
            f"quota-{name}",
            "PATCH",
            f"{CORE}/resourcequotas/q{path}",
            {part: {"hard": {resource: "1500m"}}},
            MERGE,
        )
        for name, path, part, resource in (
            ("status", "/status", "status", "storage"),
            ("of-no-resource", "", "spec", "../a"),
            ("of-half-a-resource", "", "spec", "example.com/a"),
        )
    ),
    Step(
        "repeated-key-with-a-dot",
        "POST",
        f"{CORE}/resourcequotas?dryRun=All",
        '{"metadata":{"name":"q"},"spec":{"hard":{"limits.memory":"1","limits.memory":"1"}}}',
    ),
]

# Strategic merge patches.
PATCHES = [
    Step("revision", "POST", REVISIONS, named("r", data={"kind": "X", "apiVersion": "v1"}), compared=False),
    Step(
        "deployment",
        "POST",
        DEPLOYMENTS,
        named(
            "d",
            spec={
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        ),
        compared=False,
    ),
    Step("budget", "POST", BUDGETS, named("b"), compared=False),
    Step("finalized", "POST", f"{CORE}/configmaps", named("f"), compared=False),
    Step(
        "finalize",
        "PATCH",
        f"{CORE}/configmaps/f",
        {"metadata": {"finalizers": ["orphan"]}},
        MERGE,
        compared=False,
    ),
    *(
        Step(f"patch-{name}", "PATCH", f"{path}?dryRun=All&fieldValidation=Strict", body, STRATEGIC)
        for name, path, body in (
            (
                "directive-in-a-new-map",
                f"{BUDGETS}/b",
                {"spec": {"selector": {"matchLabels": {"$retainKeys": []}}}},
            ),
            ("null-in-an-unknown-field", f"{BUDGETS}/b", {"Kind": {"a": 1, "as": None, "b": [{"c": None}]}}),
            (
                "map-to-delete-in-an-unknown-field",
                f"{BUDGETS}/b",
                {"Kind": {"a": {"$patch": "delete"}, "b": [1, {"$patch": "replace"}]}},
            ),
            ("lists-of-other-types", f"{CORE}/configmaps/f", {"metadata": {"finalizers": [[], "x"]}}),
            ("numbers-of-other-types", f"{CORE}/configmaps/f", {"metadata": {"finalizers": [1, 1.5]}}),
            (
                "large-number-and-another-type",
                f"{CORE}/configmaps/f",
                {"metadata": {"generation": 2**63, "name": []}},
            ),
            ("large-number-for-a-text", f"{CORE}/configmaps/f", {"metadata": {"name": 2**63}}),
            ("large-number-for-a-port", f"{BUDGETS}/b", {"spec": {"minAvailable": 2**63}}),
            (
                "large-number-and-a-directive",
                f"{BUDGETS}/b",
                {"$patch": "merge", "metadata": {"generation": 2**63}},
            ),
            ("immutable-data", f"{REVISIONS}/r", {"data": {"kind": []}}),
            (
                "unknown-fields-of-a-scale",
                f"{DEPLOYMENTS}/d/scale",
                {"spec": {"template": {}, "selector": {}}},
            ),
        )
    ),
    Step("secret", "POST", f"{CORE}/secrets", named("s", data={"a": "YQ=="}), compared=False),
    *(
        Step(
            f"patch-bytes-with-{name}",
            "PATCH",
            f"{CORE}/secrets/s?dryRun=All",
            {"data": {"a": value}},
            STRATEGIC,
        )
        for name, value in {"texts": [""], "numbers": [97, 98], "fractions": [1.5]}.items()
    ),
]
REPEATED_KEYS = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: f
  labels:
    a: b
  labels:
    a: b
    a: c
data: {a: b}
data:
  a: b
"""
LAST_APPLIED = [
    Step(
        f"apply-{name}",
        "PATCH",
        f"{things(OTHER, number)}/applied?fieldManager=one",
        thing(OTHER, number, "applied", spec=spec),
        APPLY,
    )
    for name, number, spec in (
        ("in-a-version", "v2", {"size": 1}),
        ("what-that-version-has-not", "v1", {"items": {"a": "b"}}),
    )
]
SORTED_DATA = [
    Step(
        "apply-data",
        "PATCH",
        f"{REVISIONS}/sorted?fieldManager=one",
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            **named("sorted", data={"kind": "X", "apiVersion": "v1"}),
        },
        APPLY,
        compared=False,
    ),
    Step("patch-applied-data", "PATCH", f"{REVISIONS}/sorted", {"data": {}}, MERGE),
    Step("read-applied-data", "GET", f"{REVISIONS}/sorted"),
]
APPLIES = [
    Step(
        f"apply-repeated-keys-{level.lower()}",
        "PATCH",
        f"{CORE}/configmaps/f?fieldManager=one&dryRun=All&fieldValidation={level}",
        REPEATED_KEYS,
        APPLY,
    )
    for level in ("Strict", "Warn")
]
STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", named(NAMESPACE), compared=False),
    *OTHER_VERSION,
    *GONE_VERSION,
    *TYPED_VERSIONS,
    *BROKEN_CONVERSION,
    *AUTOSCALERS,
    *KINDS,
    *ALLOCATIONS,
    *PATCHES,
    *APPLIES,
    *LAST_APPLIED,
    *SORTED_DATA,
    Step(
        "apply-a-large-number-for-a-port",
        "PATCH",
        f"{BUDGETS}/b?fieldManager=one&dryRun=All",
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            **named("b", spec={"minAvailable": 2**63}),
        },
        APPLY,
    ),
]
