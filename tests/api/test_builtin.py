"""The kinds that every cluster has."""

import importlib
import json
import pkgutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubewright.api import (
    CUSTOM_RESOURCE_DEFINITION,
    Meta,
    MicroTime,
    Object,
    Quantity,
    builtin,
    decode,
    encode,
    field_info,
    from_wire,
    kind_of,
    to_wire,
    zero,
)
from kubewright.api.builtin import (
    apiextensions_v1,
    apps_v1,
    autoscaling_v1,
    batch_v1,
    coordination_v1,
    core_v1,
    meta_v1,
    networking_v1,
    rbac_v1,
)

ROOT = Path(__file__).parents[2]
MODULES = [module.name for module in pkgutil.iter_modules(builtin.__path__)]


def classes() -> list[type[msgspec.Struct]]:
    found = [importlib.import_module(f"kubewright.api.builtin.{name}") for name in MODULES]
    own = [getattr(module, name) for module in found for name in module.__all__]
    return [cls for cls in own if ".builtin." in cls.__module__]


def test_the_kind_of_definitions_is_that_of_their_class() -> None:
    declared = kind_of(apiextensions_v1.CustomResourceDefinition)
    assert CUSTOM_RESOURCE_DEFINITION.gvk == declared.gvk
    assert CUSTOM_RESOURCE_DEFINITION.path == declared.path
    assert CUSTOM_RESOURCE_DEFINITION.plural == declared.plural
    assert not declared.namespaced


def deployment() -> apps_v1.Deployment:
    return apps_v1.Deployment(
        Meta("web", namespace="shop", labels={"app": "web"}),
        spec=apps_v1.DeploymentSpec(
            replicas=0,
            selector=meta_v1.LabelSelector(match_labels={"app": "web"}),
            template=core_v1.PodTemplateSpec(
                metadata=Meta(labels={"app": "web"}),
                spec=core_v1.PodSpec(
                    containers=[
                        core_v1.Container(
                            name="web",
                            image="web:1",
                            ports=[core_v1.ContainerPort(container_port=80)],
                            resources=core_v1.ResourceRequirements(requests={"cpu": Quantity("0.1")}),
                        )
                    ],
                    volumes=[core_v1.Volume(name="tmp", empty_dir=core_v1.EmptyDirVolumeSource())],
                ),
            ),
        ),
    )


def test_sends_only_what_the_author_set() -> None:
    assert to_wire(deployment()) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {
                            "name": "web",
                            "image": "web:1",
                            "ports": [{"containerPort": 80}],
                            "resources": {"requests": {"cpu": "100m"}},
                        }
                    ],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                },
            },
        },
    }


def test_built_in_objects_decode_to_equal_objects() -> None:
    assert decode(apps_v1.Deployment, encode(deployment())) == deployment()


def test_value_structs_and_counters_are_never_none() -> None:
    assert deployment().status.ready_replicas == 0
    assert core_v1.Node().status.daemon_endpoints.kubelet_endpoint.port == 0
    assert from_wire(apps_v1.StatefulSet, {}).spec.template.spec.containers == []


def test_reads_nulls_that_servers_send() -> None:
    role = decode(rbac_v1.ClusterRole, b'{"metadata":{"name":"a","creationTimestamp":null},"rules":null}')
    assert role == rbac_v1.ClusterRole(Meta("a"), rules=[])


def test_built_in_kinds_have_the_usual_attribute_names() -> None:
    service = from_wire(core_v1.Service, {"spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}})
    assert (service.spec.cluster_ip, service.spec.cluster_ips) == ("10.0.0.1", ["10.0.0.1"])
    pod = from_wire(
        core_v1.Pod, {"status": {"podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.4"}], "hostIP": "h"}}
    )
    assert (pod.status.pod_ip, pod.status.pod_ips[0].ip, pod.status.host_ip) == ("1.2.3.4", "1.2.3.4", "h")
    rule = networking_v1.NetworkPolicyIngressRule(from_=[networking_v1.NetworkPolicyPeer()])
    assert to_wire(rule) == {"from": [{}]}
    version = apiextensions_v1.CustomResourceValidation(openapi_v3_schema={"type": "object", "default": None})
    assert to_wire(version) == {"openAPIV3Schema": {"type": "object", "default": None}}


def test_bytes_times_and_ports_keep_their_types() -> None:
    secret = core_v1.Secret(Meta("s"), data={"k": b"\x00v"})
    assert to_wire(secret)["data"] == {"k": "AHY="}
    assert decode(core_v1.Secret, encode(secret)) == secret
    lease = coordination_v1.Lease(
        Meta("l"), spec=coordination_v1.LeaseSpec(renew_time=MicroTime(2024, 1, 2, 3, 4, 5, 6, UTC))
    )
    assert to_wire(lease)["spec"] == {"renewTime": "2024-01-02T03:04:05.000006Z"}
    assert decode(coordination_v1.Lease, encode(lease)) == lease
    port = core_v1.ServicePort(port=80, target_port="http")
    assert from_wire(core_v1.ServicePort, to_wire(port)) == port
    job = from_wire(batch_v1.Job, {"spec": {}, "status": {"startTime": "2024-01-02T03:04:05Z"}})
    assert job.status.start_time == datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_built_in_kinds_have_plurals_scopes_and_subresources() -> None:
    kind = kind_of(apps_v1.Deployment)
    assert (kind.resource, kind.namespaced, kind.status, kind.short_names) == (
        "deployments.apps",
        True,
        True,
        ("deploy",),
    )
    assert kind.scale is not None
    assert kind.builtin
    assert kind_of(core_v1.Endpoints).plural == "endpoints"
    assert kind_of(networking_v1.Ingress).plural == "ingresses"
    assert not kind_of(core_v1.Node).namespaced
    assert not kind_of(core_v1.ConfigMap).status
    assert kind_of(autoscaling_v1.Scale).scale is None


def test_built_in_lists_have_their_keys() -> None:
    assert field_info(core_v1.PodSpec)["containers"].list_keys == ("name",)
    assert field_info(core_v1.Container)["ports"].list_keys == ("containerPort", "protocol")
    assert field_info(core_v1.Container)["command"].list_type is None
    assert field_info(Meta)["finalizers"].list_type == "set"


@pytest.mark.parametrize(
    "cls", classes(), ids=lambda cls: f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}"
)
def test_every_type_can_be_empty_and_read_back(cls: Any) -> None:
    empty = zero(cls)
    wire = to_wire(empty)
    assert from_wire(cls, wire) == decode(cls, encode(empty)) == empty
    if issubclass(cls, Object):
        assert wire["kind"] == kind_of(cls).kind


def test_importing_one_group_costs_only_that_group() -> None:
    script = (
        "import json, sys; from kubewright.api.builtin import coordination_v1;"
        "print(json.dumps([name for name in sys.modules if name.startswith('kubewright.api.builtin.')]))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == ["kubewright.api.builtin.coordination_v1"]


def test_the_modules_are_what_the_facts_give() -> None:
    tool = ROOT / "tools" / "generate_builtin.py"
    found = subprocess.run(
        [sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")
