"""What administrators and drivers write, wrong in one place: volumes, drivers, addresses, flow control, registrations."""

from typing import Any

from conformance_exchange import Step
from conformance_objects import ADMISSION_POLICY, GONE, HOOKS, bent, named

MERGE = {"Content-Type": "application/merge-patch+json"}
STORAGE = "/apis/storage.k8s.io/v1"
NETWORK = "/apis/networking.k8s.io/v1"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
NAMESPACE = "administration"

VOLUME = named(
    {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": "d.ex.io", "volumeHandle": "h"},
    }
)
TERM = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
AFFINITY = {"required": {"nodeSelectorTerms": [TERM]}}


def made_of(**source: Any) -> dict[str, Any]:
    return {"spec__csi": GONE, **{f"spec__{name}": value for name, value in source.items()}}


VOLUMES: dict[str, dict[str, Any]] = {
    "without-a-driver": {"spec__csi__driver": GONE},
    "without-a-handle": {"spec__csi__volumeHandle": GONE},
    "of-a-bad-driver": {"spec__csi__driver": "A_b c"},
    "of-a-long-driver": {"spec__csi__driver": "a" * 64},
    "secret-without-a-namespace": {"spec__csi__controllerPublishSecretRef": {"name": "a"}},
    "secret-without-a-name": {"spec__csi__nodeExpandSecretRef": {"namespace": "a"}},
    "secret-with-bad-names": {"spec__csi__controllerExpandSecretRef": {"name": "A_b", "namespace": "B_"}},
    "of-no-size": {"spec__capacity": {"storage": "0"}},
    "of-less-than-no-size": {"spec__capacity": {"storage": "-1"}},
    "of-cpu": {"spec__capacity": {"cpu": "1"}},
    "root-recycled": made_of(hostPath={"path": "/"}, persistentVolumeReclaimPolicy="Recycle"),
    "on-no-path": made_of(hostPath={"path": ""}),
    "on-a-path-that-leaves": made_of(hostPath={"path": "/../a"}),
    "on-an-unknown-type-of-path": made_of(hostPath={"path": "/a", "type": "Foo"}),
    "nfs-of-nothing": made_of(nfs={}),
    "nfs-relative": made_of(nfs={"server": "a", "path": "b"}),
    "local-anywhere": made_of(local={"path": "/a"}),
    "local-that-leaves": made_of(local={"path": "a/../b"}, nodeAffinity=AFFINITY),
    "fc-of-nothing": made_of(fc={}),
    "iscsi-of-nothing": made_of(iscsi={}),
    "disk-of-nothing": made_of(gcePersistentDisk={}),
    "of-an-unknown-mode": {"spec__volumeMode": "Foo"},
    "of-a-bad-class-of-attributes": {"spec__volumeAttributesClassName": "A_"},
    "of-an-empty-class-of-attributes": {"spec__volumeAttributesClassName": ""},
}
VOLUME_CHANGES: dict[str, Any] = {
    "secret-to-expand": {"csi": {"controllerExpandSecretRef": {"name": "a", "namespace": "b"}}},
    "other-driver": {"csi": {"driver": "e.ex.io"}},
    "affinity": {"nodeAffinity": AFFINITY},
    "other-affinity": {
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "b", "operator": "In", "values": ["c"]}]}]
            }
        }
    },
    "size-below-zero": {"capacity": {"storage": "-2Gi"}},
    "class-of-attributes": {"volumeAttributesClassName": "a"},
    "no-class-of-attributes": {"volumeAttributesClassName": None},
    "block": {"volumeMode": "Block"},
}

DRIVER = named({})
CSI_NODE = named({"drivers": [{"name": "d.ex.io", "nodeID": "n", "topologyKeys": ["a"]}]})
FIRST = "spec__drivers__0__"
CAPACITY = named(storageClassName="a")
ATTACHMENT = named({"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}})
ATTRIBUTES = named(driverName="d.ex.io", parameters={"a": "b"})
PARENT = {"resource": "services", "name": "a", "namespace": "b"}
ADDRESS = {"metadata": {"name": "10.9.8.7"}, "spec": {"parentRef": PARENT}}
RANGE = named({"cidrs": ["10.77.0.0/16"]})
SERVED = {
    "metadata": {"name": "v1.administration.ex.io"},
    "spec": {
        "group": "administration.ex.io",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "insecureSkipTLSVerify": True,
        "service": {"name": "s", "namespace": "n"},
    },
}
SCHEMA = named(
    {
        "priorityLevelConfiguration": {"name": "global-default"},
        "matchingPrecedence": 5000,
        "rules": [
            {
                "subjects": [{"kind": "User", "user": {"name": "u"}}],
                "resourceRules": [
                    {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
                ],
            }
        ],
    }
)
RULE, RESOURCES = "spec__rules__0__", "spec__rules__0__resourceRules__0__"
QUEUES = {"queues": 8, "handSize": 4, "queueLengthLimit": 5}
LEVEL = named({"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": QUEUES}}})
QUEUING = "spec__limited__limitResponse__queuing"


def subject(kind: str, **what: Any) -> dict[str, Any]:
    return {f"{RULE}subjects": [{"kind": kind, **what}]}


def paths(*given: str) -> dict[str, Any]:
    return {f"{RULE}nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": list(given)}]}


def hook(url: str) -> dict[str, Any]:
    return {"webhooks__0__clientConfig": {"url": url}}


def variable(name: str, expression: str, use: str) -> dict[str, Any]:
    return {
        "spec__variables": [{"name": name, "expression": expression}],
        "spec__validations": [{"expression": use}],
    }


OTHERS: dict[str, tuple[str, Any, dict[str, dict[str, Any]]]] = {
    "driver": (
        f"{STORAGE}/csidrivers",
        DRIVER,
        {
            "lives": {"spec__volumeLifecycleModes": ["Foo"]},
            "groups": {"spec__fsGroupPolicy": "Foo"},
            "tokens-alike": {"spec__tokenRequests": [{"audience": "a"}, {"audience": "a"}]},
            "tokens-short": {"spec__tokenRequests": [{"audience": "a", "expirationSeconds": 5}]},
            "tokens-long": {"spec__tokenRequests": [{"audience": "a", "expirationSeconds": 2**33}]},
            "period": {"spec__nodeAllocatableUpdatePeriodSeconds": 5},
            "secrets-of-no-tokens": {"spec__serviceAccountTokenInSecrets": True},
        },
    ),
    "node-of-drivers": (
        f"{STORAGE}/csinodes",
        CSI_NODE,
        {
            "of-nothing": {"spec__drivers": [{}]},
            "bad-name": {f"{FIRST}name": "A_"},
            "keys-alike": {f"{FIRST}topologyKeys": ["a", "a"]},
            "keys-bad": {f"{FIRST}topologyKeys": ["a b"]},
            "count": {f"{FIRST}allocatable": {"count": -1}},
            "long": {f"{FIRST}nodeID": "a" * 257},
            "alike": {"spec__drivers": CSI_NODE["spec"]["drivers"] * 2},
        },
    ),
    "attachment": (
        f"{STORAGE}/volumeattachments",
        ATTACHMENT,
        {
            "by-nobody": {"spec__attacher": ""},
            "to-no-node": {"spec__nodeName": ""},
            "of-nothing": {"spec__source": {}},
            "of-no-volume": {"spec__source": {"persistentVolumeName": ""}},
            "of-both": {"spec__source": {"persistentVolumeName": "a", "inlineVolumeSpec": {}}},
        },
    ),
    "attributes": (
        f"{STORAGE}/volumeattributesclasses",
        ATTRIBUTES,
        {
            "of-no-driver": {"driverName": ""},
            "of-a-bad-driver": {"driverName": "A_ b"},
            "none": {"parameters": {}},
            "nameless": {"parameters": {"": "a"}},
        },
    ),
    "capacity": (
        f"{STORAGE}/namespaces/{NAMESPACE}/csistoragecapacities",
        CAPACITY,
        {
            "of-no-class": {"storageClassName": ""},
            "below-zero": {"capacity": "-1"},
            "topology": {"nodeTopology": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}},
        },
    ),
    "address": (
        f"{NETWORK}/ipaddresses",
        ADDRESS,
        {
            "no-address": {"metadata__name": "foo"},
            "octal": {"metadata__name": "010.1.1.1"},
            "in-capitals": {"metadata__name": "2001:DB8::1"},
            "mapped": {"metadata__name": "::ffff:1.2.3.4"},
            "six": {"metadata__name": "2001:db8::2"},
            "of-nobody": {"spec": {}},
            "of-nothing": {"spec__parentRef": {}},
            "of-bad-names": {"spec__parentRef": {"resource": "a b/", "name": "x/y", "group": "B_"}},
        },
    ),
    "range": (
        f"{NETWORK}/servicecidrs",
        RANGE,
        {
            "none": {"spec__cidrs": []},
            "no-network": {"spec__cidrs": ["x"]},
            "with-a-host": {"spec__cidrs": ["10.0.0.1/24"]},
            "two-of-a-kind": {"spec__cidrs": ["10.78.0.0/16", "10.79.0.0/16"]},
            "three": {"spec__cidrs": ["10.80.0.0/16", "2001:db8::/64", "10.81.0.0/16"]},
            "octal": {"spec__cidrs": ["10.082.0.0/16"]},
            "in-capitals": {"spec__cidrs": ["2001:DB8:1::/64"]},
            "mapped": {"spec__cidrs": ["::ffff:10.0.0.0/112"]},
        },
    ),
    "served": (
        "/apis/apiregistration.k8s.io/v1/apiservices",
        SERVED,
        {
            "other-name": {"metadata__name": "foo"},
            "bad-group": {"spec__group": "A_b"},
            "bad-version": {"spec__version": "A_b"},
            "priority": {"spec__groupPriorityMinimum": 20001},
            "priority-of-version": {"spec__versionPriority": 0},
            "by-nothing": {"spec__service": {}},
            "at-a-bad-port": {"spec__service__port": 70000},
            "here-trusting": {"spec__service": GONE},
            "trusting-with-a-bundle": {"spec__caBundle": "aGVsbG8="},
        },
    ),
    "schema": (
        f"{FLOW}/flowschemas",
        SCHEMA,
        {
            "no-level": {"spec__priorityLevelConfiguration": {}},
            "last": {"spec__matchingPrecedence": 10001},
            "first": {"spec__matchingPrecedence": 1},
            "negative": {"spec__matchingPrecedence": -1},
            "distinguished": {"spec__distinguisherMethod": {"type": "Foo"}},
            "nobody": {f"{RULE}subjects": []},
            "somebody": subject("Foo"),
            "user-untold": subject("User"),
            "user-nameless": subject("User", user={"name": ""}),
            "user-and-group": subject("User", user={"name": "a"}, group={"name": "b"}),
            "account": subject("ServiceAccount", serviceAccount={}),
            "account-bad": subject("ServiceAccount", serviceAccount={"namespace": "A_", "name": "B_"}),
            "no-rules": {f"{RULE}resourceRules": []},
            "empty-rule": {f"{RULE}resourceRules": [{}]},
            "verbs": {f"{RESOURCES}verbs": ["foo"]},
            "verbs-and-all": {f"{RESOURCES}verbs": ["*", "get"]},
            "groups-and-all": {f"{RESOURCES}apiGroups": ["*", "a"]},
            "nowhere": {f"{RESOURCES}namespaces": []},
            "bad-namespace": {f"{RESOURCES}namespaces": ["A_"]},
            "path-empty": paths(""),
            "path-relative": paths("foo"),
            "path-doubled": paths("/a//b"),
            "path-with-a-space": paths("/a b"),
            "path-with-a-star": paths("/a*"),
        },
    ),
    "level": (
        f"{FLOW}/prioritylevelconfigurations",
        LEVEL,
        {
            "unknown": {"spec__type": "Foo"},
            "untold": {"spec__type": ""},
            "unlimited": {"spec__limited": GONE},
            "exempt": {"spec__type": "Exempt", "spec__limited": GONE},
            "limited-and-exempt": {"spec__exempt": {}},
            "shares": {"spec__limited__nominalConcurrencyShares": -1},
            "lent": {"spec__limited__lendablePercent": 101},
            "borrowed": {"spec__limited__borrowingLimitPercent": -1},
            "response": {"spec__limited__limitResponse": {"type": "Foo"}},
            "rejected-queues": {"spec__limited__limitResponse__type": "Reject"},
            "no-queues": {QUEUING: GONE},
            "hand": {f"{QUEUING}__handSize": 9},
            "length": {f"{QUEUING}__queueLengthLimit": -1},
            "entropy": {QUEUING: {"queues": 10000000, "handSize": 10, "queueLengthLimit": 1}},
        },
    ),
    "hook": (
        f"{ADMISSION}/validatingwebhookconfigurations",
        HOOKS,
        {
            "bracket": hook("https://[::1"),
            "space": hook("https://a b/"),
            "escape-in-host": hook("https://a%zz/"),
            "escape-in-path": hook("https://a/%zz"),
            "ascii-escaped": hook("https://%41/"),
            "no-scheme": hook("://x"),
            "port": hook("https://a:port/"),
            "ports": hook("https://a:80:80/"),
            "after-bracket": hook("https://[a]x/"),
            "control": hook("https://a\n/"),
            "colon": hook("1https://a"),
            "password": hook("https://u:p@a/"),
            "user-and-no-host": hook("https://u@"),
            "fragment": hook("https://a/#c"),
            "query": hook("https://a/?b"),
            "plain": hook("http://a"),
        },
    ),
    "policy": (
        f"{ADMISSION}/validatingadmissionpolicies",
        ADMISSION_POLICY,
        {
            "names-alike": {"spec__matchConstraints__resourceRules__0__resourceNames": ["a", "a"]},
            "name-of-a-path": {"spec__matchConstraints__resourceRules__0__resourceNames": ["a/b"]},
            "variable-cut-short": variable("a", "1 +", "variables.a == 1"),
            "variable-of-nothing": variable("a", "nope.x", "variables.a"),
            "variable-reserved": variable("if", "1", "true"),
        },
    ),
}
CHANGES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "node-of-drivers": (
        f"{STORAGE}/csinodes",
        CSI_NODE,
        {
            "other-id": {"spec": {"drivers": [{"name": "d.ex.io", "nodeID": "m", "topologyKeys": ["a"]}]}},
            "no-drivers": {"spec": {"drivers": []}},
        },
    ),
    "attachment": (
        f"{STORAGE}/volumeattachments",
        ATTACHMENT,
        {"other-node": {"spec": {"nodeName": "x"}}},
    ),
    "capacity": (
        f"{STORAGE}/namespaces/{NAMESPACE}/csistoragecapacities",
        CAPACITY,
        {
            "other-class": {"storageClassName": "b"},
            "topology": {"nodeTopology": {"matchLabels": {"a": "b"}}},
            "size": {"capacity": "5Gi"},
        },
    ),
    "attributes": (
        f"{STORAGE}/volumeattributesclasses",
        ATTRIBUTES,
        {"other-driver": {"driverName": "x"}, "other-parameters": {"parameters": {"a": "c"}}},
    ),
    "address": (
        f"{NETWORK}/ipaddresses",
        ADDRESS,
        {"other-owner": {"spec": {"parentRef": {"name": "c"}}}},
    ),
    "range": (
        f"{NETWORK}/servicecidrs",
        RANGE,
        {
            "other": {"spec": {"cidrs": ["10.90.0.0/16"]}},
            "none": {"spec": {"cidrs": None}},
            "of-both-families": {"spec": {"cidrs": ["10.77.0.0/16", "2001:db8::/64"]}},
        },
    ),
    "level": (
        f"{FLOW}/prioritylevelconfigurations",
        LEVEL,
        {"lent": {"spec": {"limited": {"lendablePercent": 1000}}}},
    ),
}


def changes(path: str, obj: Any, given: dict[str, Any], name: str) -> list[Step]:
    """Make an object, change it in each way, and take it away."""
    own = f"{path}/{obj['metadata']['name']}"
    return [
        Step(f"{name}-of", "POST", path, obj, compared=False),
        *(Step(f"{name}-change-{way}", "PATCH", own, body, MERGE) for way, body in given.items()),
        Step(f"{name}-gone", "DELETE", own, compared=False),
    ]


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *(
        Step(f"volume-{name}", "POST", "/api/v1/persistentvolumes?dryRun=All", bent(VOLUME, **change))
        for name, change in VOLUMES.items()
    ),
    *changes(
        "/api/v1/persistentvolumes",
        bent(VOLUME, metadata__name=NAMESPACE),
        {name: {"spec": change} for name, change in VOLUME_CHANGES.items()},
        "volume",
    ),
    *(
        Step(f"{kind}-{name}", "POST", f"{path}?dryRun=All", bent(obj, **change))
        for kind, (path, obj, ways) in OTHERS.items()
        for name, change in ways.items()
    ),
    *(
        step
        for kind, (path, obj, ways) in CHANGES.items()
        for step in changes(
            path, obj if kind == "address" else bent(obj, metadata__name=NAMESPACE), ways, kind
        )
    ),
]
