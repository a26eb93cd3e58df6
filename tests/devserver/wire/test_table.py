"""The type table: values of built-in kinds come out as Go would write them."""

import json
from typing import Any

import pytest

from kubewright.api import GroupVersionKind, PatchError
from kubewright.devserver.wire import WireDecodeError, load_types

TYPES = load_types()
POD = GroupVersionKind("", "v1", "Pod")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")
CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def decode(gvk: GroupVersionKind, value: Any) -> dict[str, Any]:
    return TYPES.decode(gvk, value)[0]


def test_writes_fields_in_the_order_of_the_go_types() -> None:
    sent = {
        "data": {"b": "2", "a": "1"},
        "metadata": {"labels": {"x": "1"}, "name": "a"},
        "kind": "ConfigMap",
        "apiVersion": "v1",
    }
    assert json.dumps(decode(CONFIG_MAP, sent), separators=(",", ":")) == (
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","labels":{"x":"1"}},"data":{"a":"1","b":"2"}}'
    )


@pytest.mark.parametrize(
    ("gvk", "written"),
    [
        (GroupVersionKind("", "v1", "Namespace"), {"metadata": {}, "spec": {}, "status": {}}),
        (
            DEPLOYMENT,
            {
                "metadata": {},
                "spec": {
                    "selector": None,
                    "template": {"metadata": {}, "spec": {"containers": None}},
                    "strategy": {},
                },
                "status": {},
            },
        ),
        (
            GroupVersionKind("", "v1", "Event"),
            {
                "metadata": {},
                "involvedObject": {},
                "source": {},
                "firstTimestamp": None,
                "lastTimestamp": None,
                "eventTime": None,
                "reportingComponent": "",
                "reportingInstance": "",
            },
        ),
        (
            GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler"),
            {
                "metadata": {},
                "spec": {"scaleTargetRef": {"kind": "", "name": ""}, "maxReplicas": 0},
                "status": {"desiredReplicas": 0, "currentMetrics": None},
            },
        ),
        (GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole"), {"metadata": {}, "rules": None}),
    ],
)
def test_writes_the_zero_values_that_go_always_writes(gvk: GroupVersionKind, written: dict[str, Any]) -> None:
    assert TYPES.zero(gvk) == {"kind": gvk.kind, "apiVersion": gvk.api_version, **written}


def test_drops_empty_values_of_value_types_and_keeps_those_of_pointers() -> None:
    spec = decode(DEPLOYMENT, {"spec": {"replicas": 0, "minReadySeconds": 0, "paused": False}})["spec"]
    assert spec["replicas"] == 0
    assert "minReadySeconds" not in spec
    assert "paused" not in spec
    assert decode(CONFIG_MAP, {"immutable": False, "data": {}, "binaryData": None}) == {
        "metadata": {},
        "immutable": False,
    }


def test_null_is_read_as_absent() -> None:
    assert decode(CONFIG_MAP, {"metadata": None, "data": {"a": None}}) == {"metadata": {}, "data": {"a": ""}}
    assert decode(POD, {"spec": {"containers": [None]}})["spec"]["containers"] == [
        {"name": "", "resources": {}}
    ]


def test_writes_empty_lists_that_go_does_not_leave_out_as_null() -> None:
    role = GroupVersionKind("rbac.authorization.k8s.io", "v1", "Role")
    assert decode(role, {"rules": []}) == {"metadata": {}, "rules": None}
    assert TYPES.decode_request(role, {"rules": []})[0] == {"metadata": {}, "rules": []}
    assert TYPES.decode_request(role, {"rules": None})[0] == {"metadata": {}, "rules": None}
    status = decode(CRD, {"status": {"conditions": [], "storedVersions": None}})["status"]
    assert (status["conditions"], status["storedVersions"]) == ([], None)


def test_makes_quantities_times_and_bytes_canonical() -> None:
    container = {"name": "c", "resources": {"limits": {"memory": "1024Mi", "cpu": 0.5}}}
    pod = {
        "metadata": {"creationTimestamp": "2026-01-02T03:04:05.9+02:00"},
        "spec": {"containers": [container]},
    }
    written = decode(POD, pod)
    assert written["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "500m", "memory": "1Gi"}}
    assert written["metadata"] == {"creationTimestamp": "2026-01-02T01:04:05Z"}
    assert decode(LEASE, {"spec": {"renewTime": "2026-01-02T03:04:05.123456Z"}})["spec"] == {
        "renewTime": "2026-01-02T03:04:05.123456Z"
    }
    assert decode(CONFIG_MAP, {"binaryData": {"a": "YQ\n=="}})["binaryData"] == {"a": "YQ=="}
    assert decode(POD, {"metadata": {"creationTimestamp": "0001-01-01T00:00:00Z"}})["metadata"] == {}


def test_int_or_string_values_keep_their_type() -> None:
    service = GroupVersionKind("", "v1", "Service")
    ports = [{"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 8081}, {"port": 82}]
    written = decode(service, {"spec": {"ports": ports}})["spec"]["ports"]
    assert [port["targetPort"] for port in written] == ["http", 8081, 0]


def test_unknown_fields_are_listed_in_order() -> None:
    container = {"name": "c", "foo": 1, "env": [{"name": "A"}, {"bar": 2}], "Image": "x"}
    value = {"spec": {"unk": 1, "template": {"spec": {"containers": [container]}}}, "bogus": {}}
    assert TYPES.decode(DEPLOYMENT, value)[1] == [
        'unknown field "spec.unk"',
        'unknown field "spec.template.spec.containers[0].foo"',
        'unknown field "spec.template.spec.containers[0].env[1].bar"',
        'unknown field "spec.template.spec.containers[0].Image"',
        'unknown field "bogus"',
    ]


def test_lists_no_more_than_a_hundred_unknown_fields() -> None:
    assert len(TYPES.decode(CONFIG_MAP, {f"x{n}": 1 for n in range(500)})[1]) == 100


@pytest.mark.parametrize(
    ("gvk", "value", "text"),
    [
        (CONFIG_MAP, [], "json: cannot unmarshal array into Go value of type v1.ConfigMap"),
        (CONFIG_MAP, {"metadata": {"name": True}}, "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.name of type string"),
        (CONFIG_MAP, {"data": {"a": 1}}, "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        (CONFIG_MAP, {"data": "x"}, "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string"),
        (CONFIG_MAP, {"metadata": "x"}, "json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
        (CONFIG_MAP, {"binaryData": {"a": "b!"}}, "illegal base64 data at input byte 1"),
        (DEPLOYMENT, {"spec": {"replicas": "x"}}, "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (DEPLOYMENT, {"spec": {"replicas": 1.5}}, "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (DEPLOYMENT, {"spec": {"replicas": 3000000000}}, "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (POD, {"spec": {"containers": {}}}, "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"),
        (POD, {"spec": {"containers": [{"ports": [{"protocol": 1}]}]}}, "json: cannot unmarshal number into Go struct field ContainerPort.spec.containers.ports.protocol of type v1.Protocol"),
        (POD, {"spec": {"volumes": [{"emptyDir": "x"}]}}, "json: cannot unmarshal string into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource"),
        (POD, {"metadata": {"creationTimestamp": 5}}, "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string"),
        (POD, {"metadata": {"creationTimestamp": "x"}}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        (POD, {"metadata": {"creationTimestamp": "2026-13-01T00:00:00Z"}}, 'parsing time "2026-13-01T00:00:00Z": month out of range'),
        (POD, {"metadata": {"creationTimestamp": "2026-02-30T00:00:00Z"}}, 'parsing time "2026-02-30T00:00:00Z": day out of range'),
        (POD, {"metadata": {"creationTimestamp": "2026-02-03T00:00:00Zx"}}, 'parsing time "2026-02-03T00:00:00Zx": extra text: "x"'),
        (LEASE, {"spec": {"renewTime": "2024-01-01T00:00:00Z"}}, 'parsing time "2024-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"'),
        (CRD, {"spec": {"versions": [{"schema": {"openAPIV3Schema": {"additionalProperties": 1}}}]}}, "boolean or JSON schema expected"),
        (GroupVersionKind("", "v2", "ConfigMap"), {}, 'no kind "ConfigMap" is registered for version "v2" in scheme "pkg/api/legacyscheme/scheme.go:30"'),
    ],
)  # fmt: skip
def test_refuses_values_with_the_messages_of_go(gvk: GroupVersionKind, value: Any, text: str) -> None:
    with pytest.raises(WireDecodeError) as problem:
        TYPES.decode(gvk, value)
    assert str(problem.value) == text


def test_refuses_quantities_with_the_messages_of_the_real_server() -> None:
    pod = {"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}
    with pytest.raises(WireDecodeError, match="quantities must match the regular expression"):
        TYPES.decode(POD, pod)


def test_reads_schemas_inside_definitions() -> None:
    schema = {
        "type": "object",
        "additionalProperties": {"type": "string", "bogus": 1},
        "properties": {
            "l": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            "d": {"default": {"b": 1, "a": [{"d": 1, "c": 2}]}, "properties": {}},
            "f": {"additionalProperties": False},
        },
    }
    value, unknown = TYPES.decode(CRD, {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}})
    read = value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert unknown == []
    assert read["additionalProperties"] == {"type": "string"}
    assert read["properties"]["l"] == schema["properties"]["l"]
    assert json.dumps(read["properties"]["d"]) == '{"default": {"a": [{"c": 2, "d": 1}], "b": 1}}'
    assert read["properties"]["f"] == {"additionalProperties": False}


def test_knows_option_kinds_in_every_group() -> None:
    assert TYPES.has(GroupVersionKind("apps", "v1", "DeleteOptions"))
    assert not TYPES.has(GroupVersionKind("ex.io", "v1", "Thing"))


def test_shows_resources_as_discovery_does() -> None:
    versions = {f"{version.group}/{version.version}": version for version in TYPES.discovery()}
    deployments = next(r for r in versions["apps/v1"].resources if r.name == "deployments")
    assert (deployments.kind, deployments.singular, deployments.namespaced) == (
        "Deployment",
        "deployment",
        True,
    )
    assert deployments.short_names == ["deploy"]
    assert deployments.categories == ["all"]
    assert [(sub.name, sub.group, sub.version, sub.kind) for sub in deployments.subresources] == [
        ("scale", "autoscaling", "v1", "Scale"),
        ("status", "apps", "v1", "Deployment"),
    ]
    pods = next(r for r in versions["/v1"].resources if r.name == "pods")
    eviction = next(sub for sub in pods.subresources if sub.name == "eviction")
    assert (eviction.group, eviction.kind, eviction.verbs) == ("policy", "Eviction", ["create"])
    assert all("alpha" not in name and "beta" not in name for name in versions)


def test_has_an_openapi_document_for_every_served_version() -> None:
    for version in TYPES.discovery():
        name = f"{version.group}/{version.version}" if version.group else version.version
        document = json.loads(TYPES.openapi(name))
        assert document["paths"]
        assert document["components"]["schemas"]
    with pytest.raises(KeyError):
        TYPES.openapi("apps/v9")


def test_openapi_documents_carry_no_description_texts() -> None:
    texts: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            texts.update(v for k, v in value.items() if k == "description" and isinstance(v, str))
            for item in value.values():
                collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)

    collect(json.loads(TYPES.openapi("v1")))
    assert texts == {"OK"}


def test_patch_schemas_have_strategies_and_merge_keys() -> None:
    spec = TYPES.patch_schema(DEPLOYMENT).field("spec")
    assert spec.field("strategy").strategy == {"retainKeys"}
    containers = spec.field("template").field("spec").field("containers")
    assert (containers.strategy, containers.merge_key) == ({"merge"}, "name")
    ports = containers.item().field("ports")
    assert (ports.strategy, ports.merge_key) == ({"merge"}, "containerPort")
    volumes = spec.field("template").field("spec").field("volumes")
    assert (volumes.strategy, volumes.merge_key) == ({"merge", "retainKeys"}, "name")
    with pytest.raises(PatchError, match='in struct DeploymentSpec for the json field "bogus"'):
        spec.field("bogus")
